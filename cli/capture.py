"""`./tandem capture script.py:make_model`: traces a model in the user's own environment and writes a graph file."""

from pathlib import Path

import click

from cli.output import write
from core import format as fmt
from services import models


@click.command()
@click.argument("function", metavar="SCRIPT.PY:FUNCTION")
@click.option("--output", "-o", type=click.Path(path_type=Path), default=Path("model.tandem.json"), show_default=True,
              help="Graph file to write.")
@click.option("--training/--inference", default=True, show_default=True, help="Trace the backward pass too.")
def capture(function: str, output: Path, *, training: bool) -> None:
    """The function returns (module, example inputs) of torch, or (function, example inputs) of JAX.

    Your script is run here, as you; its tensors stay where they are: only shapes are traced. The file holds shapes, dtypes and
    names of operations, no weights and no code: `./tandem inspect model.tandem.json` reads it anywhere.
    """
    graph = models.capture(function, output, training=training)
    write(f"{output}: {len(graph.nodes):,} operations, {len(graph.tensors):,} tensors, {fmt.memory(output.stat().st_size)}")
    for note in graph.notes:
        write(f"note: {note}")
