"""The birth-death chain behind `advisor.queueing`: how many are in flight, and what one request meets among the others.

It must not know what its numbers are asked for. States far from what is ever seen are left out, which bounds the work.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from advisor.split.pace import Pace

Floats = NDArray[np.float64]
_NEVER, _FAR, _CROWD = 1e-10, 1e-6, 4000
"""Shares that are left out, of arrivals and of those who wait, and the longest queue that is followed."""
_STEPS = 16
"""Steps of the trapezoidal rule over an answer: on the servers of `bench.queueing` percentiles are those of 320 to 1 in 1,000."""


@dataclass(slots=True)
class Chain:
    """Numbers in flight as arrivals find them, and the walk of a request that is among them.

    Args:
        arrivals_per_s, prefill_s: as asked.
        counts: the numbers in flight that leave a place free and do occur.
        free: shares of arrivals that find each of them.
        step_s: of each of them, a step.
        waiting: share of arrivals that find no place; with `free` it sums to one.
        behind: of those, shares by how many stand behind when a place is got.
        wait_s, wait_variance: of the wait for a place of those who wait.
        reading: share of time in which a prompt is read.
        speeds: tokens a second of a request by how many there are, itself and the queue included: from one more than the first
            of `counts` on; the first of `behind` begins where the last of `counts` leads to.
        up, down: rates at which the others become more and fewer, of the same states.
        utilisation, in_flight: of all.
        stalls: whether others' prompts can stall a request.
    """

    arrivals_per_s: float
    prefill_s: float
    counts: Floats
    free: Floats
    step_s: Floats
    waiting: float
    behind: Floats
    wait_s: float
    wait_variance: float
    reading: float
    speeds: Floats
    up: Floats
    down: Floats
    utilisation: float
    in_flight: float
    stalls: bool
    _done: float = 0.0
    _mean: Floats | None = None
    _variance: Floats | None = None

    @property
    def behind_prompts(self) -> tuple[float, float]:
        """Mean and variance of the wait of those who find a prompt being read."""
        return _even_wait(self.prefill_s, self.reading)

    @property
    def late_prompts(self) -> tuple[float, float]:
        """Mean and variance of what is still read, after its own prompt, of those who came while a request waited for that."""
        came = self.reading + self.arrivals_per_s * self.reading * self.behind_prompts[0]
        return came * self.prefill_s / (1 - self.reading), came * self.prefill_s**2 / (1 - self.reading) ** 3

    @property
    def fastest(self) -> float:
        """Tokens a second at the best."""
        return float(np.max(self.speeds))

    def decoding(self, tokens: float) -> tuple[Floats, Floats]:
        """Return mean and variance of the seconds in which so many tokens come, by the state at the start.

        Mean m and variance v as functions of the tokens u obey `dm/du = A m + 1/speed` and `dv/du = A v + G(m)`, with A the
        generator of the neighbours over the speed and G its squared field, `sum of rates x (m(next) - m)^2 / speed`: solved by
        the trapezoidal rule. To be asked for ascending numbers of tokens: each call goes on where the last one stopped.

        Source: Bakry and Emery's identity for the square of a function along a Markov process, with the reward added.
        """
        size = len(self.speeds)
        mean = np.zeros(size) if self._mean is None else self._mean
        variance = np.zeros(size) if self._variance is None else self._variance
        if np.ptp(self.speeds) == 0:  # nobody slows another down
            mean = np.full(size, tokens / self.fastest)
        else:
            mean, variance = self._walked(mean, variance, tokens)
        self._done, self._mean, self._variance = tokens, mean, variance
        if not self.stalls:
            return mean, np.maximum(variance, 0.0)
        after, spread = self.late_prompts
        return mean + after, np.maximum(variance, 0.0) + self.arrivals_per_s * self.prefill_s**2 * mean + spread

    def _walked(self, mean: Floats, variance: Floats, tokens: float) -> tuple[Floats, Floats]:
        """Return mean and variance at a number of tokens from those where the last call stopped."""
        steps = max(1, round(_STEPS * (tokens - self._done) / tokens))
        half = (tokens - self._done) / steps / 2
        up, down, gain = half * self.up / self.speeds, half * self.down / self.speeds, 2 * half / self.speeds
        solve = _solver(up, down)
        more, fewer = up[:-1], down[1:]
        rise = mean[1:] - mean[:-1]
        square = rise * rise
        for _ in range(steps):
            mean = mean + gain
            mean[:-1] += more * rise
            mean[1:] -= fewer * rise
            mean = solve(mean)
            spread = variance[1:] - variance[:-1]
            rise = mean[1:] - mean[:-1]
            before, square = square, rise * rise
            both = before + square
            variance = variance.copy()
            variance[:-1] += more * (both + spread)
            variance[1:] += fewer * (both - spread)
            variance = solve(variance)
        return mean, variance


def chain_of(
    arrivals_per_s: float, prefill_s: float, steps: Pace, output_tokens: float, most: int, variation: float
) -> Chain | None:
    """Return the chain of a server; None when more comes than it can serve.

    Args:
        arrivals_per_s, prefill_s, output_tokens, most, variation: as `advisor.queueing.latencies` has them.
        steps: seconds of a step by the number in flight.
    """
    reading = arrivals_per_s * prefill_s
    top = 1.0 / (prefill_s + output_tokens * steps.at_once(most) / most)
    load = arrivals_per_s / top
    if load >= 1 - 1e-9:
        return None
    count = np.arange(1, most + 1, dtype=float)
    step = _steps(steps, most)
    bunch = (1 / (1 - reading) ** 2 - 1) * max(1 - variation / 2, 0.0)  # that begin together
    crowded = np.interp(np.minimum(count + bunch, most), count, step)
    late = reading / (1 - reading) * prefill_s if most > 1 else 0.0
    served = count / (output_tokens * crowded / (1 - reading) + late)
    served[-1] = top
    logs = np.concatenate([[0.0], np.cumsum(np.log(arrivals_per_s / served))])
    shares = np.exp(logs - np.max(logs))
    waits = shares[-1] / (1 - load)
    whole = float(np.sum(shares[:-1]) + waits)
    free, waiting = shares[:-1] / whole, float(waits / whole)
    queue = (1 + variation) / 2 * load / (1 - load)
    ratio = queue / (1 + queue)
    wait_s, spread = queue / arrivals_per_s, min(variation, 1.0)
    crowd = 0 if waiting < _NEVER else min(int(np.log(_FAR) / np.log(ratio)), _CROWD) + 1
    kept = np.flatnonzero(free > _NEVER * np.max(free))
    first, last = int(kept[0]), most if crowd else int(kept[-1]) + 1
    among = np.arange(first + 1, last + max(crowd, 1))
    full = among >= most
    together = np.minimum(among, most)
    speeds = (1 - prefill_s * np.where(full, top * (most - 1) / most, arrivals_per_s)) / crowded[together - 1]
    down = np.where(full, top, speeds * together / output_tokens) * (together - 1) / together
    return Chain(
        arrivals_per_s=arrivals_per_s,
        prefill_s=prefill_s,
        counts=np.arange(first, last, dtype=float),
        free=free[first:last] * (1 - waiting) / np.sum(free[first:last]),
        step_s=np.where(np.arange(first, last) > 0, step[np.maximum(np.arange(first, last) - 1, 0)], 0.0),
        waiting=waiting if crowd else 0.0,
        behind=np.power(ratio, np.arange(crowd)) / max(float(np.sum(np.power(ratio, np.arange(crowd)))), _NEVER),
        wait_s=wait_s,
        wait_variance=spread * wait_s**2 + (1 - spread) * _even_wait(1 / top, load)[1],
        reading=reading,
        speeds=speeds,
        up=np.full(len(among), arrivals_per_s),
        down=down,
        utilisation=load,
        in_flight=float(np.sum(free * np.arange(most)) + most * waiting),
        stalls=most > 1,
    )


@lru_cache(maxsize=256)
def _steps(steps: Pace, most: int) -> Floats:
    """Return the seconds of a step with 1 to `most` in flight; the same at every rate that is asked about."""
    found = np.array([steps.at_once(count) for count in range(1, most + 1)])
    found.setflags(write=False)
    return found


def _solver(up: Floats, down: Floats) -> Callable[[Floats], Floats]:
    """Return what solves `x - A x = b` for the generator A of a walk with these rates, factored once."""
    leaves = up.copy()
    leaves[-1] = 0.0
    falls = down.copy()
    falls[0] = 0.0
    middle = 1 + leaves + falls
    below, above = -down[1:], -up[:-1]
    if len(up) < 3:  # LAPACK's wrapper wants a second diagonal
        inverse = np.linalg.inv(np.diag(middle) + np.diag(below, -1) + np.diag(above, 1))
        return lambda right: inverse @ right
    from scipy import linalg

    lapack: Any = linalg.lapack
    lower, main, upper, second, pivots, _ = lapack.dgttrf(below, middle, above)
    return lambda right: lapack.dgttrs(lower, main, upper, second, pivots, right)[0]


def _even_wait(service_s: float, load: float) -> tuple[float, float]:
    """Return mean and variance of the wait, where there is one, for a server whose services all take the same (M/D/1).

    Source: Takacs' moments of the M/G/1 wait, over the probability of waiting.
    """
    mean = service_s / (2 * (1 - load))
    return mean, 2 * load * mean**2 + service_s**2 / (3 * (1 - load)) - mean**2
