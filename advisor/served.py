"""What requests meet when a plan serves them at a rate: replicas, each with a queue of its own before continuous batching.

From the passes of the plan: reading one prompt, and a step that gives a token to each of those in flight. With fewer in flight
a step is shorter, by what of it belongs to them: their arithmetic and their keys and values, not the weights, launches and
collectives. What is assumed: requests come at random (Poisson), are dealt out evenly, and have equal answers; a replica takes
as many at once as its share of the batch.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import exp

from advisor.queueing import Latencies, Percentiles, Unstable, latencies, limit_per_s
from advisor.search import PassTime
from core import format as fmt
from core.advice import Served
from core.quantity import Z_80, Quantity
from core.sketch import DECODE, PREFILL
from core.sketching import output_of
from core.workload import Workload

OF_REQUESTS = ("compute", "bubble", "input")
"""Terms of a step that shrink with the requests in flight; memory traffic does in part."""
NEARLY_FULL = 0.99
"""Utilisation at which the slow end of a band is told where it cannot keep up: there is no figure beyond."""
NOTE = "queue of each replica with random arrivals and equal answers"


@dataclass(frozen=True, slots=True)
class Load:
    """A rate of requests on one plan.

    Args:
        requests_per_s: on all replicas together.
        replicas: that share them; a part of one where the last has not as many places as the others.
        places: requests that a replica takes at once.
        prefill_s: reading one prompt; 0 where a request is one pass.
        steps: (requests in flight, seconds of a step).
        tokens: of an answer, each a step; 1 where a request is one pass.
        sigma, tier, evidence: of the step that it comes from.
    """

    requests_per_s: float
    replicas: float
    places: int
    prefill_s: float
    steps: tuple[tuple[int, float], ...]
    tokens: float
    sigma: float
    tier: str
    evidence: tuple[str, ...]

    def limit_per_s(self, slower: float = 1.0) -> float:
        """Return the requests a second that can just not be served, when all takes longer by a factor."""
        return self.replicas * limit_per_s(self.prefill_s, self.steps, self.tokens, self.places) / slower

    @property
    def least_s(self) -> float:
        """What a request takes that meets no other."""
        return self.prefill_s + self.tokens * self.steps[0][1]


def with_ends(passes: Sequence[PassTime], host_s: float, input_s: float) -> tuple[PassTime, ...]:
    """Return the passes of a step, the last of which also takes what the host does once a step and what input is waited for.

    Args:
        passes: of a step.
        host_s, input_s: of the whole step; input is there for each request, the host's part once.
    """
    *before, last = passes
    ends = (("host", host_s / last.times), ("input", input_s / last.times))
    return (*before, replace(last, seconds=last.seconds + sum(seconds for _, seconds in ends), terms=(*last.terms, *ends)))


def load_of(
    workload: Workload, passes: Sequence[PassTime], places: int, memory: Iterable[tuple[str, float]], step: Quantity,
    fewer: Sequence[tuple[int, float]] = (),
) -> Load | None:
    """Return the load that a workload's rate of requests is for a plan; None when it asks for none.

    Args:
        workload: the job.
        passes: of a step of the plan: a prompt and its tokens, or one pass for the whole batch.
        places: of the batch, that one replica takes at once.
        memory: parts of one chip, which tell how much of the traffic is weights.
        step: seconds of the whole batch, of which the band is taken.
        fewer: (requests in flight, seconds of the last pass) where that is known of fewer than `places`, ascending.
    """
    rate = workload.targets.requests_per_s
    if rate is None or workload.task != "serve":
        return None
    one = {each.regime: each for each in passes}
    last = one.get(DECODE) or passes[-1]
    generates = last.regime == DECODE
    prompts = one[PREFILL].seconds / places if generates and PREFILL in one else 0.0
    known = _rising((*fewer, (places, last.seconds)))
    if known[0][0] > 1:
        known = ((1, min(_alone_s(last, places, memory), known[0][1])), *known)
    tokens = output_of(workload) if generates else 1.0
    return Load(rate, workload.batch / places, places, prompts, known, tokens, step.sigma, step.tier, step.evidence)


def _rising(points: Sequence[tuple[int, float]]) -> tuple[tuple[int, float], ...]:
    """Return points in which no more in flight takes less time: each is at most the next."""
    kept = [points[-1]]
    for flying, seconds in reversed(points[:-1]):
        kept.append((flying, min(seconds, kept[-1][1])))
    return tuple(reversed(kept))


def _alone_s(last: PassTime, places: int, memory: Iterable[tuple[str, float]]) -> float:
    """Return the seconds of a step with one request in flight."""
    parts = dict(memory)
    weights = parts.get("weights", 0.0)
    own = parts.get("key-value cache", 0.0) or parts.get("activations", 0.0)
    shared = weights / (weights + own) if weights + own > 0 else 0.0
    total_s = 0.0
    for term, seconds in last.terms:
        fixed = shared if term == "memory traffic" else 0.0 if term in OF_REQUESTS else 1.0
        total_s += seconds * (fixed + (1 - fixed) / places)
    return total_s


def limited(load: Load) -> Served:
    """Return what a rate of requests meets without the latencies, which take a thousand times as long to tell."""
    return Served(load.requests_per_s, load.limit_per_s())


def served_of(load: Load) -> Served:
    """Return what requests meet at the rate of a load; without latencies where more comes than can be served."""
    middle = _at(load, 1.0)
    if middle is None:
        return limited(load)
    spread = exp(Z_80 * load.sigma)
    low, high = _at(load, 1 / spread) or middle, _at(load, spread, NEARLY_FULL) or middle
    evidence = (*load.evidence, f"{load.replicas:,g} x {load.places} at once; {NOTE}")

    def told(name: str) -> tuple[Quantity, ...]:
        ends = [_values(getattr(one, name)) for one in (low, middle, high)]
        return tuple(
            Quantity(min(least, mid), mid, max(mid, most), load.tier, evidence) for least, mid, most in zip(*ends, strict=True)
        )

    per_token = told("per_token") if load.prefill_s > 0 else ()
    first = told("first_token") if load.prefill_s > 0 else ()
    return Served(load.requests_per_s, load.limit_per_s(), first, per_token, told("total"))


def service_words(served: Served | None) -> str:
    """Return one clause on what requests meet, for people; empty where no latencies are told."""
    if served is None or not served.total_s:
        return ""
    half, _, slowest = served.total_s
    first = f", the first token after {fmt.seconds(served.first_token_s[0].mid)}" if served.first_token_s else ""
    return (
        f"at {served.requests_per_s:g} requests a second ({served.utilisation:.0%} of what it can serve) half take up to "
        f"{fmt.seconds(half.mid)}{first}, and one in a hundred over {fmt.seconds(slowest.mid)}"
    )


def _at(load: Load, slower: float, most: float | None = None) -> Latencies | None:
    """Return what requests meet when all takes longer by a factor, at no more than a utilisation; None when too many come."""
    rate = load.requests_per_s / load.replicas
    if most is not None:
        rate = min(rate, most * load.limit_per_s(slower) / load.replicas)
    steps = tuple((flying, seconds * slower) for flying, seconds in load.steps)
    found = latencies(rate, load.prefill_s * slower, steps, load.tokens, load.places)
    return None if isinstance(found, Unstable) else found


def _values(percentiles: Percentiles) -> tuple[float, float, float]:
    return percentiles.p50_s, percentiles.p95_s, percentiles.p99_s
