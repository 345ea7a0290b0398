"""Text to plain data: JSON strictly, YAML with everything refused that a workload never needs.

Anchors, aliases and tags are refused in a first pass over parse events, before anything is built, since a few hundred bytes of
aliases can stand for gigabytes; so are deep nesting, many nodes and long texts. YAML is read as version 1.2 by ruamel.yaml in
pure Python, with a fresh reader for each text: a reader whose depth limit has fired refuses every later document.
"""

import math
import re
from collections.abc import Mapping
from typing import Any, cast

from core.codec import parse_json
from core.errors import BadInput
from intake.wording import fault

MOST_CHARACTERS = 256 * 1024
MOST_DEPTH = 20
MOST_NODES = 5_000
MOST_DIGITS = 300
_SCALARS = (str, int, float, bool, type(None))
_DIGITS = re.compile(r"\d{100,}")
_LOOKS_LIKE_JSON = re.compile(r"\s*(\[|\{\s*(\"|\}))")


def parse(text: str) -> Mapping[str, object]:
    """Return the mapping that a YAML or JSON text holds.

    Args:
        text: one document.

    Raises:
        BadInput: too long, too deep, not well formed, not a mapping, or with something in it that is no plain value.
    """
    if len(text) > MOST_CHARACTERS:
        raise BadInput(
            f"{len(text):,} characters of text", f"at most {MOST_CHARACTERS:,} characters", "give the workload file alone"
        )
    digits = max((len(found) for found in _DIGITS.findall(text)), default=0)
    if digits > MOST_DIGITS:
        raise BadInput(f"a number of {digits:,} digits", f"at most {MOST_DIGITS} digits", "correct that number")
    body = text.removeprefix("\ufeff")
    data = parse_json(body) if _LOOKS_LIKE_JSON.match(body) else _parse_yaml(body)
    _check_plain(data, "document", 0)
    if not isinstance(data, dict):
        raise fault("document", data, "a mapping with a key 'model'", "write it as key: value lines, or name a preset")
    return cast("dict[str, object]", data)


def _parse_yaml(text: str) -> Any:
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    first: Any = YAML(typ="safe", pure=True)
    second: Any = YAML(typ="safe", pure=True)
    try:
        _check_events(first.parse(text))
        return second.load(text)
    except YAMLError as error:
        raise BadInput(f"text that is not YAML ({_reason(error)})", "one YAML or JSON document", "correct that place") from None
    except (ValueError, OverflowError) as error:
        raise BadInput(f"a value that cannot be read ({error})", "plain numbers, texts and lists", "correct the value") from None


def _check_events(events: Any) -> None:
    """Refuse what a workload never needs; stops at the first such event."""
    depth = nodes = documents = 0
    for event in events:
        name = type(event).__name__
        if name == "AliasEvent" or getattr(event, "anchor", None):
            raise _refused(event, "an anchor or alias", "write the value out")
        if getattr(event, "tag", None) and getattr(event, "ctag", None) is not None and str(event.tag) != "!":
            raise _refused(event, f"the tag {event.tag}", "remove the tag")
        documents += name == "DocumentStartEvent"
        nodes += name in ("ScalarEvent", "MappingStartEvent", "SequenceStartEvent")
        depth += name in ("MappingStartEvent", "SequenceStartEvent")
        depth -= name in ("MappingEndEvent", "SequenceEndEvent")
        if documents > 1:
            raise _refused(event, "a second document", "keep one")
        if depth > MOST_DEPTH or nodes > MOST_NODES:
            what = f"more than {MOST_DEPTH} levels" if depth > MOST_DEPTH else f"more than {MOST_NODES:,} values"
            raise _refused(event, what, "give the workload file alone")


def _refused(event: Any, got: str, remedy: str) -> BadInput:
    line = event.start_mark.line + 1
    return BadInput(f"YAML with {got} in line {line}", "one document of plain keys, values and lists", remedy)


def _reason(error: Any) -> str:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    problem = getattr(error, "problem", None) or str(error).partition("\n")[0]
    place = f" in line {mark.line + 1}, column {mark.column + 1}" if mark is not None else ""
    return f"{problem}{place}"[:200]


def _check_plain(data: Any, path: str, depth: int) -> None:
    if depth > MOST_DEPTH:
        raise BadInput(f"{path[:60]}… nested deeper than {MOST_DEPTH} levels", "a flat workload", "give the workload file alone")
    if isinstance(data, dict):
        for key, value in cast("dict[object, object]", data).items():
            if not isinstance(key, str):
                raise fault(path, key, "keys that are text", "put the key in quotes")
            _check_plain(value, f"{path}.{key}" if path != "document" else key, depth + 1)
    elif isinstance(data, list):
        for i, item in enumerate(cast("list[object]", data)):
            _check_plain(item, f"{path}[{i}]", depth + 1)
    elif not isinstance(data, _SCALARS):
        raise fault(path, str(data), "a number, text, true, false or null", "put dates and the like in quotes")
    elif isinstance(data, float) and not math.isfinite(data):
        raise fault(path, data, "a finite number")
