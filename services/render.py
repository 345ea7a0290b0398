"""Draws one report in a process of its own: a run as JSON on standard input, the file on standard output.

`services.exports` starts it as `python -m services.render FORMAT`. It opens no database, so nothing that goes wrong while
drawing can touch what is kept.
"""

import os
import sys
from typing import BinaryIO

from core.codec import from_json
from core.run import Run
from reports import render


def main(format: str, source: BinaryIO, target: BinaryIO) -> None:  # noqa: A002  (the word of the command line)
    """Read a run and write its report.

    Args:
        format: as in `reports.render`.
        source: JSON of a `core.run.Run`.
        target: takes the bytes of the report.
    """
    target.write(render(from_json(Run, source.read()), format))
    target.flush()


if __name__ == "__main__":
    with os.fdopen(os.dup(1), "wb") as report:
        os.dup2(2, 1)  # whatever a chart library prints must not end up in the report
        main(sys.argv[1], sys.stdin.buffer, report)
