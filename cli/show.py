"""`./tandem show RUN`: one earlier run, as it was."""

import click

from cli import shapes
from cli.output import document, write
from cli.parts import json_flag, tell_answer, tell_outcomes, tell_sections, titled
from core import format as fmt
from reports.split_run_text import verified_sections
from reports.split_text import sections
from services import runs


@click.command()
@click.argument("run")
@json_flag
def show(run: str, *, as_json: bool) -> None:
    """RUN is an id that `advise` or `history` printed."""
    runs.sweep()
    found = runs.open_run(run)
    if as_json:
        document(shapes.run(found))
        return
    write(f"Run {found.id}, {found.state}, {found.created_at[:16].replace('T', ' ')} UTC, {titled(found.workload)}")
    if found.split is not None:
        tell_sections(verified_sections(found.split.verified) if found.split.verified is not None else ())
        tell_sections(sections(found.split.split, found.workload))
    else:
        tell_answer(found)
    if found.outcomes:
        write("\nMeasured:")
        tell_outcomes(found.outcomes)
    for one in found.actuals:
        note = f", {one.note}" if one.note else ""
        write(f"Actual: {one.runtime} on {one.accelerator}, {fmt.seconds(one.step_time_s)} a step, {one.entered_at}{note}")
