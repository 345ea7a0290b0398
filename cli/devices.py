"""`./tandem devices`: what is attached and what can use it; on request what frameworks say, and what was measured over time."""

import click

from cli import shapes
from cli.device_history import history_shape, tell_history
from cli.output import document, progress, table, write
from cli.parts import json_flag
from core import format as fmt
from reports.hardware import facts, headline
from services import device_history
from services import devices as service


@click.command()
@click.option("--ask-runtimes", is_flag=True, help="Start every framework and let it say what it sees; seconds for each.")
@click.option("--history", is_flag=True, help="Add what was measured over time: medians, drifts, and peers.")
@json_flag
def devices(*, as_json: bool, ask_runtimes: bool, history: bool) -> None:
    """Starts no framework unless asked: it reads the operating system, the drivers and the installed packages."""
    report = service.report()
    if ask_runtimes:
        progress(f"asking {service.questions(report)} times, two at a time")
        report = service.asked(report, lambda view: progress(f"{view.runtime} on {view.kind}: {view.words or view.reason}"))
    found = device_history.histories() if history else ()
    if as_json:
        told = {"history": [history_shape(one) for one in found]} if history else {}
        document({**shapes.devices(report), **told})
        return
    _tell(report)
    if history:
        tell_history(found)


def _tell(report: service.DevicesReport) -> None:
    for one in report.devices:
        write(f"{one.id}: {headline(one)}")
        for name, value in facts(one):
            write(f"  {name}: {value}")
        rows = [
            (runtime, "yes" if ok else "no", reason, remedy)
            for device, runtime, ok, reason, remedy in report.usable if device == one.id
        ]
        table(("runtime", "usable", "why not", "what to do"), rows)
    if report.views:
        write("\nWhat each framework says itself:")
        table(
            ("runtime", "asked for", "sees", "version", "took"),
            [(v.runtime, v.kind, v.words or v.reason, v.version or fmt.MISSING, fmt.seconds(v.seconds)) for v in report.views],
        )
