"""How many requests one replica may be given so that a percentile keeps its target: the queue model, turned round by bisection.

Each class is tried alone on a replica; a replica that serves several divides its time among them, and each part keeps its own
target as long as the parts add up to no more than one. Requests are dealt out at random, so that every replica's stream stays
Poisson: a router that knows queues does better. Prefill and decode are parted only between replicas that keep keys and values in
the same layout; what crosses is added to the time to the first token.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from advisor.queueing import Latencies, Percentiles, latencies, most_arrivals
from advisor.split.serving_words import Leg, Replica, Route, ServingProblem
from core.device import Link
from core.errors import BadInput
from core.format import seconds

SHARES = ("p50", "p95", "p99")
_PROMPT_PART = 0.5
"""Part of a target for the whole answer that the prompt's side may use, where nothing is asked of the first token itself."""


@dataclass(frozen=True, slots=True)
class Demand:
    """A class of requests and what it asks for; None asks for nothing.

    Args:
        name: of the class.
        arrivals_per_s: of all of it.
        output_tokens: of a mean answer.
        variation: squared coefficient of variation of those.
        first_token_s, per_token_s, total_s: what the percentile may reach.
        share: which percentile, one of `SHARES`.
    """

    name: str
    arrivals_per_s: float
    output_tokens: float
    variation: float = 0.0
    first_token_s: float | None = None
    per_token_s: float | None = None
    total_s: float | None = None
    share: str = "p99"

    def __post_init__(self) -> None:
        if self.share not in SHARES:
            raise BadInput(f"percentile {self.share!r}", f"one of {', '.join(SHARES)}", "choose the nearest")


@dataclass(frozen=True, slots=True)
class Service:
    """How one replica serves one class.

    Args:
        request: name of the class.
        prefill_s: of one prompt.
        step_points: (sequences in flight, seconds of a step).
        most: sequences that fit in its memory.
        kept_bytes: keys and values of one prompt, which cross when the answer is given elsewhere.
        missing: why it cannot serve the class; empty when it can.
    """

    request: str
    prefill_s: float = 0.0
    step_points: tuple[tuple[int, float], ...] = ()
    most: int = 0
    kept_bytes: float = 0.0
    missing: str = ""


@dataclass(frozen=True, slots=True)
class Server:
    """A kind of replica with what it does of each class.

    Args:
        replica: the kind.
        services: one for each class; a class without one is not served.
        layout: how it keeps keys and values, any word; replicas of one word can hand them over. Empty: it cannot.
    """

    replica: Replica
    services: tuple[Service, ...]
    layout: str = ""


def problem_of(
    demands: tuple[Demand, ...],
    servers: tuple[Server, ...],
    stocks: tuple[tuple[str, int], ...] = (),
    links: tuple[tuple[str, str, Link], ...] = (),
) -> ServingProblem:
    """Return the problem of a fleet, with every route that keeps its target.

    Args:
        demands: classes of requests.
        servers: kinds of replicas.
        stocks, links: as `ServingProblem` has them; prompts and answers are parted only over a link that is given, or inside a
            pool, where handing over counts as nothing.
    """
    routes: list[Route] = []
    missing: list[tuple[str, str, str]] = []
    for demand in demands:
        for server in servers:
            found = _whole(demand, server)
            if isinstance(found, Route):
                routes.append(found)
            else:
                missing.append((demand.name, server.replica.name, found))
        routes.extend(
            route for first in servers for second in servers if (route := _parted(demand, first, second, links)) is not None
        )
    return ServingProblem(
        tuple((demand.name, demand.arrivals_per_s) for demand in demands), tuple(server.replica for server in servers),
        tuple(routes), stocks, links, tuple(missing),
    )


def _service(demand: Demand, server: Server) -> Service:
    """Return how a replica serves a class."""
    none = Service(demand.name, missing="it is not known how it serves this class")
    return next((one for one in server.services if one.request == demand.name), none)


def _whole(demand: Demand, server: Server) -> Route | str:
    """Return the route of whole requests through one kind of replica, or why there is none."""
    one = _service(demand, server)
    if one.missing or one.most < 1:
        return one.missing or "not one sequence fits in its memory"
    rate = most_arrivals(
        one.prefill_s, one.step_points, demand.output_tokens, one.most, lambda said: _keeps(demand, said), demand.variation
    )
    if rate <= 0:
        return _least(demand, one)
    said = latencies(rate, one.prefill_s, one.step_points, demand.output_tokens, one.most, demand.variation)
    assert isinstance(said, Latencies)
    return Route(demand.name, (Leg(server.replica.name, "whole", rate, said.total.mean_s),))


