"""What one read may use, and how it is told that it used it up."""

from dataclasses import dataclass

from core.errors import BadInput

OPEN_FILES, TASKS = 256, 256
"""Descriptors of a reader, and threads where they can be counted apart from other work of the same user."""
SCRATCH_FILES = 1000
LOG_BYTES = 2**20
"""What a reader and its libraries may print."""
LOG_KEPT_BYTES = 4096
FOLDER_FILES, FOLDER_BYTES, FOLDER_DEPTH = 20_000, 2**40, 64
"""What a folder may hold that is handed in."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What one read may use.

    Args:
        memory_bytes: address space, which the libraries of a reader take much of before they do anything.
        cpu_s: seconds of processor time, over all threads.
        wall_s: seconds.
        result_bytes: of the answer as JSON.
        scratch_bytes: of all files in the scratch folder together.
    """

    memory_bytes: int = 2 * 2**30
    cpu_s: int = 60
    wall_s: float = 120.0
    result_bytes: int = 64 * 2**20
    scratch_bytes: int = 16 * 2**20


WITH_LIBRARIES = Limits(memory_bytes=16 * 2**30, cpu_s=300, wall_s=300.0)
"""What a reader may use that asks a library."""


class Refused(BadInput):
    """The reader cannot use what it was given, and says why in its own words."""


class Stopped(BadInput):
    """A read came to no answer: a limit was met, or the process ended otherwise.

    Args:
        limit: `memory`, `processor time`, `time`, `result`, `scratch` or `output`; `denied` for what the sandbox does not let
            through; `ended` for any other ending.
    """

    def __init__(self, limit: str, got: str, expected: str, remedy: str) -> None:
        super().__init__(got, expected, remedy)
        self.limit = limit


class ReaderFault(BadInput):
    """The reader met something that it has no words for: its own mistake, whatever the input is."""
