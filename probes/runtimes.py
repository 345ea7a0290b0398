"""Which runtimes can be started here, asked of package metadata: no framework is imported for it."""

import json
import shutil
import sys
from collections.abc import Sequence
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import cast

from catalog import RuntimeSpec, environment_specs, environments_of, runtime_specs
from core.device import Device
from core.errors import one_line
from core.probe import Runtime
from probes.asking import ask
from probes.environments import Built, Environments

BASE = "requirements.txt"
"""The requirements of the environment that Tandem itself runs in."""

_ASK = (
    "import json, sys\nfrom importlib import metadata\nfound = {}\nfor name in sys.argv[1:]:\n"
    "    try:\n        found[name] = metadata.version(name)\n    except metadata.PackageNotFoundError:\n        pass\n"
    "print(json.dumps(found))"
)

NO_PYTHON = "is not a Python that can be asked for its packages"
ASK_S = 10.0
"""Seconds that an interpreter of the user's may take to tell its packages."""


def installed_runtimes(
    interpreters: Sequence[tuple[str, str]] = (), home: Path | None = None, devices: Sequence[Device] = ()
) -> tuple[Runtime, ...]:
    """Return every runtime of the catalog with its versions, or the reason why it cannot be started.

    Args:
        interpreters: (runtime id, Python path) that the user set by `TANDEM_PYTHON_<RUNTIME>`; they come first.
        home: data directory with environments of their own, which come next: those for CPUs and for what is attached.
        devices: attached.
    """
    own = dict(interpreters)
    kinds = {"cpu", *(device.kind for device in devices)}
    built = _built(Environments(home), kinds) if home else {}
    return tuple(_look(spec, own.get(spec.id), built.get(spec.id), kinds) for spec in runtime_specs().values())


def _built(environments: Environments, kinds: set[str]) -> dict[str, Built]:
    """Return the environment of each runtime that has one, the first of the catalog where there are several."""
    found: dict[str, Built] = {}
    for spec in environment_specs().values():
        built = environments.find(spec) if spec.kind in kinds else None
        for runtime in spec.runtimes if built else ():
            assert built is not None
            found.setdefault(runtime, built)
    return found


def _look(spec: RuntimeSpec, interpreter: str | None, built: Built | None, kinds: set[str]) -> Runtime:
    named = spec.id, spec.framework, spec.mode
    asked = (*spec.distributions, *(other for _, other in spec.alternatives))
    if interpreter:
        return _users(spec, interpreter, asked)
    if built:
        versions, place = _inside(built, asked), str(built.interpreter)
    elif spec.requirements != BASE:
        own = environments_of(spec.id)
        remedy = next((f"./tandem runtimes install {one.id}" for one in own if one.kind in kinds), "")
        alone = " and ".join(sorted({f"a {one.kind.upper()}" for one in own}))
        elsewhere = f"{spec.title} runs on {alone} alone, and none is attached"
        reason = f"needs an environment of its own: {remedy}" if remedy else elsewhere
        return Runtime(*named, reason=reason)
    else:
        versions, place = _here(asked), sys.executable
    lacking = _lacking(spec, versions)
    if lacking:
        reason = f"not installed: {lacking}; run ./tandem app once more, which completes the environment"
        return Runtime(*named, _sorted(versions), reason=reason)
    return Runtime(*named, _sorted(versions), place, installed=True)


def _users(spec: RuntimeSpec, interpreter: str, asked: Sequence[str]) -> Runtime:
    """Look into the interpreter that the user named."""
    named = spec.id, spec.framework, spec.mode
    place = shutil.which(interpreter)
    told = _elsewhere(place) if place else "is no program that can be run"
    if place is None or isinstance(told, str):
        variable = f"TANDEM_PYTHON_{spec.id.upper().replace('-', '_')}"
        reason = one_line(f"{variable} names {one_line(interpreter, 120)}, which {told}; correct it or unset it")
        return Runtime(*named, reason=reason)
    versions = {name: version for name, version in told.items() if name in asked}
    if lacking := _lacking(spec, versions):
        return Runtime(*named, _sorted(versions), reason=f"not installed in {place}: {lacking}; install it there")
    return Runtime(*named, _sorted(versions), place, installed=True)


def _lacking(spec: RuntimeSpec, versions: dict[str, str]) -> str:
    return ", ".join(
        name for name in spec.distributions
        if name not in versions and not any(other in versions for own, other in spec.alternatives if own == name)
    )


def _sorted(versions: dict[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(versions.items()))


def _inside(built: Built, distributions: Sequence[str]) -> dict[str, str]:
    known = {_plain(name): version for name, version in built.versions}
    return {name: known[_plain(name)] for name in distributions if _plain(name) in known}


def _plain(name: str) -> str:
    return name.lower().replace("-", "_")


def _here(distributions: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name in distributions:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


@cache
def _elsewhere(interpreter: str) -> dict[str, str] | str:
    """Return what an interpreter holds of all that any runtime needs, or why it does not tell."""
    asked = {name for spec in runtime_specs().values() for name in (*spec.distributions, *dict(spec.alternatives).values())}
    try:
        answer = ask((interpreter, "-c", _ASK, *sorted(asked)), ASK_S)
        if answer.obstacle:
            return answer.obstacle
        found = json.loads(answer.text)
    except (OSError, ValueError):
        return NO_PYTHON
    if answer.code or not isinstance(found, dict):
        return NO_PYTHON
    plain = cast("dict[object, object]", found)
    told = {str(name): value for name, value in plain.items() if isinstance(value, str)}
    return told if len(told) == len(plain) else NO_PYTHON