def _parted(demand: Demand, first: Server, second: Server, links: tuple[tuple[str, str, Link], ...]) -> Route | None:
    """Return the route with the prompt on one kind of replica and the answer on another; None where there is none."""
    prompt, answer = _service(demand, first), _service(demand, second)
    if not first.layout or first.layout != second.layout or prompt.missing or answer.missing or answer.most < 1:
        return None
    crossing_s = 0.0
    if first.replica.pool != second.replica.pool:
        pair = (first.replica.pool, second.replica.pool)
        link = next((link for source, target, link in links if (source, target) == pair), None)
        if link is None:
            return None
        crossing_s = link.latency_s + prompt.kept_bytes / link.bytes_per_s
    whole = demand.total_s
    parts = (demand.first_token_s, None if whole is None else whole * _PROMPT_PART)
    budgets = tuple(value - crossing_s for value in parts if value is not None)
    reading = _reading(prompt.prefill_s, demand.share, budgets)
    if reading is None:
        return None
    rate, read_s, mean_s = reading
    left = None if whole is None else whole - crossing_s - read_s
    answering = _answering(answer.step_points, answer.most, demand.output_tokens, demand.variation, demand.per_token_s, left,
                           demand.share)
    if answering is None:
        return None
    most, answer_s = answering
    legs = (Leg(first.replica.name, "prefill", rate, mean_s), Leg(second.replica.name, "decode", most, answer_s))
    return Route(demand.name, legs, prompt.kept_bytes, crossing_s)


@lru_cache(maxsize=1024)
def _reading(prefill_s: float, share: str, budgets: tuple[float, ...]) -> tuple[float, float, float] | None:
    """Return the most prompts a second of a replica that only reads, its percentile and its mean there; None when it is too slow.

    One that reads prompt after prompt is a queue with one place whose every service takes the same.
    """
    if prefill_s <= 0:
        return None
    points = ((1, prefill_s),)

    def keeps(said: Latencies) -> bool:
        return all(_within(said.total, budget, share) for budget in budgets)

    rate = most_arrivals(0.0, points, 1.0, 1, keeps)
    if rate <= 0:
        return None
    said = latencies(rate, 0.0, points, 1.0, 1)
    assert isinstance(said, Latencies)
    return rate, _of(said.total, share), said.total.mean_s


@lru_cache(maxsize=1024)
def _answering(
    points: tuple[tuple[int, float], ...], places: int, tokens: float, variation: float, per_token_s: float | None,
    total_s: float | None, share: str,
) -> tuple[float, float] | None:
    """Return the most answers a second of a replica that reads nothing, and their mean seconds; None when it is too slow."""

    def keeps(said: Latencies) -> bool:
        return _within(said.per_token, per_token_s, share) and _within(said.total, total_s, share)

    rate = most_arrivals(0.0, points, tokens, places, keeps, variation)
    if rate <= 0:
        return None
    said = latencies(rate, 0.0, points, tokens, places, variation)
    assert isinstance(said, Latencies)
    return rate, said.total.mean_s


def _keeps(demand: Demand, said: Latencies) -> bool:
    """Return whether latencies are what a class asks for."""
    asked: tuple[tuple[Percentiles, float | None], ...] = (
        (said.first_token, demand.first_token_s), (said.per_token, demand.per_token_s), (said.total, demand.total_s),
    )
    return all(_within(value, limit, demand.share) for value, limit in asked)


def _within(said: Percentiles, limit: float | None, share: str) -> bool:
    return limit is None or _of(said, share) <= limit


def _of(said: Percentiles, share: str) -> float:
    read: dict[str, Callable[[Percentiles], float]] = {
        "p50": lambda one: one.p50_s, "p95": lambda one: one.p95_s, "p99": lambda one: one.p99_s,
    }
    return read[share](said)


def _least(demand: Demand, one: Service) -> str:
    """Return which target even a request alone misses."""
    said = latencies(1e-9, one.prefill_s, one.step_points, demand.output_tokens, one.most, demand.variation)
    assert isinstance(said, Latencies)
    for what, value, limit in (
        ("the first token", said.first_token, demand.first_token_s), ("a token", said.per_token, demand.per_token_s),
        ("the answer", said.total, demand.total_s),
    ):
        if not _within(value, limit, demand.share):
            return f"{what} takes {seconds(_of(value, demand.share))} even alone, more than {seconds(limit)}"
    return "its targets leave no room for a second request"
