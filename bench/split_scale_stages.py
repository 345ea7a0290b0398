"""Speed and gap of the planners of workflows and portfolios at the size that a large team has.

Bounds, on each of three seeds: a workflow of 200 stages on 12 pools in at most 5 s, to the proven optimum or with its gap stated,
for least time and for least cost; a portfolio of 100 workloads on 20 pools in at most 10 s to a gap of at most 1 %. Times are of
the wall, without the import of the solvers, which is told on a line of its own. The workflows are random graphs of stages of one
minute to two hours on unrelated pools, a fifth of which cannot run a stage, with links between two in five pools and a store. Of
the portfolios ten pools are owned and cost what power and hosting cost, ten are rented for more; workloads have up to four counts
of chips on three in five pools, releases and deadlines within ten days.
"""

import argparse
import json
import time
from random import Random

from advisor.split.portfolio import plan_portfolio
from advisor.split.portfolio_words import PortfolioProblem, TeamPool, Work, WorkOption
from advisor.split.stages import plan_stages
from advisor.split.stages_words import Edge, Stage, StageOption, StagePool, StagesProblem, Wire
from core.device import Link
from core.workflow import WorkflowStore

SEEDS = (0, 1, 2)
STAGES, STAGE_POOLS, MOST_STAGES_S = 200, 12, 5.0
WORKS, WORK_POOLS, MOST_PORTFOLIO_S, MOST_GAP = 100, 20, 10.0, 0.01
HOUR_S = 3600.0
WIDTH = 24
"""Stages back from which a stage takes its input at most."""


