"""The catalog as people ask for it: which accelerators there are, what each can do, what it costs where, in which slices.

Offers are put as `sky gpus list` puts them: one row for a machine at one place, its price for an hour on demand and on spot.
A price is shown with its age; what is not known stays None and is never a zero.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime

import catalog
from catalog import Age, Machine, Named
from core import format as fmt
from core.device import Accelerator, Price, Slice
from services.price_lists import imported_prices

SPOT, ON_DEMAND = "spot", "on-demand"
SLICES_SHOWN = 1024
"""Slices are listed up to so many chips; larger ones follow the same rule."""
_WITHOUT_HOST = ", without host"


@dataclass(frozen=True, slots=True)
class OfferRow:
    """One machine or slice at one place.

    Args:
        accelerator: catalog key.
        chips: in the machine.
        device_memory_bytes: of one chip.
        vcpus, host_memory_bytes: of the machine; None when not known.
        usd_per_h, spot_usd_per_h: of the whole machine; None when there is no such price.
        others: (terms, USD for an hour of the whole machine) of further terms.
        age: of the oldest price of the row; None when it has none.
        imported: whether it comes from a list of the user.
    """

    accelerator: str
    chips: int
    cloud: str
    instance: str
    device_memory_bytes: float
    vcpus: float | None
    host_memory_bytes: float | None
    usd_per_h: float | None
    spot_usd_per_h: float | None
    region: str
    others: tuple[tuple[str, float], ...] = ()
    age: Age | None = None
    imported: bool = False

    @property
    def usd_per_chip_h(self) -> float | None:
        """Price of one chip on demand, or on spot where there is no other."""
        price = self.spot_usd_per_h if self.usd_per_h is None else self.usd_per_h
        return None if price is None else price / self.chips


def today() -> date:
    """Return the day against which ages are told."""
    return datetime.now(UTC).date()


def chips(text: str = "", kind: str = "", vendor: str = "") -> tuple[Accelerator, ...]:
    """Return accelerators in the order of the catalog.

    Args:
        text: only those whose key, name or other names hold it, in any case.
        kind: only of this kind; all when empty.
        vendor: only of this vendor; all when empty.
    """
    wanted = text.strip().lower()
    return tuple(
        chip
        for chip in catalog.accelerators().values()
        if kind in {"", chip.kind} and vendor in {"", chip.vendor} and (not wanted or _holds(chip, wanted))
    )


def named(name: str) -> Named:
    """Return what a name means.

    Raises:
        BadInput: nothing, or several things.
    """
    return catalog.parse_name(name)


def chip(name: str) -> Accelerator:
    """Return one accelerator by its key or any other name.

    Raises:
        BadInput: nothing, or several things, have that name.
    """
    return catalog.accelerator(named(name).key)


def figures(one: Accelerator) -> tuple[tuple[str, str], ...]:
    """Return what one accelerator can do as (what, value with unit); a dash for what is not known.

    Args:
        one: the accelerator.
    """
    peaks = tuple((f"peak {dtype}, dense", fmt.count(peak, "OP/s" if dtype.startswith("int") else "FLOP/s"))
                  for dtype, peak in one.flop_per_s)  # fmt: skip
    link = one.link_name or "link"
    return (
        ("memory of one chip", fmt.memory(one.memory_bytes)),
        ("memory rate", fmt.count(one.memory_bytes_per_s, "B/s")),
        *peaks,
        (f"{link}, one direction", fmt.count(one.link_bytes_per_s, "B/s")),
        ("to the host, one direction", fmt.count(one.host_bytes_per_s, "B/s")),
        ("between hosts, of one host", fmt.count(one.internode_bytes_per_s, "B/s")),
        ("board power", fmt.count(one.power_w, "W")),
        ("chips of a host", _count(one.chips_per_host)),
        ("chips of the largest domain", _count(one.max_domain_chips)),
        ("year", _count(one.year)),
        ("sold by", one.clouds or fmt.MISSING),
        ("note", one.notes or fmt.MISSING),
    )


def hardware_age(one: Accelerator) -> Age:
    """Return how old the figures of an accelerator are."""
    return catalog.age_of(one.source_date, "hardware", today())


def machines(one: Accelerator) -> tuple[Machine, ...]:
    """Return the cloud machines that hold an accelerator."""
    return catalog.machines_of(one.key)


def slices(one: Accelerator, up_to: int = SLICES_SHOWN) -> tuple[Slice, ...]:
    """Return what can be had of an accelerator up to some count: TPU slices, or GPUs in machines.

    Args:
        one: the accelerator.
        up_to: chips.
    """
    found = (catalog.slice_of(one.key, count) for count in catalog.legal_counts(one.key, up_to))
    return tuple(known for known in found if known is not None)


def prices(one: Accelerator) -> tuple[Price, ...]:
    """Return every price of an accelerator, those of the user's lists first, then cheapest first."""
    return catalog.prices(one.key, imported_prices())


