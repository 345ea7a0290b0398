"""Copies that meet seldom: the plan is the best of all sets, shares, steps and forms, each round simulated step by step."""

import random
from dataclasses import replace
from itertools import combinations, product

import pytest

from advisor.split.local import plan_local
from advisor.split.local_published import PUBLISHED, VARIANTS, covering, quality_note
from advisor.split.local_words import LocalPool, LocalProblem
from advisor.split.pace import Pace
from advisor.split.pipeline_words import every_way
from core.device import Link
from core.errors import BadInput

INSTANCES = 320
BATCHES = 4


def an_instance(seed: int) -> LocalProblem:
    draw = random.Random(seed)
    count = draw.randint(1, 3)
    pools = tuple(
        LocalPool(
            f"p{index}",
            Pace(((2, (slow := draw.uniform(0.05, 0.6)) * 2), (8, slow * draw.uniform(4, 8))), draw.choice([1, 1, 2]),
                 draw.choice([None, 4])),
            draw.uniform(0, 0.2), draw.uniform(0, 0.5),
        )
        for index in range(count)
    )
    link = Link(draw.uniform(0, 0.3), draw.choice([0.1, 1.0, 20.0]))
    steps = tuple(sorted(draw.sample([1, 2, 4, 6, 12, 24, 60], 4)))
    variants = tuple(draw.sample(["plain", "streaming"], draw.randint(1, 2)))
    least = draw.choice([1, min(2, count)])
    return LocalProblem(pools, draw.choice([6, 12]), draw.uniform(0, 4), 32, every_way(count, link), steps, variants,
                        draw.choice([1, 2, 3]), draw.choice([1, 2]), draw.choice([0.02, 0.1, 0.3]), least)


def step_of(problem: LocalProblem, index: int, samples: int) -> float:
    pool = problem.pools[index]
    return pool.pace.seconds(samples) + pool.inner_s


def meeting(problem: LocalProblem, count: int, size: float) -> float:
    link = next(way for row in problem.links for way in row if way is not None)
    rounds, part = (1, size) if count == 2 else (2 * (count - 1), size / count)
    return rounds * (part / link.bytes_per_s + link.latency_s)


def round_by_hand(problem: LocalProblem, variant: str, compute: float, used: tuple[int, ...], steps: int) -> float | None:
    """Go through the whole steps of a round; a fragment leaves at the beginning of its stretch and must be back in time."""
    if len(used) == 1:
        return compute
    outer = max(problem.pools[index].outer_s for index in used)
    if variant == "plain":
        return compute + meeting(problem, len(used), problem.delta_bytes) + outer
    parts = problem.fragments
    if steps // parts < problem.overlap_steps:
        return None
    way, each, now = meeting(problem, len(used), problem.delta_bytes / parts), compute / steps, 0.0
    for _ in range(parts):
        leaves, done = now, 0
        while done + 1 <= problem.overlap_steps:
            now, done = now + each, done + 1
        now = max(now, leaves + way) + (steps / parts - done) * each
    return now + outer


def level_steps(problem: LocalProblem, used: tuple[int, ...], each: int, steps: int) -> float:
    """Return the longest of the best division of steps, all of them tried."""
    total = steps * len(used)
    times = [step_of(problem, index, each) for index in used]
    if len(used) == 2:
        return min(max(first * times[0], (total - first) * times[1]) for first in range(1, total))
    return min(max(a * times[0], b * times[1], (total - a - b) * times[2]) for a in range(1, total) for b in range(1, total - a))


def computes(problem: LocalProblem, used: tuple[int, ...]) -> list[tuple[str, list[tuple[int, float]]]]:
    """Return by style the longest compute of a round for every number of steps."""
    grains = [problem.pools[index].pace.grain for index in used]
    choices = product(*(range(grain, problem.batch + 1, grain) for grain in grains))
    level = min((max(step_of(problem, index, share) for index, share in zip(used, shares, strict=True))
                 for shares in choices if sum(shares) == problem.batch), default=None)
    found = [] if level is None else [("shares", [(steps, steps * level) for steps in problem.inner_steps])]
    each = problem.batch // len(used)
    if len(used) > 1 and all(each % grain == 0 for grain in grains):
        found.append(("steps", [(steps, level_steps(problem, used, each, steps)) for steps in problem.inner_steps]))
    return found


def best_by_hand(problem: LocalProblem) -> tuple[bool, float] | None:
    found: list[tuple[bool, float]] = []
    for size in range(problem.least_pools, len(problem.pools) + 1):
        for used in combinations(range(len(problem.pools)), size):
            for (_, every), variant in product(computes(problem, used), problem.variants if size > 1 else ("plain",)):
                rounds = [(1 - compute / whole, whole / steps) for steps, compute in every
                          if (whole := round_by_hand(problem, variant, compute, used, steps)) is not None]
                within = [one for one in rounds if one[0] <= problem.most_exposed]
                if within:
                    found.append((False, within[0][1]))
                elif rounds:
                    found.append((True, min(rounds)[1]))
    return min(found, default=None)


