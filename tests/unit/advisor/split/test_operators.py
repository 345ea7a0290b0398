"""Placing parts of a step equals trying every placement, for each way in which a step is carried out."""

import random
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise, permutations, product

import pytest

from advisor.split.operators import plan_operators, seconds_at
from advisor.split.operators_words import Flow, NoPlacement, On, OperatorPlan, OperatorProblem, Part
from core.device import Link
from core.errors import BadInput

INSTANCES = 300
FAST = Link(0.0, 1e12)


def _random(seed: int, most_parts: int, trained: bool = True, pools: int = 2) -> OperatorProblem:
    draw = random.Random(seed)
    count = draw.randint(2, most_parts)
    names = ("gpu", "tpu", "cpu")[:pools]
    parts = tuple(
        Part(f"part {number}", tuple(
            On(missing="no such operation") if draw.random() < 0.12 and pool else On(
                draw.randint(1, 9) / 10, draw.randint(0, 9) / 10 if trained else 0.0, draw.randint(1, 4)
            )
            for pool in range(pools)
        ), draw.choice((0, 0, 1)))
        for number in range(count)
    )
    flows = tuple(
        Flow(a, b, draw.randint(0, 8), draw.randint(0, 8) if trained else 0.0)
        for b in range(1, count) for a in range(b) if draw.random() < (0.8 if a == b - 1 else 0.3)
    )
    links = tuple(
        tuple(None if a == b or draw.random() < 0.04 else Link(draw.choice((0, 0.1)), draw.uniform(5, 60)) for b in range(pools))
        for a in range(pools)
    )
    memory = tuple(draw.choice((None, None, 6.0)) for _ in range(pools))
    return OperatorProblem(names, parts, flows, links, memory)


def _allowed(problem: OperatorProblem) -> Iterator[tuple[int, ...]]:
    for placed in product(range(len(problem.pools)), repeat=len(problem.parts)):
        if any(part.on[pool].missing for part, pool in zip(problem.parts, placed, strict=True)):
            continue
        used = [sum(part.on[p].memory_bytes for part, p in zip(problem.parts, placed, strict=True) if p == pool)
                for pool in range(len(problem.pools))]
        if any(most is not None and one > most for one, most in zip(used, problem.memory_bytes, strict=True)):
            continue
        if all(_way(problem, placed[flow.source], placed[flow.target], flow.forward_bytes) is not None
               and _way(problem, placed[flow.target], placed[flow.source], flow.backward_bytes) is not None
               for flow in problem.flows):
            yield placed


def _way(problem: OperatorProblem, a: int, b: int, size: float) -> float | None:
    if a == b or not size:
        return 0.0
    link = problem.links[a][b]
    return None if link is None else link.latency_s + size / link.bytes_per_s


def _jobs(problem: OperatorProblem, placed: tuple[int, ...]) -> dict[str, tuple[object, float, list[str]]]:
    """Passes and messages by name: lane, seconds, what comes before."""
    jobs: dict[str, tuple[object, float, list[str]]] = {}
    for number, (part, pool) in enumerate(zip(problem.parts, placed, strict=True)):
        jobs[f"f{number}"] = (pool, part.on[pool].forward_s, [])
        jobs[f"b{number}"] = (pool, part.on[pool].backward_s, [f"f{number}"])
    for number, flow in enumerate(problem.flows):
        a, b = placed[flow.source], placed[flow.target]
        jobs[f"m{number}"] = ((a, b), _way(problem, a, b, flow.forward_bytes), [f"f{flow.source}"])
        jobs[f"f{flow.target}"][2].append(f"m{number}")
        if flow.backward_bytes:
            jobs[f"r{number}"] = ((b, a), _way(problem, b, a, flow.backward_bytes), [f"b{flow.target}"])
            jobs[f"b{flow.source}"][2].append(f"r{number}")
    return jobs


