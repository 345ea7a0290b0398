"""Environments of their own: runtimes whose pins conflict with the base environment, builds for accelerators, and Ray."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

from catalog.tables import rows_of
from core.errors import NotFound


@dataclass(frozen=True, slots=True)
class EnvironmentSpec:
    """What an environment holds and where it can be built.

    Args:
        id: what `./tandem runtimes install` takes.
        runtimes: ids of the runtimes that it serves.
        modules: import names that it is tried with beyond those of its runtimes.
        kind, vendor: of the devices that it is for; vendor is empty where there is none.
        requirements: the file of this repository that installs it.
        python_from, python_to: minor versions of Python that its packages are built for, both included.
        disk_bytes: free space that is asked for before it is built, for its files and what pip keeps besides: a guard with room
            to spare. Built, torch-xla came to 7.7 GB, ray to 0.44 GB and mxnet to 0.3 GB; the others were not built and take
            after their kin.
        notes: what to know before building it.
        source, source_date: where that comes from.
    """

    id: str
    runtimes: tuple[str, ...]
    modules: tuple[str, ...]
    kind: str
    vendor: str
    requirements: str
    python_from: tuple[int, int]
    python_to: tuple[int, int]
    disk_bytes: float
    notes: str
    source: str
    source_date: str


@cache
def environment_specs() -> Mapping[str, EnvironmentSpec]:
    """Return every environment by its id, as in the file; where several serve a runtime, the first that is built does."""
    return MappingProxyType({row["id"]: _spec(row) for row in rows_of("environments.csv")})


def environment_spec(name: str) -> EnvironmentSpec:
    """Return one environment.

    Raises:
        NotFound: there is none of that name.
    """
    specs = environment_specs()
    if name not in specs:
        raise NotFound(f"environment {name[:60]!r}", f"one of {', '.join(specs)}", "choose one of these")
    return specs[name]


def environments_of(runtime: str) -> tuple[EnvironmentSpec, ...]:
    """Return the environments of their own that serve a runtime, in the order of the file."""
    return tuple(spec for spec in environment_specs().values() if runtime in spec.runtimes)


def _spec(row: dict[str, str]) -> EnvironmentSpec:
    def version(text: str) -> tuple[int, int]:
        major, minor = text.split(".")
        return int(major), int(minor)

    return EnvironmentSpec(
        row["id"], tuple(row["runtimes"].split()), tuple(row["modules"].split()), row["kind"], row["vendor"], row["requirements"],
        version(row["python_from"]), version(row["python_to"]), float(row["disk_gb"]) * 1e9,
        row["notes"], row["source"], row["source_date"],
    )
