"""What a rule may look at: one workload in one runtime on one kind of chip. Also how versions are compared."""

import re
from dataclasses import dataclass
from functools import cache

from core.device import Accelerator
from core.probe import Runtime
from core.workload import Workload

TENSORFLOW = ("tf-graph", "tf-xla", "keras-tensorflow")
TORCH = ("torch-eager", "torch-compile", "torch-xla", "torch-tpu", "keras-torch")
JAX = ("jax", "keras-jax")


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


@dataclass(frozen=True, slots=True)
class Case:
    """One workload in one runtime on one kind of chip.

    Args:
        workload: the job.
        runtime: with its versions when it is installed.
        kind: of the chip.
        chip: its catalog entry; None for an attached device that is not in the catalog.
        libraries: canonical names of what the existing code needs.
        versions: (canonical name, version) that the user stated.
        dtypes: of every operation of the workload.
    """

    workload: Workload
    runtime: Runtime
    kind: str
    chip: Accelerator | None
    libraries: frozenset[str]
    versions: tuple[tuple[str, str], ...]
    dtypes: frozenset[str] = frozenset()

    @property
    def on_tpu(self) -> bool:
        """Whether the chip is a TPU."""
        return self.kind == "tpu"

    @property
    def key(self) -> str:
        """Catalog key of the chip, or empty."""
        return "" if self.chip is None else self.chip.key

    @property
    def chip_name(self) -> str:
        """The chip as it is named to a person."""
        return f"this {self.kind}" if self.chip is None else self.chip.name

    @property
    def vendor(self) -> str:
        """Vendor of the chip, lower case, or empty when it is not known."""
        return "" if self.chip is None else self.chip.vendor.lower()

    def needs(self, *names: str) -> tuple[str, ...]:
        """Return which of some libraries the existing code needs."""
        return tuple(name for name in names if canonical(name) in self.libraries)

    def stated(self, name: str) -> str | None:
        """Return a version or fact that the user stated, or None."""
        return dict(self.versions).get(canonical(name))

    def version(self, name: str) -> str | None:
        """Return the version of a distribution: what the user stated, else what is installed for the runtime."""
        stated = self.stated(name)
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
        return self.workload.dtype == dtype or dtype in self.dtypes


def not_older(known: str, version: str) -> bool | None:
    """Return whether `known` is at least `version`, comparing numbers; None when one of them has none."""
    have, want = version_numbers(known), version_numbers(version)
    if have is None or want is None:
        return None
    length = max(len(have), len(want))
    return have + (0,) * (length - len(have)) >= want + (0,) * (length - len(want))


@dataclass(frozen=True, slots=True)
class Code:
    """What all cases of one workload have in common; built once."""

    libraries: frozenset[str]
    versions: tuple[tuple[str, str], ...]
    dtypes: frozenset[str]


def code_of(workload: Workload) -> Code:
    """Return what rules look up of a workload's code and operations."""
    existing = workload.existing
    ops = (op for block in workload.blocks for op in (*block.ops_forward, *block.ops_backward))
    return Code(
        frozenset(canonical(name) for name in existing.libraries),
        tuple((canonical(name), version) for name, version in existing.versions),
        frozenset(op.dtype for op in (*workload.ops, *ops)),
    )


def case_of(workload: Workload, code: Code, runtime: Runtime, kind: str, chip: Accelerator | None) -> Case:
    """Return the case of one workload, runtime and chip."""
    return Case(workload, runtime, kind, chip, code.libraries, code.versions, code.dtypes)
