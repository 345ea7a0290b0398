"""Tells: charts of the words, and whole runs as files; must not compute what the advice says, only choose and write it.

A format is one file `to_<format>.py` with `render(run) -> bytes` and `MEDIA_TYPE`; it is found by scanning this folder, and
loaded when it is asked for, so that importing this room draws in neither a charting nor a template library.
"""

import pkgutil
from importlib import import_module
from types import ModuleType

from core.errors import NotFound
from core.run import Run

_PREFIX = "to_"


def formats() -> tuple[str, ...]:
    """Return the names of all formats, sorted: `csv`, `html`, `json`, `md`."""
    return tuple(sorted(m.name[len(_PREFIX) :] for m in pkgutil.iter_modules(__path__) if m.name.startswith(_PREFIX)))


def render(run: Run, format: str) -> bytes:  # noqa: A002 - the contract's word
    """Return a run as one file.

    Args:
        run: in any state; what is not there is said to be missing.
        format: one of `formats()`.

    Raises:
        NotFound: an unknown format.
    """
    return _module(format).render(run)


def media_type(format: str) -> str:  # noqa: A002 - as in `render`
    """Return the media type of a format, such as `text/html; charset=utf-8`; raises NotFound for an unknown one."""
    return _module(format).MEDIA_TYPE


def read_json(content: bytes) -> Run:
    """Return the run that `render(run, "json")` wrote, equal to it.

    Raises:
        BadInput: not such a file, or one of another schema.
    """
    from reports.to_json import read

    return read(content)


def _module(name: str) -> ModuleType:
    if name not in formats():
        raise NotFound(f"report format {name!r}", ", ".join(formats()), "name one of them")
    return import_module(f"{__name__}.{_PREFIX}{name}")
