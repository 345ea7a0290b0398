"""What the readers of price lists share: what a list becomes, and how its cells are checked."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date

from core.device import Price
from core.errors import BadInput, one_line
from intake.wording import say

HIGHEST_USD = 10_000.0
LOWEST_USD = 1e-6
"""An hour of one chip costs less, by far."""
_LONGEST, _MOST_FAULTS, _MOST_LINES = 80, 5, 8


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Rows of a list that are left out for one reason.

    Args:
        reason: why.
        lines: on which they end, in the order of the list; at least one.
    """

    reason: str
    lines: tuple[int, ...]

    @property
    def words(self) -> str:
        """Return which rows, the first by their line, and why: `2 rows (lines 3, 4): no price`."""
        count, more = len(self.lines), len(self.lines) - _MOST_LINES
        shown = ", ".join(map(str, self.lines[:_MOST_LINES])) + (f" and {more:,} more" if more > 0 else "")
        return f"{count:,} row{'s' * (count > 1)} (line{'s' * (count > 1)} {shown}): {self.reason}"


@dataclass(frozen=True, slots=True)
class PriceList:
    """What a list holds.

    Args:
        form: `own` or `skypilot`.
        prices: one for each machine, region and terms; of zones the cheapest.
        skipped: what was left out, most rows first.
        rows: read in all.
    """

    form: str
    prices: tuple[Price, ...]
    skipped: tuple[LeftOut, ...]
    rows: int


@dataclass(frozen=True, slots=True)
class Origin:
    """What a list does not say of itself.

    Args:
        name: of the file; the source of rows that name none.
        cloud: of rows that name none; empty when not known.
        day: of rows without a date.
        today: no row may be of a later day.
    """

    name: str
    cloud: str
    day: date
    today: date


def positive(cell: str, what: str, highest: float) -> float:
    """Return a cell as a number above nothing.

    Raises:
        ValueError: it is none; the text says what was wrong.
    """
    if not cell:
        raise ValueError(f"{what} is empty")
    try:
        value = float(cell)
    except ValueError:
        value = math.nan
    if not 0 < value <= highest:
        raise ValueError(f"{what} {say(cell)} is no number above 0 and up to {highest:,.0f}")
    return value


def line(text: str) -> str:
    """Return a cell as one short printable line."""
    return one_line(text, _LONGEST)


def offer_of(price: Price) -> tuple[str, ...]:
    """Return what a price is of: accelerator, cloud, machine, region, terms and chips of the machine."""
    return (price.accelerator, price.cloud.lower(), price.instance, price.region, price.terms, str(price.chips_per_instance))


def cheapest_of_each(prices: Iterable[Price]) -> tuple[Price, ...]:
    """Return one price for each accelerator, cloud, machine, its chips, region and terms: the lowest."""
    kept: dict[tuple[str, ...], Price] = {}
    for price in prices:
        key = offer_of(price)
        if key not in kept or price.usd_per_chip_h < kept[key].usd_per_chip_h:
            kept[key] = price
    return tuple(kept.values())


def refuse_faults(faults: list[str], name: str) -> None:
    """Refuse a list when rows of it cannot be used.

    Raises:
        BadInput: there are faults; the first are named.
    """
    if faults:
        more = f" and {len(faults) - _MOST_FAULTS} more" if len(faults) > _MOST_FAULTS else ""
        shown = "; ".join(faults[:_MOST_FAULTS])
        remedy = "mend or remove these lines; nothing was taken"
        raise BadInput(f"{name[-40:]}: {shown}{more}", "rows that can all be used", remedy)
