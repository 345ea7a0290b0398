"""Dataclasses to JSON and back, strictly.

Why our own: the words live in `core/`, which may use the standard library only, and the same bytes are read by worker
processes inside interpreters that Tandem does not choose. Reading is strict: unknown keys, missing keys, wrong types and
numbers that are not finite are refused with their path, all at once.
"""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# Plain JSON has no types until it was read: telling them apart is what this module is for.

import json
import sys
import types
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from difflib import get_close_matches
from functools import cache
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from core.errors import BadInput

T = TypeVar("T")
_ROOT = "document"


def to_plain(value: Any) -> Any:
    """Return dicts, lists and scalars for a dataclass; a union of dataclasses is told apart by its fields.

    Raises:
        TypeError: a value that is neither a dataclass, a tuple nor a scalar.
    """
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: to_plain(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, (tuple, list)):
        return [to_plain(item) for item in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise TypeError(f"got {type(value).__name__}; expected a dataclass, a tuple or a scalar")


def to_json(value: Any) -> str:
    """Return canonical JSON: sorted keys, no NaN, no spaces."""
    return json.dumps(to_plain(value), sort_keys=True, separators=(",", ":"), allow_nan=False)


def from_json(target: type[T], text: str | bytes) -> T:
    """Read one JSON document as `target`.

    Raises:
        BadInput: not JSON, duplicate keys, or not of that shape; the message lists every fault with its path.
    """
    return from_plain(target, parse_json(text))


def parse_json(text: str | bytes) -> Any:
    """Parse JSON, refusing duplicate keys, NaN, infinities and nesting that exhausts the parser.

    Raises:
        BadInput: any of these.
    """
    try:
        return json.loads(text, object_pairs_hook=_unique, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise BadInput(f"text that is not JSON ({error})", "one JSON document", "check the file") from None


def from_plain(target: type[T], data: Any) -> T:
    """Build `target` out of plain data.

    Raises:
        BadInput: the data does not fit; every fault is listed with its path.
    """
    faults: list[str] = []
    value = _read(target, data, "", faults)
    if faults:
        raise BadInput(
            "; ".join(faults[:5]) + (f" (+{len(faults) - 5} more)" if len(faults) > 5 else ""),
            f"the fields of {getattr(target, '__name__', target)}",
            "correct the lines named",
        )
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, value in pairs:
        if key in result:
            raise ValueError(f"key {key!r} twice")
        result[key] = value
    return result


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not a number")


@cache
def _shape(target: type) -> tuple[dict[str, Any], frozenset[str]]:
    hints = get_type_hints(target)
    members = fields(target)
    required = frozenset(f.name for f in members if f.default is MISSING and f.default_factory is MISSING)
    return {f.name: hints[f.name] for f in members}, required


def _read(target: Any, data: Any, path: str, faults: list[str]) -> Any:
    origin = get_origin(target)
    if origin in (Union, types.UnionType):
        return _read_union(get_args(target), data, path, faults)
    if origin is tuple:
        return _read_tuple(get_args(target), data, path, faults)
    if is_dataclass(target):
        return _read_dataclass(target, data, path, faults)
    return _read_scalar(target, data, path, faults)


def _read_union(members: tuple[Any, ...], data: Any, path: str, faults: list[str]) -> Any:
    if data is None and type(None) in members:
        return None
    options = [m for m in members if m is not type(None)]
    attempts: list[list[str]] = []
    for option in options:
        mine: list[str] = []
        value = _read(option, data, path, mine)
        if not mine:
            return value
        attempts.append(mine)
    faults.extend(min(attempts, key=len))
    return None


def _read_tuple(members: tuple[Any, ...], data: Any, path: str, faults: list[str]) -> Any:
    if not isinstance(data, list):
        faults.append(f"{path or _ROOT}: {_say(data)} instead of a list")
        return None
    if len(members) == 2 and members[1] is Ellipsis:
        return tuple(_read(members[0], item, f"{path}[{i}]", faults) for i, item in enumerate(data))
    if len(data) != len(members):
        faults.append(f"{path or _ROOT}: {len(data)} items instead of {len(members)}")
        return None
    return tuple(_read(m, item, f"{path}[{i}]", faults) for i, (m, item) in enumerate(zip(members, data, strict=True)))


def _read_dataclass(target: Any, data: Any, path: str, faults: list[str]) -> Any:
    if not isinstance(data, dict):
        faults.append(f"{path or _ROOT}: {_say(data)} instead of a mapping")
        return None
    hints, required = _shape(target)
    before = len(faults)
    for key in data:
        if key not in hints:
            near = get_close_matches(str(key), hints, n=1)
            faults.append(f"{_join(path, str(key))}: unknown" + (f", did you mean {near[0]!r}" if near else ""))
    faults.extend(f"{_join(path, name)}: missing" for name in sorted(required - set(data)))
    values = {name: _read(hint, data[name], _join(path, name), faults) for name, hint in hints.items() if name in data}
    if len(faults) > before:
        return None
    try:
        return target(**values)
    except ValueError as error:
        faults.append(f"{path or _ROOT}: {error}")
        return None


_CHECKS: dict[type, Callable[[Any], bool]] = {
    bool: lambda v: isinstance(v, bool),
    int: lambda v: isinstance(v, int) and not isinstance(v, bool),
    float: lambda v: isinstance(v, (int, float)) and not isinstance(v, bool) and abs(v) <= sys.float_info.max,
    str: lambda v: isinstance(v, str),
    type(None): lambda v: v is None,
}
_WORDS = {bool: "true or false", int: "a whole number", float: "a number", str: "text", type(None): "nothing"}


def _read_scalar(target: Any, data: Any, path: str, faults: list[str]) -> Any:
    if target not in _CHECKS:
        raise TypeError(f"got field type {target!r}; expected a dataclass, tuple, union or scalar")
    if not _CHECKS[target](data):
        faults.append(f"{path or _ROOT}: {_say(data)} instead of {_WORDS[target]}")
        return None
    return float(data) if target is float else data


def _say(data: Any) -> str:
    text = repr(data)
    return text if len(text) <= 40 else text[:39] + "…"


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
