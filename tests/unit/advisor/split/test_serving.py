"""The cheapest mixed fleet equals what trying every fleet finds, and keeps its targets in the queue model."""

import random
from dataclasses import replace
from itertools import product

import pytest

from advisor.queueing import Latencies, latencies
from advisor.split.serving import plan_serving, priced, turning_factor
from advisor.split.serving_rates import Demand, Server, Service, problem_of
from advisor.split.serving_words import LINK_USE, Leg, NoFleet, Replica, Route, ServingPlan, ServingProblem
from core.device import Link
from core.errors import BadInput

INSTANCES = 300


def _random(seed: int) -> ServingProblem:
    draw = random.Random(seed)
    requests = tuple((f"class {i}", draw.uniform(0.5, 8)) for i in range(draw.randint(1, 4)))
    replicas = tuple(
        Replica(
            kind, kind, chips, round(draw.uniform(0.5, 5), 2), draw.choice((None, 1, 2, 4)), draw.choice((None, chips, chips + 3))
        )
        for kind in ("gpu", "tpu") for chips in (draw.randint(1, 4),)
    )
    routes = tuple(
        Route(name, (Leg(one.name, "whole", draw.uniform(1, 6), draw.uniform(1, 3)),))
        for name, _ in requests for one in replicas if draw.random() < 0.9
    )
    return ServingProblem(requests, replicas, routes, (("gpu", draw.randint(2, 16)),))


def _serves(problem: ServingProblem, counts: dict[str, int]) -> bool:
    """Whether two kinds in given numbers serve it all: each class goes first to where it does best, held against the other."""
    loads = {(route.request, route.legs[0].replica): dict(problem.requests)[route.request] / route.legs[0].most_per_s
             for route in problem.routes}
    first, second = (one.name for one in problem.replicas)
    here, there, both = 0.0, 0.0, []
    for name, _ in problem.requests:
        a, b = loads.get((name, first)), loads.get((name, second))
        if a is None and b is None:
            return False
        if b is None:
            here += a
        elif a is None:
            there += b
        else:
            both.append((b / a, a, b))
    room = counts[first] - here
    if room < -1e-9:
        return False
    for _, a, b in sorted(both, reverse=True):
        part = min(1.0, max(room, 0.0) / a)
        room -= part * a
        there += (1 - part) * b
    return there <= counts[second] + 1e-7


def _cheapest(problem: ServingProblem) -> float | None:
    first, second = problem.replicas
    stock = dict(problem.stocks)
    best = None
    for a, b in product(range(25), range(25)):
        if any(one.most is not None and count > one.most for one, count in ((first, a), (second, b))):
            continue
        if any(_paid_chips(one, count) > stock.get(one.pool, 10**6) for one, count in ((first, a), (second, b))):
            continue
        price = sum(_paid_chips(one, n) * one.price_usd_per_h / one.chips for one, n in ((first, a), (second, b)))
        if (best is None or price < best) and _serves(problem, {first.name: a, second.name: b}):
            best = price
    return best


