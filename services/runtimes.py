"""Runtimes as a use case: which are there, and building or removing an environment of their own."""

import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from catalog import environment_spec, environment_specs
from core.device import Device
from core.errors import BadInput
from core.probe import Runtime
from core.settings import Settings
from probes.environment import ROOT, runtimes_folder
from probes.environments import Built, Environments
from probes.inventory import devices as attached_devices
from probes.runtimes import installed_runtimes
from services.context import context

LOG_BYTES = 4096


@dataclass(frozen=True, slots=True)
class EnvironmentState:
    """One environment of its own.

    Args:
        id: what `install` takes.
        runtimes: that it serves; where it serves none, the modules that it holds.
        kind: of the devices that it is for.
        notes: what to know before building it.
        disk_bytes: free space that building asks for.
        state: `ready`, `building` or `absent`.
        size_bytes, build_s: of one that is ready; None else.
        last: last line of a build that runs or failed in the background; empty when there is none.
        obstacle: why this machine cannot hold it; empty when it can.
    """

    id: str
    runtimes: tuple[str, ...]
    kind: str
    notes: str
    disk_bytes: float
    state: str
    size_bytes: int | None
    build_s: float | None
    last: str
    obstacle: str


def known_runtimes(settings: Settings, attached: Sequence[Device] | None = None) -> tuple[Runtime, ...]:
    """Return every runtime, from the interpreters of the settings, from environments of their own, and from this one.

    Args:
        settings: with interpreters and the data directory.
        attached: to this host; None looks.
    """
    return installed_runtimes(settings.interpreters, settings.home, attached_devices() if attached is None else attached)


def environments() -> tuple[EnvironmentState, ...]:
    """Return every environment of the catalog with its state."""
    made = Environments(context().settings.home)
    found: list[EnvironmentState] = []
    for spec in environment_specs().values():
        built = made.find(spec)
        state = "ready" if built else "building" if made.is_being_built(spec) else "absent"
        last = "" if built else _last_line(spec.id)
        size, seconds = (built.size_bytes, built.seconds) if built else (None, None)
        obstacle = made.obstacle(spec)
        told = (spec.id, spec.runtimes or spec.modules, spec.kind, spec.notes, spec.disk_bytes)
        found.append(EnvironmentState(*told, state, size, seconds, last, obstacle))
    return tuple(found)


def install(name: str, tell: Callable[[str], None]) -> Built:
    """Build an environment, telling each step; one that is there is left as it is.

    Raises:
        NotFound: no such environment.
        BadInput: no fitting Python, or too little space.
        StoreError: pip or an import failed.
    """
    spec = environment_spec(_environment_of(name))
    return Environments(context().settings.home).build(spec, tell)


def install_in_background(name: str) -> None:
    """Start building an environment in a process of its own, which outlives the page; `environments` tells how far it is.

    Raises:
        NotFound: no such environment.
    """
    spec = environment_spec(_environment_of(name))
    log = runtimes_folder(context().settings.home) / f"{spec.id}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as file:
        subprocess.Popen(  # noqa: S603 - our own command
            [sys.executable, "-P", "-m", "cli", "runtimes", "install", spec.id],
            stdin=subprocess.DEVNULL, stdout=file, stderr=file, cwd=ROOT, start_new_session=True,
        )


def remove(name: str) -> int:
    """Remove an environment and return the bytes that were freed.

    Raises:
        NotFound: no such environment.
        BadInput: it is not built, or in use.
    """
    return Environments(context().settings.home).remove(environment_spec(_environment_of(name)))


def _environment_of(name: str) -> str:
    """Return the environment that a name means; the runtimes of the base environment are there from the start.

    Raises:
        BadInput: a runtime that needs none, or that has several to choose from.
    """
    serving = [spec.id for spec in environment_specs().values() if name in spec.runtimes]
    if name in environment_specs() or not serving:
        return name
    raise BadInput(f"runtime {name}, which runs on CPUs from the start", f"one of {', '.join(serving)}", "name one of these")


def _last_line(name: str) -> str:
    try:
        with (runtimes_folder(context().settings.home) / f"{name}.log").open("rb") as file:
            file.seek(0, 2)
            file.seek(max(0, file.tell() - LOG_BYTES))
            lines = file.read().decode("utf-8", "replace").splitlines()
    except OSError:
        return ""
    return next((line.strip() for line in reversed(lines) if line.strip()), "")
