"""What is known of one attached device beyond its name: words for `core.device.Device`, each fact typed, unknown is None.

Why apart from `core.device`: catalog, pools and advice need none of it, and every field has a default, so that what was stored
before a fact was known is read as before. Clocks, power and tenants are those of the moment when they were read.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a device that is there cannot be used by anything, and the command that would mend it."""

    reason: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Unread:
    """One fact that its source did not give, and why not; normal in virtual machines and partitions."""

    what: str
    why: str


@dataclass(frozen=True, slots=True)
class Cache:
    """The caches of one level and kind.

    Args:
        level: 1, 2, 3, ...
        kind: `data`, `instruction` or `unified`.
        size_bytes: of one.
        count: how many of them the machine has.
    """

    level: int
    kind: str
    size_bytes: int
    count: int = 1


@dataclass(frozen=True, slots=True)
class NumaNode:
    """Memory and logical cores that lie close together."""

    id: int
    cores: int
    memory_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Processor:
    """Facts of the CPU.

    Args:
        machine_cores: logical cores that are online, whoever may use them.
        physical_cores, sockets: None when the kernel does not tell.
        quota_cores: processor seconds a second that the control group allows; None without a limit.
        group_memory_bytes: limit of the control group; None without a limit.
        control_group: 1 or 2, the version that set a limit was looked for in; None when there is none.
        caches: all levels, lowest first.
        numa: every node of the machine.
        extensions: instruction sets that matrix work depends on, as the kernel names them.
    """

    machine_cores: int | None = None
    physical_cores: int | None = None
    sockets: int | None = None
    quota_cores: float | None = None
    group_memory_bytes: int | None = None
    control_group: int | None = None
    caches: tuple[Cache, ...] = ()
    numa: tuple[NumaNode, ...] = ()
    extensions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Slot:
    """Where a board sits: PCI address, generation and lanes of its link, now and at most, and the near NUMA node."""

    address: str
    device_id: str = ""
    generation: int | None = None
    generation_max: int | None = None
    lanes: int | None = None
    lanes_max: int | None = None
    numa_node: int | None = None


@dataclass(frozen=True, slots=True)
class Clock:
    """One clock of a board in hertz, now and at most."""

    name: str
    now_hz: float | None = None
    max_hz: float | None = None


@dataclass(frozen=True, slots=True)
class Tenant:
    """A process that holds a device or memory of it; name and user are empty when they cannot be seen from here."""

    pid: int
    name: str = ""
    user: str = ""
    memory_bytes: int | None = None

    @property
    def is_tandem(self) -> bool:
        """Whether it is a measuring process of Tandem: its run holds the device's lease and others wait for it."""
        return "probes.worker" in self.name

    @property
    def label(self) -> str:
        """Return `process 4242 (python train.py, user ana)`."""
        known = ", ".join(filter(None, (self.name, f"user {self.user}" if self.user else "")))
        return f"process {self.pid}" + (f" ({known})" if known else "")


@dataclass(frozen=True, slots=True)
class Partition:
    """One MIG instance of a GPU."""

    uuid: str
    name: str
    memory_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class TpuSlice:
    """The slice that a TPU belongs to, as Google's metadata or the environment tells it."""

    accelerator_type: str = ""
    topology: str = ""
    worker_id: str = ""
    source: str = ""


@dataclass(frozen=True, slots=True)
class Board:
    """Facts of a GPU or TPU.

    Args:
        vendor: `NVIDIA`, `AMD` or `Google`.
        source: what told it, with its version.
        driver: version of the kernel driver.
        driver_cuda: newest CUDA that the driver can run, `13.0`.
        capability: `9.0` for NVIDIA, `gfx942` for AMD.
        slowdowns: reasons why its clocks are held down now; empty when none, None when unknown.
        memory_used_bytes: by all processes.
        partitioned: whether MIG mode is on; None when it has no such mode.
        partitions: its MIG instances.
        tenants: processes on it; None when they could not be looked for.
        path: its device file.
        locked_by: a lock file that bars it although no process holds it.
        reachable: whether this user may open `path`; None when there is none.
        group: the slice of a TPU.
        unread: what the source did not give.
    """

    vendor: str
    source: str
    driver: str | None = None
    driver_cuda: str | None = None
    capability: str | None = None
    slot: Slot | None = None
    clocks: tuple[Clock, ...] = ()
    power_w: float | None = None
    power_limit_w: float | None = None
    temperature_c: float | None = None
    slowdowns: tuple[str, ...] | None = None
    memory_used_bytes: int | None = None
    partitioned: bool | None = None
    partitions: tuple[Partition, ...] = ()
    tenants: tuple[Tenant, ...] | None = None
    path: str | None = None
    locked_by: str | None = None
    reachable: bool | None = None
    group: TpuSlice | None = None
    unread: tuple[Unread, ...] = ()
