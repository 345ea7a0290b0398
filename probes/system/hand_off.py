"""P13: a tensor goes from one runtime's device to another's: device to host, through shared memory, host to device.

Both are real processes with their frameworks. The memory is an unnamed file that both map: nothing is left whoever dies.
"""

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from core.device import Device
from core.errors import WorkerError
from probes.blocks import Sizes
from probes.case import Program
from probes.environment import PARTNER, Setting, worker_environment
from probes.partner import Partner
from probes.rig import Rig, SystemBench, must_equal, random_floats, watch
from probes.system import FRAMEWORK_RUNTIMES

TITLE = "Hand-off between two runtimes"
RUNTIMES = FRAMEWORK_RUNTIMES
ROUNDS = 3
LARGEST_BYTES = 2**28
PARTNERS = {"jax": ("torch-eager", "torch"), "torch-eager": ("jax", "jax"), "tf-graph": ("jax", "jax")}
"""The runtime at the far end and its framework."""


def seconds(sizes: Sizes, tier: str) -> float:
    """Return the seconds of timed samples over all rounds."""
    return 1.5


def setting(sizes: Sizes) -> Setting:
    """Return a worker that may start the other one."""
    return Setting(partner=sizes["to"])


def quick(device: Device, runtime: str) -> tuple[Sizes, ...]:
    """Starting a second framework takes longer than a quick tier has."""
    return ()


def full(device: Device, runtime: str) -> tuple[Sizes, ...]:
    """Return sizes from 1 KiB to 256 MiB by factors of eight."""
    fitting = [2**10 * 8**i for i in range(7) if 2**10 * 8**i <= device.memory_bytes // 32]
    return tuple({"to": PARTNERS[runtime][0], "bytes": size} for size in fitting)


def flop(sizes: Sizes) -> int:
    """Nothing is computed."""
    return 0


def traffic(sizes: Sizes) -> int:
    """Return the bytes that arrive."""
    return sizes["bytes"]


def prepare(bench: SystemBench, sizes: Sizes) -> Rig:
    """Start the far end, prove that data arrives on its device, and return the stopwatch."""
    import numpy as np

    links, count = bench.links, sizes["bytes"] // 4
    values = random_floats(count, bench.probe.seed)
    resident = links.upload(values)
    if links.far_end is None:
        links.far_end = FarEnd(bench, sizes["to"])
    partner: Partner = links.far_end.partner
    shared: Any = np.memmap(links.far_end.file, np.float32, "r+", shape=(count,))
    held: dict[str, Any] = {"fresh": links.fresh(resident)}

    def hand_over() -> None:
        shared[:] = links.download(held["fresh"])
        partner.tell({"count": count})
        partner.hear()

    def again() -> None:
        held["fresh"] = links.fresh(resident)

    shared[:] = links.download(held["fresh"])
    partner.tell({"count": count, "proof": True})
    partner.hear()
    must_equal(np.array(shared), values * 2, "what the far end sent back")
    return Rig((watch(Program(hand_over, False, held.clear), before=again),))


class FarEnd:
    """The other runtime's process and the memory that both map; kept for as long as this worker lives.

    Args:
        bench: of this end.
        runtime: of the far end.
    """

    def __init__(self, bench: SystemBench, runtime: str) -> None:
        framework = next((framework for name, framework in PARTNERS.values() if name == runtime), None)
        if framework is None:
            raise WorkerError(f"got {runtime} as the far end; expected jax or torch-eager; choose one of these")
        place = Path("/dev/shm")  # noqa: S108 - the system's place for shared memory; the file has no name there
        self.file = tempfile.TemporaryFile(dir=place if place.is_dir() else None)  # noqa: SIM115 - lives as long as this
        self.file.truncate(LARGEST_BYTES)
        home = Path(os.environ["KERAS_HOME"]).parent.parent
        environment = worker_environment(runtime, bench.device_kind, os.environ, home, os.environ.get("TANDEM_RUN_ID", ""))
        role = {"role": "receiver", "runtime": runtime, "framework": framework, "device_kind": bench.device_kind}
        interpreter, handle = os.environ.get(PARTNER, "") or sys.executable, self.file.fileno()
        self.partner = Partner(interpreter, environment, {**role, "file": handle}, (handle,))
        self.partner.hear()
