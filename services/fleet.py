"""Devices of a Ray cluster that a split may run on, named by what Ray gives: `ray:GPU`, `ray:TPU:TPU-V6E`, `ray:CPU`.

They are attached in the sense of a plan that can be run: nobody is asked for a price, and what they do is measured when it is.
"""

import os
from collections.abc import Sequence
from functools import cache

from catalog import environment_spec
from core.codec import from_json
from core.device import Device
from core.errors import BadInput, one_line
from core.settings import Settings
from probes.asking import ask
from probes.environments import Environments
from probes.inventory import devices as attached_devices
from probes.split.cluster import check_has
from probes.split.fleet import check_head, relay_environment
from probes.split.words import Reach

PREFIX = "ray:"
ENVIRONMENT = "ray"
IMPORT_S, CLUSTER_S = 60.0, 60.0
"""Seconds that importing Ray, and asking a cluster what it has, may take."""


def devices_for(pools: Sequence[str]) -> tuple[Device, ...]:
    """Return what is attached, and what of pools as typed is reached through Ray.

    Args:
        pools: `KEY=N` or a device id, each perhaps with `@RUNTIME`.
    """
    named = dict.fromkeys(text.partition("@")[0].partition("=")[0].strip() for text in pools)
    return (*attached_devices(), *(_device(name) for name in named if is_reached(name)))


def is_reached(name: str) -> bool:
    """Return whether the id of a device is that of one that is reached through Ray."""
    return name.startswith(PREFIX)


def reach_of(device: Device, count: int, settings: Settings) -> Reach:
    """Return where a side on such a device is started.

    Args:
        device: from `devices_for`.
        count: of what Ray gives.
        settings: with the address of the cluster.
    """
    resource, _, model = device.id.removeprefix(PREFIX).partition(":")
    return Reach(settings.ray_address, resource, count, model)


def relay_interpreter(settings: Settings) -> str:
    """Return the Python that holds Ray: the one that `TANDEM_PYTHON_RAY` names, else that of the environment.

    Raises:
        BadInput: there is none.
    """
    named = dict(settings.interpreters).get(ENVIRONMENT)
    built = None if named else Environments(settings.home).find(environment_spec(ENVIRONMENT))
    if named:
        return named
    if built is None:
        raise BadInput(
            "a pool of a Ray cluster, and no Ray here", "a Python that holds the cluster's release of it",
            f"run ./tandem runtimes install {ENVIRONMENT}, or set TANDEM_PYTHON_RAY",
        )
    return str(built.interpreter)


def check_cluster(settings: Settings, reaches: Sequence[Reach]) -> None:
    """Refuse a cluster that cannot be used, before anything is kept or started.

    Args:
        settings: with the address of the cluster.
        reaches: what its sides need there, each.

    Raises:
        BadInput: no address, no Ray here, no head there, one without a token, another token, or a cluster that has less.
    """
    check_head(settings.ray_address, os.environ)
    python = relay_interpreter(settings)
    if not _holds_ray(python):
        got = f"{one_line(python, 120)}, which cannot import ray"
        raise BadInput(got, "a Python that holds the cluster's release of it", "correct TANDEM_PYTHON_RAY, or unset it")
    resources = _resources(python, settings.ray_address)
    for reach in reaches if resources is not None else ():
        check_has(resources or {}, reach)


def _resources(python: str, address: str) -> dict[str, float] | None:
    """Return what a cluster has; None where it does not say, which the run will tell in full."""
    answer = ask((python, "-m", "probes.split.cluster", address), CLUSTER_S, environment=relay_environment(os.environ, ""))
    if answer.code != 0 or answer.obstacle:
        return None
    try:
        return dict(from_json(tuple[tuple[str, float], ...], answer.text))
    except BadInput:
        return None


@cache
def _holds_ray(python: str) -> bool:
    try:
        answer = ask((python, "-c", "import ray\nprint(ray.__version__)"), IMPORT_S)
    except OSError:
        return False
    return answer.code == 0 and not answer.obstacle and bool(answer.text.strip())


def _device(name: str) -> Device:
    """Return a device as far as its name tells."""
    resource, _, model = name.removeprefix(PREFIX).partition(":")
    kind = "gpu" if resource == "GPU" else "tpu" if resource.startswith("TPU") else "cpu"
    what = f"{model or resource} of a Ray cluster"
    return Device(name, kind, what, name, 0, detail=("reached through Ray",))
