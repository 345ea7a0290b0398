"""`./tandem runtimes`: what can be probed, building or removing environments of their own, and which one works where."""

import click

from cli import shapes
from cli.environments import resolve
from cli.output import document, progress, table, write
from cli.parts import json_flag, stopped_by_signals
from core import format as fmt
from core.errors import BadInput
from services import devices
from services import runtimes as service


@click.group(invoke_without_command=True)
@json_flag
@click.pass_context
def runtimes(ctx: click.Context, *, as_json: bool) -> None:
    """Without a command: the list. TANDEM_PYTHON_<RUNTIME> points a runtime at a Python of your own."""
    if ctx.invoked_subcommand is None:
        _tell(as_json=as_json)
    elif as_json:
        after = ctx.invoked_subcommand
        raise BadInput(f"--json before {after}", "it after", f"./tandem runtimes {after} --json")


@runtimes.command("list")
@json_flag
def list_runtimes(*, as_json: bool) -> None:
    """List every runtime, its version, why one is missing, and the environments that can be built."""
    _tell(as_json=as_json)


@runtimes.command()
@click.argument("environment")
def install(environment: str) -> None:
    """Build an environment under the data directory: whole or not at all, once for all clones."""
    with stopped_by_signals():
        ready = service.install(environment, progress)
    write(f"{ready.id} is ready, {fmt.count(ready.size_bytes, 'B')}; it took {fmt.seconds(ready.seconds)} to build")


@runtimes.command()
@click.argument("environment")
def remove(environment: str) -> None:
    """Remove an environment; what was measured with it stays."""
    write(f"{environment} is removed; {fmt.count(service.remove(environment), 'B')} are free again")


runtimes.add_command(resolve)


def _tell(*, as_json: bool) -> None:
    found, environments = devices.report().runtimes, service.environments()
    if as_json:
        document(
            {
                "runtimes": [shapes.runtime(one) for one in found],
                "environments": [shapes.environment(one) for one in environments],
            }
        )
        return
    rows = [
        (one.id, one.framework, one.mode, shapes.framework_version(one) or "", "yes" if one.installed else "no", one.reason)
        for one in found
    ]
    table(("runtime", "framework", "mode", "version", "installed", "why not"), rows)
    write("")
    table(
        ("environment", "for", "state", "size", "what to know"),
        [
            (one.id, " ".join(one.runtimes), one.state, fmt.count(one.size_bytes, "B") if one.size_bytes else "", one.notes)
            for one in environments
        ],
    )
