"""`./tandem test`: every check, then every test. pytest comes last, so that its closing line closes the output."""

import subprocess
import sys

import click

from cli.checks import ROOT, run_checks
from cli.main import DONE, FINDING
from cli.output import progress
from core.errors import TandemError
from services import runtimes

SIDE_BY_SIDE = ("-n", "2", "--dist", "loadfile")
"""Of the whole suite: two processes, each with whole files, since much of it waits for processes that start."""


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("pytest_arguments", nargs=-1, type=click.UNPROCESSED)
def test(pytest_arguments: tuple[str, ...]) -> int:
    """PYTEST_ARGUMENTS go to pytest (`./tandem test tests/unit -k codec`); with any, the checks are left out."""
    checked = True if pytest_arguments else run_checks() and _environments_ready()
    sys.stdout.flush()
    arguments = pytest_arguments or SIDE_BY_SIDE
    code = subprocess.run([sys.executable, "-m", "pytest", *arguments], cwd=ROOT, check=False).returncode  # noqa: S603  our own tests
    return DONE if checked and code == 0 else FINDING


def _environments_ready() -> bool:
    """Build what CPU runtimes with an environment of their own need; that a machine cannot hold one is told, and no failure."""
    ready = True
    for one in runtimes.environments():
        if one.kind != "cpu" or one.state == "ready":
            continue
        if one.obstacle:
            progress(f"{one.id} is left out: {one.obstacle}")
            continue
        try:
            runtimes.install(one.id, progress)
        except TandemError as error:
            progress(f"{one.id}: {error}")
            ready = False
    return ready
