"""Reads the CSV files of `catalog/data`, once each.

Facts live in CSV so that adding one is adding a row, and so that a diff shows what changed. The standard library reads all of
them in a few milliseconds; nothing is read before it is asked for.
"""

import csv
from pathlib import Path

DATA_FOLDER = Path(__file__).parent / "data"


def rows_of(file_name: str) -> tuple[dict[str, str], ...]:
    """Return the rows of one file, cells as text, in the order of the file.

    Args:
        file_name: name of a CSV file in `catalog/data`.
    """
    with (DATA_FOLDER / file_name).open(encoding="utf-8", newline="") as file:
        return tuple(csv.DictReader(file))


def number(cell: str, scale: float = 1.0) -> float | None:
    """Return a cell as a number times `scale`, or None when it is empty."""
    return float(cell) * scale if cell else None


def whole(cell: str) -> int | None:
    """Return a cell as a whole number, or None when it is empty."""
    return int(cell) if cell else None
