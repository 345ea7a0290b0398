"""JSON that somebody else made: read with limits on size, depth and keys, so that no parser of ours runs out of stack."""

import json
from collections.abc import Mapping, Sequence
from typing import cast

from core.errors import BadInput

DEPTH = 100


def read_json(data: bytes, what: str, remedy: str) -> object:
    """Return what JSON text holds.

    Args:
        data: UTF-8.
        what: it is, for the error.
        remedy: what to do when it cannot be read.

    Raises:
        BadInput: no JSON, a key twice, or lists within lists beyond `DEPTH`.
    """
    try:
        found: object = json.loads(data.decode("utf-8"), object_pairs_hook=_once, parse_constant=_never)
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{what} that is no JSON ({str(error)[:80]})", "UTF-8 JSON with each key once", remedy) from None
    level, depth = [found], 0
    while level:
        depth += 1
        if depth > DEPTH:
            raise BadInput(f"{what} nested deeper than {DEPTH}", "a flatter one", remedy)
        level = [one for item in level for one in _within(item)]
    return found


def is_mapping(value: object) -> bool:
    """Whether a value is a mapping, without a claim on what it holds."""
    return isinstance(value, Mapping)


def is_list(value: object) -> bool:
    """Whether a value is a list or a tuple, without a claim on what it holds."""
    return isinstance(value, list | tuple)


def sequence(value: object) -> Sequence[object]:
    """Return a list's items; none of anything else."""
    return cast("Sequence[object]", value) if isinstance(value, list | tuple) else ()


def mapping(value: object) -> Mapping[str, object]:
    """Return a mapping's items; none of anything else."""
    return cast("Mapping[str, object]", value) if isinstance(value, Mapping) else {}


def _within(item: object) -> Sequence[object]:
    return list(mapping(item).values()) if is_mapping(item) else sequence(item)


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands twice")
    return found


def _never(name: str) -> float:
    return float(name.replace("Infinity", "inf").replace("NaN", "nan"))
