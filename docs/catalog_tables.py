"""Tables of the catalog page that state what can be had together, what it is called, and in which machines it is sold."""

from collections.abc import Iterable

from catalog import accelerators, generations, machines, names_of, slice_name, slice_of, slice_with
from catalog.tables import rows_of
from core import format as fmt


def slices_tables() -> list[str]:
    """Return how slices of each TPU are named and how large they get, and every shape that is listed."""
    kinds = [
        (
            f"`{one.key}`",
            "cores" if one.counts_cores else "chips",
            f"`{slice_name(one.key, _host(one.key))}` = {_host(one.key)} chips",
            f"{one.axes}",
            f"an axis of {one.wrap_axis}" if one.axes == 2 else "from a cube on",
            f"{one.largest_chips:,}",
            one.source,
            one.source_date,
        )
        for one in generations().values()
    ]
    shapes: list[tuple[str, ...]] = []
    for row in rows_of("slices.csv"):
        known = slice_with(row["accelerator"], tuple(int(size) for size in row["topology"].split("x")))
        assert known is not None
        shapes.append(
            (f"`{known.accelerator}`", known.shape, str(known.chips), str(known.hosts), known.machine or fmt.MISSING, known.notes)
        )
    heads = ("key", "names count", "such as", "axes", "wraps", "largest slice, chips", "source", "date")
    return [*table(heads, kinds), "", *table(("key", "shape", "chips", "hosts", "machine", "note"), shapes)]


def names_table() -> list[str]:
    """Return other names of each accelerator, types of machines left out."""
    sold = {machine.name for machine in machines().values()}
    rows = [
        (f"`{key}`", ", ".join(f"`{name}`" for name in names_of(key) if name not in sold))
        for key in accelerators()
        if names_of(key)
    ]
    return table(("key", "also called"), [row for row in rows if row[1]])


def machines_table() -> list[str]:
    """Return every type of machine with what is in it."""
    rows = [
        (
            f"`{one.name}`",
            one.cloud,
            f"{one.chips} x `{one.accelerator}`",
            fmt.MISSING if one.vcpus is None else str(one.vcpus),
            fmt.memory(one.host_memory_bytes),
            one.source,
            one.source_date,
        )
        for one in machines().values()
    ]
    return table(("machine", "cloud", "accelerators", "vCPUs", "memory", "source", "date"), rows)


def table(headings: Iterable[str], rows: Iterable[Iterable[str]]) -> list[str]:
    """Return the lines of a table in Markdown."""
    lines = [tuple(headings), *(tuple(row) for row in rows)]
    written = ["| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines]
    return [written[0], "|" + "---|" * len(lines[0]), *written[1:]]


def _host(key: str) -> int:
    """Return the chips of a whole host that a slice name is shown for."""
    one = slice_of(key, 8)
    return 8 if one is not None and one.hosts == 1 else 4