def _paid_chips(one: Replica, count: int) -> int:
    had = one.had_in or one.chips
    return -(-count * one.chips // had) * had


@pytest.mark.slow
def test_the_fleet_equals_trying_every_fleet() -> None:
    able = 0
    for seed in range(INSTANCES):
        problem = _random(seed)
        plan, best = plan_serving(problem), _cheapest(problem)
        if best is None:
            assert isinstance(plan, NoFleet), seed
            assert plan.missing
            continue
        able += 1
        assert isinstance(plan, ServingPlan), seed
        assert plan.price_usd_per_h == pytest.approx(best, abs=1e-5), seed
        assert plan.bound_usd_per_h == pytest.approx(plan.price_usd_per_h, abs=1e-4), seed
        _check(problem, plan)
    assert able > INSTANCES / 2


def _check(problem: ServingProblem, plan: ServingPlan) -> None:
    for name, _ in problem.requests:
        assert sum(part for request, _, part in plan.routing if request == name) == pytest.approx(1)
    rates, kinds = dict(problem.requests), {one.name: one for one in problem.replicas}
    for pool, part in plan.fractions:  # of the requests: each is whole on one replica here
        here = sum(rates[name] * share for name, route, share in plan.routing if kinds[route.legs[0].replica].pool == pool)
        assert part == pytest.approx(here / sum(rates.values()))
    assert sum(seconds for _, seconds in plan.terms) == pytest.approx(plan.seconds)
    for group in plan.groups:
        assert group.busy <= group.count + 1e-6
        most = kinds[group.replica].most
        assert most is None or group.count <= most
    for pool, chips in problem.stocks:
        assert sum(group.count * kinds[group.replica].chips for group in plan.groups if group.pool == pool) <= chips


def test_the_order_of_replicas_and_classes_changes_nothing() -> None:
    for seed in range(40):
        problem = _random(seed)
        turned = ServingProblem(problem.requests[::-1], problem.replicas[::-1], problem.routes[::-1], problem.stocks)
        first, second = plan_serving(problem), plan_serving(turned)
        assert type(first) is type(second)
        if isinstance(first, ServingPlan) and isinstance(second, ServingPlan):
            assert first.price_usd_per_h == pytest.approx(second.price_usd_per_h, abs=1e-6)
            assert dict(first.fractions) == pytest.approx(dict(second.fractions), abs=1e-6) or len(first.routing) > 1


def test_no_pool_alone_is_cheaper_than_both() -> None:
    for seed in range(60):
        plan = plan_serving(_random(seed))
        if isinstance(plan, ServingPlan) and plan.best_single is not None:
            assert plan.price_usd_per_h <= plan.best_single.price_usd_per_h + 1e-6


CHAT = Demand("chat", 8.0, 200, first_token_s=0.5, per_token_s=0.04)
DOCUMENTS = Demand("documents", 1.0, 100, total_s=12.0, share="p95")
FAST = Server(Replica("h100", "gpu", 1, 3.0), (
    Service("chat", 0.02, ((1, 0.010), (64, 0.022)), 64, 5e7), Service("documents", 0.30, ((1, 0.012), (16, 0.020)), 16, 1e9),
), "paged")
CHEAP = Server(Replica("v5e-4", "tpu", 4, 1.2), (
    Service("chat", 0.05, ((1, 0.016), (32, 0.034)), 32, 5e7), Service("documents", 1.4, ((1, 0.02), (8, 0.03)), 8, 1e9),
), "paged")


@pytest.fixture(scope="module")
def mixed() -> ServingProblem:
    """Chat and documents over both kinds of replicas."""
    return problem_of((CHAT, DOCUMENTS), (FAST, CHEAP))


def test_what_one_replica_is_given_keeps_its_targets_in_the_queue_model(mixed: ServingProblem) -> None:
    route = next(route for route in mixed.routes if route.request == "chat" and route.legs[0].replica == "h100")
    said = latencies(route.legs[0].most_per_s, 0.02, ((1, 0.010), (64, 0.022)), 200, 64)
    assert isinstance(said, Latencies)
    assert said.first_token.p99_s <= 0.5
    assert said.per_token.p99_s <= 0.04
    more = latencies(route.legs[0].most_per_s * 1.02, 0.02, ((1, 0.010), (64, 0.022)), 200, 64)
    assert not isinstance(more, Latencies) or more.first_token.p99_s > 0.5 or more.per_token.p99_s > 0.04


def test_a_mixed_fleet_is_no_dearer_than_either_kind_alone(mixed: ServingProblem) -> None:
    plan = plan_serving(mixed)
    assert isinstance(plan, ServingPlan)
    assert plan.best_single is not None
    assert plan.price_usd_per_h <= plan.best_single.price_usd_per_h
    assert {one.pool for one in plan.singles} == {"gpu", "tpu"}


def test_a_dearer_pool_makes_the_fleet_dearer_until_it_is_left_out(mixed: ServingProblem) -> None:
    prices = [_price(priced(mixed, "gpu", factor)) for factor in (0.0, 0.5, 1.0, 2.0, 8.0, 100.0)]
    alone = {one.pool: one.price_usd_per_h for one in plan_serving(mixed).singles}
    assert prices[0] == 0
    assert prices == sorted(prices)
    assert prices[-1] == pytest.approx(alone["tpu"])


def _price(problem: ServingProblem) -> float:
    plan = plan_serving(problem)
    assert isinstance(plan, ServingPlan)
    return plan.price_usd_per_h


def _at(problem: ServingProblem, plan: ServingPlan, pool: str, factor: float) -> float:
    """What the same fleet costs when one pool's replicas cost so many times as much."""
    return sum(group.price_usd_per_h * (factor if group.pool == pool else 1.0) for group in plan.groups)


@pytest.mark.parametrize("seed", range(0, 40, 2))
@pytest.mark.parametrize("pool", ["gpu", "tpu"])
def test_a_fleet_is_the_cheapest_up_to_the_price_at_which_the_choice_turns(seed: int, pool: str) -> None:
    problem = _random(seed)
    plan = plan_serving(problem)
    if not isinstance(plan, ServingPlan):
        return
    factor = turning_factor(problem, plan, pool)
    used = any(group.pool == pool for group in plan.groups)
    if factor is None:
        far = 99.0 if used else 1 / 99
        assert _price(priced(problem, pool, far)) == pytest.approx(_at(problem, plan, pool, far), rel=1e-5)
        return
    assert (factor >= 1) == used or factor == pytest.approx(1)
    within, beyond = (0.999, 1.02) if used else (1.001, 0.98)
    assert _price(priced(problem, pool, factor * within)) == pytest.approx(_at(problem, plan, pool, factor * within), rel=1e-5)
    assert _price(priced(problem, pool, factor * beyond)) < _at(problem, plan, pool, factor * beyond) * (1 - 1e-5)


def test_a_target_that_even_one_request_misses_is_named() -> None:
    strict = replace(CHAT, per_token_s=0.005)
    plan = plan_serving(problem_of((strict,), (FAST,)))
    assert isinstance(plan, NoFleet)
    assert plan.missing == ("chat: h100: a token takes 10.0 ms even alone, more than 5.00 ms",)


def test_parted_routes_need_one_layout_and_a_link() -> None:
    link = (("gpu", "tpu", Link(1e-3, 1e9)),)
    parted = [route for route in problem_of((CHAT,), (FAST, CHEAP), links=link).routes if len(route.legs) == 2]
    assert ("h100", "v5e-4") in {tuple(leg.replica for leg in route.legs) for route in parted}
    assert ("v5e-4", "h100") not in {tuple(leg.replica for leg in route.legs) for route in parted}
    across = next(route for route in parted if route.legs[0].replica != route.legs[1].replica)
    assert across.crossing_s == pytest.approx(1e-3 + 5e7 / 1e9)
    other = problem_of((CHAT,), (FAST, replace(CHEAP, layout="tiled")), links=link)
    assert all(len({leg.replica for leg in route.legs}) == 1 for route in other.routes)


def test_the_network_of_a_pool_delays_what_is_handed_over_inside_it() -> None:
    inside = (("gpu", "gpu", Link(1e-3, 1e9)),)
    slow, free = (
        next(one for one in problem_of((CHAT,), (FAST,), links=links).routes if len(one.legs) == 2) for links in (inside, ())
    )
    assert (slow.crossing_s, free.crossing_s) == (pytest.approx(1e-3 + 5e7 / 1e9), 0.0)
    assert slow.legs[0].most_per_s < free.legs[0].most_per_s
    assert slow.legs[1] == free.legs[1]


@pytest.mark.parametrize("whole", [2.5, 4.0, 12.0])
def test_both_parts_of_a_request_keep_the_target_for_the_whole_together(whole: float) -> None:
    demand = Demand("chat", 8.0, 200, total_s=whole)
    parted = [route for route in problem_of((demand,), (FAST,)).routes if len(route.legs) == 2]
    for route in parted:
        reading = latencies(route.legs[0].most_per_s, 0.0, ((1, 0.02),), 1.0, 1)
        answering = latencies(route.legs[1].most_per_s, 0.0, ((1, 0.010), (64, 0.022)), 200, 64)
        assert isinstance(reading, Latencies)
        assert isinstance(answering, Latencies)
        assert reading.total.p99_s + answering.total.p99_s <= whole
    assert len(parted) == 1


def test_a_link_carries_no_more_keys_and_values_than_it_can() -> None:
    replicas = (Replica("a", "a", 1, 1.0), Replica("b", "b", 1, 1.0))
    legs = (Leg("a", "prefill", 10.0, 0.1), Leg("b", "decode", 10.0, 1.0))
    routes = (Route("chat", legs, 1e9, 0.5), Route("chat", (Leg("a", "whole", 0.5, 1.0),)))
    problem = ServingProblem((("chat", 4.0),), replicas, routes, links=(("a", "b", Link(0.0, 2e9)),))
    plan = plan_serving(problem)
    assert isinstance(plan, ServingPlan)
    across = sum(part for _, route, part in plan.routing if len(route.legs) == 2)
    assert across * 4.0 * 1e9 / 2e9 <= LINK_USE + 1e-6
    assert plan.moves[0].size_bytes == pytest.approx(across * 4.0 * 1e9)
    assert 0.375 - 1e-6 <= across <= 0.4 + 1e-6  # what five replicas on a cannot do alone, up to what the link can
    assert plan.price_usd_per_h == 7.0  # 5 for 2.5 requests a second whole on a, and one on either side for the rest


def test_what_is_asked_of_nothing_is_refused_in_one_line() -> None:
    with pytest.raises(BadInput, match=r"got .*; expected .*; .+"):
        ServingProblem((), (Replica("a", "a", 1, 1.0),), ())
    with pytest.raises(BadInput, match=r"got .*; expected .*; .+"):
        Demand("chat", 1.0, 10, share="p90")
