"""Which pools a workload is advised on: what is attached, what the document names, or the catalog."""

from collections.abc import Sequence

import catalog
from core.device import Accelerator, Device, Pool
from core.errors import BadInput
from core.workload import PoolRequest, Where, Workload

CATALOG_KINDS = ("gpu", "tpu")


def pools_for(workload: Workload, devices: Sequence[Device], asked: str) -> tuple[Pool, ...]:
    """Return the pools to compare.

    Args:
        workload: its own pools and its `where` are kept to.
        devices: attached.
        asked: `all` (attached, and the document's pools or the catalog), `attached`, or `KEY=N,KEY=N`.

    Raises:
        BadInput: a pool that is neither a catalog key nor an attached device, or a count that is no whole number from 1.
    """
    attached = tuple(Pool(d.id, 1, d.kind, None, "attached", attached=True) for d in devices)
    if asked == "attached":
        return attached
    if asked != "all":
        return tuple(_named(request, devices, workload.where) for request in _parsed(asked))
    if workload.pools:
        named = tuple(_named(request, devices, workload.where) for request in workload.pools)
        return (*attached, *(pool for pool in named if not pool.attached))
    if workload.where.own_only:
        return attached
    return (*attached, *_from_catalog(workload.where))


def _parsed(asked: str) -> tuple[PoolRequest, ...]:
    requests: list[PoolRequest] = []
    for part in asked.split(","):
        key, _, count = part.strip().partition("=")
        if not key or (count and not count.isdigit()) or count == "0":
            raise BadInput(
                f"pool {part.strip()[:60]!r}",
                "KEY=N such as tpu-v6e=16, with N from 1",
                "correct --pools, or give attached or all",
            )
        requests.append(PoolRequest(key, int(count) if count else 1))
    return tuple(requests)


def _named(request: PoolRequest, devices: Sequence[Device], where: Where) -> Pool:
    device = next((d for d in devices if d.id == request.accelerator), None)
    if device is not None:
        price = None if request.price_usd_per_h is None else request.price_usd_per_h * request.count
        return Pool(device.id, request.count, device.kind, price, "attached", attached=True)
    chip = catalog.accelerator(request.accelerator)
    return _priced(chip, request.count, where, request.price_usd_per_h)


def _priced(chip: Accelerator, count: int, where: Where, usd_per_chip_h: float | None) -> Pool:
    hosts = -(-count // chip.chips_per_host) if chip.chips_per_host else 1
    if usd_per_chip_h is not None:
        return Pool(chip.key, count, chip.kind, usd_per_chip_h * count, "price given", hosts=hosts)
    offer = catalog.cheapest(chip.key, where)
    if offer is None:
        return Pool(chip.key, count, chip.kind, None, "no price known", hosts=hosts)
    place = f"{offer.cloud} {offer.region}".strip()
    seller = f"{place}, {offer.terms}" if offer.terms else place
    return Pool(chip.key, count, chip.kind, offer.usd_per_chip_h * count, seller, hosts=hosts)


def _from_catalog(where: Where) -> tuple[Pool, ...]:
    """Return one chip and one whole host of every GPU and TPU that somebody sells."""
    pools: list[Pool] = []
    for chip in catalog.accelerators().values():
        if chip.kind not in CATALOG_KINDS or catalog.cheapest(chip.key, where) is None:
            continue
        pools.extend(_priced(chip, count, where, None) for count in sorted({1, chip.chips_per_host or 1}))
    return tuple(pools)
