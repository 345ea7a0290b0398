"""Plans the cheapest fleet of unlike replicas: how many of each kind in which role, and which requests go where.

A mixed integer program, as Melange's: whole numbers of replicas, fractions of each class by route; a replica that serves two
classes is full when the parts of its time add up to one. What one replica may be given was cut down beforehand to what keeps the
target (`advisor.split.serving_rates`), so that no latency appears here. HiGHS proves the optimum.

Source: Griggs et al., Melange, arXiv:2404.14527, section 5; HiGHS through SciPy's `milp`.
"""

from dataclasses import replace

from advisor.split.serving_program import Program
from advisor.split.serving_words import LINK_USE, FleetAlone, Group, NoFleet, Route, ServingPlan, ServingProblem
from core.split import Bar, Move

_TINY = 1e-7
_FEWER_CHIPS = 1e-7
"""What a chip counts beside its price, relative to the dearest replica: of two fleets that cost the same, the smaller one."""
SPAN = 100.0
"""A pool's price is followed from a hundredth to a hundred times of it."""
_SAME, _CORNERS = 1e-6, 40
"""Part by which two prices may differ and are one; fleets that are tried on the way to where the choice turns, at most."""
_NONE_WILL = "no number of its replicas serves it all within the targets"


def plan_serving(problem: ServingProblem, limit_s: float = 20.0) -> ServingPlan | NoFleet:
    """Return the cheapest fleet, with each pool alone beside it.

    Args:
        problem: what is asked.
        limit_s: seconds that the solver may take; what it cannot prove by then shows in the bound.
    """
    singles = tuple(_alone(problem, pool, limit_s) for pool in problem.pools)
    found = _solve(problem, problem.routes, limit_s)
    if isinstance(found, tuple):
        return NoFleet(found, singles)
    groups, routing, bound = found.groups, found.routing, found.bound
    served = _served(problem, routing)
    whole = sum(served.values()) or 1.0
    terms = _terms(problem, routing)
    return ServingPlan(
        found.price, groups, routing, sum(seconds for _, seconds in terms), terms,
        tuple((pool, served.get(pool, 0.0) / whole) for pool in problem.pools), _moves(problem, routing),
        _timeline(problem, routing), singles, min(bound, found.price),
    )


def priced(problem: ServingProblem, pool: str, factor: float) -> ServingProblem:
    """Return the same problem with one pool's replicas at so many times their price.

    Args:
        problem: with the prices of now.
        pool: whose prices change.
        factor: 1 for those of now, from 0.
    """
    replicas = tuple(
        replace(one, price_usd_per_h=one.price_usd_per_h * factor) if one.pool == pool else one for one in problem.replicas
    )
    return replace(problem, replicas=replicas)


def only(problem: ServingProblem, pool: str) -> ServingProblem:
    """Return the same problem with the replicas of one pool alone.

    Args:
        problem: over any pools.
        pool: that is left.
    """
    replicas = tuple(one for one in problem.replicas if one.pool == pool)
    names = {one.name for one in replicas}
    routes = tuple(route for route in problem.routes if all(leg.replica in names for leg in route.legs))
    missing = tuple(one for one in problem.missing if one[1] in names)
    return replace(problem, replicas=replicas, routes=routes, links=(), missing=missing)


def turning_factor(problem: ServingProblem, plan: ServingPlan, pool: str, limit_s: float = 2.0) -> float | None:
    """Return at how many times one pool's price another fleet becomes the cheapest; None when none does within `SPAN`.

    For a pool that the fleet uses it is 1 or more, for one that it does not 1 or less. What a given fleet costs is a line in the
    factor, and the least of all fleets their lower hull: from the far end on, where the best fleet's line meets this one's is
    the next factor to look at, until none is below. That ends after as many steps as the hull has corners, mostly two or three.

    Args:
        problem: with the prices of now.
        plan: its cheapest fleet.
        pool: whose price is moved.
        limit_s: seconds that the solver may take at each factor; None is returned where it is cut short.

    Source: Newton's method for the zero of a concave function of pieces, as Dinkelbach, Management Science 13, 1967.
    """
    mine, rest = _parts(plan.groups, pool)
    factor = SPAN if mine > 0 else 1 / SPAN
    turned = None
    for _ in range(_CORNERS):
        found = _solve(priced(problem, pool, factor), problem.routes, limit_s)
        if isinstance(found, tuple) or found.price >= (rest + factor * mine) * (1 - _SAME):
            return turned
        theirs, others = _parts(found.groups, pool)
        theirs /= factor
        if abs(theirs - mine) <= _SAME * max(theirs, mine):
            return turned
        meets = (others - rest) / (mine - theirs)
        turned = factor = max(meets, 1.0) if mine > 0 else min(max(meets, 1 / SPAN), 1.0)
    return turned


