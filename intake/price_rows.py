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
_LONGEST, _MOST_FAULTS = 80, 5


@dataclass(frozen=True, slots=True)
class PriceList:
    """What a list holds.

    Args:
        form: `own` or `skypilot`.
        prices: one for each machine, region and terms; of zones the cheapest.
        skipped: (why, rows) of what was left out.
        rows: read in all.
    """

    form: str
    prices: tuple[Price, ...]
    skipped: tuple[tuple[str, int], ...]
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


def cheapest_of_each(prices: Iterable[Price]) -> tuple[Price, ...]:
    """Return one price for each accelerator, cloud, machine, its chips, region and terms: the lowest."""
    kept: dict[tuple[str, ...], Price] = {}
    for price in prices:
        key = (price.accelerator, price.cloud.lower(), price.instance, price.region, price.terms, str(price.chips_per_instance))
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
