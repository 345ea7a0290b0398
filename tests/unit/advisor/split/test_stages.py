"""The planner of workflows against everything that there is to try, and what must hold for any workflow."""

from dataclasses import replace
from random import Random

import pytest

from advisor.split.stages import plan_stages
from advisor.split.stages_words import Edge, Stage, StageOption, StagePool, StagesProblem, Wire
from core.device import Link
from core.errors import BadInput
from tests.unit.advisor.split.stages_cases import LEVEL, every_plan, faults, workflow

SEEDS = range(0, 110)
MARGIN = 1e-6


def _solve(problem: StagesProblem):
    try:
        return plan_stages(problem, singles=False)
    except BadInput as error:
        assert "wait for each other" in str(error)
        return None


@pytest.mark.parametrize("objective", ["time", "cost", "energy"])
def test_a_plan_equals_the_best_of_all_that_there_are(objective: str) -> None:
    compared = 0
    for seed in SEEDS:
        problem = workflow(seed, objective)
        plan = _solve(problem)
        if plan is None:
            continue
        everything = [figures[LEVEL[objective]] for figures in every_plan(problem)]
        assert bool(plan.placed) == bool(everything), (seed, plan.barred)
        if plan.placed:
            assert plan.value == pytest.approx(min(everything), rel=MARGIN, abs=1e-9), seed
            assert plan.proven, seed
            assert faults(problem, plan) == [], seed
            compared += 1
    assert compared >= 60
