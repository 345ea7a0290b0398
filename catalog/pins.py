"""What releases of packages need of each other, as their metadata states it: enough to tell which fit one environment.

Only what decides is kept: frameworks and servers on TPUs with their libtpu, torch, JAX, numpy and Python. A row whose version
is empty, or `<2.7`, stands for all further releases, or those before that, which were not read one by one: no more is known of
what they need than the row says, and nothing else follows from it.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

from catalog.tables import rows_of

_NEED = re.compile(r"(?P<name>[A-Za-z0-9._-]*(?:\[[a-z0-9]+\])?)(?P<relation>==|>=|<=|<|>)(?P<version>\d[\d.]*(?:\.\*)?)")


@dataclass(frozen=True, slots=True)
class Need:
    """One thing that a release needs.

    Args:
        name: of the distribution, or `python`.
        relation: `==`, `>=`, `<=`, `<` or `>`.
        version: that it is held against; ends in `.*` where any release of a line will do.
    """

    name: str
    relation: str
    version: str

    def __str__(self) -> str:
        """`libtpu ==0.0.50.*`."""
        return f"{self.name} {self.relation}{self.version}"


@dataclass(frozen=True, slots=True)
class Release:
    """One release of a distribution.

    Args:
        name: canonical, with its extra in brackets where that decides.
        version: empty for releases that were not read.
        before: of those, the version that they come before; empty when they may be any.
        needs: of other distributions and of Python.
        source, source_date: where that comes from.
    """

    name: str
    version: str
    before: str
    needs: tuple[Need, ...]
    source: str
    source_date: str


@cache
def releases() -> Mapping[str, tuple[Release, ...]]:
    """Return the releases of each distribution, newest first, those that were not read last."""
    found: dict[str, list[Release]] = {}
    for row in rows_of("pins.csv"):
        needs = (*needs_in(row["python"], "python"), *needs_in(row["requires"]))
        name, version = row["distribution"], row["version"]
        exact, before = ("", version[1:]) if version.startswith("<") else (version, "")
        found.setdefault(name, []).append(Release(name, exact, before, needs, row["source"], row["source_date"]))
    return MappingProxyType({name: tuple(rows) for name, rows in found.items()})


def needs_in(cell: str, name: str = "") -> tuple[Need, ...]:
    """Return the needs that a cell lists, words with spaces between.

    Args:
        cell: such as `torch>=2.9.0 torch<2.10`.
        name: for cells that only hold relations, such as `>=3.10 <3.14`.

    Raises:
        ValueError: a word that is no need.
    """
    needs: list[Need] = []
    for word in cell.split():
        found = _NEED.fullmatch(word)
        if found is None:
            raise ValueError(f"got {word!r}; expected a need such as libtpu>=0.0.50")
        needs.append(Need(found["name"] or name, found["relation"], found["version"]))
    return tuple(needs)
