"""How sure a choice is: in how many of a thousand drawn worlds the first is the best that meets the targets.

In a world every candidate's step takes what its band allows: part of the error is shared by all, part by those on one kind of
chip. All figures of a candidate come from its step time and are off together, so the same draw says whether it meets its targets.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, log, sqrt
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from advisor.beliefs import BELIEFS
from advisor.ranking import NEARLY, Contender, difference_sigma, log_score
from core.advice import Confidence

DRAWS = 1000
CONTENDERS = 16
"""At most this many candidates are drawn against each other; the others are too far behind to win."""
FAR = 3.5
"""Standard deviations behind the best from which on a candidate is not drawn: it wins once in 4,000."""
_LEAST_SIGMA = 1e-9
"""Of figures that are known."""
RARE = 1 / 4000
"""Least chance that another candidate is better, where there is another: draws and bands tell no less."""


@dataclass(frozen=True, slots=True)
class _Drawn:
    """A candidate as it is drawn.

    Args:
        score: logarithm of what is compared.
        carried: of what is compared, logarithms that one of the step moves it by; 0 where the figure is known.
        limit: logarithm of the step over what is told within which all targets are met; infinite without any.
        sigma, chips: of the time of its chips the standard deviation, and its logarithm over that of the step as told.
        fed_sigma, fed: the same of its input; minus infinity where none is reckoned with.
        parts: shares of the chips' standard deviation that all have, that those on its chip have, and of its own.
        device, work: which of the drawn ones are its chip's and its own.
    """

    score: float
    carried: float
    limit: float
    sigma: float
    chips: float
    fed_sigma: float
    fed: float
    parts: tuple[float, float, float]
    device: int
    work: int


def confidence_of(order: Sequence[Contender], seed: int) -> Confidence | None:
    """Return the probability that the first is truly best by its ranking score, and the expected regret of choosing it.

    Best is what needs least of all that meets the targets; where nothing does, what misses them least. None where there is
    nothing to choose from, or where by middle values nothing meets the targets: then what misses them least leads, and not what
    is best.

    Where the true best is free, what a choice that costs loses is all of it: a regret of 1.

    Args:
        order: from `ranked`.
        seed: of the draws.
    """
    if not order or order[0].late:
        return None
    best = order[0]
    rivals = _rivals(best, order[1:])
    if not rivals:
        return Confidence(1.0 - RARE * any(not c.late for c in order[1:]), 0.0)
    field = [best, *rivals]
    devices = sorted({c.device for c in field})
    works = list(dict.fromkeys(c.work for c in field))
    free = best.value.mid <= 0
    drawn = [_drawn(c, free, devices.index(c.device), works.index(c.work)) for c in field]
    errors, limits = _errors(drawn, len(devices), len(works), seed), np.array([one.limit for one in drawn])
    over = np.maximum(0.0, errors - limits)
    values = np.array([one.score for one in drawn]) + errors * np.array([one.carried for one in drawn])
    nearest = over <= over.min(axis=1, keepdims=True)
    least = np.where(nearest, values, inf).min(axis=1)
    slack = NEARLY if best.compared.sigma == 0 else _LEAST_SIGMA
    wins = nearest[:, 0] & (values[:, 0] <= least + slack)
    behind = values[:, 0] - least
    lost = np.exp(np.where(behind == inf, log(2.0), behind)) - 1.0
    return Confidence(min(float(wins.mean()), 1.0 - RARE), float(np.where(wins, 0.0, np.maximum(0.0, lost)).mean()))


def _errors(drawn: Sequence[_Drawn], devices: int, works: int, seed: int) -> NDArray[np.float64]:
    """Return ln(step / step as told) of candidates in every world, shape (draws, candidates): of chips or input the longer.

    One error of the input is that of all.
    """
    draw = np.random.default_rng(seed)
    everywhere, chips, own, fed = (draw.standard_normal((DRAWS, count)) for count in (1, devices, works, 1))
    parts = np.array([one.parts for one in drawn]).T
    of_chip, of_own = chips[:, [one.device for one in drawn]], own[:, [one.work for one in drawn]]
    error = everywhere * parts[0] + of_chip * parts[1] + of_own * parts[2]
    chips_s = error * np.array([one.sigma for one in drawn]) + np.array([one.chips for one in drawn])
    return np.maximum(chips_s, fed * np.array([one.fed_sigma for one in drawn]) + np.array([one.fed for one in drawn]))


def _rivals(best: Contender, others: Sequence[Contender]) -> list[Contender]:
    """Return who may win: those near the best by their score, and those that may meet targets which the best may miss."""
    free, unsure = best.value.mid <= 0, _chance(best) < 1.0 - RARE
    able = [
        c for c in others
        if ((c.value.mid <= 0) == free or unsure or c.late) and (not c.late or _chance(c) > RARE)
    ]  # fmt: skip
    near = sorted(((_reach(c, best), c) for c in able), key=lambda pair: (pair[0], pair[1].order))
    able = [c for reach, c in near if reach < FAR or (c.value.mid <= 0) != free or (unsure and _chance(c) > _chance(best))]
    return able[: CONTENDERS - 1]


def _chance(contender: Contender) -> float:
    """Return the chance that all targets are met; 1 where there are none."""
    chance = contender.estimate.target_chance
    return 1.0 if chance is None else chance


def _drawn(contender: Contender, free: bool, device: int, work: int) -> _Drawn:
    """Return a candidate as it is drawn; what costs something comes after all that is free."""
    compared, step, chance = contender.compared, contender.estimate.step_time_s, _chance(contender)
    common, chip = BELIEFS.common(contender.tier), BELIEFS.shared(contender.tier)
    sigma = max(compared.sigma if step is None else step.sigma, _LEAST_SIGMA)
    limit = inf if chance >= 1 else -inf if chance <= 0 else NormalDist().inv_cdf(chance) * sigma
    parts = (sqrt(common), sqrt(chip - common), sqrt(1 - chip))
    own = contender.value.mid <= 0
    score = log_score(contender) if own == free else -inf if own else inf
    fed = contender.estimate.fed
    taken = (sigma, 0.0, 0.0, -inf)
    if fed is not None and step is not None and fed.chips_s.mid > 0:
        taken = (fed.chips_s.sigma, log(fed.chips_s.mid / step.mid), fed.input_s.sigma, log(fed.input_s.mid / step.mid))
    return _Drawn(score, compared.sigma / sigma, limit, *taken, parts, device, work)


def _reach(contender: Contender, best: Contender) -> float:
    """Return how far behind a rival is in standard deviations; the nearest may still win."""
    spread = max(difference_sigma(contender, best), 1e-9)
    return (log_score(contender) - log_score(best)) / spread
