"""What can run a workload: catalog accelerators, attached devices, pools of them and the links between."""

from dataclasses import dataclass
from itertools import pairwise

from core.hardware import Board, Fault, Processor

DEVICE_KINDS = ("cpu", "gpu", "tpu", "other")


@dataclass(frozen=True, slots=True)
class Accelerator:
    """One row of the catalog; unknown is None.

    Args:
        key: `tpu-v6e`, `h100-sxm`, ...
        kind: one of `DEVICE_KINDS`.
        memory_bytes: usable memory of one chip.
        memory_bytes_per_s: peak memory rate of one chip.
        flop_per_s: dense peak by dtype name, one chip, no sparsity.
        link_bytes_per_s: chip to chip inside a domain, one direction.
        power_w: board power limit.
        chips_per_host, max_domain_chips: counts.
        source, source_date, confidence: where the row comes from.
    """

    key: str
    vendor: str
    kind: str
    name: str
    year: int | None
    memory_bytes: float
    memory_bytes_per_s: float | None
    flop_per_s: tuple[tuple[str, float], ...]
    link_name: str | None
    link_bytes_per_s: float | None
    host_bytes_per_s: float | None
    internode_bytes_per_s: float | None
    power_w: float | None
    chips_per_host: int | None
    max_domain_chips: int | None
    clouds: str
    notes: str
    source: str
    source_date: str
    confidence: str

    def peak(self, dtype: str) -> float | None:
        """Return the dense peak in FLOP/s for a dtype, or None when the chip has no units for it."""
        return dict(self.flop_per_s).get(dtype)


@dataclass(frozen=True, slots=True)
class Price:
    """What one chip costs for an hour at one place.

    Args:
        accelerator: a catalog key.
        instance: machine or slice that is sold.
        terms: `on-demand`, `spot`, ...; see `catalog.offers`.
        usd_per_chip_h: of one chip with its share of the machine, unless the terms say `without host`.
        chips_per_instance: chips of the machine or slice.
        vcpus, host_memory_bytes: of the machine; None when not known.
        imported: whether it comes from a list that the user imported.
        most_chips: that can be had together at this price; None for any number, machine by machine.
    """

    accelerator: str
    cloud: str
    instance: str
    region: str
    terms: str
    usd_per_chip_h: float
    chips_per_instance: int
    source: str
    source_date: str
    confidence: str
    vcpus: float | None = None
    host_memory_bytes: float | None = None
    imported: bool = False
    notes: str = ""
    most_chips: int | None = None


@dataclass(frozen=True, slots=True)
class Slice:
    """Chips that are had together: a TPU slice, several of them, or GPUs in whole machines.

    Args:
        accelerator: a catalog key.
        chips: in all slices together.
        hosts: machines of all slices together.
        topology: chips along each axis of one slice; empty for GPUs, which have none.
        wraps: for each axis, whether its ends are joined, so that a ring needs no way back.
        slices: that many equal slices, joined by the data centre's network.
        machine: type of machine as the cloud names it; empty where it has no name or is not known.
        notes: what else to know, one phrase.
    """

    accelerator: str
    chips: int
    hosts: int
    topology: tuple[int, ...] = ()
    wraps: tuple[bool, ...] = ()
    slices: int = 1
    machine: str = ""
    notes: str = ""

    @property
    def shape(self) -> str:
        """Topology of one slice as clouds write it: `2x2x1`; empty for GPUs."""
        return "x".join(str(size) for size in self.topology)

    @property
    def words(self) -> str:
        """One short line for people: `4 chips, 2x2x1, one host`."""
        chips = "1 chip" if self.chips == 1 else f"{self.chips} chips"
        hosts = "one host" if self.hosts == 1 else f"{self.hosts} hosts"
        shape = f"{self.slices} slices of {self.shape}" if self.slices > 1 else self.shape
        return ", ".join(part for part in (chips, shape, hosts) if part)