def _parts(groups: tuple[Group, ...], pool: str) -> tuple[float, float]:
    """Return what a fleet costs an hour on one pool, and on all others."""
    mine = sum(group.price_usd_per_h for group in groups if group.pool == pool)
    return mine, sum(group.price_usd_per_h for group in groups if group.pool != pool)


class _Found:
    """A solved fleet."""

    def __init__(
        self, price: float, groups: tuple[Group, ...], routing: tuple[tuple[str, Route, float], ...], bound: float
    ) -> None:
        self.price, self.groups, self.routing, self.bound = price, groups, routing, bound


def _alone(problem: ServingProblem, pool: str, limit_s: float) -> FleetAlone:
    """Return the cheapest fleet of one pool."""
    alone = only(problem, pool)
    found = _solve(alone, alone.routes, limit_s)
    if isinstance(found, tuple):
        return FleetAlone(pool, None, (), "; ".join(found))
    return FleetAlone(pool, found.price, found.groups)


def _solve(problem: ServingProblem, routes: tuple[Route, ...], limit_s: float) -> "_Found | tuple[str, ...]":
    """Return the cheapest fleet over some of the routes, or why there is none."""
    without = tuple(
        f"{name}: {_why(problem, name)}" for name, _ in problem.requests if all(route.request != name for route in routes)
    )
    if without:
        return without
    kinds = sorted({(leg.replica, leg.role) for route in routes for leg in route.legs})
    rates, replicas = dict(problem.requests), {one.name: one for one in problem.replicas}
    dearest = max(one.price_usd_per_h for one in problem.replicas) or 1.0
    program = Program()
    parts = [program.variable(upper=1.0) for _ in routes]
    counts = {
        kind: program.variable((0.0 if one.shares else one.price_usd_per_h) + _FEWER_CHIPS * dearest * one.chips, whole=True)
        for kind in kinds for one in (replicas[kind[0]],)
    }
    for name in rates:
        program.row({part: 1.0 for part, route in zip(parts, routes, strict=True) if route.request == name}, 1.0, 1.0)
    for kind, count in counts.items():
        work = {
            part: rates[route.request] / leg.most_per_s
            for part, route in zip(parts, routes, strict=True) for leg in route.legs if (leg.replica, leg.role) == kind
        }
        program.row({**work, count: -1.0}, most=0.0)
    _limit(program, problem, counts, _had(program, problem, counts))
    for source, target, link in problem.links:
        program.row({
            part: rates[route.request] * route.crossing_bytes / link.bytes_per_s
            for part, route in zip(parts, routes, strict=True) if _crosses(problem, route) == (source, target)
        }, most=LINK_USE)
    solved = program.solve(limit_s, presolve=False)
    if not solved.values:
        return (_NONE_WILL if solved.infeasible else f"the solver found no fleet within {limit_s:g} s",)
    fractions = [max(solved.values[part], 0.0) for part in parts]
    return _read(problem, routes, fractions, {kind: round(solved.values[count]) for kind, count in counts.items()}, solved.bound)


Had = dict[tuple[str, int], int]
"""By pool and chips of what is had together: the variable that counts how many."""


def _had(program: Program, problem: ServingProblem, counts: dict[tuple[str, str], int]) -> Had:
    """Add that replicas which are parts of what is had together have room in it, and what that costs."""
    replicas = {one.name: one for one in problem.replicas}
    had: Had = {}
    for key in dict.fromkeys(replicas[name].together() for name, _ in counts if replicas[name].shares):
        within = [(count, replicas[name]) for (name, _), count in counts.items() if replicas[name].shares]
        within = [(count, one) for count, one in within if one.together() == key]
        had[key] = program.variable(key[1] * within[0][1].price_usd_per_h / within[0][1].chips, whole=True)
        program.row({**{count: float(one.chips) for count, one in within}, had[key]: -float(key[1])}, most=0.0)
    return had


def _limit(program: Program, problem: ServingProblem, counts: dict[tuple[str, str], int], had: Had) -> None:
    """Add what may be had at most: replicas of a kind over all roles, and chips of a pool over all that are had of it."""
    for one in problem.replicas:
        if one.most is not None:
            program.row({count: 1.0 for (name, _), count in counts.items() if name == one.name}, most=one.most)
    replicas = {one.name: one for one in problem.replicas}
    for pool, most in problem.stocks:
        single = {
            count: float(replicas[name].chips)
            for (name, _), count in counts.items() if replicas[name].pool == pool and not replicas[name].shares
        }
        program.row({**single, **{count: float(key[1]) for key, count in had.items() if key[0] == pool}}, most=most)


