"""`./tandem test`: every check, then every test. pytest comes last, so that its closing line closes the output."""

import subprocess
import sys

import click

from cli.checks import ROOT, run_checks
from cli.main import DONE, FINDING
from cli.output import progress
from services import runtimes

SIDE_BY_SIDE = ("-n", "2", "--dist", "loadgroup", "--no-loadscope-reorder")
"""Of the whole suite: two processes, since much of it waits for processes that start; `tests/conftest.py` says what is a group,
and which come first."""


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("pytest_arguments", nargs=-1, type=click.UNPROCESSED)
def test(pytest_arguments: tuple[str, ...]) -> int:
    """PYTEST_ARGUMENTS go to pytest (`./tandem test tests/unit -k codec`); with any, the checks are left out."""
    checked = True if pytest_arguments else _checked_and_ready()
    sys.stdout.flush()
    arguments = pytest_arguments or SIDE_BY_SIDE
    code = subprocess.run([sys.executable, "-m", "pytest", *arguments], cwd=ROOT, check=False).returncode  # noqa: S603  our own tests
    return DONE if checked and code == 0 else FINDING


def _checked_and_ready() -> bool:
    """Check the source while environments are built: a check takes one core, and a build waits for the network."""
    building = _start_environments()
    try:
        checked = run_checks()
    finally:  # Ctrl-C reaches them too: they are of this process group, and end by themselves
        built = [process.wait() == 0 for process in building]
    return checked and all(built)


def _start_environments() -> list["subprocess.Popen[bytes]"]:
    """Build what CPU runtimes with an environment of their own need; that a machine cannot hold one is told, and no failure."""
    started: list[subprocess.Popen[bytes]] = []
    for one in runtimes.environments():
        if one.kind != "cpu" or one.state == "ready":
            continue
        if one.obstacle:
            progress(f"{one.id} is left out: {one.obstacle}")
            continue
        command = [sys.executable, "-m", "cli", "runtimes", "install", one.id]
        started.append(subprocess.Popen(command, cwd=ROOT, stdout=sys.stderr, stdin=subprocess.DEVNULL))  # noqa: S603  our own
    return started
