"""`./tandem test`: every check, then every test. pytest comes last, so that its closing line closes the output."""

import subprocess
import sys

import click

from cli.checks import ROOT, run_checks
from cli.main import DONE, FINDING


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("pytest_arguments", nargs=-1, type=click.UNPROCESSED)
def test(pytest_arguments: tuple[str, ...]) -> int:
    """PYTEST_ARGUMENTS go to pytest (`./tandem test tests/unit -k codec`); with any, the checks are left out."""
    checked = True if pytest_arguments else run_checks()
    sys.stdout.flush()
    code = subprocess.run([sys.executable, "-m", "pytest", *pytest_arguments], cwd=ROOT, check=False).returncode  # noqa: S603  our own tests
    return DONE if checked and code == 0 else FINDING
