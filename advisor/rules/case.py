"""What a rule may look at: one workload in one runtime on one kind of chip. Also how versions are compared."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache

from advisor.rules.graph import Graph, graph_of
from core.device import Accelerator, Pool
from core.ops import DTYPE_BYTES
from core.probe import Runtime
from core.workload import Workload

TENSORFLOW = ("tf-graph", "tf-xla", "keras-tensorflow")
TORCH = ("torch-eager", "torch-compile", "torch-xla", "torch-tpu", "keras-torch")
JAX = ("jax", "keras-jax")
KERAS = ("keras-jax", "keras-tensorflow", "keras-torch")


@cache
def canonical(name: str) -> str:
    """Return a library name as it is compared: lower case, single dashes."""
    return re.sub(r"[-_. ]+", "-", name.strip().lower())


BUILDS = {"tensorflow": ("tensorflow", "tensorflow-cpu", "tensorflow-tpu")}
"""Distributions that hold the same framework for different devices."""


def version_numbers(text: str) -> tuple[int, ...] | None:
    """Return the leading numbers of a version (`2.10.0+cu126` gives 2, 10, 0), or None when it starts with none."""
    found = re.match(r"v?(\d+(?:\.\d+)*)", text.strip())
    return None if found is None else tuple(int(part) for part in found.group(1).split("."))


def not_older(known: str, version: str) -> bool | None:
    """Return whether `known` is at least `version`, comparing numbers; None when one of them has none."""
    have, want = version_numbers(known), version_numbers(version)
    if have is None or want is None:
        return None
    length = max(len(have), len(want))
    return have + (0,) * (length - len(have)) >= want + (0,) * (length - len(want))


@dataclass(frozen=True, slots=True)
class Code:
    """What rules look up of one workload, wherever it runs; built once by `code_of`.

    Args:
        workload: the job.
        libraries: canonical names of what the existing code needs.
        kernels: canonical names of its custom kernels.
        operations: canonical names of the operations that the user or a scan named.
        versions: (canonical name, version) that the user stated.
        graph: what its operations tell.
        parameters: of the whole model.
        weight_bytes: of those in the compute dtype.
        flop_per_step: what one step of the task does.
        asked: (accelerator, chips) of the pools that the user named, in that order.
        today: ISO date on which the question is asked; empty when nobody says, and then nothing is stale.
        smallest: by accelerator the smallest pool of the question, whose hosts feed it; empty where nobody says.
        told: what rules already said of each chip, whatever the runtime; filled by the screening, so that it asks them once.
    """

    workload: Workload
    libraries: frozenset[str]
    kernels: frozenset[str]
    operations: frozenset[str]
    versions: tuple[tuple[str, str], ...]
    graph: Graph
    parameters: int
    weight_bytes: float
    flop_per_step: int
    asked: tuple[tuple[str, int], ...]
    today: str = ""
    smallest: Mapping[str, Pool] = field(default_factory=dict[str, Pool], compare=False, repr=False)
    told: dict[tuple[str, str, tuple[int, ...] | None], tuple[object, ...]] = field(
        default_factory=dict[tuple[str, str, tuple[int, ...] | None], tuple[object, ...]], compare=False, repr=False
    )

    def needs(self, *names: str) -> tuple[str, ...]:
        """Return which of some libraries the existing code needs."""
        return tuple(name for name in names if canonical(name) in self.libraries)

    def names(self, *operations: str) -> tuple[str, ...]:
        """Return which of some operations, canonical names, were named."""
        return tuple(name for name in operations if name in self.operations)

    def stated(self, name: str) -> str | None:
        """Return a version or fact that the user stated, or None."""
        return dict(self.versions).get(canonical(name))

    def at_least(self, name: str, version: str) -> bool | None:
        """Return whether a stated version is at least another; None when none was stated."""
        known = self.stated(name)
        return None if known is None else not_older(known, version)


@dataclass(frozen=True, slots=True)
class Case:
    """One workload in one runtime on one kind of chip; made by `case_of`.

    Args:
        workload: the job.
        runtime: with its versions when it is installed.
        kind: of the chip.
        chip: its catalog entry; None for an attached device that is not in the catalog.
        code: what all cases of the workload have in common.
        counts: sizes of the pools of this chip that were asked for, ascending; empty when no number was said.
        attached: whether it is a device of this machine.
        on_tpu: whether the chip is a TPU.
        key: catalog key of the chip, or empty.
        chip_name: the chip as it is named to a person.
        vendor: of the chip, lower case, or empty when it is not known.
    """

    workload: Workload
    runtime: Runtime
    kind: str
    chip: Accelerator | None
    code: Code
    counts: tuple[int, ...]
    attached: bool
    on_tpu: bool
    key: str
    chip_name: str
    vendor: str

    @property
    def fewest(self) -> int:
        """Chips of the smallest pool that was asked for; 1 when no number was said."""
        return self.counts[0] if self.counts else 1

    @property
    def most(self) -> int:
        """Chips of the largest pool that was asked for; 1 when no number was said."""
        return self.counts[-1] if self.counts else 1

    def needs(self, *names: str) -> tuple[str, ...]:
        """Return which of some libraries the existing code needs."""
        return self.code.needs(*names)

    def stated(self, name: str) -> str | None:
        """Return a version or fact that the user stated, or None."""
        return self.code.stated(name)

    def version(self, name: str) -> str | None:
        """Return the version of a distribution: what the user stated, else what is installed for the runtime."""
        stated = self.code.stated(name)
        if stated is not None:
            return stated
        names = BUILDS.get(canonical(name), (canonical(name),))
        return next((v for n, v in self.runtime.versions if canonical(n) in names), None)

    def at_least(self, name: str, version: str) -> bool | None:
        """Return whether a distribution is at least a version; None when its version is not known."""
        known = self.version(name)
        return None if known is None else not_older(known, version)

    def uses_dtype(self, dtype: str) -> bool:
        """Whether the workload computes in a dtype, in whole or in one of its operations."""
        return self.workload.dtype == dtype or dtype in self.code.graph.dtypes


def code_of(workload: Workload, today: str = "", pools: Iterable[Pool] = ()) -> Code:
    """Return what rules look up of a workload.

    Args:
        workload: the job.
        today: ISO date on which it is asked about.
        pools: that it is asked about.
    """
    existing = workload.existing
    parameters = workload.parameter_count
    return Code(
        workload,
        frozenset(canonical(name) for name in existing.libraries),
        frozenset(canonical(name) for name in existing.custom_kernels),
        frozenset(canonical(name) for name in existing.ops),
        tuple((canonical(name), version) for name, version in existing.versions),
        graph_of(workload),
        parameters,
        parameters * DTYPE_BYTES.get(workload.dtype, 4),
        workload.flop_per_step,
        tuple((pool.accelerator, pool.count) for pool in workload.pools),
        today,
        {pool.accelerator: pool for pool in sorted(pools, key=lambda pool: -pool.count)},
    )


def case_of(
    workload: Workload, code: Code, runtime: Runtime, kind: str, chip: Accelerator | None, name: str = "",
    counts: tuple[int, ...] | None = None,
) -> Case:
    """Return the case of one workload, runtime and chip.

    Args:
        workload: the job.
        code: from `code_of`.
        runtime: with versions when known.
        kind: of the chip.
        chip: its catalog entry, or None.
        name: catalog key or device id; the chip's key when empty.
        counts: sizes of its pools; None takes those that the workload names.
    """
    key = "" if chip is None else chip.key
    if counts is None:
        counts = tuple(sorted({pool.count for pool in workload.pools if pool.accelerator == (name or key) and not pool.open}))
    chip_name, vendor = (f"this {kind}", "") if chip is None else (chip.name, chip.vendor.lower())
    return Case(workload, runtime, kind, chip, code, counts, ":" in name, kind == "tpu", key, chip_name, vendor)