@dataclass(frozen=True, slots=True)
class Link:
    """A way between two devices or pools: latency plus bytes over rate.

    Args:
        latency_s: one way.
        bytes_per_s: one way; `TOO_FAST` where what was sent was too little to tell it.
    """

    latency_s: float
    bytes_per_s: float


TOO_FAST = 1e15
"""Rate of a link over which larger messages took no longer than smaller ones: no measurement, and not to be shown."""


@dataclass(frozen=True, slots=True)
class Device:
    """One attached thing.

    Args:
        id: kind and index, `cpu:0`, `gpu:0`, `tpu:0`.
        kind: one of `DEVICE_KINDS`.
        name: as the vendor says it.
        uuid: UUID, PCI id, or for a CPU a digest of model and cores; never changes with the order of devices.
        memory_bytes: what a process here may use (cgroup limit counted); 0 where it is not known.
        cores: logical cores that this process may use; None for accelerators.
        accelerator: its catalog key when known.
        cache_bytes: last-level cache; None when unknown.
        detail: short facts for people, one phrase each.
        processor: of a CPU, what is known of it.
        board: of a GPU or TPU, what is known of it.
        fault: why nothing can use it; None when it works.
    """

    id: str
    kind: str
    name: str
    uuid: str
    memory_bytes: int
    cores: int | None = None
    accelerator: str | None = None
    cache_bytes: int | None = None
    detail: tuple[str, ...] = ()
    processor: Processor | None = None
    board: Board | None = None
    fault: Fault | None = None


HOURS_PER_YEAR = 8766.0
"""Of 365.25 days."""


@dataclass(frozen=True, slots=True)
class Ownership:
    """What an hour of one's own chip costs.

    Args:
        fixed_usd_per_chip_h: capital over its life and hosting, whether it works or not.
        power_usd_per_chip_h: while it works; 0 where it is not counted.
        utilisation: share of all hours with work, above 0, up to 1.
        words: the arithmetic and what was left out, one phrase.
    """

    fixed_usd_per_chip_h: float
    power_usd_per_chip_h: float
    utilisation: float
    words: str

    @property
    def usd_per_chip_h(self) -> float:
        """Cost of an hour of work: what runs anyway is spread over the hours with work."""
        return self.fixed_usd_per_chip_h / self.utilisation + self.power_usd_per_chip_h


@dataclass(frozen=True, slots=True)
class Offer:
    """One way of paying for a pool: terms, price of the whole pool, and who sells it where."""

    terms: str
    usd_per_h: float
    where: str

    @property
    def place(self) -> str:
        """Cloud and region, and how old the price is where that is past its time."""
        parts = self.where.split(", ")
        aged = next((days for days, past in pairwise(parts) if past.startswith("past its ")), "")
        return ", ".join(filter(None, (parts[0], aged)))


@dataclass(frozen=True, slots=True)
class Pool:
    """`count` equal chips that work together.

    Args:
        accelerator: a catalog key, or a device id when `attached`.
        count: chips.
        price_usd_per_h: for the whole pool; None when unknown, 0 when owned.
        where: cloud and region, or "attached".
        apart: what tells it from other pools of as many of its chips in one question; empty where there are none.
        own: what its price is made of where it is the user's own hardware.
        other_terms: on which it is known to be had for less, cheapest first; empty where its price was given or it is here.
        barred: why it cannot be had where it is asked for; empty where it can, as far as is known.
        vcpus: processors of all its hosts, where its machine or its price list says them.
    """

    accelerator: str
    count: int
    kind: str
    price_usd_per_h: float | None = None
    where: str = ""
    attached: bool = False
    link: Link | None = None
    hosts: int = 1
    apart: str = ""
    own: Ownership | None = None
    other_terms: tuple[Offer, ...] = ()
    barred: str = ""
    vcpus: float | None = None

    @property
    def label(self) -> str:
        """Chips and accelerator, and what tells it from its like: `8 x h100-sxm (AWS us-east-1, spot)`."""
        if self.attached and self.count == 1:
            return self.accelerator
        return f"{self.count} x {self.accelerator}" + (f" ({self.apart})" if self.apart else "")
