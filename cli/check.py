"""`./tandem check`: lint, types and layers."""

import click

from cli.checks import run_checks
from cli.main import DONE, FINDING


@click.command()
def check() -> int:
    """Runs ruff, pyright and import-linter; their settings are in pyproject.toml."""
    return DONE if run_checks() else FINDING
