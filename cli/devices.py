"""`./tandem devices`: what is attached, what could use it, and why something cannot."""

import click

from cli import shapes
from cli.output import document, table, write
from cli.parts import json_flag
from core import format as fmt
from services import devices as service


@click.command()
@json_flag
def devices(*, as_json: bool) -> None:
    """Starts no framework: it asks the operating system and the installed packages."""
    report = service.report()
    if as_json:
        document({"devices": [shapes.device(one.device, one.usable_by) for one in report]})
        return
    for one in report:
        cores = "" if one.device.cores is None else f", {one.device.cores} cores"
        write(f"{one.device.id}: {one.device.name}, {fmt.memory(one.device.memory_bytes)}{cores}")
        for detail in one.device.detail:
            write(f"  {detail}")
        rows = [("  " + use.runtime, "yes" if use.ok else "no", use.reason, use.remedy) for use in one.usable_by]
        table(("  runtime", "usable", "why", "what to do"), rows)
        write()