@pytest.mark.parametrize("batch", range(BATCHES))
def test_the_plan_is_the_best_of_all(batch: int) -> None:
    seen = 0
    for seed in range(batch, INSTANCES, BATCHES):
        problem = an_instance(seed)
        plan, best = plan_local(problem), best_by_hand(problem)
        assert (plan is None) == (best is None), seed
        if plan is None or best is None:
            continue
        seen += 1
        assert (not plan.within, plan.seconds) == (best[0], pytest.approx(best[1], rel=1e-9)), seed
        assert sum(share.weight for share in plan.shares) == pytest.approx(1)
        assert sum(share.samples * share.steps for share in plan.shares) == pytest.approx(problem.batch * plan.inner_steps)
        assert sum(seconds for _, seconds in plan.terms) == pytest.approx(plan.seconds)
        assert max(bar.stop_s for bar in plan.timeline) <= plan.round_s * (1 + 1e-9)
        assert 0 <= plan.utilisation <= 1
    assert seen >= 300 / BATCHES


@pytest.mark.parametrize("seed", range(30))
def test_the_order_of_pools_does_not_matter_and_one_less_is_not_faster(seed: int) -> None:
    problem = replace(an_instance(seed), least_pools=1, most_exposed=1.0)
    turned = replace(problem, pools=problem.pools[::-1], links=tuple(row[::-1] for row in problem.links[::-1]))
    plan, other = plan_local(problem), plan_local(turned)
    assert (plan.seconds if plan else None) == (pytest.approx(other.seconds, rel=1e-12) if other else None)
    if len(problem.pools) > 1:
        fewer = plan_local(replace(problem, pools=problem.pools[1:], links=tuple(row[1:] for row in problem.links[1:])))
        if fewer is not None:
            assert plan is not None
            assert plan.seconds <= fewer.seconds * (1 + 1e-12)


def two(variants: tuple[str, ...], **changes: object) -> LocalProblem:
    rates = (("fast", 300.0), ("slow", 100.0))
    pools = tuple(LocalPool(name, Pace(((1, 1 / rate), (1000, 1000 / rate)))) for name, rate in rates)
    problem = LocalProblem(pools, 400, 4e9, 32, every_way(2, Link(0.0, 1e9)), (1, 10, 100, 500), variants, least_pools=2)
    return replace(problem, **changes)  # type: ignore[arg-type]


def test_steps_between_meetings_are_the_fewest_that_cost_a_twentieth() -> None:
    # a step takes 1 s on both, a meeting 4 s: 10 steps lose 4/14, 100 lose 4/104
    plan = plan_local(two(("plain",), total_steps=1050))
    assert plan is not None
    assert (plan.inner_steps, plan.meetings) == (100, 11)
    assert plan.seconds == pytest.approx(1.04)
    assert plan.utilisation == pytest.approx(100 / 104)
    assert [(share.samples, share.weight) for share in plan.shares] == [(300, 0.75), (100, 0.25)]


def test_streaming_hides_a_fragment_behind_the_steps_that_it_may_overlap() -> None:
    # a fragment of 1 GB is on its way for 1 s, a step long
    plan = plan_local(two(("streaming",), fragments=4, overlap_steps=1))
    assert plan is not None
    assert (plan.inner_steps, plan.exposed_s) == (10, pytest.approx(0, abs=1e-12))
    assert plan.seconds == pytest.approx(1.0)
    assert plan.mean_bytes_per_s == pytest.approx(4e8)


def test_equal_batches_are_kept_level_by_more_steps_of_the_faster() -> None:
    # 150 and 50 samples would be level, but a grain of 100 leaves 100 and 100, so that the faster takes 3 of 4 steps
    problem = two(("plain",), batch=200, delta_bytes=0.0, inner_steps=(10,))
    pools = tuple(replace(pool, pace=replace(pool.pace, grain=100)) for pool in problem.pools)
    plan = plan_local(replace(problem, pools=pools))
    assert plan is not None
    assert plan.style == "steps"
    assert [share.steps for share in plan.shares] == [15, 5]
    assert plan.seconds == pytest.approx(0.5)


def test_decoupled_copies_work_at_all_their_rates_together_unless_the_link_is_too_slow() -> None:
    plan = plan_local(two(("decoupled",), batch=400))
    slow = plan_local(two(("decoupled",), batch=400, links=every_way(2, Link(0.0, 1e6))))
    assert plan is not None
    assert plan.style == "own"
    assert plan.seconds == pytest.approx(1.0)
    assert slow is not None
    assert not slow.within
    assert slow.seconds == pytest.approx(4000 / 500)


def test_every_report_names_its_source_and_what_goes_beyond_it_is_told() -> None:
    assert all("arXiv" in one.source for one in PUBLISHED)
    assert [covering(variant)[0].variant for variant in VARIANTS] == list(VARIANTS)
    assert "Beyond" not in quality_note("plain", 8, 500, 32)
    assert "1000 steps between meetings where 500 are published" in quality_note("plain", 2, 1000, 32)
    assert "4 bits of a value where 8 are published" in quality_note("plain", 2, 100, 4)
    assert "Beyond" not in quality_note("streaming", 2, 100, 4)


@pytest.mark.parametrize(("change", "part"), [
    ({"variants": ("often",)}, "often"), ({"inner_steps": ()}, "whole numbers"), ({"most_exposed": 2.0}, "most_exposed 2"),
    ({"delta_bytes": -1.0}, "delta_bytes -1"),
])
def test_numbers_that_do_not_fit_are_refused(change: dict[str, object], part: str) -> None:
    with pytest.raises(BadInput, match=part):
        replace(two(("plain",)), **change)  # type: ignore[arg-type]
