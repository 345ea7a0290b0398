"""What a chip costs for an hour, by cloud, region and terms.

Terms: `on-demand`; `spot` and `community` (may be taken away); `flex-start` (queued, at most 7 days); `committed-1y` and
`committed-3y`; `..., without host` where the figure is for the chip alone and a virtual machine comes on top.
A row of the cloud `market median` is an index over providers, an indication and not an offer.
"""

from collections.abc import Iterable, Iterator
from functools import cache

from catalog.hardware import accelerator
from catalog.machines import machine_named, plain_name
from catalog.tables import rows_of, whole
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


def regions(imported: Iterable[Price] = ()) -> tuple[str, ...]:
    """Return the regions that offers are known in, lower case, sorted.

    Args:
        imported: prices of lists that the user imported.
    """
    return tuple(sorted({_word(price.region) for price in _all(imported)} - set(_EVERYWHERE)))


def clouds(imported: Iterable[Price] = ()) -> tuple[str, ...]:
    """Return the clouds that offers are known of, lower case, sorted.

    Args:
        imported: prices of lists that the user imported.
    """
    return tuple(sorted({_word(price.cloud) for price in _all(imported)} - {INDEX}))


def rents_in(cloud: str, where: Where, imported: Iterable[Price] = ()) -> bool:
    """Return whether a cloud may rent anything out in the clouds and regions that are asked for.

    A region of which no offer is known may be anybody's. One that only other clouds have offers in is theirs; where the cloud is
    asked for too, its offers that name no region count, as in `cheapest`.

    Args:
        cloud: its name, as prices write it.
        where: clouds and regions (empty: all); `own_only` rules out renting.
        imported: prices of lists that the user imported.
    """
    clouds, regions = {_word(name) for name in where.clouds}, {_word(region) for region in where.regions}
    if where.own_only or (clouds and _word(cloud) not in clouds):
        return False
    if not regions:
        return True
    sellers: dict[str, set[str]] = {}
    for price in _all(imported):
        sellers.setdefault(_word(price.region), set()).add(_word(price.cloud))
    if any(region not in sellers or _word(cloud) in sellers[region] for region in regions):
        return True
    return bool(clouds) and any(_word(cloud) in sellers.get(region, ()) for region in _EVERYWHERE)


def cheapest(
    key: str, where: Where, imported: Iterable[Price] = (), terms: str = "", chips: int | None = None, machine: str = "",
    *, together: int | None = None,
) -> Price | None:
    """Return the price at which chips cost least, or None when no fitting one is known.

    On demand always counts; spot and community offers only when `where.spot`. Commitments and queued starts count only when
    `terms` asks for them, prices without a host never. An index over providers and figures of low confidence count only where
    nothing firmer is known. Where regions are asked for, offers that name none count of clouds that are asked for too.
    Where a list that the user imported has a fitting price, only such lists count: it says what this user pays.

    Args:
        key: key of an accelerator.
        where: clouds and regions (empty: all), whether spot will do; `own_only` rules out renting.
        imported: prices of lists that the user imported, of any accelerator.
        terms: one of `TERMS`, and no other will do; empty leaves it to `where`.
        chips: in whole machines; None compares by the chip.
        machine: type of machine, as its cloud writes it; of those of TPUs, which are priced by the slice, all of its cloud count.
        together: of the chips that must be joined, as those of one replica of a service are; None: all.
    """
    if where.own_only:
        return None
    wanted_terms = (terms,) if terms else _REVOCABLE if where.spot else _FIRM
    fitting = [
        price for price in prices(key, imported)
        if price.terms in wanted_terms and _in_place(price, where) and _joined(price, chips, together)
    ]  # fmt: skip
    if machine:
        known, slices = machine_named(machine), accelerator(key).kind == "tpu"
        fitting = [
            price for price in fitting
            if plain_name(price.instance) == plain_name(machine)
            or (slices and known is not None and _word(price.cloud) == _word(known.cloud))
        ]  # fmt: skip
    offers = [price for price in fitting if price.cloud != INDEX]
    own, firm = [price for price in offers if price.imported], [price for price in offers if price.confidence != "low"]
    return next((_lowest(group, chips) for group in (own, firm, offers, fitting) if group), None)


def paid_chips(price: Price, chips: int) -> int:
    """Return the chips that are paid for so many in use: whole machines of GPUs; slices of TPUs are had as they are.

    Args:
        price: of the machine.
        chips: in use.
    """
    each = 1 if accelerator(price.accelerator).kind == "tpu" else price.chips_per_instance
    return -(-chips // each) * each


def _lowest(candidates: Iterable[Price], chips: int | None) -> Price:
    return min(candidates, key=lambda price: price.usd_per_chip_h * (1 if chips is None else paid_chips(price, chips)))


def _joined(price: Price, chips: int | None, together: int | None) -> bool:
    """Return whether so many chips, of which all or so many work together, can be had at a price."""
    return chips is None or price.most_chips is None or min(chips, together or chips) <= price.most_chips


def _in_place(price: Price, where: Where) -> bool:
    clouds = {_word(cloud) for cloud in where.clouds}
    regions = {_word(region) for region in where.regions}
    named, region = _word(price.cloud) in clouds, _word(price.region)
    return (named or not clouds) and (not regions or region in regions or (named and region in _EVERYWHERE))


def _all(imported: Iterable[Price]) -> Iterator[Price]:
    yield from imported
    for group in _by_accelerator().values():
        yield from group


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
        most_chips=whole(row["most_chips"]),
    )
