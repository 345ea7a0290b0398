"""Writes the pages of docs/ that state what the source states: the catalog, the rules, and the rules of the code scan.

Run it after a row or a rule was added: `.venv/bin/python -m docs.generate`. A test fails while a page is out of date.
"""

from collections.abc import Callable, Iterable
from pathlib import Path

from catalog import accelerators, cheapest, preset, preset_names, runtime_specs, support_of_family
from catalog.runtimes import FAMILIES
from core import format as fmt
from core.device import Accelerator
from core.workload import Where
from docs.catalog_tables import machines_table, names_table, slices_tables
from docs.code_scan import code_scan_page
from docs.rule_list import rules_page
from docs.split_examples import split_examples_page
from intake import layer_kinds

FOLDER = Path(__file__).resolve().parent
NOTE = "<!-- Written by docs/generate.py: change the source, then run `.venv/bin/python -m docs.generate`. -->"
SHOWN_DTYPES = ("fp32", "bf16", "fp16", "fp8", "int8")


def catalog_page() -> str:
    """Return the page of presets, layer kinds, accelerators, runtimes and their support."""
    return "\n".join([
        "# What Tandem knows", "", NOTE, "",
        "Every fact is a row in `catalog/data/`, with its source and date. A dash is a thing that is not known.", "",
        "## Presets", "", *_presets(), "",
        "## Layer kinds", "",
        "Named by `model: {blocks: [...]}`; their sizes are explained in [ARCHITECTURE.md](../ARCHITECTURE.md).", "",
        ", ".join(f"`{kind}`" for kind in sorted(layer_kinds())) + ".", "",
        "## Accelerators", "",
        "Peaks are dense, of one chip, in FLOP/s. The price is the lowest known for an hour of one chip on demand.", "",
        *_accelerators(), "",
        "## Slices", "",
        "A count is always chips. An axis that wraps around closes to a ring. From one cube of 4x4x4 on, slices of three axes",
        "come in whole cubes and wrap on every axis. Over the largest slice, several equal ones are joined by the data centre's",
        "network.", "",
        *slices_tables(), "",
        "## Names", "",
        "What else may be written for an accelerator, in letters of either case. `H100`, `A100`, `V100`, `TPU` and the like are",
        "asked about. With a number, names of slices count what the table says; `KEY=N`, `NAME:N` and `N x NAME` count",
        "chips.", "",
        *names_table(), "",
        "## Machines", "",
        *machines_table(), "",
        "## Runtimes", "", *_runtimes(), "",
    ])


def _presets() -> list[str]:
    known = [preset(name) for name in preset_names()]
    rows = [(f"`{one.name}`", one.title, ", ".join(one.tasks), one.reference, one.source) for one in known]
    return _table(("name", "model", "tasks", "counts equal those of", "source of the sizes"), rows)


def _accelerators() -> list[str]:
    rows = [_accelerator(one) for one in accelerators().values()]
    headings = ("key", "name", "memory", "memory rate", *SHOWN_DTYPES, "$ an hour", "source", "date")
    return _table(headings, rows)


def _accelerator(one: Accelerator) -> tuple[str, ...]:
    peaks = [fmt.count(one.peak(dtype)) for dtype in SHOWN_DTYPES]
    price = cheapest(one.key, Where())
    rate = fmt.MISSING if one.memory_bytes_per_s is None else fmt.count(one.memory_bytes_per_s, "B/s")
    hour = fmt.usd(price.usd_per_chip_h if price else None)
    return f"`{one.key}`", one.name, fmt.memory(one.memory_bytes), rate, *peaks, hour, one.source, one.source_date


def _runtimes() -> list[str]:
    rows = [
        (f"`{one.id}`", one.title, *(support_of_family(one.id, family).status for family in FAMILIES))
        for one in runtime_specs().values()
    ]
    return _table(("id", "runtime", *FAMILIES), rows)


def _table(headings: Iterable[str], rows: Iterable[Iterable[str]]) -> list[str]:
    lines = [tuple(headings), *(tuple(row) for row in rows)]
    written = ["| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines]
    return [written[0], "|" + "---|" * len(lines[0]), *written[1:]]


PAGES: dict[str, Callable[[], str]] = {
    "catalog.md": catalog_page, "code-scan.md": code_scan_page, "rules.md": rules_page, "split-examples.md": split_examples_page,
}  # fmt: skip
"""What writes each generated page, by its file name."""

if __name__ == "__main__":
    for name, written in PAGES.items():
        (FOLDER / name).write_text(written(), encoding="utf-8")
