"""Writes the golden files anew: `python -m tests.golden.write`, then read the difference before committing it."""

from pathlib import Path

import reports
from tests.samples.runs import sample_run

FOLDER = Path(__file__).parent
FORMATS = ("csv", "json", "md")


def golden(name: str) -> bytes:
    """Return the golden file of a format."""
    return (FOLDER / f"run.{name}").read_bytes()


if __name__ == "__main__":
    for name in FORMATS:
        (FOLDER / f"run.{name}").write_bytes(reports.render(sample_run(), name))
