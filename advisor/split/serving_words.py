"""Words for a fleet of unlike replicas that serves whole requests, or reads prompts on one kind and answers on another.

Numbers only: what a replica serves of a class within its target is told by `advisor.split.serving_rates` or by measurements.
"""

from dataclasses import dataclass
from math import isfinite

from core.device import Link
from core.errors import BadInput
from core.split import Bar, Move

ROLES = ("whole", "prefill", "decode")
LINK_USE = 0.8
"""Part of a link that is given to what crosses in the mean; the rest takes up that requests do not come evenly."""


@dataclass(frozen=True, slots=True)
class Replica:
    """One kind of replica that may be had in any number.

    Args:
        name: of the kind; different for each.
        pool: whose chips it is made of; its lane.
        chips: of one replica.
        price_usd_per_h: of one replica; 0 when owned.
        most: how many there may be; None for as many as the pool's chips allow.
        had_in: chips that are had and paid together, of which it takes a part; None where a replica is had by itself.
    """

    name: str
    pool: str
    chips: int
    price_usd_per_h: float
    most: int | None = None
    had_in: int | None = None

    @property
    def shares(self) -> bool:
        """Whether it is a part of what is had together."""
        return self.had_in is not None and self.had_in > self.chips

    def together(self) -> tuple[str, int]:
        """Return (pool, chips) of what it is had in, which replicas that name the same share."""
        return self.pool, self.had_in or self.chips


@dataclass(frozen=True, slots=True)
class Leg:
    """A part of a request's way.

    Args:
        replica: name of the kind.
        role: one of `ROLES`; replicas of one kind in two roles are counted apart.
        most_per_s: requests of the class a second that one replica serves, when it serves nothing else, within the target.
        seconds: that one request is there, in the mean.
    """

    replica: str
    role: str
    most_per_s: float
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Route:
    """One way in which requests of a class can be served.

    Args:
        request: name of the class.
        legs: one for whole requests; the prompt's and then the answer's where they are parted.
        crossing_bytes, crossing_s: of a request between two legs: keys and values.
    """

    request: str
    legs: tuple[Leg, ...]
    crossing_bytes: float = 0.0
    crossing_s: float = 0.0


@dataclass(frozen=True, slots=True)
class ServingProblem:
    """Requests, replicas and ways between.

    Args:
        requests: (class, arrivals a second), each above zero.
        replicas: kinds, in any order.
        routes: ways that keep the targets; a class may have many or none.
        stocks: (pool, chips) that may be used together; a pool that is not named has no end.
        links: (pool, pool, link), each in one direction.
        missing: (class, replica, why there is no route), for people.

    Raises:
        BadInput: names that are not given, or numbers that cannot be.
    """

    requests: tuple[tuple[str, float], ...]
    replicas: tuple[Replica, ...]
    routes: tuple[Route, ...]
    stocks: tuple[tuple[str, int], ...] = ()
    links: tuple[tuple[str, str, Link], ...] = ()
    missing: tuple[tuple[str, str, str], ...] = ()

    def __post_init__(self) -> None:
        names, kinds = [name for name, _ in self.requests], [one.name for one in self.replicas]
        if not names or len(set(names)) < len(names) or len(set(kinds)) < len(kinds):
            raise BadInput(f"classes {names} and replicas {kinds}", "at least one class, and no name twice", "name each once")
        if not all(rate > 0 and isfinite(rate) for _, rate in self.requests):
            raise BadInput(f"arrivals {self.requests}", "numbers above 0", "leave out classes without requests")
        for one in self.replicas:
            if one.chips < 1 or not 0 <= one.price_usd_per_h < float("inf") or (one.most is not None and one.most < 0):
                raise BadInput(f"replica {one}", "chips from 1, a price and a number from 0", "correct it")
            if one.had_in is not None and one.had_in < one.chips:
                raise BadInput(f"replica {one}", "to be had in no fewer chips than its own", "correct it")
        for route in self.routes:
            _check_route(route, names, kinds)

    def pool_of(self, replica: str) -> str:
        """Return the pool of a kind of replica."""
        return next(one.pool for one in self.replicas if one.name == replica)

    @property
    def pools(self) -> tuple[str, ...]:
        """Names of the pools, each once, in order."""
        return tuple(dict.fromkeys(one.pool for one in self.replicas))


@dataclass(frozen=True, slots=True)
class Group:
    """Replicas of one kind in one role.

    Args:
        replica, pool, role: what they are.
        count: how many.
        busy: replicas' worth of work, of `count`.
        price_usd_per_h: of all, with their part of what is had with them and stays idle.
    """

    replica: str
    pool: str
    role: str
    count: int
    busy: float
    price_usd_per_h: float


@dataclass(frozen=True, slots=True)
class FleetAlone:
    """The cheapest fleet of one pool's replicas alone; `missing` says why there is none."""

    pool: str
    price_usd_per_h: float | None
    groups: tuple[Group, ...] = ()
    missing: str = ""


@dataclass(frozen=True, slots=True)
class ServingPlan:
    """The cheapest fleet that keeps all targets.

    Args:
        price_usd_per_h: of the fleet.
        groups: of what it is made, those with a replica.
        routing: (class, its route, fraction); of each class they sum to one.
        seconds: of a mean request.
        terms: (name, seconds) of a mean request; they add up to `seconds`.
        fractions: (pool, part of the requests, one on two pools by the time that it is on each); they sum to one.
        moves: what crosses between pools in a second.
        timeline: of one request on the most used route.
        singles: each pool alone.
        bound_usd_per_h: no fleet costs less, as far as is proven.
    """

    price_usd_per_h: float
    groups: tuple[Group, ...]
    routing: tuple[tuple[str, Route, float], ...]
    seconds: float
    terms: tuple[tuple[str, float], ...]
    fractions: tuple[tuple[str, float], ...]
    moves: tuple[Move, ...]
    timeline: tuple[Bar, ...]
    singles: tuple[FleetAlone, ...]
    bound_usd_per_h: float

    @property
    def best_single(self) -> FleetAlone | None:
        """The cheapest pool alone; None when none will do."""
        able = [(one.price_usd_per_h, one.pool, one) for one in self.singles if one.price_usd_per_h is not None]
        return min(able)[2] if able else None


@dataclass(frozen=True, slots=True)
class NoFleet:
    """Nothing serves all of it; `missing` says why, one phrase each."""

    missing: tuple[str, ...]
    singles: tuple[FleetAlone, ...] = ()


def _check_route(route: Route, names: list[str], kinds: list[str]) -> None:
    if route.request not in names or any(leg.replica not in kinds or leg.role not in ROLES for leg in route.legs):
        raise BadInput(f"route {route}", f"classes {names}, replicas {kinds}, roles {', '.join(ROLES)}", "name those")
    if not 1 <= len(route.legs) <= 2 or not all(0 < leg.most_per_s < float("inf") for leg in route.legs):
        raise BadInput(f"route {route}", "one or two legs that serve something", "leave out routes that serve nothing")
    if not (0 <= route.crossing_bytes < float("inf") and 0 <= route.crossing_s < float("inf")):
        raise BadInput(f"route {route}", "bytes and seconds from 0", "correct them")
