"""How the command line writes: documents on stdout, progress on stderr, tables with aligned columns."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import click

from core.errors import one_line

SCHEMA_VERSION = 1
"""Of the JSON documents; raised when a key changes its meaning or goes, not when one is added."""


def document(content: Mapping[str, Any]) -> None:
    """Write one JSON document on stdout, `schema_version` first.

    Raises:
        ValueError: a number that is not finite.
    """
    click.echo(json.dumps({"schema_version": SCHEMA_VERSION, **content}, indent=2, ensure_ascii=False, allow_nan=False))


def write(text: str = "") -> None:
    """Write a line of an answer on stdout."""
    click.echo(text)


def progress(text: str) -> None:
    """Write a line of progress on stderr."""
    click.echo(one_line(text), err=True)


def table(headings: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> None:
    """Write rows with aligned columns on stdout.

    Args:
        headings: one for each column.
        rows: the cells, as many as headings.
        right: indices of the columns that are aligned to the right.
    """
    lines = [[one_line(cell, 200) for cell in row] for row in (headings, *rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(headings))]
    for line in lines:
        cells = [line[i].rjust(width) if i in right else line[i].ljust(width) for i, width in enumerate(widths)]
        click.echo("  ".join(cells).rstrip())