def main() -> int:
    """Measure, print, and say whether the bounds hold."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    import_s = _warm()
    rows = [_stages(seed, objective) for objective in ("time", "cost") for seed in SEEDS]
    rows += [_portfolio(seed) for seed in SEEDS]
    holds = all(row["holds"] for row in rows)
    if arguments.json:
        print(json.dumps({"schema_version": 1, "rows": rows, "import_s": import_s, "holds": holds}))
        return 0 if holds else 1
    print(f"import of the solvers {import_s:.2f} s")
    print(f"{'planner':<10} {'objective':<10} {'seed':>4} {'seconds':>8} {'value':>14} {'bound':>14} {'gap':>8}")
    for row in rows:
        print(f"{row['planner']:<10} {row['objective']:<10} {row['seed']:>4} {row['seconds']:>8.2f} {row['value']:>14.6g} "
              f"{row['bound']:>14.6g} {row['gap']:>8.2%}")  # fmt: skip
    stages = [row for row in rows if row["planner"] == "stages"]
    works = [row for row in rows if row["planner"] == "portfolio"]
    print(
        f"{'HOLDS' if holds else 'falls short'}: {STAGES} stages x {STAGE_POOLS} pools in at most "
        f"{max(float(row['seconds']) for row in stages):.2f} s (bound {MOST_STAGES_S}), gap at most "
        f"{max(float(row['gap']) for row in stages):.2%} as stated; {WORKS} workloads x {WORK_POOLS} pools in at most "
        f"{max(float(row['seconds']) for row in works):.2f} s (bound {MOST_PORTFOLIO_S}), gap at most "
        f"{max(float(row['gap']) for row in works):.2%} (bound {MOST_GAP:.0%})"
    )
    return 0 if holds else 1


def workflow(seed: int, objective: str) -> StagesProblem:
    """Return a random workflow of the size that is measured."""
    chance = Random(seed)
    pools = tuple(
        StagePool(f"pool{i}", float(chance.choice((0, 2, 5, 10, 20, 40, 80))), float(chance.choice((300, 700, 3000))))
        for i in range(STAGE_POOLS)
    )
    speeds = [chance.uniform(0.5, 4.0) for _ in pools]
    stages: list[Stage] = []
    edges: list[Edge] = []
    for index in range(STAGES):
        base = chance.uniform(60.0, 7200.0)
        stages.append(
            Stage(
                f"stage{index}",
                tuple(
                    StageOption(pool.name, round(base / speed * chance.uniform(0.7, 1.4), 3))
                    for place, (pool, speed) in enumerate(zip(pools, speeds, strict=True))
                    if place == index % STAGE_POOLS or chance.random() > 0.2
                ),
            )
        )
        inputs = chance.choice((1, 1, 2)) if index else 0
        before = {chance.randrange(max(0, index - WIDTH), index) for _ in range(inputs)}
        edges += [Edge(f"stage{source}", f"stage{index}", 10 ** chance.uniform(6, 12)) for source in sorted(before)]
    wires = tuple(
        Wire((f"pool{a}", f"pool{b}"), Link(0.001, chance.choice((1.25e8, 1.25e9, 1.25e10))))
        for a in range(STAGE_POOLS) for b in range(a) if chance.random() < 0.4
    )  # fmt: skip
    return StagesProblem(tuple(stages), tuple(edges), pools, wires, WorkflowStore(1e9, 1e9, 0.09, 0.1), objective=objective)


def portfolio(seed: int) -> PortfolioProblem:
    """Return a random portfolio of the size that is measured."""
    chance = Random(seed)
    pools: list[TeamPool] = []
    for index in range(WORK_POOLS):
        owned = index < WORK_POOLS // 2
        price = round(chance.uniform(0.2, 1.2) if owned else chance.uniform(1.5, 8.0), 2)
        pools.append(TeamPool(f"pool{index}", chance.choice((16, 32, 64, 128)), price, spot=not owned and chance.random() < 0.3))
    speeds = [chance.uniform(0.5, 3.0) for _ in pools]
    works: list[Work] = []
    for index in range(WORKS):
        chip_s = chance.uniform(16.0, 320.0) * HOUR_S
        fit = [place for place in range(WORK_POOLS) if chance.random() < 0.6] or [0]
        options = tuple(
            WorkOption(pools[place].name, chips, float(round(chip_s / speeds[place] / chips**0.95)))
            for place in fit for chips in (4, 8, 16, 32) if chips <= pools[place].chips
        )  # fmt: skip
        release = float(round(chance.choice((0.0, 0.0, chance.uniform(0, 72))) * HOUR_S))
        deadline = None if chance.random() < 0.2 else float(round(release + chance.uniform(24, 168) * HOUR_S))
        works.append(Work(f"work{index}", options, release, deadline, chance.choice((1, 1, 2, 5)), chance.random() < 0.5))
    return PortfolioProblem(tuple(works), tuple(pools))


def _warm() -> float:
    """Import the solvers; returns the seconds."""
    start = time.perf_counter()
    import scipy.optimize
    from ortools.sat.python import cp_model

    assert scipy.optimize.milp
    assert cp_model.CpSolver
    return time.perf_counter() - start


def _stages(seed: int, objective: str) -> dict[str, str | float | bool]:
    problem = workflow(seed, objective)
    start = time.perf_counter()
    plan = plan_stages(problem, singles=False)
    seconds = time.perf_counter() - start
    assert plan.value is not None
    assert plan.bound is not None
    assert plan.gap is not None
    return {"planner": "stages", "objective": objective, "seed": seed, "seconds": seconds, "value": plan.value,
            "bound": plan.bound, "gap": plan.gap, "holds": bool(plan.placed) and seconds <= MOST_STAGES_S}  # fmt: skip


def _portfolio(seed: int) -> dict[str, str | float | bool]:
    problem = portfolio(seed)
    start = time.perf_counter()
    plan = plan_portfolio(problem, alone=False)
    seconds = time.perf_counter() - start
    assert plan.value is not None
    holds = not plan.unplaced and seconds <= MOST_PORTFOLIO_S and plan.gap <= MOST_GAP
    return {"planner": "portfolio", "objective": plan.objective, "seed": seed, "seconds": seconds, "value": plan.value,
            "bound": plan.bound, "gap": plan.gap, "holds": holds}  # fmt: skip


if __name__ == "__main__":
    raise SystemExit(main())
