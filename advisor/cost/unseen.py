"""Chips of which nothing was published: how far off the correction is on them, found by leaving out each chip in turn.

A chip that the fit never saw takes the correction of its class. What chips of one class differ by beyond their data sheets is
not in the coefficients' own spread, so it is measured here and added to the band of every such chip.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from advisor.cost.columns import columns_of
from advisor.cost.features import Labels, labels_of
from advisor.cost.fitting import BETWEEN_CHIPS, Coefficients, LeftOut, Observation, learn
from advisor.cost.predictor import Predictor
from core.quantity import Z_80
from core.sketch import TRAINING

MOST_OF_A_CHIP = 25
"""A chip counts for this many rows at most."""


@dataclass(frozen=True, slots=True)
class ChipsLeftOut:
    """What runs would have been predicted at without any row of their chip.

    Args:
        observations: the rows.
        left: their errors, with sigmas to which nothing between chips was added.
        coefficients: by key of the chip that was left out.
    """

    observations: tuple[Observation, ...]
    left: LeftOut
    coefficients: Mapping[str, Coefficients]


def leave_out_chips(observations: Sequence[Observation], scales: Mapping[str, float]) -> ChipsLeftOut:
    """Return the errors of leaving out each accelerator in turn, the whole correction being learned anew.

    Args:
        observations: all of one group.
        scales: as for `learn`; what they say of the spread between chips is left aside.
    """
    plain = {name: value for name, value in scales.items() if name != BETWEEN_CHIPS}
    training = observations[0].setup.regime == TRAINING
    errors, sigmas = np.zeros(len(observations)), np.zeros(len(observations))
    found: dict[str, Coefficients] = {}
    for chip in sorted({one.setup.accelerator for one in observations}):
        kept = [one for one in observations if one.setup.accelerator != chip]
        if not kept:
            raise ValueError(f"got rows of {chip} only; expected those of two chips at least")
        found[chip] = learn(kept, plain)
        predictor = Predictor(found[chip], plain, training)
        alike: dict[Labels, list[int]] = {}
        for place, one in enumerate(observations):
            if one.setup.accelerator == chip:
                alike.setdefault(labels_of(one.setup, one.silicon, one.grade), []).append(place)
        for labels, places in alike.items():
            runs = [observations[place] for place in places]
            told = predictor.predict(columns_of([(one.setup, one.silicon) for one in runs]), labels)
            errors[places] = np.log(np.array([one.seconds for one in runs]) / told.seconds)
            sigmas[places] = told.sigma
    return ChipsLeftOut(tuple(observations), LeftOut(errors, sigmas), found)


def between_chips(group: ChipsLeftOut, without: str = "") -> float:
    """Return the standard deviation of ln(time) between chips that makes bands of 80 % hold 80 % of left-out rows.

    It is one for each group: what a correction knows of a chip that it never saw is not the same of training and of inference.

    Args:
        group: from `leave_out_chips`.
        without: key of a chip whose own errors are not to be used.

    Returns:
        0 where the bands are wide enough as they are, and where no row is left.
    """
    chips = [one.setup.accelerator for one in group.observations]
    errors, sigmas = group.left.errors, group.left.sigmas
    rows = Counter(chips)
    weights = np.array([0.0 if chip == without else min(1.0, MOST_OF_A_CHIP / rows[chip]) for chip in chips])
    if not weights.any():
        return 0.0
    missing = (np.abs(errors) / Z_80) ** 2 - sigmas**2
    order = np.argsort(missing)
    reached = np.cumsum(weights[order]) / weights.sum()
    return float(np.sqrt(max(0.0, missing[order][np.searchsorted(reached, 0.80)])))
