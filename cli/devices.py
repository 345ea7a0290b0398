"""`./tandem devices`: what is attached, what could use it, and why something cannot."""

import click

from cli import shapes
from cli.device_history import history_shape, tell_history
from cli.output import document, table, write
from cli.parts import json_flag
from core import format as fmt
from services import device_history
from services import devices as service


@click.command()
@click.option("--history", is_flag=True, help="Add what was measured over time: medians, drifts, and peers.")
@json_flag
def devices(*, as_json: bool, history: bool) -> None:
    """Starts no framework: it asks the operating system and the installed packages."""
    report = service.report()
    found = device_history.histories() if history else ()
    if as_json:
        told = {"history": [history_shape(one) for one in found]} if history else {}
        document({"devices": [shapes.device(one, report.usable) for one in report.devices], **told})
        return
    for one in report.devices:
        cores = "" if one.cores is None else f", {one.cores} cores"
        write(f"{one.id}: {one.name}, {fmt.memory(one.memory_bytes)}{cores}")
        for detail in one.detail:
            write(f"  {detail}")
        rows = [
            (runtime, "yes" if ok else "no", reason, remedy)
            for device, runtime, ok, reason, remedy in report.usable if device == one.id
        ]
        table(("runtime", "usable", "why not", "what to do"), rows)
    if history:
        tell_history(found)
