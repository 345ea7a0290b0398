"""`./tandem devices`: what is attached, what could use it, and why something cannot."""

import click

from cli import shapes
from cli.output import document, progress, table, write
from cli.parts import json_flag
from core import format as fmt
from reports.hardware import facts, headline
from services import devices as service


@click.command()
@click.option("--ask-runtimes", is_flag=True, help="Start every framework and let it say what it sees; seconds for each.")
@json_flag
def devices(*, as_json: bool, ask_runtimes: bool) -> None:
    """Starts no framework unless asked: it reads the operating system, the drivers and the installed packages."""
    report = service.report()
    if ask_runtimes:
        progress(f"asking {service.questions(report)} times, two at a time")
        report = service.asked(report, lambda view: progress(f"{view.runtime} on {view.kind}: {view.words or view.reason}"))
    if as_json:
        document(shapes.devices(report))
        return
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
