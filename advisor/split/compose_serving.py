"""Requests of a workload over a mixed fleet: from estimates of replicas to the cheapest fleet, and back to an answer.

What a step of a replica takes is told by `advisor.split.replicas`; the queue before it by `advisor.queueing`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import catalog
from advisor.split.between import IN_ONE_NETWORK_S
from advisor.split.given import Given
from advisor.split.judgement import Planned
from advisor.split.replicas import Key, Timed, replicas_of, sizes_of
from advisor.split.serving import SPAN, only, plan_serving, priced, turning_factor
from advisor.split.serving_rates import Demand, Server, Service, problem_of
from advisor.split.serving_words import FleetAlone, Group, NoFleet, Replica, ServingPlan, ServingProblem
from advisor.split.sides import Side
from core.device import Link
from core.quantity import Quantity, exact, log_normal
from core.sketching import output_of, prompt_of
from core.split import BreakEven, Share, Single, pool_words
from core.workload import RequestClass, Workload

SIZES = 3
"""Replicas of so many sizes are tried: the fewest chips that hold the model, and doublings."""
DOES = {"whole": "", "prefill": " that read prompts", "decode": " that answer"}


def serving_of(given: Given) -> Planned:
    """Return the cheapest fleet over the pools, and that of each pool alone, for the requests that the workload names.

    Prompts and answers are parted between pools only over a link that is known, inside a pool over the network of its hosts.
    """
    workload, sides, links = given.workload, given.sides, given.links
    demands = _demands(workload)
    if isinstance(demands, str):
        return Planned("serving", missing=(demands,), said=demands)
    able = [side for side in sides if side.chip is not None and side.runtime and side.joined.price_usd_per_h is not None]
    missing = tuple(f"{side.name}: {side.missing or 'no price is known'}" for side in sides if side not in able)
    timed = {demand.name: replicas_of(demand.prompt, demand.output, able, given.variant) for demand, _ in demands}
    servers = [server for side in able for server in _servers(side, demands, timed)]
    if not servers:
        none = tuple(_single(side, ()) for side in sides)
        unheld = tuple(f"{side.name}: {one.missing}" for side, one in zip(sides, none, strict=True))
        return Planned("serving", missing=unheld, said="no pool holds a replica", singles=none)
    ways = tuple(
        (first.name, second.name, link) for a, first in enumerate(sides) for b, second in enumerate(sides)
        if (link := links[a][b]) is not None
    )
    inside = tuple(
        (side.name, side.name, Link(IN_ONE_NETWORK_S, side.chip.internode_bytes_per_s)) for side in able
        if side.chip is not None and side.chip.internode_bytes_per_s
    )
    stocks = tuple((side.name, side.pool.count) for side in able)
    problem = problem_of(tuple(_demand(one) for one, _ in demands), tuple(servers), stocks, (*ways, *inside))
    found = plan_serving(problem)
    sigma, tier = _doubt(timed)
    singles = tuple(_single(side, found.singles) for side in sides)
    if isinstance(found, NoFleet):
        said = _none_serves(problem) or "; ".join(found.missing)
        return Planned("serving", missing=(*missing, said), said=said, singles=singles)
    found, sides = _or_alone(found, problem, sides)
    seconds = log_normal(found.seconds, sigma, tier, "queue of each replica with random arrivals")
    planned = _planned(found, sides, singles, seconds)
    return replace(planned, missing=missing, curves=lambda: ((), _turns(problem, found, sides)))


def _demands(workload: Workload) -> tuple[tuple[RequestClass, Mapping[str, object]], ...] | str:
    """Return the classes with the sizes that each gives a workload, or what is missing."""
    classes = workload.requests
    if not classes:
        rate = workload.targets.requests_per_s
        if rate is None:
            return "how many requests come is not said: give targets.requests_per_s, or requests by class"
        prompt, output = round(prompt_of(workload)), round(output_of(workload))
        if output < 1:
            return "a fleet is planned for models that generate: give prompt and output"
        classes = (RequestClass("requests", rate, prompt, output, latency_ms=workload.targets.latency_ms),)
    return tuple((one, {"prompt": one.prompt, "output": one.output}) for one in classes)


def _demand(one: RequestClass) -> Demand:
    def seconds(value: float | None) -> float | None:
        return None if value is None else value / 1e3

    return Demand(
        one.name, one.per_s, float(one.output), first_token_s=seconds(one.first_token_ms),
        per_token_s=seconds(one.per_token_ms), total_s=seconds(one.latency_ms),
    )


def _servers(
    side: Side, demands: Sequence[tuple[RequestClass, Mapping[str, object]]], timed: Mapping[str, Mapping[Key, list[Timed]]]
) -> list[Server]:
    """Return the kinds of replicas of a pool that hold the model, each with what it does of each class."""
    held = [chips for chips in sizes_of(side.pool.count) if any((side.pool.accelerator, chips) in one for one in timed.values())]
    price = (side.joined.price_usd_per_h or 0.0) / side.pool.count
    layout = f"{side.chip.vendor} {side.pool.kind}" if side.chip is not None else ""
    servers: list[Server] = []
    for chips in held[:SIZES]:
        services = tuple(
            _service(one, timed[one.name].get((side.pool.accelerator, chips), [])) for one, _ in demands
        )
        replica = Replica(f"{side.name} by {chips}", side.name, chips, price * chips, had_in=_had_in(side, chips))
        servers.append(Server(replica, services, layout))
    return servers


def _had_in(side: Side, chips: int) -> int | None:
    """Return the chips of the smallest slice or machine of a rented pool that holds a replica; None where chips are one's own."""
    pool = side.joined
    if side.chip is None or pool.attached or pool.own is not None or not pool.price_usd_per_h:
        return None
    sold = catalog.legal_counts(side.chip.key, pool.count)
    return next((count for count in sold if count >= chips), pool.count)


