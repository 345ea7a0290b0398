"""P9: what compiling costs: a first call, a new shape, a program found on disk, rows left open; networks of 1 to 64 layers.

Every sample is a compilation of its own, and the framework's own count of compiled programs must say so.
"""

import tempfile
from pathlib import Path
from typing import Any

from core.device import Device
from core.errors import WorkerError
from probes.blocks import Sizes
from probes.case import Program
from probes.environment import Setting
from probes.rig import Rig, SystemBench, watch
from probes.system import COMPILING_RUNTIMES

TITLE = "Compiling"
RUNTIMES = COMPILING_RUNTIMES
ROUNDS = 3
USUAL_LAYERS = 4
WAYS = {
    "jax": ("first", "new_shape", "cached"),
    "torch-compile": ("first", "new_shape", "cached", "dynamic"),
    "tf-graph": ("first", "new_shape", "dynamic"),
    "tf-xla": ("first", "new_shape"),
}
"""What each runtime can be asked; XLA knows no open sizes, TensorFlow keeps nothing on disk unless told before it starts."""


def seconds(sizes: Sizes, tier: str) -> float:
    """Return the seconds of timed samples over all rounds; each round takes one compilation at least."""
    return {"quick": 0.1, "full": 4.0}[tier]


def setting(sizes: Sizes) -> Setting:
    """Any worker will do."""
    return Setting()


def quick(device: Device, runtime: str) -> tuple[Sizes, ...]:
    """Return every way for a few layers, and a first call of more."""
    more = 8 if runtime == "torch-compile" else 16
    return (*({"what": what, "layers": USUAL_LAYERS} for what in WAYS[runtime]), {"what": "first", "layers": more})


def full(device: Device, runtime: str) -> tuple[Sizes, ...]:
    """Return every way for a few layers, and first calls of 1 to 64."""
    ways = tuple({"what": what, "layers": USUAL_LAYERS} for what in WAYS[runtime])
    return (*ways, *({"what": "first", "layers": n} for n in (1, 16, 64)))


def flop(sizes: Sizes) -> int:
    """What is timed is the compiler."""
    return 0


def traffic(sizes: Sizes) -> int:
    """What is timed is the compiler."""
    return 0


def prepare(bench: SystemBench, sizes: Sizes) -> Rig:
    """Build a network whose every call compiles, check its answer and that it compiles, and return its stopwatch."""
    folder = tempfile.TemporaryDirectory(prefix="tandem-compile-")
    layers = bench.links.layers(sizes["what"], sizes["layers"], bench.probe.seed, Path(folder.name))
    before = layers.compilations()
    made = watch(Program(layers.run, False), before=layers.before, warms=False)
    if layers.compilations() == before:
        raise WorkerError("got a call that compiled nothing; expected a compilation; the framework found the program it had made")

    def close(*_: Any) -> None:
        layers.close()
        folder.cleanup()

    return Rig((made,), close)
