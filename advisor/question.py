"""What is asked of the advisor: one frozen value that holds everything it may know.

Facts about accelerators and frameworks come through the small protocol `Facts`; the catalog module satisfies it. It is a
field of the question so that a test can ask about chips of its own.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from core.device import Accelerator, Device, Pool
from core.errors import BadInput
from core.probe import Outcome, Runtime
from core.workload import OBJECTIVES, Workload


class SupportLike(Protocol):
    """What the catalog says of one runtime on one accelerator."""

    @property
    def status(self) -> str:
        """`first-class`, `supported`, `community`, `deprecated` or `unsupported`."""
        ...

    @property
    def restrictions(self) -> str:
        """What to mind, one line."""
        ...

    @property
    def source(self) -> str:
        """Where it comes from."""
        ...

    @property
    def source_date(self) -> str:
        """When that was read."""
        ...


class RuntimeSpecLike(Protocol):
    """What the catalog says of one runtime."""

    @property
    def id(self) -> str:
        """A runtime id."""
        ...

    @property
    def framework(self) -> str:
        """The framework that it runs."""
        ...

    @property
    def mode(self) -> str:
        """How it runs it."""
        ...

    @property
    def title(self) -> str:
        """How it is written for people."""
        ...


@runtime_checkable
class Facts(Protocol):
    """The part of the catalog that the advisor reads; the module `catalog` is one."""

    def accelerator(self, key: str) -> Accelerator:
        """Return one chip by its catalog key; raises NotFound."""
        ...

    def support(self, runtime_id: str, accelerator: Accelerator) -> SupportLike:
        """Return whether a runtime runs on a chip."""
        ...

    def support_of_family(self, runtime_id: str, family: str, key: str = "") -> SupportLike:
        """Return whether a runtime runs on a family of chips, for devices that are in no catalog."""
        ...

    def runtime_specs(self) -> Mapping[str, RuntimeSpecLike]:
        """Return every runtime that the catalog knows, by id."""
        ...


@dataclass(frozen=True, slots=True)
class Question:
    """Which runtime, on which pool, for this workload.

    Args:
        workload: the job.
        pools: what may be used: attached devices and pools of catalog accelerators.
        devices: the attached devices that attached pools name by id.
        runtimes: what is known of runtimes here: versions, whether installed, why not.
        outcomes: measurements and failures, in any order.
        objective: `time`, `cost` or `energy`.
        today: ISO date on which the question is asked; the age of facts is told against it.
        seed: of the draws behind the confidence.
        named: whether a person named the pools, so that their counts are what was asked for.
        facts: None reads the catalog.
        batches: the workload at each batch that is tried, ascending, where it is left open; none where it has one.
    """

    workload: Workload
    pools: tuple[Pool, ...]
    devices: tuple[Device, ...]
    runtimes: tuple[Runtime, ...]
    outcomes: tuple[Outcome, ...]
    objective: str
    today: str
    seed: int = 0
    named: bool = False
    facts: Facts | None = None
    batches: tuple[Workload, ...] = ()

    def __post_init__(self) -> None:
        if self.objective not in OBJECTIVES:
            raise BadInput(f"objective {self.objective!r}", f"one of {', '.join(OBJECTIVES)}", "choose one of these")
        known = {device.id for device in self.devices}
        for pool in self.pools:
            if pool.count < 1:
                raise BadInput(f"{pool.count} chips of {pool.accelerator}", "one chip or more", "correct the count of the pool")
            if pool.attached and pool.accelerator not in known:
                raise BadInput(
                    f"the attached pool {pool.accelerator!r}", f"one of {', '.join(sorted(known)) or 'no attached device'}",
                    "run `devices` to see what is attached",
                )
