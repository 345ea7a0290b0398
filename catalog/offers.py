"""What a chip costs for an hour, by cloud, region and terms.

Terms: `on-demand`; `spot` and `community` (may be taken away); `flex-start` (queued, at most 7 days); `committed-1y` and
`committed-3y`; `..., without host` where the figure is for the chip alone and a virtual machine comes on top.
A row of the cloud `market median` is an index over providers, an indication and not an offer.
"""

from collections.abc import Iterable
from functools import cache

from catalog.tables import rows_of
from core.device import Price
from core.workload import Where

INDEX = "market median"
TERMS = ("on-demand", "spot", "community", "flex-start", "committed-1y", "committed-3y")
_FIRM = ("on-demand",)
_REVOCABLE = ("on-demand", "spot", "community")
_EVERYWHERE = ("", "all", "global")


def prices(key: str, imported: Iterable[Price] = ()) -> tuple[Price, ...]:
    """Return every price of one accelerator, imported ones first, cheapest chip hour first; empty when none is known.

    Args:
        key: key of an accelerator.
        imported: prices of lists that the user imported, of any accelerator.
    """
    own = sorted((price for price in imported if price.accelerator == key), key=lambda price: price.usd_per_chip_h)
    return (*own, *_by_accelerator().get(key, ()))


def clouds() -> tuple[str, ...]:
    """Return the clouds that offers are known of, lower case, sorted."""
    return tuple(sorted({_word(price.cloud) for group in _by_accelerator().values() for price in group} - {INDEX}))


def cheapest(key: str, where: Where, imported: Iterable[Price] = (), terms: str = "") -> Price | None:
    """Return the cheapest price for which a whole machine with this chip can be had, or None.

    On demand always counts; spot and community offers only when `where.spot`. Commitments and queued starts count only when
    `terms` asks for them, prices without a host never. An index over providers and figures of low confidence count only where
    nothing firmer is known.
    Where a list that the user imported has a fitting price, only such lists count: it says what this user pays.

    Args:
        key: key of an accelerator.
        where: clouds and regions (empty: all), whether spot will do; `own_only` rules out renting.
        imported: prices of lists that the user imported, of any accelerator.
        terms: one of `TERMS`, and no other will do; empty leaves it to `where`.
    """
    if where.own_only:
        return None
    wanted_terms = (terms,) if terms else _REVOCABLE if where.spot else _FIRM
    wanted_clouds = {_word(cloud) for cloud in where.clouds}
    wanted_regions = {_word(region) for region in where.regions}
    fitting = [
        price
        for price in prices(key, imported)
        if price.terms in wanted_terms
        and (not wanted_clouds or _word(price.cloud) in wanted_clouds)
        and _in_regions(price.region, wanted_regions)
    ]
    offers = [price for price in fitting if price.cloud != INDEX]
    own = _lowest(price for price in offers if price.imported)
    if own is not None:
        return own
    return _lowest(price for price in offers if price.confidence != "low") or _lowest(offers) or _lowest(fitting)


def _lowest(candidates: Iterable[Price]) -> Price | None:
    return min(candidates, key=lambda price: price.usd_per_chip_h, default=None)


def _in_regions(region: str, wanted: set[str]) -> bool:
    return not wanted or _word(region) in wanted or _word(region) in _EVERYWHERE


def _word(text: str) -> str:
    return text.strip().lower()


@cache
def _by_accelerator() -> dict[str, tuple[Price, ...]]:
    groups: dict[str, list[Price]] = {}
    for row in rows_of("prices.csv"):
        groups.setdefault(row["accelerator"], []).append(_price(row))
    return {key: tuple(sorted(group, key=lambda price: price.usd_per_chip_h)) for key, group in groups.items()}


def _price(row: dict[str, str]) -> Price:
    return Price(
        accelerator=row["accelerator"], cloud=row["cloud"], instance=row["instance"], region=row["region"], terms=row["terms"],
        usd_per_chip_h=float(row["usd_per_chip_h"]), chips_per_instance=int(row["chips_per_instance"]),
        source=row["source"], source_date=row["source_date"], confidence=row["confidence"], notes=row["notes"],
    )
