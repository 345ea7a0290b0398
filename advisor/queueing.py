"""Latency percentiles of a server that batches continuously: the queue before it, the first token, each token, the whole answer.

Requests come at random (Poisson). A prompt is read at once when a place is free and stalls the others while it is; everyone in
flight then gets one token a step, and a step takes longer the more there are. What this must not do: guess what a step takes
(that is measured or estimated elsewhere), or know of workloads and pools.

Why so: the number in flight is a birth-death chain whose stationary distribution does not hang on how the lengths of answers
spread as long as nobody waits for a place (an egalitarian processor-sharing queue whose speed depends on the state; Kelly,
Reversibility and Stochastic Networks, 1979, chapter 3). What one request meets on its way is then a reward that grows along the
chain: its mean and variance follow exactly from two linear equations, per state that it finds, and a gamma distribution above
the least possible time stands for each of those; the percentiles are of their mixture. A wait for a place is an atom plus a
gamma, thinner for less spread lengths (Lee and Longton, Operational Research Quarterly 10, 1959): exact for M/M/c, and in the
mean for M/G/1. A wait behind other prompts is that of M/D/1 with the step under way as its vacation (Fuhrmann and Cooper,
Operations Research 33, 1985). Prompts that are read in one go begin to decode together; what that costs is Kleinrock's bunching
(Queueing Systems II, 1976, section 4.7), with the sizes of busy periods after Borel. `bench.queueing` holds all of it against a
simulation of every step.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from advisor.queueing_chain import Chain, Floats, chain_of
from advisor.queueing_mixture import Mixture, Percentiles, joined
from advisor.split.pace import Pace
from core.errors import BadInput

_EDGES = np.array([*np.linspace(0.0, 0.95, 16), 0.975, 0.99, 0.997])
"""Shares of arrivals between which the states that they find are taken together: finer where the percentiles lie."""


@dataclass(frozen=True, slots=True)
class Latencies:
    """What requests meet at one rate of arrivals.

    Args:
        first_token: from the arrival to the end of the prompt's reading (time to first token).
        per_token: of a request, its decoding over its tokens (time per output token).
        total: from the arrival to the last token.
        utilisation: arrivals over the most that can be served.
        in_flight: mean number that decode.
        waiting: share of arrivals that find no place free.
    """

    first_token: Percentiles
    per_token: Percentiles
    total: Percentiles
    utilisation: float
    in_flight: float
    waiting: float


@dataclass(frozen=True, slots=True)
class Unstable:
    """More comes than can be served: every wait grows without end.

    Args:
        limit_per_s: arrivals below which there is an answer.
    """

    limit_per_s: float


@dataclass(frozen=True, slots=True)
class Limits:
    """What one percentile of each latency may reach; None asks for nothing.

    Args:
        share: of requests that have to keep them, between 0 and 1.
        first_token_s, per_token_s, total_s: seconds, as `Latencies` has them.
    """

    share: float = 0.99
    first_token_s: float | None = None
    per_token_s: float | None = None
    total_s: float | None = None

    def __post_init__(self) -> None:
        if not 0 < self.share < 1:
            raise BadInput(f"a share of {self.share:g} of requests", "a number between 0 and 1", "correct it")


@lru_cache(maxsize=4096)
def latencies(
    arrivals_per_s: float,
    prefill_s: float,
    step_points: tuple[tuple[int, float], ...],
    output_tokens: float,
    most: int,
    variation: float = 0.0,
) -> Latencies | Unstable:
    """Return what requests meet, or the rate from which on there is no answer.

    Args:
        arrivals_per_s: requests a second, above zero, at random times.
        prefill_s: reading one prompt, during which nobody decodes; it gives the first token.
        step_points: (sequences in flight, seconds of a step that gives each of them a token), as `Pace` has them.
        output_tokens: of a mean answer, each of them one step.
        most: places: sequences that fit in memory at once.
        variation: squared coefficient of variation of the tokens of answers: 0 when all are equal, 1 when exponential.

    Raises:
        BadInput: a number out of its range.

    Source: the module's docstring.
    """
    chain = _chain(arrivals_per_s, prefill_s, step_points, output_tokens, most, variation)
    if chain is None:
        return Unstable(limit_per_s(prefill_s, step_points, output_tokens, most))
    weight, found = _found(chain)
    first, moments = _first_token(chain, weight, found)
    pace, total = _decoding(chain, weight, found, moments, output_tokens, variation)
    return Latencies(
        first.percentiles(), pace.percentiles(), total.percentiles(), chain.utilisation, chain.in_flight, chain.waiting,
    )


def keeps(
    arrivals_per_s: float,
    prefill_s: float,
    step_points: tuple[tuple[int, float], ...],
    output_tokens: float,
    most: int,
    limits: Limits,
    variation: float = 0.0,
) -> bool:
    """Return whether what requests meet keeps limits: what `latencies` would tell, at a fraction of the work.

    Args:
        arrivals_per_s, prefill_s, step_points, output_tokens, most, variation: as `latencies` has them.
        limits: only what is asked of is worked out, the first token first.

    Raises:
        BadInput: a number out of its range.
    """
    chain = _chain(arrivals_per_s, prefill_s, step_points, output_tokens, most, variation)
    if chain is None:
        return False
    weight, found = _found(chain)
    first, moments = _first_token(chain, weight, found)
    if not first.keeps(limits.first_token_s, limits.share):
        return False
    if limits.per_token_s is None and limits.total_s is None:
        return True
    pace, total = _decoding(chain, weight, found, moments, output_tokens, variation)
    return pace.keeps(limits.per_token_s, limits.share) and total.keeps(limits.total_s, limits.share)


def mean_total_s(
    arrivals_per_s: float,
    prefill_s: float,
    step_points: tuple[tuple[int, float], ...],
    output_tokens: float,
    most: int,
    variation: float = 0.0,
) -> float:
    """Return the mean seconds from the arrival to the last token; infinite where more comes than can be served.

    Args:
        arrivals_per_s, prefill_s, step_points, output_tokens, most, variation: as `latencies` has them.

    Raises:
        BadInput: a number out of its range.
    """
    chain = _chain(arrivals_per_s, prefill_s, step_points, output_tokens, most, variation)
    if chain is None:
        return float("inf")
    weight, found = _found(chain)
    _, moments = _first_token(chain, weight, found)
    return _decoding(chain, weight, found, moments, output_tokens, variation)[1].average()


def limit_per_s(prefill_s: float, step_points: tuple[tuple[int, float], ...], output_tokens: float, most: int) -> float:
    """Return the arrivals a second that a server can just not serve: those of all places taken at all times.

    Args:
        prefill_s, step_points, output_tokens, most: as `latencies` has them.
    """
    return 1.0 / (prefill_s + output_tokens * _pace(step_points).at_once(most) / most)


def most_arrivals(
    prefill_s: float,
    step_points: tuple[tuple[int, float], ...],
    output_tokens: float,
    most: int,
    limits: Limits,
    variation: float = 0.0,
    tolerance: float = 0.005,
) -> float:
    """Return the most arrivals a second at which limits are kept; 0 when they never are.

    Args:
        prefill_s, step_points, output_tokens, most, variation: as `latencies` has them.
        limits: what has to be kept.
        tolerance: by which part the answer may be too small.

    Raises:
        BadInput: a number out of its range.
    """
    _check(1.0, prefill_s, output_tokens, most, variation)
    if variation == 0 and _too_slow(prefill_s, _pace(step_points).at_once(1), output_tokens, limits):
        return 0.0
    high = limit_per_s(prefill_s, step_points, output_tokens, most)
    low = least = high * 1e-3
    while high - low > tolerance * high * 0.5:
        middle = (low + high) / 2
        kept = keeps(middle, prefill_s, step_points, output_tokens, most, limits, variation)
        low, high = (middle, high) if kept else (low, middle)
    if low == least and not keeps(least, prefill_s, step_points, output_tokens, most, limits, variation):
        return 0.0
    return high / (1 + tolerance)


def _too_slow(prefill_s: float, step_s: float, output_tokens: float, limits: Limits) -> bool:
    """Return whether even a request that meets no other misses a limit, where all answers are equal."""
    whole_s = prefill_s + output_tokens * step_s
    alone = ((prefill_s, limits.first_token_s), (step_s, limits.per_token_s), (whole_s, limits.total_s))
    return any(limit is not None and value > limit * (1 + 1e-9) for value, limit in alone)


def _chain(
    arrivals_per_s: float, prefill_s: float, step_points: tuple[tuple[int, float], ...], output_tokens: float, most: int,
    variation: float,
) -> Chain | None:
    """Return the chain of what is asked, once it is checked; None when more comes than can be served."""
    _check(arrivals_per_s, prefill_s, output_tokens, most, variation)
    return chain_of(arrivals_per_s, prefill_s, _pace(step_points), output_tokens, most, variation)


def _check(arrivals_per_s: float, prefill_s: float, output_tokens: float, most: int, variation: float) -> None:
    for name, value, fits, expected in (
        ("arrivals a second", arrivals_per_s, 0 < arrivals_per_s < float("inf"), "a number above 0"),
        ("seconds of a prefill", prefill_s, 0 <= prefill_s < float("inf"), "0 or more"),
        ("output tokens", output_tokens, 0 < output_tokens < float("inf"), "a number above 0"),
        ("places", most, most >= 1, "1 or more"),
        ("variation of the tokens", variation, 0 <= variation <= 4, "0 (all equal) to 4"),
    ):
        if not fits:
            raise BadInput(f"{name}: {value}", expected, "correct the load or the estimate that it comes from")


def _pace(step_points: tuple[tuple[int, float], ...]) -> Pace:
    try:
        return Pace(step_points)
    except ValueError as fault:
        raise BadInput(
            f"steps {step_points}",
            "(sequences, seconds), sequences ascending, seconds not falling",
            "give the seconds of a step at one or more numbers of sequences",
        ) from fault


def _found(chain: Chain) -> tuple[Floats, Any]:
    """Return the shares of arrivals by what they find, in groups of states, the last being those that wait for a place.

    Returns:
        shares of the groups; for each free state the number of its group.
    """
    middle = np.cumsum(chain.free) - chain.free / 2
    group = np.unique(np.searchsorted(_EDGES, middle, side="right"), return_inverse=True)[1]
    weights = np.bincount(group, weights=chain.free)
    return np.append(weights, chain.waiting), group


def _grouped(chain: Chain, group: Any, mean: Floats, variance: Floats) -> tuple[Floats, Floats]:
    """Return mean and variance of what depends on the state, by group; spread inside a group counts."""
    masses = np.bincount(group, weights=chain.free)
    first = np.bincount(group, weights=chain.free * mean[: len(chain.free)]) / masses
    second = np.bincount(group, weights=chain.free * (variance + np.square(mean))[: len(chain.free)]) / masses
    begun = slice(len(chain.free) - 1, len(chain.free) - 1 + len(chain.behind))
    last = float(np.sum(chain.behind * mean[begun]))
    last_second = float(np.sum(chain.behind * (variance[begun] + np.square(mean[begun]))))
    means, seconds = np.append(first, last), np.append(second, last_second)
    return means, np.maximum(seconds - np.square(means), 0.0)


def _first_token(chain: Chain, weight: Floats, group: Any) -> tuple[Mixture, tuple[Floats, Floats]]:
    """Return the time to the first token, and mean and variance by group of what of it is waiting."""
    masses = weight[:-1]
    busy = np.bincount(group, weights=chain.free * (chain.counts > 0)) / masses
    step = np.bincount(group, weights=chain.free * chain.step_s) / masses
    others = busy * chain.reading
    parts: list[tuple[Floats, Floats, Floats, Floats]] = []
    zero = np.zeros(len(masses))
    behind_mean, behind_variance = chain.behind_prompts
    quarters = 4
    for number in range(quarters):
        middle = step * (number + 0.5) / quarters
        spread = np.square(step / quarters) / 12
        parts.append((masses * (busy - others) / quarters, chain.prefill_s + zero, middle, spread))
    parts.append((masses * (1 - busy), chain.prefill_s + zero, zero, zero))
    parts.append((masses * others, chain.prefill_s + zero, behind_mean + step / 2, behind_variance + np.square(step) / 12))
    wait, wait_variance = np.array([chain.wait_s]), np.array([chain.wait_variance])
    parts.append((weight[-1:], np.array([chain.prefill_s]), wait, wait_variance))
    mean = others * behind_mean + busy * step / 2
    second = others * (behind_variance + behind_mean**2 + behind_mean * step) + busy * np.square(step) / 3
    moments = np.append(mean, wait), np.append(np.maximum(second - np.square(mean), 0.0), wait_variance)
    return joined(parts), moments


def _decoding(
    chain: Chain, weight: Floats, group: Any, waits: tuple[Floats, Floats], output_tokens: float, variation: float
) -> tuple[Mixture, Mixture]:
    """Return the time per output token and the whole answer.

    Args:
        chain: of the server.
        weight, group: as `_found` has them.
        waits: mean and variance by group of what comes before the prompt is read, as `_first_token` has them.
        output_tokens, variation: as `latencies` has them.
    """
    total: list[tuple[Floats, Floats, Floats, Floats]] = []
    pace: list[tuple[Floats, Floats, Floats, Floats]] = []
    for share, length, spread in zip(*_lengths(output_tokens, variation), strict=True):
        narrow = max(length - (3 * spread) ** 0.5, 0.0)
        least = np.full(weight.shape, narrow / chain.fastest)
        grouped, varied = _grouped(chain, group, *chain.decoding(length))
        varied = varied + spread * np.square(grouped / length)
        over = np.maximum(grouped - least, 0.0)
        total.append((weight * share, least + chain.prefill_s, over + waits[0], varied + waits[1]))
        pace.append((weight * share, least / length, over / length, varied / length**2))
    return joined(pace), joined(total)


def _lengths(output_tokens: float, variation: float) -> tuple[list[float], list[float], list[float]]:
    """Return the tokens of answers in strata, ascending: shares, means and variances inside; a gamma distribution cut up."""
    if variation < 1e-6:
        return [1.0], [output_tokens], [0.0]
    from scipy.special import gammainc, gammaincinv

    shape, scale = 1 / variation, output_tokens * variation
    edges = np.array([*np.linspace(0, 0.88, 12), *(1 - np.geomspace(0.09, 1e-4, 14)), 1.0])
    cuts = np.append(np.asarray(gammaincinv(shape, edges[:-1])), np.inf)
    whole = np.diff(edges)
    below: Any = gammainc
    first: Floats = output_tokens * np.diff(below(shape + 1, cuts)) / whole
    second: Floats = scale**2 * shape * (shape + 1) * np.diff(below(shape + 2, cuts)) / whole
    return list(whole), list(np.maximum(first, 1e-9 * output_tokens)), list(np.maximum(second - np.square(first), 0.0))
