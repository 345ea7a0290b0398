"""Plug-ins found by scanning a folder; a broken one stops the start with its name."""

from collections.abc import Iterable
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType


def scan(package: str, places: Iterable[str], needed: tuple[str, ...]) -> dict[str, ModuleType]:
    """Return every module of a package by name.

    Args:
        package: dotted name.
        places: its folders, as in `__path__`.
        needed: names that each module must offer.

    Raises:
        ImportError: a file of the folder lacks one; the message names both.
    """
    found: dict[str, ModuleType] = {}
    for entry in iter_modules(places):
        module = import_module(f"{package}.{entry.name}")
        lacking = [name for name in needed if not hasattr(module, name)]
        if lacking:
            raise ImportError(
                f"got {package} file {entry.name} without {', '.join(lacking)}; expected all of {', '.join(needed)}"
            )
        found[entry.name] = module
    return found
