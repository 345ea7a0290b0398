"""Which pools a workload is advised on: what is attached, what the document or the options name, or the catalog."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime

import catalog
from advisor.keeping_up import Fleet
from advisor.memory import parameter_bytes
from core.advice import Exclusion
from core.device import Accelerator, Device, Offer, Pool, Price
from core.errors import BadInput
from core.workload import PoolRequest, Where, Workload
from intake import is_device, request_of, unknown
from services.price_lists import imported_prices

CATALOG_KINDS = ("gpu", "tpu")
TOPOLOGY = "topology"
"""Flag of a pool that is left out because no slice has that many chips."""
COUNT_RULE = "slice-count"
PLACE_RULE, AVAILABILITY = "machine-cloud", "availability"
"""Rule and flag of a pool whose machine another cloud has than those that are asked for."""
KEYWORDS = ("all", "attached")
MOST_CHIPS, MOST_SERVING, MOST_IN_A_FLEET = 1024, 64, 16_384
APART = ("infer", "serve", "preprocess")
"""Tasks whose replicas have nothing to say to each other."""
GIVEN, OWN = "price given", "own hardware"
SAID = (GIVEN, OWN)
"""Where a pool is whose price the user said: an amount, or what the hardware cost."""
ROOM_FOR_WEIGHTS = 0.8
"""Part of a host's memory that weights may fill at most for a replica to find room in it, beside its cache (prior)."""
FAR_BELOW = 4.0
"""Times below the lowest price known elsewhere, spot among them, from which on a price of the user's own list is doubted."""


@dataclass(frozen=True, slots=True)
class _Market:
    """Where, on which day, by which lists and for what pools are priced."""

    where: Where
    imported: tuple[Price, ...]
    today: date
    workload: Workload

    def offer(self, chip: Accelerator, request: PoolRequest) -> Price | None:
        """Return the cheapest offer for a pool; None where none is known."""
        together = 1 if self.apart(chip) else self._replica(chip)
        return catalog.cheapest(
            chip.key, self.where, self.imported, request.terms, request.count, request.machine, together=together
        )

    def _replica(self, chip: Accelerator) -> int | None:
        """Return the chips of a host where a replica that answers on its own finds room in one; None: all are joined."""
        host = chip.chips_per_host or 1
        weights = parameter_bytes(self.workload) * self.workload.parameter_count
        alone = chip.kind == "gpu" and self.workload.task in APART and weights <= ROOM_FOR_WEIGHTS * host * chip.memory_bytes
        return host if alone else None

    def apart(self, chip: Accelerator) -> bool:
        """Return whether chips of a kind serve as well in machines of their own, since no fast link joins them anyway."""
        alone = (chip.link_bytes_per_s or 0.0) <= (chip.host_bytes_per_s or 0.0)
        return chip.kind == "gpu" and alone and self.workload.task in APART


def pools_for(workload: Workload, devices: Sequence[Device], asked: str, today: date | None = None) -> tuple[Pool, ...]:
    """Return the pools to compare.

    Args:
        workload: its own pools and its `where` are kept to.
        devices: attached.
        asked: `all` (attached, and the document's pools or the catalog), `attached`, or names and counts parted by commas:
            `KEY=N`, `v5p-8`, `A100-80GB:8`, `cpu:0`.
        today: the day against which the age of prices is told; today when None.

    A pool without a count stands for every count of its chip that the job may use.

    Raises:
        BadInput: a pool that is neither an accelerator nor an attached device, a name that several have, a count that is no
            whole number from 1, or a cloud or region of the workload in which nothing is sold that is known of.
    """
    attached = tuple(_attached(device, 1, None, devices) for device in devices)
    if asked == "attached":
        return attached
    market = _market(workload, today)
    requests = tuple(request for request, _ in _parsed(asked)) if asked != "all" else workload.pools
    if requests:
        named = _told_apart([pool for request in requests for pool in _asked(request, workload, devices, market)])
        own = {pool.accelerator: pool for pool in named if pool.attached}
        here = tuple(own.get(pool.accelerator, pool) for pool in attached)
        return named if asked != "all" else (*here, *(pool for pool in named if not pool.attached))
    if workload.where.own_only:
        return attached
    return (*attached, *_from_catalog(market, workload))


