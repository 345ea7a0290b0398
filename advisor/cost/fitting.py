"""The correction learned from published runs: a linear Gaussian model with every coefficient drawn towards zero.

ln(measured / roofline) = coefficients x numbers + an error common to a source + an error of the run. Sources share errors
(one laboratory, one way to count), so a source with 200 rows weighs little more than one with 20. Gross errors are given less
weight in turn (Student weights), and the whole is tried by leaving out each source: for a Gaussian model that has a closed form.

Sources: Gelman and Hill, Data Analysis Using Regression and Multilevel Models, 2007 (partial pooling); Lange et al., Robust
statistical modelling using the t distribution, 1989 (weights); Rasmussen and Williams, Gaussian Processes for Machine Learning,
2006, section 5.4.2 (leave-out predictions).
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from advisor.cost.columns import Columns, Indices, Numbers, columns_of
from advisor.cost.features import Name, kept_names, labels_of, slots_of
from advisor.cost.silicon import Silicon
from advisor.cost.terms import bubble_of, combined_forward, combined_training, forward_terms, training_terms
from core.quantity import Z_80
from core.sketch import TRAINING, Setup

_STEP = 1.1
_DEGREES, _ROUNDS = 4.0, 3
GRADE_NOISE = {"A": 1.0, "B": 1.5, "C": 2.5}
SOURCE, NOISE, WIDENING, BETWEEN_CHIPS = "source", "noise", "widening", "between chips"
CLASS_LEVEL = "stack|model_class"
RESIDUAL_LEVELS, OF_THE_CHIP = ("stack|generation", "generation"), "chip"
_LEAST_RESIDUALS = 6
SEEN_LEVELS = ("generation", "chip", "framework", "stack", "model_class", CLASS_LEVEL, "stack|generation")
MOST_OF_A_SOURCE = 25


@dataclass(frozen=True, slots=True)
class Observation:
    """One published run: what it was, how long a step took, and where that stands."""

    setup: Setup
    silicon: Silicon
    seconds: float
    source: str
    grade: str = "A"


@dataclass(frozen=True, slots=True)
class Baseline:
    """The roofline of runs side by side: seconds, terms, and the numbers that the correction uses."""

    seconds: Numbers
    terms: Mapping[str, Numbers]
    bubble: Numbers
    slots: Mapping[str, Numbers]


@dataclass(frozen=True, slots=True)
class Coefficients:
    """A correction.

    Args:
        names: of the coefficients. prior: their standard deviations before any row. mean: after. covariance: after.
        source_sigma, noise_sigma: of the common error of a source, and of a run of grade A.
        widening: factor on every sigma, so that bands of 80 % hold 80 % of the left-out rows.
        seen: labels by level that rows had.
        latest: year of the newest row of each stack: trends are not carried beyond it.
        ranges: least and largest number of each slot: nor are they carried beyond these.
        residuals: spread of the errors of left-out rows by label of `RESIDUAL_LEVELS` and by chip; no band is narrower than that.
        between_chips: added, as variances are, to the sigma of a chip of which there was no row, see `unseen`.
    """

    names: tuple[Name, ...]
    prior: Numbers
    mean: Numbers
    covariance: Numbers
    source_sigma: float
    noise_sigma: float
    widening: float
    seen: Mapping[str, frozenset[str]]
    latest: Mapping[str, float]
    ranges: Mapping[str, tuple[float, float]]
    residuals: Mapping[str, float]
    between_chips: float


def baseline_of(c: Columns, training: bool) -> Baseline:
    """Return the roofline of runs.

    Args:
        c: side by side.
        training: whether they are training steps; else forward passes or generation.
    """
    bubble = bubble_of(c) if training else np.zeros_like(c.chips)
    terms = training_terms(c) if training else forward_terms(c)

    def combined(parts: Mapping[str, Numbers]) -> Numbers:
        return combined_training(parts, bubble) if training else combined_forward(parts)

    seconds = combined(terms)
    step = np.log(_STEP)
    shares = {name: np.log(combined({**terms, name: value * _STEP}) / seconds) / step for name, value in terms.items()}
    return Baseline(seconds, terms, bubble, slots_of(c, shares, bubble))


@dataclass(frozen=True, slots=True)
class Design:
    """Rows of numbers by coefficient: `values` (runs, coefficients), standard deviations by coefficient, targets by run."""

    names: tuple[Name, ...]
    values: Numbers
    prior: Numbers
    targets: Numbers
    sources: Indices
    grades: Numbers
    baseline: Numbers


def design_of(observations: Sequence[Observation], scales: Mapping[str, float]) -> Design:
    """Return the rows of a fit.

    Args:
        observations: all of one group, training or not.
        scales: factor on the standard deviation by group of coefficients; 1 where none is given.
    """
    training = observations[0].setup.regime == TRAINING
    base = baseline_of(columns_of([(one.setup, one.silicon) for one in observations]), training)
    labels = [labels_of(one.setup, one.silicon, one.grade) for one in observations]
    index: dict[Name, int] = {}
    prior: list[float] = []
    cells: list[tuple[int, int, float]] = []
    for slot, numbers in base.slots.items():
        full = np.broadcast_to(numbers, base.seconds.shape)
        for row, value in enumerate(full):
            if abs(value) < 1e-6:
                continue
            for name, sd in kept_names(slot, labels[row], scales):
                if name not in index:
                    index[name] = len(index)
                    prior.append(sd)
                cells.append((row, index[name], float(value)))
    values = np.zeros((len(observations), len(index)))
    for row, column, value in cells:
        values[row, column] = value
    _, sources = np.unique([one.source for one in observations], return_inverse=True)
    measured = np.array([one.seconds for one in observations])
    return Design(
        tuple(index),
        values,
        np.array(prior),
        np.log(measured / base.seconds),
        sources,
        np.array([GRADE_NOISE.get(one.grade, 1.5) for one in observations]),
        base.seconds,
    )


def learn(observations: Sequence[Observation], scales: Mapping[str, float]) -> Coefficients:
    """Return the correction that published runs teach.

    Args:
        observations: all of one group.
        scales: as for `design_of`; `source` and `noise` are the two error sizes, `between chips` is 0 where it is not given.
    """
    design = design_of(observations, scales)
    scaled = design.values * design.prior
    inverse, pulled, noise = _solved(design, scaled, scales)
    mean = design.prior * (scaled.T @ pulled)
    covariance = np.diag(design.prior**2) - (design.prior[:, None] * (scaled.T @ inverse @ scaled)) * design.prior[None, :]
    left = _left_out(design, inverse, pulled, noise)
    widening = scales.get(WIDENING) or widening_of(observations, left)
    return Coefficients(
        design.names,
        design.prior,
        mean,
        covariance,
        scales[SOURCE],
        scales[NOISE],
        widening,
        _seen(observations),
        {one.setup.stack: one.setup.year for one in sorted(observations, key=lambda one: one.setup.year)},
        _ranges(observations),
        _residuals(observations, left),
        scales.get(BETWEEN_CHIPS, 0.0),
    )


def widening_of(observations: Sequence[Observation], left: "LeftOut") -> float:
    """Return the factor on sigmas with which bands of 80 % hold 80 % of left-out rows, a source counting for 25 at most.

    Args:
        observations: rows.
        left: their errors, with sigmas that were not widened.
    """
    rows = Counter(one.source for one in observations)
    weights = np.array([min(1.0, MOST_OF_A_SOURCE / rows[one.source]) for one in observations])
    scaled = np.abs(left.errors) / left.sigmas
    order = np.argsort(scaled)
    reached = np.cumsum(weights[order]) / weights.sum()
    return float(scaled[order][np.searchsorted(reached, 0.80)] / Z_80)


def _residuals(observations: Sequence[Observation], left: "LeftOut") -> dict[str, float]:
    """Return the spread of left-out errors, overall and by label: the 80 % quantile of their size over that of a normal."""
    groups: dict[str, list[float]] = {"": [float(size) for size in np.abs(left.errors)]}
    for one, error in zip(observations, left.errors, strict=True):
        labels = labels_of(one.setup, one.silicon, one.grade)
        for level in (OF_THE_CHIP, *RESIDUAL_LEVELS):
            groups.setdefault(f"{level}:{labels.at(level)}", []).append(abs(float(error)))
    return {name: float(np.quantile(sizes, 0.8)) / Z_80 for name, sizes in groups.items() if len(sizes) >= _LEAST_RESIDUALS}


def _ranges(observations: Sequence[Observation]) -> dict[str, tuple[float, float]]:
    columns = columns_of([(one.setup, one.silicon) for one in observations])
    slots = baseline_of(columns, observations[0].setup.regime == TRAINING).slots
    return {name: (float(numbers.min()), float(numbers.max())) for name, numbers in slots.items()}


def _seen(observations: Sequence[Observation]) -> dict[str, frozenset[str]]:
    labels = [labels_of(one.setup, one.silicon, one.grade) for one in observations]
    return {level: frozenset(label.at(level) for label in labels) for level in SEEN_LEVELS}


def _solved(design: Design, scaled: Numbers, scales: Mapping[str, float]) -> tuple[Numbers, Numbers, Numbers]:
    """Return (inverse covariance of the targets, that times the targets, noise variance by run) after Student weighting."""
    same = design.sources[:, None] == design.sources[None, :]
    common = scaled @ scaled.T + same * scales[SOURCE] ** 2
    noise = (scales[NOISE] * design.grades) ** 2
    weighted = noise
    for _ in range(_ROUNDS - 1):
        _, pulled = _inverted(common, weighted, design.targets)
        weighted = noise * (_DEGREES + (weighted * pulled) ** 2 / noise) / (_DEGREES + 1)
    inverse, pulled = _inverted(common, weighted, design.targets)
    return inverse, pulled, noise


def _inverted(common: Numbers, noise: Numbers, targets: Numbers) -> tuple[Numbers, Numbers]:
    """Return the inverse of a covariance with its noise on the diagonal, and that times the targets."""
    inverse: Numbers = np.asarray(np.linalg.inv(common + np.diag(noise)), dtype=np.float64)
    return inverse, inverse @ targets


@dataclass(frozen=True, slots=True)
class LeftOut:
    """What runs would have been predicted at without anything of their source: ln(measured / predicted), and its sigma."""

    errors: Numbers
    sigmas: Numbers


def leave_out(observations: Sequence[Observation], scales: Mapping[str, float], design: Design | None = None) -> LeftOut:
    """Return the errors of leaving out each source in turn.

    Args:
        observations: all of one group.
        scales: as for `learn`.
        design: from `design_of`, when it is at hand.
    """
    made = design or design_of(observations, scales)
    scaled = made.values * made.prior
    left = _left_out(made, *_solved(made, scaled, scales))
    return LeftOut(left.errors, left.sigmas * scales.get(WIDENING, 1.0))


def _left_out(design: Design, inverse: Numbers, pulled: Numbers, noise: Numbers) -> LeftOut:
    """Return the errors of leaving out each source in turn, with sigmas that are not widened; arguments from `_solved`."""
    errors, sigmas = np.zeros_like(design.targets), np.zeros_like(design.targets)
    for source in range(int(design.sources.max()) + 1):
        rows = np.flatnonzero(design.sources == source)
        block = np.linalg.inv(inverse[np.ix_(rows, rows)])
        errors[rows] = block @ pulled[rows]
        sigmas[rows] = np.sqrt(np.maximum(np.diag(block), noise[rows]))
    return LeftOut(errors, sigmas)
