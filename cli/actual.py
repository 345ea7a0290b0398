"""`./tandem actual RUN`: what really happened, so that Tandem can be held to what it said."""

import click

from cli.output import write
from cli.parts import Number
from core import format as fmt
from core.probe import RUNTIME_IDS
from services import runs


@click.command()
@click.argument("run")
@click.option("--step-time-s", type=Number(min=0, min_open=True), required=True, help="Seconds that a step took.")
@click.option("--runtime", type=click.Choice(RUNTIME_IDS), metavar="ID", help="Runtime used; without it the one advised.")
@click.option("--accelerator", metavar="KEY", help="Accelerator used; without it the one advised.")
@click.option("--note", default="", help="Free text.")
def actual(run: str, step_time_s: float, runtime: str | None, accelerator: str | None, note: str) -> None:
    """RUN is an id that `advise` or `history` printed."""
    kept = runs.record_actual(run, step_time_s, runtime, accelerator, note)
    write(f"Kept: {kept.runtime} on {kept.accelerator}, {fmt.seconds(kept.step_time_s)} a step.")
