"""How strongly each group of coefficients is drawn towards zero, chosen by what predicts sources that were left out best.

The search changes one scale at a time and keeps what raises the density of the left-out rows.
A source counts for 80 rows at most.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from advisor.cost.features import group_of
from advisor.cost.fitting import NOISE, SOURCE, LeftOut, Observation, design_of, leave_out

START = {SOURCE: 0.1, NOISE: 0.07}
MOST_WEIGHT = 80
_FACTORS = (0.5, 1.7, 0.0)
_GAIN = 0.1
"""Least gain in log density for which a scale is changed."""
_DEGREES = 4.0


def log_density(observations: Sequence[Observation], left: LeftOut) -> float:
    """Return the log density of the left-out rows under Student errors, sources weighted down to 80 rows.

    Args:
        observations: rows.
        left: their errors.
    """
    rows = Counter(one.source for one in observations)
    weights = np.array([min(1.0, MOST_WEIGHT / rows[one.source]) for one in observations])
    scaled = left.errors / left.sigmas
    density = -np.log(left.sigmas) - (_DEGREES + 1) / 2 * np.log1p(scaled**2 / _DEGREES)
    return float((weights * density).sum())


def choose_scales(
    observations: Sequence[Observation], rounds: int, tell: Callable[[str], None], start: Mapping[str, float] | None = None
) -> dict[str, float]:
    """Return the scales that predict left-out sources best.

    Args:
        observations: all of one group.
        rounds: passes over all scales.
        tell: receives one line a pass.
        start: scales to begin with.
    """
    design = design_of(observations, {})
    groups = [group_of(name[0], name[1]) for name in design.names]

    def tried(scales: Mapping[str, float]) -> float:
        prior = design.prior * np.array([scales.get(group, 1.0) for group in groups])
        return log_density(observations, leave_out(observations, scales, replace(design, prior=prior)))

    scales = {**START, **(start or {})}
    best = tried(scales)
    for turn in range(rounds):
        for name in (*sorted(set(groups)), SOURCE, NOISE):
            for factor in _FACTORS if name not in (SOURCE, NOISE) else _FACTORS[:2]:
                other = {**scales, name: scales.get(name, 1.0) * factor}
                value = tried(other)
                if value > best + _GAIN:
                    best, scales = value, other
        tell(f"pass {turn + 1} of {rounds}: log density of left-out rows {best:.1f}")
    return scales
