"""P7: all-reduce, all-gather, reduce-scatter, all-to-all over several devices, of random data that arrives as an argument.

Algorithm and bus rate follow from bytes and time (`advisor/links.py`), with the factors of nccl-tests.
"""

from core.device import Device
from probes.blocks import Sizes
from probes.case import Program
from probes.collectives import COLLECTIVES
from probes.environment import Setting
from probes.rig import Rig, SystemBench, watch
from probes.system.device_device import MADE_UP_DEVICES

TITLE = "Collectives"
RUNTIMES = ("jax", "torch-eager")
ROUNDS = 3


def seconds(sizes: Sizes, tier: str) -> float:
    """Return the seconds of timed samples over all rounds."""
    return {"quick": 0.15, "full": 1.5}[tier]


def setting(sizes: Sizes) -> Setting:
    """Return a worker that sees so many devices."""
    return Setting(devices=sizes["devices"])


def quick(device: Device, runtime: str) -> tuple[Sizes, ...]:
    """Return three sizes of each collective between two devices."""
    return _sweep(MADE_UP_DEVICES["quick"], (2**12, 2**18, 2**23))


def full(device: Device, runtime: str) -> tuple[Sizes, ...]:
    """Return sizes from 4 KiB by factors of eight, on a processor to 16 MiB, else to 1 GiB as memory allows."""
    sizes = tuple(2**12 * 8**i for i in range(5 if device.kind == "cpu" else 7))
    return _sweep(MADE_UP_DEVICES["full"], tuple(size for size in sizes if size <= device.memory_bytes // 64))


def flop(sizes: Sizes) -> int:
    """The sums of a reduction are counted as traffic only."""
    return 0


def traffic(sizes: Sizes) -> int:
    """Return the size of the message, as nccl-tests counts it."""
    return sizes["bytes"]


def prepare(bench: SystemBench, sizes: Sizes) -> Rig:
    """Build the collective, its answer checked on every device, and return its stopwatch."""
    lane = bench.links.lane(sizes["collective"], sizes["bytes"], sizes["devices"], bench.probe.seed)
    return Rig((watch(Program(lane.run, False), before=lane.before, begin=lane.begin),), lane.close)


def _sweep(devices: tuple[int, ...], sizes: tuple[int, ...]) -> tuple[Sizes, ...]:
    return tuple({"collective": name, "devices": n, "bytes": size} for n in devices for name in COLLECTIVES for size in sizes)
