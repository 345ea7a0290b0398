"""Which runtimes can be started here, asked of package metadata: no framework is imported for it."""

import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from typing import cast

from catalog import RuntimeSpec, runtime_specs
from core.device import Device
from core.errors import one_line
from core.probe import Runtime
from probes.backends import backend_modules

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


def installed_runtimes(interpreters: Sequence[tuple[str, str]] = ()) -> tuple[Runtime, ...]:
    """Return every runtime of the catalog with its versions, or the reason why it cannot be started.

    Args:
        interpreters: (runtime id, Python path) that the user set by `TANDEM_PYTHON_<RUNTIME>`.
    """
    own = dict(interpreters)
    return tuple(_look(spec, own.get(spec.id)) for spec in runtime_specs().values())


def _look(spec: RuntimeSpec, interpreter: str | None) -> Runtime:
    if spec.id not in backend_modules():
        reason = f"{spec.title} needs an environment of its own, which this version of Tandem does not build yet"
        return Runtime(spec.id, spec.framework, spec.mode, reason=reason)
    variable = f"TANDEM_PYTHON_{spec.id.upper().replace('-', '_')}"
    place = shutil.which(interpreter) if interpreter else None
    told = _elsewhere(place) if place else {}
    if interpreter and (place is None or isinstance(told, str)):
        fault = told if isinstance(told, str) else "is no program that can be run"
        reason = one_line(f"{variable} names {one_line(interpreter, 120)}, which {fault}; correct it or unset it")
        return Runtime(spec.id, spec.framework, spec.mode, reason=reason)
    asked = (*spec.distributions, *(other for _, other in spec.alternatives))
    versions = {n: v for n, v in told.items() if n in asked} if isinstance(told, dict) and place else _here(asked)
    missing = [
        name for name in spec.distributions
        if name not in versions and not any(other in versions for own, other in spec.alternatives if own == name)
    ]
    if missing:
        lacking = ", ".join(missing)
        reason = (
            f"not installed in {place}: {lacking}; install it there"
            if place
            else f"not installed: {lacking}; run ./tandem app once more, which completes the environment"
        )
        return Runtime(spec.id, spec.framework, spec.mode, tuple(sorted(versions.items())), reason=reason)
    return Runtime(
        spec.id, spec.framework, spec.mode, tuple(sorted(versions.items())), place or sys.executable, installed=True
    )


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


def _to_install(runtime: Runtime) -> str:
    variable = f"TANDEM_PYTHON_{runtime.id.upper().replace('-', '_')}"
    return "./tandem app" if "./tandem app" in runtime.reason else f"point {variable} at a Python that has {runtime.framework}"


def _usable(device: Device, runtime: Runtime) -> Usability:
    if not runtime.installed:
        return Usability(device.id, runtime.id, ok=False, reason=runtime.reason, remedy=_to_install(runtime))
    if device.kind == "cpu":
        return Usability(device.id, runtime.id, ok=True, reason="", remedy="")
    version = " ".join(value for _, value in runtime.versions)
    if runtime.framework == "torch" and "+cpu" in version:
        return Usability(
            device.id,
            runtime.id,
            ok=False,
            reason="this is the CPU build of torch",
            remedy=f"point TANDEM_PYTHON_{runtime.id.upper().replace('-', '_')} at an interpreter with the GPU build",
        )
    if device.kind == "tpu" and runtime.framework != "jax" and runtime.id != "keras-jax":
        return Usability(
            device.id,
            runtime.id,
            ok=False,
            reason=f"{runtime.id} has no way to a TPU in this environment",
            remedy="use jax or keras-jax",
        )
    return Usability(
        device.id, runtime.id, ok=True, reason="asserted when its worker starts: a fall-back to the CPU is a failure", remedy=""
    )
