"""`./tandem report RUN`: one run as a file."""

import sys
from pathlib import Path

import click

from cli.output import progress
from core.errors import BadInput
from services import exports


@click.command()
@click.argument("run")
@click.option("--format", "kind", metavar="FORMAT", default="html", show_default=True, help="html, md, json or csv.")
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path),
              help="File to write; - or nothing is standard output.")
def report(run: str, kind: str, output: Path | None) -> None:
    """RUN is an id that `advise` or `history` printed."""
    made = exports.export(run, kind)
    if output is None or str(output) == "-":
        sys.stdout.buffer.write(made.data)
        sys.stdout.buffer.flush()
        return
    try:
        output.write_bytes(made.data)
    except OSError as error:
        got = f"{output}, which cannot be written ({error.strerror})"
        raise BadInput(got, "a file in a folder that exists", "name another one with -o") from None
    progress(f"wrote {output}, {len(made.data):,} bytes")
