"""The checks behind `./tandem check` and `./tandem test`: lint, types and layers, each a program of its own."""

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

from cli.output import progress

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True, slots=True)
class Check:
    """One program that judges the source.

    Args:
        name: for people.
        arguments: of this interpreter.
    """

    name: str
    arguments: tuple[str, ...]


CHECKS = (
    Check("lint", ("-m", "ruff", "check", ".")),
    Check("types", ("-m", "pyright", "--pythonpath", sys.executable)),
    Check("layers", ("-c", "from importlinter.cli import lint_imports_command as run; run(['--no-logo'])")),
)


def run_checks() -> bool:
    """Run every check, one after the other, and return whether all passed; their own words go to stdout."""
    failed: list[str] = []
    for check in CHECKS:
        started = monotonic()
        code = subprocess.run([sys.executable, *check.arguments], cwd=ROOT, check=False).returncode  # noqa: S603  our own arguments
        progress(f"tandem: {check.name} {'passed' if code == 0 else 'FAILED'} in {monotonic() - started:.1f} s")
        if code != 0:
            failed.append(check.name)
    if failed:
        progress(f"tandem: failed: {', '.join(failed)}")
    return not failed
