"""Asking another program one question: bounded in time and in what it may say, and nothing of it is left running."""

import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from probes.process import bounded

MOST_BYTES = 2**20


@dataclass(frozen=True, slots=True)
class Answer:
    """What a program said.

    Args:
        code: its exit code, negative for a signal.
        text: standard output, and standard error where that was asked for; bytes that are no UTF-8 are replaced.
        obstacle: why it has no whole answer, in words that follow its name; empty when it has one.
    """

    code: int
    text: str
    obstacle: str = ""


def ask(command: Sequence[str], limit_s: float, *, errors: bool = False, environment: Mapping[str, str] | None = None) -> Answer:
    """Run a program to its end, or to its limit, and return what it said; its whole process group ends with it.

    Args:
        command: program and arguments.
        limit_s: seconds that it may take.
        errors: whether what it writes on standard error belongs to the answer.
        environment: of the program; this process's own when None.

    Raises:
        OSError: it cannot be started.
    """
    process = subprocess.Popen(  # noqa: S603 - of the caller
        list(command), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT if errors else subprocess.DEVNULL,
        env=None if environment is None else dict(environment), start_new_session=True,
    )  # fmt: skip
    assert process.stdout is not None
    with bounded(process, limit_s) as late:
        with process.stdout:
            said = process.stdout.read(MOST_BYTES)
            flooded = len(said) == MOST_BYTES
        if not flooded:
            process.wait()
    obstacle = f"did not answer within {limit_s:.0f} s" if late.is_set() else ""
    if flooded:
        obstacle = f"wrote over {MOST_BYTES // 2**20} MiB"
    return Answer(process.returncode, said.decode("utf-8", "replace"), obstacle)
