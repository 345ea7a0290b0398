"""The empirical roofline of an attached device, as words: measured points, what follows from them, and what others published.

Rates are FLOP/s and bytes/s, bytes in GB and not GiB; sizes are what a chart has on its horizontal axis.
"""

from dataclasses import dataclass

from core.device import Device
from core.quantity import Quantity
from core.workload import Size

REFERENCE_KINDS = ("matmul", "memory", "vector")


@dataclass(frozen=True, slots=True)
class RatePoint:
    """One kernel at one size in one runtime.

    Args:
        subject: name of the kernel.
        runtime, dtype: of the probe.
        sizes: of the probe, by name.
        size: n of a product, bytes of a working set, FLOPs an element of a multiply-add chain.
        intensity: FLOP/byte; None when nothing is computed or no traffic is counted.
        seconds: median for one copy.
        rate: FLOP/s, or bytes/s when nothing is counted as computed; None when it cannot be told from noise.
        roof_share: rate over what the runtime's own roof allows at this intensity; None when that is not known.
        trusted: False when the gates quarantined it: shown, but nothing rests on it.
        doubts: what the gates and the reading of the samples warn of.
        provenance: versions and day, one phrase.
    """

    subject: str
    runtime: str
    dtype: str
    sizes: tuple[tuple[str, Size], ...]
    size: float
    intensity: float | None
    seconds: float
    rate: Quantity | None
    roof_share: float | None
    trusted: bool
    doubts: tuple[str, ...]
    provenance: str


@dataclass(frozen=True, slots=True)
class Knee:
    """A fall of the memory rate that is larger than its noise: between the two working sets a cache ends.

    Args:
        subject: the kernel that shows it.
        from_bytes, to_bytes: the last working set before the fall and the first one after it.
        before, after: bytes/s there.
    """

    subject: str
    from_bytes: float
    to_bytes: float
    before: float
    after: float


@dataclass(frozen=True, slots=True)
class LaunchCost:
    """What a call and each operation in it cost before anything is computed, in seconds; None where it was not measured."""

    call_s: Quantity | None
    operation_s: Quantity | None


@dataclass(frozen=True, slots=True)
class RuntimeRoof:
    """What one runtime reached on the device in one dtype.

    Args:
        runtime, dtype: whose.
        matmul: square products over n.
        memory: passes over memory over their working set, all kernels of the memory curve.
        vector: multiply-add chains over FLOPs an element.
        operators: classes of operations, other products and shapes.
        flop_per_s: best square product.
        bytes_per_s: best pass over a working set that no cache holds.
        vector_flop_per_s: best multiply-add chain.
        ridge: FLOP/byte where the vector units begin to be filled; `matmul_ridge` the same for products.
        knees: of the memory curve.
        launch: of the runtime; measured in fp32 whatever the dtype.
    """

    runtime: str
    dtype: str
    matmul: tuple[RatePoint, ...]
    memory: tuple[RatePoint, ...]
    vector: tuple[RatePoint, ...]
    operators: tuple[RatePoint, ...]
    flop_per_s: Quantity | None
    bytes_per_s: Quantity | None
    vector_flop_per_s: Quantity | None
    ridge: Quantity | None
    matmul_ridge: Quantity | None
    knees: tuple[Knee, ...]
    launch: LaunchCost

    @property
    def points(self) -> tuple[RatePoint, ...]:
        """All points."""
        return (*self.matmul, *self.memory, *self.vector, *self.operators)


@dataclass(frozen=True, slots=True)
class Reference:
    """A figure of others to hold against: a maker's peak or a published measurement.

    Args:
        kind: one of `REFERENCE_KINDS`.
        dtype: of the figure; empty for memory.
        value: FLOP/s or bytes/s.
        label: what it is, short.
        vendor: True for a peak of the maker, False for a measurement.
        source: where it is from.
    """

    kind: str
    dtype: str
    value: float
    label: str
    vendor: bool
    source: str


@dataclass(frozen=True, slots=True)
class DeviceRoof:
    """Everything measured of one device beside what others say of its type; either may be empty."""

    device: Device
    runtimes: tuple[RuntimeRoof, ...]
    references: tuple[Reference, ...]

    @property
    def dtypes(self) -> tuple[str, ...]:
        """Dtypes that something was measured in, float32 first."""
        return tuple(sorted({roof.dtype for roof in self.runtimes}, key=lambda name: (name != "fp32", name)))

    def of(self, dtype: str) -> tuple[RuntimeRoof, ...]:
        """Return the roofs in one dtype."""
        return tuple(roof for roof in self.runtimes if roof.dtype == dtype)
