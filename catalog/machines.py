"""Machines that clouds sell accelerators in: how many chips, processors and how much memory each has.

Clouds fix the number of chips by the type of machine, so this says which counts can be rented. Processors and memory of TPU
machines differ a little between Google's pages; where none states them they are left out.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

from catalog.tables import number, rows_of, whole


@dataclass(frozen=True, slots=True)
class Machine:
    """One type of machine.

    Args:
        name: as its cloud writes it: `a3-highgpu-8g`.
        accelerator: a catalog key.
        chips: accelerators in it.
        vcpus, host_memory_bytes: of the host; None when not known.
    """

    name: str
    cloud: str
    accelerator: str
    chips: int
    vcpus: int | None
    host_memory_bytes: float | None
    source: str
    source_date: str
    confidence: str


@cache
def machines() -> Mapping[str, Machine]:
    """Return every type of machine by its name in small letters, in the order of the file."""
    return MappingProxyType({row["name"].lower(): _machine(row) for row in rows_of("machines.csv")})


def plain_name(text: str) -> str:
    """Return a name in small letters with one dash between its parts, so that ways of writing it are one."""
    return re.sub(r"[\s_/-]+", "-", text.strip().lower()).strip("-")


def machine_named(name: str) -> Machine | None:
    """Return a type of machine by its name, however its letters and dashes are written; None when none has it.

    Args:
        name: as typed; Compute Engine adds `-tpu` to some names of TPU machines.
    """
    return _by_plain_name().get(plain_name(name).removesuffix("-tpu"))


@cache
def machines_of(key: str) -> tuple[Machine, ...]:
    """Return the machines with one kind of accelerator, in the order of the file; none when none is known.

    Args:
        key: key of an accelerator.
    """
    return tuple(machine for machine in machines().values() if machine.accelerator == key)


@cache
def _by_plain_name() -> Mapping[str, Machine]:
    return MappingProxyType({plain_name(name): machine for name, machine in machines().items()})


def _machine(row: dict[str, str]) -> Machine:
    return Machine(
        row["name"], row["cloud"], row["accelerator"], int(row["chips"]), whole(row["vcpus"]),
        number(row["host_memory_gib"], 2.0**30), row["source"], row["source_date"], row["confidence"],
    )  # fmt: skip