def age(price: Price) -> Age:
    """Return how old a price is."""
    return catalog.price_age(price.terms, price.source_date, today())


def clouds() -> tuple[str, ...]:
    """Return the clouds that prices are known of, the user's lists included, in small letters."""
    return tuple(sorted({*catalog.clouds(), *(price.cloud.lower() for price in imported_prices())}))


def offers(
    those: Sequence[Accelerator], *, everything: bool = False, cloud: str = "", all_regions: bool = False
) -> tuple[OfferRow, ...]:
    """Return offers, one row a machine and place.

    Args:
        those: accelerators, in the order of the rows.
        everything: every machine of every cloud; else the cheapest for a chip hour of each accelerator.
        cloud: only of this cloud, in any case; all when empty.
        all_regions: a row for every region; else the cheapest of each machine.
    """
    lists, day = imported_prices(), today()
    rows: list[OfferRow] = []
    for one in those:
        known = [price for price in catalog.prices(one.key, lists) if cloud.lower() in {"", price.cloud.lower()}]
        own = [price for price in known if price.imported]
        found = _rows(one, own if own and not everything else known, day)
        if not all_regions:
            found = _cheapest_of(found, by_machine=everything)
        rows.extend(found or ([] if cloud else [_unpriced(one)]))
    return tuple(rows)


def _rows(one: Accelerator, known: Iterable[Price], day: date) -> list[OfferRow]:
    places: dict[tuple[str, str, str, int, bool], list[Price]] = {}
    for price in known:
        if not price.terms.endswith(_WITHOUT_HOST):
            place = (price.cloud, price.instance, price.region, price.chips_per_instance, price.imported)
            places.setdefault(place, []).append(price)
    rows = [_row(one, group, day) for group in places.values()]
    return sorted(rows, key=lambda row: (row.cloud == catalog.INDEX, _first(row), row.cloud, row.region))


def _first(row: OfferRow) -> float:
    """Return by what rows are ordered: offers on demand before those that may be taken away, then by the price of a chip."""
    return (0.0 if row.usd_per_h is not None else 1e9) + (row.usd_per_chip_h or 1e8)


def _row(one: Accelerator, group: list[Price], day: date) -> OfferRow:
    first = group[0]
    by_terms = {price.terms: price.usd_per_chip_h * price.chips_per_instance for price in reversed(group)}
    machine = catalog.machine_named(first.instance)
    vcpus = first.vcpus if first.vcpus is not None else machine.vcpus if machine is not None else None
    host = machine.host_memory_bytes if machine is not None else None
    oldest = max((catalog.price_age(price.terms, price.source_date, day) for price in group), key=lambda known: known.days or 0)
    return OfferRow(
        one.key, first.chips_per_instance, first.cloud, first.instance, one.memory_bytes, vcpus,
        first.host_memory_bytes if first.host_memory_bytes is not None else host,
        by_terms.get(ON_DEMAND), by_terms.get(SPOT), first.region,
        tuple((terms, usd) for terms, usd in by_terms.items() if terms not in {ON_DEMAND, SPOT}), oldest, first.imported,
    )  # fmt: skip


def _cheapest_of(rows: list[OfferRow], *, by_machine: bool) -> list[OfferRow]:
    """Return the first row, or the first of each machine; rows come cheapest first."""
    kept: dict[tuple[str, str, int], OfferRow] = {}
    for row in rows if by_machine else rows[:1]:
        kept.setdefault((row.cloud, row.instance, row.chips), row)
    return list(kept.values())


def _unpriced(one: Accelerator) -> OfferRow:
    return OfferRow(one.key, 1, "", "", one.memory_bytes, None, None, None, None, "")


def _holds(one: Accelerator, wanted: str) -> bool:
    return any(wanted in text.lower() for text in (one.key, one.name, one.vendor, *catalog.names_of(one.key)))


def _count(value: int | None) -> str:
    return fmt.MISSING if value is None else str(value)
