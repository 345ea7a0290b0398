"""`./tandem probe`: measures kernels, links, compiling and load of this machine in each runtime."""

import click

from cli import shapes
from cli.main import DONE, FINDING
from cli.output import document
from cli.parts import json_flag, runtime_flag, tell_outcomes, tell_progress
from core.probe import Measurement
from services import probing


@click.command()
@runtime_flag
@click.option("--tier", type=click.Choice(("quick", "full")), default="quick", show_default=True, help="How many sizes.")
@click.option("--only", metavar="NAME", help="Measure this kernel or system probe only.")
@json_flag
def probe(runtimes: tuple[str, ...], tier: str, only: str | None, *, as_json: bool) -> int:
    """What was measured is stored, and later advice rests on it."""
    outcomes = probing.probe(runtimes=runtimes, tier=tier, only=only, on_progress=tell_progress)
    if as_json:
        document({"outcomes": [shapes.outcome(one) for one in outcomes]})
    else:
        tell_outcomes(outcomes)
    return DONE if all(isinstance(one, Measurement) and one.trusted for one in outcomes) else FINDING