def _service(one: RequestClass, timed: Sequence[Timed]) -> Service:
    if not timed:
        return Service(one.name, missing="not one request fits in its memory")
    rising: list[tuple[int, float]] = []
    for point in timed:
        rising.append((point.places, max(point.step_s, rising[-1][1]) if rising else point.step_s))
    return Service(one.name, timed[0].prefill_s, tuple(rising), timed[-1].places, timed[0].kept_bytes)


def _doubt(timed: Mapping[str, Mapping[Key, list[Timed]]]) -> tuple[float, str]:
    """Return the widest deviation of all estimates, and its tier."""
    every = [(one.sigma, one.tier) for by_size in timed.values() for points in by_size.values() for one in points]
    return max(every, default=(0.0, "datasheet"))


def _single(side: Side, fleets: Sequence[FleetAlone]) -> Single:
    """Return the cheapest fleet of one pool alone, its price an hour as cost."""
    alone = next((fleet for fleet in fleets if fleet.pool == side.name), None)
    if alone is None or alone.price_usd_per_h is None:
        unheld = side.missing or ("no price is known" if side.pool.price_usd_per_h is None else "the model fits on no part of it")
        why = unheld if alone is None else alone.missing
        return Single(side.pool, side.runtime, None, None, None, feasible=False, missing=why)
    cost = exact(alone.price_usd_per_h * _own(side), "published", "price of its replicas")
    return Single(side.pool, side.runtime, None, cost, None, feasible=True)


def _own(side: Side) -> float:
    """Return the price of a pool alone, where it is cheapest, over that beside the others."""
    return (side.pool.price_usd_per_h or 0.0) / side.joined.price_usd_per_h if side.joined.price_usd_per_h else 1.0


def _or_alone(
    found: ServingPlan, problem: ServingProblem, sides: tuple[Side, ...]
) -> tuple[ServingPlan, tuple[Side, ...]]:
    """Return the fleet, or that of one pool alone where it is cheaper by itself than all are beside each other; and the sides.

    That pool is then joined to no other, and had where it is cheapest.
    """
    own = {side.name: _own(side) for side in sides}
    known = [(one.price_usd_per_h * own[one.pool], one.pool) for one in found.singles if one.price_usd_per_h is not None]
    price, pool = min(known, default=(found.price_usd_per_h, ""))
    if price >= found.price_usd_per_h * (1 - 1e-9):
        return found, sides
    alone = plan_serving(only(priced(problem, pool, own[pool]), pool))
    if not isinstance(alone, ServingPlan):
        return found, sides
    apart = tuple(replace(side, joined=side.pool) if side.name == pool else side for side in sides)
    return replace(alone, singles=found.singles), apart


