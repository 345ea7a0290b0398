"""Presets: well-known models with their exact sizes, and what is usually asked of them.

Each preset names the implementation whose parameters and FLOPs it equals; a test builds that implementation and compares.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from types import MappingProxyType
from typing import Any

from catalog.tables import DATA_FOLDER
from core.errors import NotFound
from core.workload import Size

DEMO = "gpt2-demo"
"""The preset behind "Try the demo": a training step of it takes well under a second on two cores."""


@dataclass(frozen=True, slots=True)
class Preset:
    """A model that can be named in place of being described.

    Args:
        name: `gpt2-small`, ...
        title: how it is written for people.
        family: name of the file in `intake/families` that reads `config`.
        config: sizes by the keys of the family; all that differ from the family's defaults.
        tasks: by task, what a document of it holds when nothing else is said (batch, length, dtype, optimizer, ...).
        reference: the implementation that parameters and FLOPs equal.
        source: where the sizes come from.
        source_date: when they were published.
    """

    name: str
    title: str
    family: str
    config: Mapping[str, Size]
    tasks: Mapping[str, Mapping[str, Size]]
    reference: str
    source: str
    source_date: str


def preset_names() -> tuple[str, ...]:
    """Return the names of all presets, in the order of the file."""
    return tuple(_presets())


def preset(name: str) -> Preset:
    """Return one preset.

    Raises:
        NotFound: there is none of that name; the message names the nearest.
    """
    known = _presets()
    if name in known:
        return known[name]
    near = get_close_matches(name.lower(), known, n=1)
    expected = f"one of {', '.join(known)}"
    raise NotFound(f"preset {name[:60]!r}", expected, f"did you mean {near[0]!r}?" if near else "correct the name")


@cache
def _presets() -> dict[str, Preset]:
    plain: dict[str, dict[str, Any]] = json.loads((DATA_FOLDER / "presets.json").read_text(encoding="utf-8"))
    return {name: _preset(name, entry) for name, entry in plain.items()}


def _preset(name: str, entry: dict[str, Any]) -> Preset:
    tasks = {task: _sizes(values) for task, values in entry["tasks"].items()}
    return Preset(name, entry["title"], entry["family"], _sizes(entry["config"]), MappingProxyType(tasks), entry["reference"],
                  entry["source"], entry["source_date"])


def _sizes(plain: dict[str, Size | list[int]]) -> Mapping[str, Size]:
    return MappingProxyType({key: tuple(value) if isinstance(value, list) else value for key, value in plain.items()})