def sized_pools(workload: Workload, asked: str, fleets: Iterable[Fleet], today: date | None = None) -> tuple[Pool, ...]:
    """Return pools that keep up with a rate of requests, in whole machines or slices, of chips whose count was left open.

    Args:
        workload, asked, today: as for `pools_for`.
        fleets: what would keep up.

    Raises:
        BadInput: as for `pools_for`.
    """
    market = _market(workload, today)
    requests = tuple(request for request, _ in _parsed(asked)) if asked not in KEYWORDS else workload.pools
    if asked == "attached" or workload.where.own_only:
        return ()
    left_open = {request.accelerator: request for request in requests if request.open}
    found: list[Pool] = []
    for fleet in fleets:
        chip = catalog.accelerator(fleet.accelerator)
        request = left_open.get(chip.key) if requests else PoolRequest(chip.key, 1)
        if request is None or fleet.chips > MOST_IN_A_FLEET:
            continue
        count = next((legal for legal in catalog.legal_counts(chip.key, 2 * fleet.chips) if legal >= fleet.chips), fleet.chips)
        if count <= MOST_IN_A_FLEET:
            found.append(_priced(chip, replace(request, count=count, open=False), market))
    return tuple(dict.fromkeys(pool for pool in found if pool.price_usd_per_h is not None))


def _market(workload: Workload, today: date | None) -> _Market:
    """Return where pools are priced.

    Raises:
        BadInput: a cloud or a region in which nothing is sold that is known of.
    """
    where, imported = workload.where, imported_prices()
    known = {"cloud": (where.clouds, catalog.clouds(imported)), "region": (where.regions, catalog.regions(imported))}
    for what, (asked, found) in known.items():
        strange = next((name for name in asked if name.strip().lower() not in found), None)
        if strange is not None and not where.own_only:
            raise unknown(f"where.{what}s", what, strange, found)
    return _Market(where, imported, today or datetime.now(UTC).date(), workload)


def with_names_said(workload: Workload, asked: str) -> Workload:
    """Return the workload with what the names of asked pools were understood as among its assumptions.

    Args:
        workload: as understood.
        asked: as for `pools_for`.

    Raises:
        BadInput: a pool that cannot be understood.
    """
    said = echoes(asked)
    return replace(workload, assumptions=(*workload.assumptions, *said)) if said else workload


def echoes(asked: str) -> tuple[str, ...]:
    """Return what the names of asked pools were understood as, one phrase for each that is no plain key: `v5p-8 = 4 chips, ...`.

    Raises:
        BadInput: a pool that cannot be understood.
    """
    return () if asked in KEYWORDS else tuple(said for _, told in _parsed(asked) for said in told)


def obtainable(pools: Sequence[Pool]) -> tuple[tuple[Pool, ...], tuple[Exclusion, ...]]:
    """Part pools into those that can be had and, as exclusions, counts that no slice has and machines of other clouds.

    Args:
        pools: to be compared.
    """
    found = [(pool, _fault_of(pool)) for pool in pools]
    return tuple(pool for pool, fault in found if fault is None), tuple(fault for _, fault in found if fault is not None)


def _fault_of(pool: Pool) -> Exclusion | None:
    """Return why a pool cannot be had; None where it can."""
    name = f"{pool.count} x {pool.accelerator}"
    if pool.barred:
        return Exclusion("", name, PLACE_RULE, AVAILABILITY, pool.barred, "catalog/data/machines.csv")
    fault = None if pool.attached else catalog.count_fault(pool.accelerator, pool.count)
    if fault is None:
        return None
    return Exclusion("", name, COUNT_RULE, TOPOLOGY, fault, catalog.generations()[pool.accelerator].source)


def _parsed(asked: str) -> tuple[tuple[PoolRequest, tuple[str, ...]], ...]:
    """Return each pool that is asked for, with what is to be said of its name."""
    return tuple(_request(part.strip()) for part in asked.split(","))


def _request(part: str) -> tuple[PoolRequest, tuple[str, ...]]:
    name, sign, count = part.partition("=")
    if is_device(name):
        if sign and not (count.isascii() and count.isdigit() and 0 < int(count[:7]) < 10**6):
            raise BadInput(f"pool {part[:60]!r}", "a device such as cpu:0, or KEY=N with N from 1 to 999,999", "correct --pools")
        return PoolRequest(name, int(count or 1)), ()
    if part.lower().startswith("ray:"):
        raise BadInput(f"pool {part[:60]!r}", "ray:RESOURCE, as ray:GPU, ray:TPU:TPU-V6E=4 or ray:CPU=2", "correct it")
    if not part or (count and not count.strip().isdigit()):
        expected = "names and counts such as tpu-v6e=16, v5p-8 or A100-80GB:8"
        raise BadInput(f"pool {part[:60]!r}", expected, "correct --pools, or give attached or all")
    return request_of(catalog.parse_name(part))