def _planned(found: ServingPlan, sides: Sequence[Side], singles: tuple[Single, ...], seconds: Quantity) -> Planned:
    by_pool = dict(found.fractions)
    shares: list[Share] = []
    for side in sides:
        groups = [group for group in found.groups if group.pool == side.name]
        count, busy = sum(group.count for group in groups), sum(group.busy for group in groups)
        detail = ", ".join(f"{group.count} x {group.replica.rpartition(' by ')[2]} chips ({group.role})" for group in groups)
        part = busy / count if count else 0.0
        shares.append(Share(
            side.joined, side.runtime, by_pool.get(side.name, 0.0), float(count), "replicas", part, 1.0 - part if count else 0.0,
            detail=detail,
        ))
    cost = exact(found.price_usd_per_h, "published", "prices of the replicas for an hour")
    fleet = " + ".join(
        f"{_count(group.count, 'replica')} of {_count(int(group.replica.rpartition(' by ')[2]), 'chip')} on "
        f"{pool_words(side.pool)}{DOES[group.role]}"
        for side in sides for group in found.groups if group.pool == side.name
    )
    idle = ", ".join(filter(None, (_idle(side, found.groups) for side in sides)))
    said = f"{fleet} for {found.price_usd_per_h:.4g} USD an hour" + (f" ({idle})" if idle else "")
    return Planned(
        "serving", seconds, cost, None, found.terms, tuple(shares), found.moves, found.timeline, said=said, singles=singles,
    )


def _idle(side: Side, groups: Sequence[Group]) -> str:
    """Return how many chips of a pool are paid, where that is more than its replicas use; else nothing."""
    each = (side.joined.price_usd_per_h or 0.0) / side.pool.count
    mine = [group for group in groups if group.pool == side.name]
    used = sum(group.count * int(group.replica.rpartition(" by ")[2]) for group in mine)
    paid = round(sum(group.price_usd_per_h for group in mine) / each) if each else used
    return f"{_count(paid, 'chip')} of {pool_words(side.pool)} paid, since fewer are not had" if paid > used else ""


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _none_serves(problem: ServingProblem) -> str:
    """Return which classes no kind of replica serves within its targets; empty when each has one."""
    served = {route.request for route in problem.routes}
    unserved = [name for name, _ in problem.requests if name not in served]
    return f"no replica of these pools keeps the targets of {' and '.join(unserved)}" if unserved else ""


def _turns(problem: ServingProblem, found: ServingPlan, sides: Sequence[Side]) -> tuple[BreakEven, ...]:
    """Return up to which price of each pool the fleet stays the cheapest, and below which an idle pool would be part of it."""
    told: list[BreakEven] = []
    for side in sides:
        now = side.joined.price_usd_per_h
        if not now or side.name not in problem.pools:
            continue
        factor = turning_factor(problem, found, side.name)
        at = None if factor is None else now * factor
        used = any(group.pool == side.name for group in found.groups)
        told.append(BreakEven("price", "USD/h", now, at, _words(side, at, used)))
    return tuple(told)


def _words(side: Side, at: float | None, used: bool) -> str:
    name, now = pool_words(side.pool), f"(now {side.joined.price_usd_per_h or 0.0:.4g})"
    if used:
        fleet = "this fleet stays the cheapest"
        return f"{fleet} at up to {SPAN:g} times the price of {name} {now}" if at is None else (
            f"{fleet} up to {at:.4g} USD an hour for {name} {now}")
    return f"{name} is no part of the cheapest fleet even at 1/{SPAN:g} of its price {now}" if at is None else (
        f"{name} would be part of the cheapest fleet below {at:.4g} USD an hour {now}")
