"""The roofline with its fitted correction, and how wide the band is.

A label that the fit never saw (a new chip, another stack, the user's own model) adds the spread that such labels have: the band
widens by itself, and the tier falls from `published` to `datasheet` where the chip or the framework was never measured. A chip
without a row of its own adds what chips were found to differ by when each was left out.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from advisor.cost.columns import Columns, Numbers
from advisor.cost.features import Labels, kept_names
from advisor.cost.fitting import CLASS_LEVEL, OF_THE_CHIP, RESIDUAL_LEVELS, Baseline, Coefficients, baseline_of


@dataclass(frozen=True, slots=True)
class Prediction:
    """Runs predicted: arrays of shape (runs,).

    Args:
        seconds: middle of the band.
        sigma: standard deviation of ln(truth / seconds).
        baseline: the roofline that it started from.
        tier: `published` or `datasheet`.
    """

    seconds: Numbers
    sigma: Numbers
    baseline: Baseline
    tier: str


@dataclass(frozen=True, slots=True)
class _Projection:
    """Coefficients gathered for some labels: mean by slot, covariance between slots, variance of labels never seen."""

    mean: Numbers
    covariance: Numbers
    unseen: Numbers


NOVEL_LEVELS, ON_A_CHIP = ("generation", "model_class", CLASS_LEVEL), ("stack|generation",)
_BEYOND_SIGMA, _MOST_BEYOND = 0.05, 6.0
"""Added to sigma for each unit (a factor of two, for most slots) by which a run lies beyond every row of the fit, up to six."""
_NOVEL_SIGMA = 0.12
"""Added, as variances are, for a generation and a class of model, for the class with the stack, and for the stack on a chip that
was seen, of which there was no row. What a chip without rows adds to that is measured, see `Coefficients.between_chips`."""


@dataclass(frozen=True, slots=True)
class Table:
    """The numbers of runs by slot, `numbers` of shape (runs, slots), kept to what the fit saw; `beyond` says by how much."""

    slots: tuple[str, ...]
    numbers: Numbers
    beyond: Numbers

    def rows(self, chosen: slice) -> "Table":
        """Return some of the runs."""
        return Table(self.slots, self.numbers[chosen], self.beyond[chosen])


class Predictor:
    """Applies a correction; keeps what was gathered for the labels of each candidate."""

    def __init__(self, coefficients: Coefficients, scales: Mapping[str, float], training: bool) -> None:
        """Prepare.

        Args:
            coefficients: from `learn`.
            scales: that they were learned with.
            training: whether they are of training steps.
        """
        self._coefficients = coefficients
        self._scales = dict(scales)
        self._training = training
        self._index = {name: position for position, name in enumerate(coefficients.names)}
        self._gathered: dict[tuple[Labels, tuple[str, ...]], _Projection] = {}

    def table(self, base: Baseline) -> Table:
        """Return the numbers of a baseline as one table: a number beyond what the fit saw is taken at its edge."""
        slots = tuple(base.slots)
        numbers = np.stack([np.broadcast_to(base.slots[slot], base.seconds.shape) for slot in slots], axis=1)
        edges = [
            self._coefficients.ranges.get(slot, (-np.inf, np.inf)) if slot != "year" else (-np.inf, np.inf) for slot in slots
        ]
        kept = np.clip(numbers, [low for low, _ in edges], [high for _, high in edges])
        apart = np.array([slot != "narrow" for slot in slots])  # the square of another slot
        return Table(slots, kept, np.minimum(np.abs(numbers - kept) @ apart, _MOST_BEYOND))

    @property
    def seen(self) -> Mapping[str, frozenset[str]]:
        """Labels by level that the fit has seen."""
        return self._coefficients.seen

    def predict(self, columns: Columns, labels: Labels) -> Prediction:
        """Return what runs with the same labels take.

        Args:
            columns: side by side.
            labels: of all of them.
        """
        base = baseline_of(columns, self._training)
        table = self.table(base)
        seconds = base.seconds * np.exp(self.shift_at_latest(table, labels, columns.year))
        return Prediction(seconds, self.sigma(table, labels), base, self.tier(labels))

    def shift(self, table: Table, labels: Labels) -> Numbers:
        """Return the correction of ln(time) of runs with the same labels."""
        return table.numbers @ self._gather(labels, table.slots).mean

    def shift_at_latest(self, table: Table, labels: Labels, year: float | Numbers) -> Numbers:
        """Return the correction as of the newest row of the stack, where the runs are later than that.

        Args:
            table: of the runs. labels: of all of them.
            year: of all of them, or of each.
        """
        latest = self._coefficients.latest
        newest = np.minimum(year, latest.get(labels.stack, max(latest.values(), default=np.inf)))
        trend = float(self._gather(labels, table.slots).mean[table.slots.index("year")])
        return self.shift(table, labels) + (newest - year) * trend

    def sigma(self, table: Table, labels: Labels) -> Numbers:
        """Return the standard deviation of ln(truth / predicted) of runs with the same labels."""
        gathered, numbers = self._gather(labels, table.slots), table.numbers
        spread = np.einsum("rf,fg,rg->r", numbers, gathered.covariance, numbers) + numbers**2 @ gathered.unseen
        spread = spread + (_BEYOND_SIGMA * table.beyond) ** 2 + _NOVEL_SIGMA**2 * self._novel(labels)
        common = self._coefficients.source_sigma**2 + self._coefficients.noise_sigma**2
        told = np.maximum(np.sqrt(np.maximum(spread, 0.0) + common) * self._coefficients.widening, self._floor(labels))
        return told if self._seen_chip(labels) else np.hypot(told, self._coefficients.between_chips)

    def _floor(self, labels: Labels) -> float:
        """Return the spread of the errors that left-out rows had, the wider of the chip's own and of its kind's.

        Its kind is stack and generation, generation, or all, whichever has rows.
        """
        residuals = self._coefficients.residuals
        kinds = (*(f"{level}:{labels.at(level)}" for level in RESIDUAL_LEVELS), "")
        kind = next((residuals[name] for name in kinds if name in residuals), 0.0)
        return max(kind, residuals.get(f"{OF_THE_CHIP}:{labels.chip}", 0.0))

    def tier(self, labels: Labels) -> str:
        """Return `published` where rows of this chip, this framework and this class of models were seen, else `datasheet`."""
        seen = self._coefficients.seen
        known = self._seen_chip(labels) and labels.framework in seen["framework"]
        return "published" if known and labels.model_class in seen["model_class"] else "datasheet"

    def _novel(self, labels: Labels) -> int:
        levels = (*NOVEL_LEVELS, *(ON_A_CHIP if self._seen_chip(labels) else ()))
        return sum(labels.at(level) not in self.seen.get(level, ()) for level in levels)

    def _seen_chip(self, labels: Labels) -> bool:
        return labels.chip in self.seen["chip"]

    def _gather(self, labels: Labels, slots: tuple[str, ...]) -> _Projection:
        key = (labels, slots)
        if key not in self._gathered:
            rows: list[list[int]] = []
            unseen = np.zeros(len(slots))
            for position, slot in enumerate(slots):
                kept = kept_names(slot, labels, self._scales)
                rows.append([self._index[name] for name, _ in kept if name in self._index])
                unseen[position] = sum(sd**2 for name, sd in kept if name not in self._index)
            flat = [index for row in rows for index in row]
            owner = np.repeat(np.arange(len(slots)), [len(row) for row in rows])
            choose = np.zeros((len(slots), len(flat)))
            choose[owner, np.arange(len(flat))] = 1.0
            mean = choose @ self._coefficients.mean[flat]
            covariance = choose @ self._coefficients.covariance[np.ix_(flat, flat)] @ choose.T
            self._gathered[key] = _Projection(mean, covariance, unseen)
        return self._gathered[key]
