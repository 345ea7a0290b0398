"""How many requests one replica may be given so that a percentile keeps its target: the queue model, turned round by bisection.

A rate is looked for once for each kind of replica and each part that it may have in a request, and kept: a page that is asked
again with other pools, prices or rates looks for none that it knows.

Each class is tried alone on a replica; a replica that serves several divides its time among them, and each part keeps its own
target as long as the parts add up to no more than one. Requests are dealt out at random, so that every replica's stream stays
Poisson: a router that knows queues does better. Prefill and decode are parted only between replicas that keep keys and values in
the same layout; what crosses is added to the time to the first token.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import floor, log

from advisor.queueing import Latencies, Limits, Percentiles, keeps, latencies, mean_total_s, most_arrivals
from advisor.split.serving_words import Leg, Replica, Route, ServingProblem
from core.device import Link
from core.errors import BadInput
from core.format import seconds

SHARES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
_PROMPT_PARTS = (1 / 16, 1 / 8, 1 / 4, 1 / 2)
"""Parts of a target for the whole answer that the prompt's side may use; the answer's side has what is left."""
_ENOUGH = 0.95
"""The prompt's side is given the least part that leaves it so much of its best rate, and less where the answer's needs more."""
_TOLERANCE = 0.01
"""By which part a rate may be too small."""


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

    @property
    def limits(self) -> Limits:
        """What the queue of a replica that does all of a request has to keep."""
        return Limits(SHARES[self.share], self.first_token_s, self.per_token_s, self.total_s)


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
        stocks, links: as `ServingProblem` has them; between two pools prompts and answers are parted only over a link that is
            given. That of a pool with itself joins its hosts; without one handing over inside it counts as nothing.
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
    found = _served(one.prefill_s, one.step_points, one.most, demand.output_tokens, demand.variation, demand.limits)
    if found is None:
        return _least(demand, one)
    rate, mean_s = found
    return Route(demand.name, (Leg(server.replica.name, "whole", rate, mean_s),))


def _parted(demand: Demand, first: Server, second: Server, links: tuple[tuple[str, str, Link], ...]) -> Route | None:
    """Return the route with the prompt on one kind of replica and the answer on another; None where there is none."""
    prompt, answer = _service(demand, first), _service(demand, second)
    if not first.layout or first.layout != second.layout or prompt.missing or answer.missing or answer.most < 1:
        return None
    pair = (first.replica.pool, second.replica.pool)
    link = next((link for source, target, link in links if (source, target) == pair), None)
    if link is None and pair[0] != pair[1]:
        return None
    crossing_s = 0.0 if link is None else link.latency_s + prompt.kept_bytes / link.bytes_per_s
    share, whole = SHARES[demand.share], demand.total_s
    for budget, reading in _readings(demand, prompt.prefill_s, crossing_s):
        left_s = None if whole is None or budget is None else whole - budget
        limits = Limits(share, per_token_s=demand.per_token_s, total_s=left_s)
        answering = _served(0.0, answer.step_points, answer.most, demand.output_tokens, demand.variation, limits)
        if answering is not None:
            legs = (Leg(first.replica.name, "prefill", *reading), Leg(second.replica.name, "decode", *answering))
            return Route(demand.name, legs, prompt.kept_bytes, crossing_s)
    return None


def _readings(
    demand: Demand, prefill_s: float, crossing_s: float
) -> Iterator[tuple[float | None, tuple[float, float]]]:
    """Yield what a replica does that only reads prompts: the best part of the target for it, then ever smaller ones.

    One that reads prompt after prompt is a queue with one place whose every service takes the same.

    Yields:
        seconds that prompt and crossing may take, None for any; prompts a second and mean seconds of one.
    """
    first, whole, share = demand.first_token_s, demand.total_s, SHARES[demand.share]
    budgets = (first,) if whole is None else tuple(dict.fromkeys(min(whole * part, first or whole) for part in _PROMPT_PARTS))
    limits = [Limits(share, total_s=None if budget is None else _stepped(budget - crossing_s)) for budget in budgets]
    best = _reads(prefill_s, limits[-1])
    if best is None:
        return
    enough = (keeps(_ENOUGH * best[0], 0.0, ((1, prefill_s),), 1.0, 1, one) for one in limits[:-1])
    chosen = next((index for index, kept in enumerate(enough) if kept), len(budgets) - 1)
    for index in range(chosen, -1, -1):
        reading = _reads(prefill_s, limits[index])
        if reading is not None:
            yield budgets[index], reading


def _stepped(value_s: float) -> float:
    """Return the next less of values that lie 2 % apart: crossings that hardly differ are then one search."""
    return 1.02 ** floor(log(value_s, 1.02)) if value_s > 0 else 0.0


def _reads(prefill_s: float, limits: Limits) -> tuple[float, float] | None:
    """Return the most prompts a second within limits of the whole, and the mean seconds of one; None when it is too slow."""
    return _served(0.0, ((1, prefill_s),), 1, 1.0, 0.0, limits) if prefill_s > 0 else None


@lru_cache(maxsize=4096)
def _served(
    prefill_s: float, points: tuple[tuple[int, float], ...], places: int, tokens: float, variation: float, limits: Limits
) -> tuple[float, float] | None:
    """Return the most requests a second that one replica serves within limits, and the mean seconds of one there.

    Args:
        prefill_s, points, places, tokens, variation, limits: as `advisor.queueing.most_arrivals` has them.

    Returns:
        None where even a request that meets no other misses a limit.
    """
    rate = most_arrivals(prefill_s, points, tokens, places, limits, variation, _TOLERANCE)
    return (rate, mean_total_s(rate, prefill_s, points, tokens, places, variation)) if rate > 0 else None


def _least(demand: Demand, one: Service) -> str:
    """Return which target even a request alone misses."""
    said = latencies(1e-9, one.prefill_s, one.step_points, demand.output_tokens, one.most, demand.variation)
    assert isinstance(said, Latencies)
    for what, value, limit in (
        ("the first token", said.first_token, demand.first_token_s), ("a token", said.per_token, demand.per_token_s),
        ("the answer", said.total, demand.total_s),
    ):
        if limit is not None and _of(value, demand.share) > limit:
            return f"{what} takes {seconds(_of(value, demand.share))} even alone, more than {seconds(limit)}"
    return "its targets leave no room for a second request"


def _of(said: Percentiles, share: str) -> float:
    return {"p50": said.p50_s, "p95": said.p95_s, "p99": said.p99_s}[share]