def _shortest(jobs: dict[str, tuple[object, float, list[str]]], best: float) -> float:
    """The least end over all active schedules (Giffler and Thompson), or `best` when none ends before."""
    tails: dict[str, float] = {}

    def tail(name: str) -> float:
        if name not in tails:
            tails[name] = jobs[name][1] + max((tail(other) for other, job in jobs.items() if name in job[2]), default=0.0)
        return tails[name]

    def search(ends: dict[str, float], free: dict[object, float], best: float) -> float:
        ready = {
            name: max([free.get(lane, 0.0) if seconds else 0.0, *(ends[one] for one in before)])
            for name, (lane, seconds, before) in jobs.items() if name not in ends and all(one in ends for one in before)
        }
        if not ready:
            return min(best, max(ends.values()))
        if max(begin + tail(name) for name, begin in ready.items()) >= best - 1e-9:
            return best
        first = min(ready, key=lambda name: (ready[name] + jobs[name][1], name))
        end, lane = ready[first] + jobs[first][1], jobs[first][0]
        rivals = [name for name in ready if jobs[name][0] == lane and jobs[name][1] and ready[name] < end - 1e-12]
        for name in rivals if jobs[first][1] else [first]:
            after = ready[name] + jobs[name][1]
            best = search({**ends, name: after}, {**free, jobs[name][0]: after} if jobs[name][1] else free, best)
        return best

    return search({}, {}, best)


def _check(problem: OperatorProblem, plan: OperatorPlan) -> None:
    assert plan.placed in set(_allowed(problem))
    assert sum(part for _, part in plan.fractions) == pytest.approx(1)
    assert sum(seconds for _, seconds in plan.terms) == pytest.approx(plan.seconds)
    assert min(seconds for _, seconds in plan.terms) >= -1e-9
    assert plan.bound_s <= plan.seconds + 1e-9
    for lane in {bar.lane for bar in plan.timeline}:
        bars = sorted((bar.start_s, bar.stop_s) for bar in plan.timeline if bar.lane == lane)
        assert all(first[1] <= second[0] + 1e-9 for first, second in pairwise(bars))


@pytest.mark.slow
def test_in_turn_equals_every_placement() -> None:
    for seed in range(INSTANCES):
        problem = _random(seed, 6 - 2 * (seed % 2), pools=2 + seed % 2)
        sums = [sum(job[1] for job in _jobs(problem, placed).values()) for placed in _allowed(problem)]
        plan = plan_operators(problem, "serial")
        if not sums:
            assert isinstance(plan, NoPlacement), seed
            assert plan.missing
            continue
        assert isinstance(plan, OperatorPlan), seed
        assert plan.seconds == pytest.approx(min(sums), rel=1e-6), seed
        _check(problem, plan)


@pytest.mark.slow
def test_overlapped_equals_every_schedule_of_every_placement() -> None:
    for seed in range(INSTANCES):
        problem = _random(seed, 4, trained=seed % 3 > 0)
        best = float("inf")
        for placed in _allowed(problem):
            best = _shortest(_jobs(problem, placed), best)
        plan = plan_operators(problem, "overlapped")
        if best == float("inf"):
            assert isinstance(plan, NoPlacement), seed
            continue
        assert isinstance(plan, OperatorPlan), seed
        assert plan.seconds == pytest.approx(best, rel=2e-5), seed
        assert plan.bound_s == pytest.approx(best, rel=2e-5), seed
        _check(problem, plan)


def _period(problem: OperatorProblem, placed: tuple[int, ...]) -> float:
    """The greater of both bounds: the busiest lane, and the slowest loop over the steps that it spans."""
    jobs = _jobs(problem, placed)
    lanes: dict[object, float] = {}
    for lane, seconds, _ in jobs.values():
        lanes[lane] = lanes.get(lane, 0.0) + seconds
    parts = range(len(problem.parts))

    def longest(start: int) -> dict[str, float]:
        reached: dict[str, float] = {}
        order: list[str] = []
        while len(order) < len(jobs):
            order += [name for name, job in jobs.items() if name not in order and all(one in order for one in job[2])]
        for name in order:
            froms = [reached[one] for one in jobs[name][2] if one in reached]
            if froms or name == f"f{start}":
                reached[name] = jobs[name][1] + max(froms, default=0.0)
        return reached

    ways = [longest(one) for one in parts]
    loops = [0.0]
    for size in range(1, len(problem.parts) + 1):
        for loop in permutations(parts, size):
            steps = [ways[a].get(f"b{b}") for a, b in zip(loop, loop[1:] + loop[:1], strict=True)]
            if None not in steps:
                loops.append(sum(steps) / sum(1 + problem.parts[one].ahead for one in loop))
    return max(*lanes.values(), *loops)


