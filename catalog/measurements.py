"""Performance that others measured and published: one metric a row, each with its source, date and grade.

The notes of the columns stand in `docs/accuracy.md`. Rows are read as text here and understood by intake.
"""

from functools import cache
from pathlib import Path

FILE = Path(__file__).parent / "data" / "measurements.csv"


@cache
def measurements_text() -> str:
    """Return the whole table as CSV."""
    return FILE.read_text(encoding="utf-8")
