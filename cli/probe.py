"""`./tandem probe`: measures kernels, links, compiling and load of this machine in each runtime."""

import click

from cli import shapes
from cli.main import DONE, FINDING
from cli.output import document
from cli.parts import json_flag, runtime_flag, tell_outcomes, tell_progress
from core.errors import BadInput
from core.probe import Measurement
from services import probing, suite


@click.command()
@runtime_flag
@click.option("--tier", type=click.Choice(("quick", "full")), default="quick", show_default=True, help="How many sizes.")
@click.option("--only", metavar="NAME", multiple=True, help="Measure this kernel or system probe only; may be repeated.")
@click.option("--shapes", "workload", metavar="WORKLOAD", help="Measure the matrix products of this workload instead.")
@json_flag
def probe(runtimes: tuple[str, ...], tier: str, only: tuple[str, ...], workload: str | None, *, as_json: bool) -> int:
    """What was measured is stored, and later advice rests on it."""
    if workload is not None and only:
        raise BadInput(
            f"--only {only[0]} with --shapes", "one of the two", "--shapes measures matrix products alone; leave one out"
        )
    if workload is not None:
        outcomes = suite.probe_shapes(workload, runtimes, tier, tell_progress)
    else:
        outcomes = probing.probe(runtimes=runtimes, tier=tier, only=only, on_progress=tell_progress)
    if as_json:
        document({"outcomes": [shapes.outcome(one) for one in outcomes]})
    else:
        tell_outcomes(outcomes)
    return DONE if all(isinstance(one, Measurement) and one.trusted for one in outcomes) else FINDING