@pytest.mark.slow
def test_into_each_other_has_the_least_bound_of_every_placement() -> None:
    for seed in range(INSTANCES):
        problem = _random(seed, 4)
        periods = [_period(problem, placed) for placed in _allowed(problem)]
        plan = plan_operators(problem, "prefetch")
        if not periods:
            assert isinstance(plan, NoPlacement), seed
            continue
        assert isinstance(plan, OperatorPlan), seed
        assert plan.bound_s == pytest.approx(min(periods), rel=1e-6), seed
        assert plan.seconds >= min(periods) - 1e-9, seed
        _check_period(problem, plan)


def _check_period(problem: OperatorProblem, plan: OperatorPlan) -> None:
    assert plan.placed in set(_allowed(problem))
    assert plan.seconds >= _period(problem, plan.placed) * 0.99
    assert sum(part for _, part in plan.fractions) == pytest.approx(1)
    assert sum(seconds for _, seconds in plan.terms) == pytest.approx(plan.seconds)
    assert plan.best_single is None or plan.seconds <= plan.best_single.seconds + 1e-9


def test_steps_into_each_other_come_near_their_bound() -> None:
    gaps = []
    for seed in range(60):
        plan = plan_operators(_random(seed, 5), "prefetch")
        if isinstance(plan, OperatorPlan):
            gaps.append(plan.seconds / plan.bound_s - 1)
    assert sorted(gaps)[len(gaps) // 2] < 0.01
    assert max(gaps) < 0.5


@pytest.mark.parametrize("way", ["serial", "overlapped", "prefetch"])
def test_the_order_of_pools_and_one_pool_less_change_as_they_must(way: str) -> None:
    for seed in range(25):
        problem = _random(seed, 4)
        turned = OperatorProblem(
            problem.pools[::-1], tuple(Part(one.name, one.on[::-1], one.ahead) for one in problem.parts), problem.flows,
            tuple(row[::-1] for row in problem.links[::-1]), problem.memory_bytes[::-1],
        )
        first, second = plan_operators(problem, way), plan_operators(turned, way)
        assert type(first) is type(second)
        if isinstance(first, OperatorPlan) and isinstance(second, OperatorPlan):
            assert first.bound_s == pytest.approx(second.bound_s, rel=1e-4)
            assert all(one.seconds is None or first.seconds <= one.seconds * (1 + 1e-9) for one in first.singles)


def _recommender(link: Link, ahead: int = 1) -> OperatorProblem:
    """Tables that do not fit on the TPU, a dense bottom beside them, and a tower that needs both."""
    parts = (
        Part("tables", (On(4e-3, 4e-3, 200e9), On(missing="no room for lookups")), ahead),
        Part("bottom", (On(3e-3, 5e-3, 1e9), On(1e-3, 2e-3, 1e9))),
        Part("tower", (On(8e-3, 16e-3, 2e9), On(2e-3, 4e-3, 2e9))),
    )
    flows = (Flow(0, 2, 64e6, 64e6), Flow(1, 2, 8e6, 8e6))
    return OperatorProblem(("gpu", "tpu"), parts, flows, ((None, link), (link, None)), (500e9, 32e9))


def test_a_dense_tower_leaves_the_pool_of_its_tables() -> None:
    plan = plan_operators(_recommender(Link(1e-5, 50e9)), "overlapped")
    assert isinstance(plan, OperatorPlan)
    assert plan.placed == (0, 1, 1)
    crossing = 1e-5 + 64e6 / 50e9
    assert plan.seconds == pytest.approx(4e-3 + crossing + 6e-3 + crossing + 4e-3)
    assert plan.best_single is not None
    assert plan.best_single.seconds == pytest.approx(40e-3)
    assert {one.pool: one.missing for one in plan.singles}["tpu"] == "tables: no room for lookups"


def test_prefetched_lookups_hide_behind_the_tower_and_are_a_step_old() -> None:
    plan = plan_operators(_recommender(Link(1e-5, 50e9)), "prefetch")
    assert isinstance(plan, OperatorPlan)
    assert plan.placed == (0, 1, 1)
    loop = 14e-3 + 2 * (1e-5 + 64e6 / 50e9)
    assert plan.bound_s == pytest.approx(max(8e-3, 9e-3, loop / 2))
    assert plan.staleness == 1
    assert plan.said == "tables runs ahead of its own updates: what it looks up is one step old"


def test_tables_that_must_see_their_updates_gain_nothing_from_prefetch() -> None:
    plan = plan_operators(_recommender(Link(1e-5, 50e9), ahead=0), "prefetch")
    assert isinstance(plan, OperatorPlan)
    assert plan.bound_s == pytest.approx(14e-3 + 2 * (1e-5 + 64e6 / 50e9))
    assert plan.staleness == 0
    assert plan.said == ""


def test_over_a_slow_link_everything_stays_where_the_tables_are() -> None:
    plan = plan_operators(_recommender(Link(1e-3, 1e9)), "overlapped")
    assert isinstance(plan, OperatorPlan)
    assert plan.placed == (0, 0, 0)
    assert plan.moves == ()
    assert plan.seconds == pytest.approx(40e-3)


def test_two_pools_that_must_share_say_what_the_split_costs() -> None:
    slow = replace(_recommender(Link(1e-3, 1e9)), least_pools=2)
    forced = plan_operators(slow, "overlapped")
    assert isinstance(forced, OperatorPlan)
    assert set(forced.placed) == {0, 1}
    assert forced.seconds > 40e-3
    for way in ("serial", "overlapped", "prefetch"):
        for seed in range(30):
            problem = _random(seed, 4)
            both = plan_operators(replace(problem, least_pools=2), way)
            placements = [placed for placed in _allowed(problem) if len(set(placed)) > 1]
            assert isinstance(both, OperatorPlan) == bool(placements)
            assert not isinstance(both, OperatorPlan) or both.placed in placements


def test_a_faster_link_is_never_slower_and_at_last_shares() -> None:
    problem = _recommender(Link(1e-5, 1e9))
    seconds = [seconds_at(problem, rate) for rate in (1e8, 1e9, 1e10, 1e11, 1e12)]
    assert seconds == sorted(seconds, reverse=True)
    assert seconds[0] == pytest.approx(40e-3)
    assert seconds[-1] == pytest.approx(14e-3, rel=0.02)


def test_a_free_link_and_equal_pools_halve_what_is_independent() -> None:
    parts = tuple(Part(f"tower {number}", (On(1.0), On(1.0))) for number in range(4))
    problem = OperatorProblem(("a", "b"), parts, (), ((None, FAST), (FAST, None)), (None, None))
    plan = plan_operators(problem, "overlapped")
    assert isinstance(plan, OperatorPlan)
    assert plan.seconds == pytest.approx(2.0)


def test_a_part_that_no_pool_runs_is_named_with_the_reasons() -> None:
    parts = (Part("sort", (On(missing="no dynamic shapes"), On(missing="no kernel"))),)
    plan = plan_operators(OperatorProblem(("tpu", "gpu"), parts, (), ((None, FAST), (FAST, None)), (None, None)))
    assert isinstance(plan, NoPlacement)
    assert plan.missing == ("sort runs on no pool (tpu: no dynamic shapes; gpu: no kernel)",)


def test_a_flow_backwards_and_an_unknown_way_are_refused_in_one_line() -> None:
    parts = (Part("a", (On(1.0),)), Part("b", (On(1.0),)))
    with pytest.raises(BadInput, match=r"got .*; expected .*; .+"):
        OperatorProblem(("gpu",), parts, (Flow(1, 0, 1.0),), ((None,),), (None,))
    with pytest.raises(BadInput, match=r"got .*; expected .*; .+"):
        plan_operators(OperatorProblem(("gpu",), parts, (), ((None,),), (None,)), "later")
