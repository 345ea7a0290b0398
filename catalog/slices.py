"""Which counts of chips can be had together, in what shape, on how many hosts, and which axes close to a ring.

TPUs are sold in slices. Those of two axes (v2, v3, v5e, v6e) come in listed shapes, and an axis wraps around only where it is as
long as the pod is wide. Those of three axes (v4, v5p, v7) come in a few shapes below a cube of 4x4x4, which wrap nowhere, and
in whole cubes, which wrap on every axis; of the shapes with the same count the one most like a cube is meant. A count over
the largest slice is several equal slices joined by the data centre's network: each at least a quarter of the largest, which is
our own bound, since a plan over dozens of small slices is not one to propose. GPUs are sold in machines, and over one
machine in whole ones. Sources stand in `generations.csv`, `slices.csv` and `machines.csv`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import combinations_with_replacement
from math import prod
from types import MappingProxyType

from catalog.hardware import accelerator
from catalog.machines import machines_of
from catalog.offers import INDEX, prices
from catalog.tables import rows_of
from core.device import Slice

_CUBE = 64
"""Chips of a cube of 4x4x4, the unit in which slices of three axes grow."""
_LEAST_PART = 4
"""A slice of several is at least the largest divided by this."""
_LISTED = 12


@dataclass(frozen=True, slots=True)
class Generation:
    """How slices of one TPU version are named and shaped.

    Args:
        key: of the catalog.
        words: names of the version without "tpu": `v5e`, `v5litepod`.
        counts_cores: whether the number of a name counts cores.
        cores: of one chip, as names count them.
        smallest_number: below it a name means different things to different tools.
        axes: 2 or 3.
        wrap_axis: length from which an axis of two wraps, or of which every axis of three must be a multiple.
        largest_chips: of one slice.
    """

    key: str
    words: tuple[str, ...]
    counts_cores: bool
    cores: int
    smallest_number: int
    axes: int
    wrap_axis: int
    largest_chips: int
    source: str
    source_date: str


@cache
def generations() -> Mapping[str, Generation]:
    """Return every TPU version whose slices are known, by its key."""
    found = {
        row["key"]: Generation(
            row["key"], tuple(row["words"].split()), row["number_counts"] == "cores", int(row["per_chip"]),
            int(row["smallest_number"]), int(row["axes"]), int(row["wrap_axis"]), int(row["largest_chips"]),
            row["source"], row["source_date"],
        )
        for row in rows_of("generations.csv")
    }  # fmt: skip
    return MappingProxyType(found)


@cache
def slice_of(key: str, chips: int) -> Slice | None:
    """Return the slice, slices or machines with that many chips; None where they cannot be had or nothing is known.

    Args:
        key: key of an accelerator.
        chips: from 1.

    Raises:
        NotFound: no accelerator of that key.
    """
    chip = accelerator(key)
    if chips < 1:
        return None
    if chip.kind == "tpu":
        version = generations().get(key)
        return None if version is None else _tpu_slice(version, chips)
    return _machines(key, chips)


def slice_with(key: str, topology: tuple[int, ...]) -> Slice | None:
    """Return the one TPU slice of a given shape, its axes in any order; None when there is none.

    Args:
        key: key of a TPU.
        topology: chips along each axis.
    """
    version = generations().get(key)
    if version is None or len(topology) != version.axes or min(topology) < 1:
        return None
    shape = tuple(sorted(topology))
    listed = next((found for found in _small(key).values() if tuple(sorted(found.topology)) == shape), None)
    if listed is not None or version.axes == 2:
        return listed
    chips = prod(shape)
    whole = chips <= version.largest_chips and not any(size % version.wrap_axis for size in shape)
    return _cubes(version, shape) if whole else None


def legal_counts(key: str, up_to: int) -> tuple[int, ...]:
    """Return the counts of chips that can be had, ascending: exactly those for which `slice_of` knows an answer.

    Args:
        key: key of an accelerator.
        up_to: the greatest count asked about.

    Raises:
        NotFound: no accelerator of that key.
    """
    chip = accelerator(key)
    if chip.kind == "tpu":
        version = generations().get(key)
        return () if version is None else tuple(sorted(count for count in _tpu_counts(version, up_to) if count <= up_to))
    return tuple(count for count in _machine_counts(key, up_to) if count <= up_to)


def nearest_counts(key: str, chips: int) -> tuple[int, ...]:
    """Return the legal counts next below and next above a count, where there are such; the count itself when it is legal."""
    known = legal_counts(key, max(8 * chips, 1024))
    if chips in known:
        return (chips,)
    below = [count for count in known if count < chips]
    above = [count for count in known if count > chips]
    return (*below[-1:], *above[:1])


def count_fault(key: str, chips: int) -> str | None:
    """Return one line when that many chips of a TPU cannot be had, None when they can or when slices are not known.

    Args:
        key: key of an accelerator.
        chips: asked for.
    """
    version = generations().get(key)
    if version is None or slice_of(key, chips) is not None:
        return None
    counts = legal_counts(key, version.largest_chips)
    listed = ", ".join(str(count) for count in counts[:_LISTED]) + (", ..." if len(counts) > _LISTED else "")
    near = " and ".join(str(count) for count in nearest_counts(key, chips))
    return f"there is no slice of {chips} chips of {key}: slices have {listed} chips; the nearest counts are {near}"


def count_note(key: str, chips: int) -> str | None:
    """Return one phrase when no known machine has that many chips of a GPU, None when one has or nothing is known.

    Whoever owns a machine may use any part of it, and some providers rent by the single GPU, so that this rules nothing out.
    """
    known = accelerator(key)
    if known.kind == "tpu" or not machines_of(key) or slice_of(key, chips) is not None:
        return None
    sizes = ", ".join(str(count) for count in sorted(_sizes(key, known.chips_per_host or 1)))
    near = " or ".join(str(count) for count in nearest_counts(key, chips))
    return f"of the machines known here ({sizes} x {key}) none has {chips}: see that it can be rented, or take {near}"


def _tpu_slice(version: Generation, chips: int) -> Slice | None:
    if chips <= version.largest_chips:
        return _one_slice(version, chips)
    least = version.largest_chips // _LEAST_PART
    for count in range(-(-chips // version.largest_chips), chips // least + 1):
        if chips % count == 0:
            part = _one_slice(version, chips // count)
            if part is not None:
                return Slice(version.key, chips, part.hosts * count, part.topology, part.wraps, count, part.machine)
    return None


def _one_slice(version: Generation, chips: int) -> Slice | None:
    listed = _small(version.key).get(chips)
    if listed is not None or version.axes == 2 or chips % _CUBE or chips > version.largest_chips:
        return listed
    return _cubes(version, _most_like_a_cube(chips // _CUBE))


def _cubes(version: Generation, shape: tuple[int, ...]) -> Slice:
    largest = max(_small(version.key).values(), key=lambda known: known.chips)
    chips = prod(shape)
    return Slice(version.key, chips, chips // (largest.chips // largest.hosts), shape, (True,) * 3, 1, largest.machine)


@cache
def _most_like_a_cube(cubes: int) -> tuple[int, ...]:
    """Return the shape in chips of that many cubes with the least surface."""
    best = min(
        ((a, b, cubes // (a * b)) for a, b in _pairs(cubes)),
        key=lambda shape: shape[0] * shape[1] + shape[1] * shape[2] + shape[0] * shape[2],
    )
    return tuple(4 * size for size in best)


def _pairs(cubes: int) -> Iterator[tuple[int, int]]:
    divisors = [size for size in range(1, int(cubes**0.5) + 1) if cubes % size == 0]
    for a, b in combinations_with_replacement(divisors, 2):
        if cubes % (a * b) == 0 and cubes // (a * b) >= b:
            yield a, b


@cache
def _small(key: str) -> Mapping[int, Slice]:
    """Return the listed slices of one TPU by their count of chips."""
    version = generations()[key]
    found: dict[int, Slice] = {}
    for row in rows_of("slices.csv"):
        if row["accelerator"] != key:
            continue
        topology = tuple(int(size) for size in row["topology"].split("x"))
        wraps = tuple(version.axes == 2 and size % version.wrap_axis == 0 for size in topology)
        chips = prod(topology)
        found[chips] = Slice(key, chips, int(row["hosts"]), topology, wraps, 1, row["machine"], row["notes"])
    return MappingProxyType(found)


def _tpu_counts(version: Generation, up_to: int) -> set[int]:
    sizes = set(_small(version.key))
    if version.axes == 3:
        sizes.update(range(_CUBE, version.largest_chips + 1, _CUBE))
    least = version.largest_chips // _LEAST_PART
    parts = [size for size in sizes if size >= least]
    several = {size * count for size in parts for count in range(2, up_to // size + 1)}
    return sizes | {count for count in several if count > version.largest_chips}


def _machines(key: str, chips: int) -> Slice | None:
    per_host = _per_host(key)
    if per_host is None:
        return None
    sizes = _sizes(key, per_host)
    fitting = [machine.name for machine in machines_of(key) if machine.chips == min(chips, per_host)]
    machine = fitting[0] if len(fitting) == 1 else ""
    if chips in sizes:
        return Slice(key, chips, 1, machine=machine)
    return Slice(key, chips, chips // per_host, machine=machine) if chips % per_host == 0 else None


def _machine_counts(key: str, up_to: int) -> tuple[int, ...]:
    per_host = _per_host(key)
    if per_host is None:
        return ()
    return tuple(sorted({*_sizes(key, per_host), *range(per_host, up_to + 1, per_host)}))


def _per_host(key: str) -> int | None:
    """Return the chips of a whole machine; a processor is a machine by itself."""
    chip = accelerator(key)
    return 1 if chip.kind == "cpu" else chip.chips_per_host


@cache
def _sizes(key: str, per_host: int) -> frozenset[int]:
    """Return the counts that one machine is sold with; any part of it where no machine is listed."""
    machines = frozenset(machine.chips for machine in machines_of(key))
    offers = frozenset(price.chips_per_instance for price in prices(key) if price.cloud != INDEX)
    return machines | offers if machines else frozenset(range(1, per_host + 1))