def _asked(request: PoolRequest, workload: Workload, devices: Sequence[Device], market: _Market) -> tuple[Pool, ...]:
    """Return the pool that is asked for; where no count was said, one for each that the job may use and that somebody sells."""
    if not request.open:
        return (_named(request, devices, market),)
    chip = catalog.accelerator(request.accelerator)
    host = chip.chips_per_host or 1
    within = range(1, host + 1) if market.apart(chip) else catalog.legal_counts(chip.key, host)
    counts = sorted({*within, *_counts(chip, workload)})
    pools = tuple(_named(replace(request, count=count, open=False), devices, market) for count in counts)
    return tuple(pool for pool in pools if pool.price_usd_per_h is not None) or pools


def _told_apart(pools: Sequence[Pool]) -> tuple[Pool, ...]:
    """Return pools, those of as many equal chips with what tells each from the others: its seller, or else its price."""
    alike: dict[tuple[str, int], list[Pool]] = {}
    for pool in dict.fromkeys(pools):
        alike.setdefault((pool.accelerator, pool.count), []).append(pool)
    found: list[Pool] = []
    for pool in pools:
        others = alike[pool.accelerator, pool.count]
        price = "" if pool.price_usd_per_h is None else f" at {pool.price_usd_per_h:.6g} USD an hour"
        told = _seller_alone(pool) if len({_seller_alone(one) for one in others}) == len(others) else pool.where + price
        found.append(replace(pool, apart=told) if len(others) > 1 else pool)
    return tuple(found)


def _seller_alone(pool: Pool) -> str:
    """Return who sells a pool and on which terms, without the age of the price."""
    return ", ".join(pool.where.split(", ")[:2])


def _attached(device: Device, count: int, price: float | None, devices: Sequence[Device]) -> Pool:
    """Return a pool of what is attached here, with the processors that its input may be decoded by."""
    cores = sum(one.cores or 0 for one in devices if one.kind == "cpu")
    return Pool(device.id, count, device.kind, price, "attached", attached=True, vcpus=float(cores) or None)


def _named(request: PoolRequest, devices: Sequence[Device], market: _Market) -> Pool:
    device = next((d for d in devices if d.id == request.accelerator), None)
    if device is not None:
        price = None if request.price_usd_per_h is None else request.price_usd_per_h * request.count
        return _attached(device, request.count, price, devices)
    if is_device(request.accelerator):
        known = ", ".join(d.id for d in devices) or "nothing"
        raise BadInput(f"device {request.accelerator!r}", f"an attached device: {known}", "list them with: ./tandem devices")
    chip = catalog.accelerator(request.accelerator)
    return replace(_priced(chip, request, market), barred=_barred(request, market))


def _barred(request: PoolRequest, market: _Market) -> str:
    """Return why a type of machine cannot be had where the workload asks for; empty where it can, or is owned."""
    machine, where = catalog.machine_named(request.machine), market.where
    if machine is None or request.own is not None or where.own_only or catalog.rents_in(machine.cloud, where, market.imported):
        return ""
    return f"{machine.name} is a machine of {machine.cloud}, and {', '.join((*where.clouds, *where.regions))} is asked for"


