"""How right predictions were: errors, coverage of bands, and how often the better of two was named. Pure counting."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import exp
from statistics import median
from typing import TypeVar

import numpy as np

from core.quantity import Z_80

Run = TypeVar("Run")
APART = 1.10
"""Two configurations count as different when their rates differ by more than this factor."""
MOST_COMPARED = 1_000
"""Runs of one model and task that are compared pair by pair; of more, as many are taken evenly, slowest to fastest."""


@dataclass(frozen=True, slots=True)
class Judged:
    """One run with what was predicted of it.

    Args:
        id, group, task, model, source, accelerator, framework, precision, tier: what it is.
        metric: name of the published figure. measured, predicted: in its unit.
        error: ln(measured seconds / predicted seconds). sigma: standard deviation that was told for it.
        rate: positions a second and chip, measured; to compare configurations with.
        price: US dollars of one chip and hour; None when it is not known.
        higher_is_better: whether the figure is a rate.
        assumed: what the row did not say and was filled in.
    """

    id: str
    group: str
    task: str
    model: str
    source: str
    accelerator: str
    framework: str
    precision: str
    tier: str
    metric: str
    measured: float
    predicted: float
    error: float
    sigma: float
    rate: float
    price: float | None
    higher_is_better: bool
    assumed: tuple[str, ...] = ()

    @property
    def absolute_error(self) -> float:
        """|predicted / measured - 1| of the published figure."""
        return abs(self.predicted / self.measured - 1)

    @property
    def covered(self) -> bool:
        """Whether the band of 80 % holds the measured value."""
        return abs(self.error) <= Z_80 * self.sigma

    @property
    def predicted_rate(self) -> float:
        """Positions a second and chip, predicted."""
        return self.rate * exp(self.error)


@dataclass(frozen=True, slots=True)
class Refused:
    """One run that was not predicted, and what was missing; `line` is that of its first row, 0 where there is no file."""

    id: str
    group: str
    task: str
    model: str
    source: str
    reason: str
    line: int = 0


@dataclass(frozen=True, slots=True)
class Score:
    """Errors of some runs; None where there is nothing to count.

    Args:
        rows: predicted. refused: not predicted.
        median_ape, mean_ape, p90_ape: of |predicted / measured - 1|.
        bias: geometric mean of predicted over measured speed, less 1: above 0 where predictions promise too much.
        coverage_80: share inside the band.
        pair_order: share of pairs of one model and task that differ by over 10 % and were ordered rightly.
        faster_chip, cheaper_chip: the same for pairs on unlike accelerators, by rate and by rate for a dollar.
        pairs, chip_pairs: how many there were.
    """

    name: str
    rows: int
    refused: int
    median_ape: float | None
    mean_ape: float | None
    p90_ape: float | None
    bias: float | None
    coverage_80: float | None
    pair_order: float | None
    faster_chip: float | None
    cheaper_chip: float | None
    pairs: int
    chip_pairs: int


def score(name: str, judged: Sequence[Judged], refused: int) -> Score:
    """Return the score of some runs.

    Args:
        name: for people.
        judged: predicted runs.
        refused: how many were not.
    """
    if not judged:
        return Score(name, 0, refused, None, None, None, None, None, None, None, None, 0, 0)
    errors = sorted(one.absolute_error for one in judged)
    right, pairs = _ordered(judged, _rates, unlike=False)
    faster, chip_pairs = _ordered(judged, _rates, unlike=True)
    cheaper, dollar_pairs = _ordered(judged, _for_a_dollar, unlike=True)
    return Score(
        name,
        len(judged),
        refused,
        median(errors),
        sum(errors) / len(errors),
        _percentile(errors, 0.9),
        exp(sum(one.error for one in judged) / len(judged)) - 1,
        sum(one.covered for one in judged) / len(judged),
        right / pairs if pairs else None,
        faster / chip_pairs if chip_pairs else None,
        cheaper / dollar_pairs if dollar_pairs else None,
        pairs,
        chip_pairs,
    )


def by(judged: Iterable[Judged], refused: Iterable[Refused], key: Callable[[Judged | Refused], str]) -> tuple[Score, ...]:
    """Return a score for each value of a key, largest group first."""
    groups: dict[str, list[Judged]] = {}
    out: dict[str, int] = {}
    for one in judged:
        groups.setdefault(key(one), []).append(one)
    for one in refused:
        out[key(one)] = out.get(key(one), 0) + 1
    names = sorted({*groups, *out}, key=lambda name: (-len(groups.get(name, ())), name))
    return tuple(score(name, groups.get(name, []), out.get(name, 0)) for name in names)


def capped(judged: Sequence[Run], most: int, key: Callable[[Run], str]) -> tuple[Run, ...]:
    """Return at most so many runs of one key, evenly spread over its rows: a source with 200 rows is one voice."""
    groups: dict[str, list[Run]] = {}
    for one in judged:
        groups.setdefault(key(one), []).append(one)
    kept: list[Run] = []
    for rows in groups.values():
        step = max(1.0, len(rows) / most)
        kept.extend(rows[int(position * step)] for position in range(min(most, len(rows))))
    return tuple(kept)


def _percentile(ordered: Sequence[float], part: float) -> float:
    place = part * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def _rates(one: Judged) -> tuple[float, float] | None:
    return one.rate, one.predicted_rate


def _for_a_dollar(one: Judged) -> tuple[float, float] | None:
    return None if not one.price else (one.rate / one.price, one.predicted_rate / one.price)


def _ordered(
    judged: Sequence[Judged], values: Callable[[Judged], tuple[float, float] | None], *, unlike: bool
) -> tuple[int, int]:
    """Return (pairs ordered rightly, pairs) among runs of one model and task whose values differ by over 10 %.

    Args:
        judged: the runs.
        values: what is compared, (measured, predicted); None leaves a run out.
        unlike: whether only pairs on unlike accelerators count.
    """
    groups: dict[tuple[str, str], list[tuple[float, float, str]]] = {}
    for one in judged:
        pair = values(one)
        if pair is not None:
            groups.setdefault((one.model, one.task), []).append((*pair, one.accelerator))
    right = total = 0
    for rows in groups.values():
        rows.sort()
        step = max(1.0, len(rows) / MOST_COMPARED)
        kept = [rows[int(place * step)] for place in range(min(MOST_COMPARED, len(rows)))]
        measured, told = np.array([row[0] for row in kept]), np.array([row[1] for row in kept])
        counts = measured[:, None] > APART * measured[None, :]
        if unlike:
            chips = np.array([row[2] for row in kept])
            counts &= chips[:, None] != chips[None, :]
        total += int(counts.sum())
        right += int((counts & (told[:, None] > told[None, :])).sum())
    return right, total
