"""Which runtimes can be started here, asked of package metadata: no framework is imported for it."""

import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import cast

from catalog import EnvironmentSpec, RuntimeSpec, environment_specs, runtime_specs
from core.device import Device
from core.errors import one_line
from core.probe import Runtime
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


@dataclass(frozen=True, slots=True)
class Usability:
    """Whether one runtime can use one device, and if not, why and what would mend it."""

    device: str
    runtime: str
    ok: bool
    reason: str
    remedy: str


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
        answer = subprocess.run(  # noqa: S603 - the interpreter that the user named
            [interpreter, "-c", _ASK, *sorted(asked)], capture_output=True, text=True, timeout=ASK_S, check=True,
        )
        found = json.loads(answer.stdout)
    except subprocess.TimeoutExpired:
        return f"did not answer within {ASK_S:.0f} s"
    except (OSError, subprocess.SubprocessError, ValueError):
        return NO_PYTHON
    if not isinstance(found, dict):
        return NO_PYTHON
    plain = cast("dict[object, object]", found)
    told = {str(name): value for name, value in plain.items() if isinstance(value, str)}
    return told if len(told) == len(plain) else NO_PYTHON


def usable_by(devices: Sequence[Device], runtimes: Sequence[Runtime]) -> tuple[Usability, ...]:
    """Return for each device and runtime whether they go together, with the reason and the remedy when not."""
    return tuple(_usable(device, runtime) for device in devices for runtime in runtimes)


def _usable(device: Device, runtime: Runtime) -> Usability:
    def no(reason: str, remedy: str) -> Usability:
        return Usability(device.id, runtime.id, ok=False, reason=reason, remedy=remedy)

    fitting = environment_for(runtime.id, device.kind)
    if elsewhere := only_on(runtime.id, device.kind):
        return no(elsewhere, "")
    if not runtime.installed:
        return no(runtime.reason, _to_install(runtime, fitting))
    if device.kind == "cpu":
        return Usability(device.id, runtime.id, ok=True, reason="", remedy="")
    version = " ".join(value for _, value in runtime.versions)
    if runtime.framework == "torch" and "+cpu" in version:
        return no("this is the CPU build of torch", _to_install(runtime, fitting))
    if device.kind == "tpu" and not fitting:
        return no(f"{runtime.id} has no way to a TPU", "use jax, keras-jax or torch-tpu")
    return Usability(
        device.id, runtime.id, ok=True, reason="asserted when its worker starts: a fall-back to the CPU is a failure", remedy=""
    )


def environments_of(runtime: str) -> tuple[EnvironmentSpec, ...]:
    """Return the environments of their own that serve a runtime."""
    return tuple(spec for spec in environment_specs().values() if runtime in spec.runtimes)


def environment_for(runtime: str, kind: str) -> str:
    """Return the environment that serves a runtime on a kind of device, the first of the catalog; empty when there is none."""
    return next((spec.id for spec in environments_of(runtime) if spec.kind == kind), "")


def only_on(runtime: str, kind: str) -> str:
    """Return why a runtime can never use a kind of device, since all that it needs is for others; empty when it can."""
    own = environments_of(runtime)
    if not own or runtime_specs()[runtime].requirements == BASE or any(spec.kind in ("cpu", kind) for spec in own):
        return ""
    kinds = " and ".join(sorted({spec.kind.upper() for spec in own}))
    return f"{runtime_specs()[runtime].title} runs on a {kinds} alone, and this is a {kind.upper()}"


def _to_install(runtime: Runtime, environment: str) -> str:
    """Return the command that would make a runtime usable."""
    if environment:
        return f"./tandem runtimes install {environment}"
    if "./tandem app" in runtime.reason:
        return "./tandem app"
    return f"point TANDEM_PYTHON_{runtime.id.upper().replace('-', '_')} at a Python that has {runtime.framework}"