def _read(
    problem: ServingProblem, routes: tuple[Route, ...], fractions: list[float], counts: dict[tuple[str, str], int], bound: float
) -> _Found:
    """Return the solver's answer in words, with the rounding of fractions taken out."""
    rates = dict(problem.requests)
    used = [(value, route) for value, route in zip(fractions, routes, strict=True) if value > _TINY]
    sums = {name: sum(value for value, route in used if route.request == name) for name in rates}
    routing = tuple((route.request, route, value / sums[route.request]) for value, route in used)
    groups: list[Group] = []
    paid = _paid_over_used(problem, counts)
    for (name, role), count in counts.items():
        one = next(replica for replica in problem.replicas if replica.name == name)
        busy = sum(
            fraction * rates[request] / leg.most_per_s
            for request, route, fraction in routing for leg in route.legs if (leg.replica, leg.role) == (name, role)
        )
        if count:
            more = paid[one.together()] if one.shares else 1.0
            groups.append(Group(name, one.pool, role, count, busy, count * one.price_usd_per_h * more))
    price = sum(group.price_usd_per_h for group in groups)
    return _Found(price, tuple(groups), routing, bound)


def _paid_over_used(problem: ServingProblem, counts: dict[tuple[str, str], int]) -> dict[tuple[str, int], float]:
    """Return chips that are paid over those that are used, by what is had together."""
    used: dict[tuple[str, int], int] = {}
    for one in problem.replicas:
        number = sum(count for (name, _), count in counts.items() if name == one.name)
        if one.shares and number:
            used[one.together()] = used.get(one.together(), 0) + number * one.chips
    return {(pool, had): -(-chips // had) * had / chips for (pool, had), chips in used.items()}


def _crosses(problem: ServingProblem, route: Route) -> tuple[str, str] | None:
    """Return between which pools a route's keys and values go; None where they stay."""
    pools = [problem.pool_of(leg.replica) for leg in route.legs]
    return (pools[0], pools[-1]) if pools[0] != pools[-1] else None


def _why(problem: ServingProblem, request: str) -> str:
    """Return why no route serves a class."""
    said = [f"{replica}: {why}" for name, replica, why in problem.missing if name == request]
    return "; ".join(said) or "no replica serves it within its targets"


def _served(problem: ServingProblem, routing: tuple[tuple[str, Route, float], ...]) -> dict[str, float]:
    """Return the requests a second by pool; one that is parted between pools counts on each by the time that it is there."""
    rates = dict(problem.requests)
    found: dict[str, float] = {}
    for request, route, fraction in routing:
        seconds = sum(leg.seconds for leg in route.legs)
        for leg in route.legs:
            part = leg.seconds / seconds if seconds > 0 else 1 / len(route.legs)
            pool = problem.pool_of(leg.replica)
            found[pool] = found.get(pool, 0.0) + rates[request] * fraction * part
    return found


def _terms(problem: ServingProblem, routing: tuple[tuple[str, Route, float], ...]) -> tuple[tuple[str, float], ...]:
    """Return the seconds of a mean request by what they are spent on."""
    rates = dict(problem.requests)
    every = sum(rates.values())
    found: dict[str, float] = {}
    for request, route, fraction in routing:
        weight = fraction * rates[request] / every
        for leg in route.legs:
            found[leg.role] = found.get(leg.role, 0.0) + weight * leg.seconds
        if route.crossing_s:
            found["link"] = found.get("link", 0.0) + weight * route.crossing_s
    return tuple(sorted(found.items()))


def _moves(problem: ServingProblem, routing: tuple[tuple[str, Route, float], ...]) -> tuple[Move, ...]:
    """Return what crosses in one second, by pair of pools."""
    rates = dict(problem.requests)
    found: dict[tuple[str, str], Move] = {}
    for request, route, fraction in routing:
        pair = _crosses(problem, route)
        if pair is None:
            continue
        count = fraction * rates[request]
        before = found.get(pair, Move("keys and values", *pair, 0.0, 0.0, 0.0))
        seconds = before.seconds + count * route.crossing_s
        crossed = before.size_bytes + count * route.crossing_bytes
        found[pair] = replace(before, size_bytes=crossed, seconds=seconds, exposed_s=seconds)
    return tuple(found[pair] for pair in sorted(found))


def _timeline(problem: ServingProblem, routing: tuple[tuple[str, Route, float], ...]) -> tuple[Bar, ...]:
    """Return one request on the route that most requests take."""
    rates = dict(problem.requests)
    request, route, _ = max(routing, key=lambda one: (rates[one[0]] * one[2], one[0]))
    bars: list[Bar] = []
    clock = 0.0
    for number, leg in enumerate(route.legs):
        if number:
            bars.append(Bar("link", clock, clock + route.crossing_s, "move", f"keys and values of {request}"))
            clock += route.crossing_s
        bars.append(Bar(problem.pool_of(leg.replica), clock, clock + leg.seconds, "compute", f"{leg.role} of {request}"))
        clock += leg.seconds
    return tuple(bars)
