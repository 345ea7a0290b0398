"""A run as JSON that can be read back equal: the words as they are, under a schema version."""

import json
from dataclasses import dataclass

from core.codec import from_plain, parse_json, to_plain
from core.errors import BadInput
from core.run import Run

MEDIA_TYPE = "application/json"
SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True)
class RunFile:
    """What the file holds."""

    schema_version: int
    run: Run


def render(run: Run) -> bytes:
    """Return the run as indented JSON, keys sorted, ASCII only."""
    return (json.dumps(to_plain(RunFile(SCHEMA_VERSION, run)), sort_keys=True, indent=1, allow_nan=False) + "\n").encode("ascii")


def read(content: bytes) -> Run:
    """Return the run in a file that `render` wrote.

    Raises:
        BadInput: not such a file, or one of another schema; the message names the first faults with their paths.
    """
    data = parse_json(content)
    version: object = data.get("schema_version") if isinstance(data, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    if version != SCHEMA_VERSION:
        raise BadInput(
            f"schema_version {version!r}",
            f"a report in JSON of schema_version {SCHEMA_VERSION}",
            "export the run again with this version of Tandem",
        )
    return from_plain(RunFile, data).run