def _priced(chip: Accelerator, request: PoolRequest, market: _Market) -> Pool:
    count, usd_per_chip_h = request.count, request.price_usd_per_h
    known = catalog.slice_of(chip.key, count)
    hosts = known.hosts if known is not None else -(-count // chip.chips_per_host) if chip.chips_per_host else 1
    if usd_per_chip_h is not None:
        where = GIVEN if request.own is None else OWN
        machines, vcpus = _machines(request, None) or (hosts, None)
        return Pool(chip.key, count, chip.kind, usd_per_chip_h * count, where, hosts=machines, own=request.own, vcpus=vcpus)
    offer = market.offer(chip, request)
    hosts, vcpus = _machines(request, offer) or (hosts, None)
    if offer is None:
        few = count > 1 and market.offer(chip, replace(request, count=1)) is not None
        of = f"of {request.machine}" if request.machine else "of so many together" if few else ""
        place = ", ".join((*market.where.clouds, *market.where.regions))
        said = " ".join(filter(None, ("no", request.terms, "price", of, "known", f"in {place}" if place else "")))
        return Pool(chip.key, count, chip.kind, None, said, hosts=hosts, vcpus=vcpus)
    paid = _paid(offer, count, market)
    other = (market.offer(chip, replace(request, terms=terms)) for terms in catalog.TERMS if terms != offer.terms)
    less = sorted((_paid(one, count, market) for one in other if one is not None), key=lambda one: one.usd_per_h)
    less = tuple(one for one in less if one.usd_per_h < paid.usd_per_h)
    return Pool(chip.key, count, chip.kind, paid.usd_per_h, paid.where, hosts=hosts, other_terms=less, vcpus=vcpus)


def _machines(request: PoolRequest, offer: Price | None) -> tuple[int, float] | None:
    """Return how many machines a pool has, and processors of all, where it was named by one or its price is of one.

    Whole machines are paid, and all their processors are there, however few of their chips are used.
    """
    known = catalog.machine_named(request.machine) or (None if offer is None else catalog.machine_named(offer.instance))
    if known is not None and known.vcpus is not None:
        machines = -(-request.count // known.chips)
        return machines, float(known.vcpus * machines)
    if offer is None or offer.vcpus is None:
        return None
    machines = -(-request.count // offer.chips_per_instance)
    return machines, float(offer.vcpus * machines)


def _paid(offer: Price, count: int, market: _Market) -> Offer:
    """Return what so many chips cost at a price, in whole machines where no part of one is sold."""
    paid = catalog.paid_chips(offer, count)
    whole = f"{paid} chips in whole machines paid" if paid != count else ""
    where = ", ".join(filter(None, (seller(offer, market.today), whole, _doubt(offer, market))))
    return Offer(offer.terms, offer.usd_per_chip_h * paid, where)


def _doubt(offer: Price, market: _Market) -> str:
    """Return a phrase where the user's own list asks so much less than others that its unit or its chip may be mistaken."""
    others = catalog.cheapest(offer.accelerator, replace(market.where, spot=True)) if offer.imported else None
    if others is None or offer.usd_per_chip_h * FAR_BELOW > others.usd_per_chip_h:
        return ""
    return f"{others.usd_per_chip_h / offer.usd_per_chip_h:.0f} times less than the lowest known elsewhere, so check it"


def seller(offer: Price, today: date) -> str:
    """Return who sells at a price, where, on which terms, and a mark when the price is past the time it is relied on.

    Args:
        offer: the price.
        today: the day against which its age is told.
    """
    place = f"{offer.cloud} {offer.region}".strip()
    age = catalog.price_age(offer.terms, offer.source_date, today)
    marks = (
        place, offer.terms, "your price list" if offer.imported else "", f"price {age.words}" if age.stale else "",
        f"{offer.confidence} confidence" if offer.confidence != "high" else "",
    )  # fmt: skip
    return ", ".join(filter(None, marks))


def most_chips(workload: Workload, chip: Accelerator) -> int:
    """Return up to how many chips of a kind are compared when no count is asked for.

    A job with a deadline or a budget is tried on up to 1,024, one that serves a rate on up to 64 and on as many as keep up with
    it (`sized_pools`); any other on up to twice what its weights, gradients and states fill, since more only make it dearer.
    """
    targets = workload.targets
    if targets.deadline_h is not None or targets.budget_usd is not None:
        return MOST_CHIPS
    if targets.requests_per_s is not None:
        return MOST_SERVING
    filled = parameter_bytes(workload) * workload.parameter_count / chip.memory_bytes
    return min(MOST_CHIPS, max(1, round(2 * filled)))


def _from_catalog(market: _Market, workload: Workload) -> tuple[Pool, ...]:
    """Return pools of every GPU and TPU that somebody sells, of each count that the job may use."""
    pools = (
        _priced(chip, PoolRequest(chip.key, count), market)
        for chip in catalog.accelerators().values()
        if chip.kind in CATALOG_KINDS and catalog.cheapest(chip.key, market.where, market.imported) is not None
        for count in _counts(chip, workload)
    )
    return tuple(pool for pool in pools if pool.price_usd_per_h is not None)


def _counts(chip: Accelerator, workload: Workload) -> list[int]:
    """Return the counts of a chip to compare: the smallest, a whole host, doublings up to what the job may use."""
    whole = chip.chips_per_host or 1
    most = 1 << (most_chips(workload, chip) - 1).bit_length()
    legal = catalog.legal_counts(chip.key, max(whole, most))
    doubled = {whole << power for power in range(11) if whole << power <= max(whole, most)}
    smallest = next(iter(legal), 1)
    return sorted({smallest, whole, *(doubled & set(legal) if legal else doubled)})
