"""`./tandem runtimes`: what can be probed."""

import click

from cli import shapes
from cli.output import document, table
from cli.parts import json_flag
from core.errors import BadInput
from services import devices as service


@click.group(invoke_without_command=True)
@json_flag
@click.pass_context
def runtimes(ctx: click.Context, *, as_json: bool) -> None:
    """Without a command: the list. TANDEM_PYTHON_<RUNTIME> points a runtime at a Python of your own."""
    if ctx.invoked_subcommand is None:
        _tell(as_json=as_json)


@runtimes.command("list")
@json_flag
def list_runtimes(*, as_json: bool) -> None:
    """List every runtime, its version, and why one is missing."""
    _tell(as_json=as_json)


@runtimes.command()
@click.argument("runtime")
def install(runtime: str) -> None:
    """Refused until isolated runtimes come: the CPU runtimes are there from the start."""
    raise _not_yet(runtime, "install")


@runtimes.command()
@click.argument("runtime")
def remove(runtime: str) -> None:
    """Refused until isolated runtimes come."""
    raise _not_yet(runtime, "remove")


def _tell(*, as_json: bool) -> None:
    found = service.report().runtimes
    if as_json:
        document({"runtimes": [shapes.runtime(one) for one in found]})
        return
    rows = [
        (one.id, one.framework, one.mode, shapes.framework_version(one) or "", "yes" if one.installed else "no", one.reason)
        for one in found
    ]
    table(("runtime", "framework", "mode", "version", "installed", "why not"), rows)


def _not_yet(runtime: str, verb: str) -> BadInput:
    variable = f"TANDEM_PYTHON_{runtime.upper().replace('-', '_')}"
    return BadInput(f"{verb} {runtime}", "one of the runtimes of this environment (runtimes list)",
                    f"isolated runtimes come in a later version; until then point {variable} at a Python that has it")
