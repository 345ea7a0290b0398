"""P6: device to device: every device sends to the next one, all at once (a ring of ppermutes, or of sends between processes)."""

from core.device import Device
from probes.blocks import Sizes
from probes.case import Program
from probes.environment import Setting
from probes.rig import Rig, SystemBench, watch

TITLE = "Device to device, a ring"
RUNTIMES = ("jax", "torch-eager")
ROUNDS = 3
MADE_UP_DEVICES = {"quick": (2,), "full": (2, 4)}
"""CPU devices that the processor is parted into."""


def seconds(sizes: Sizes, tier: str) -> float:
    """Return the seconds of timed samples over all rounds."""
    return {"quick": 0.15, "full": 1.5}[tier]


def setting(sizes: Sizes) -> Setting:
    """Return a worker that sees so many devices."""
    return Setting(devices=sizes["devices"])


def quick(device: Device, runtime: str) -> tuple[Sizes, ...]:
    """Return three sizes between two devices."""
    return tuple({"devices": n, "bytes": size} for n in MADE_UP_DEVICES["quick"] for size in (2**12, 2**18, 2**24))


def full(device: Device, runtime: str) -> tuple[Sizes, ...]:
    """Return sizes from 1 KiB to 256 MiB by factors of eight."""
    fitting = [2**10 * 8**i for i in range(7) if 2**10 * 8**i <= device.memory_bytes // 32]
    return tuple({"devices": n, "bytes": size} for n in MADE_UP_DEVICES["full"] for size in fitting)


def flop(sizes: Sizes) -> int:
    """Sends compute nothing."""
    return 0


def traffic(sizes: Sizes) -> int:
    """Return the bytes that one device sends."""
    return sizes["bytes"]


def prepare(bench: SystemBench, sizes: Sizes) -> Rig:
    """Build the ring, its answer checked, and return its stopwatch."""
    lane = bench.links.lane("ring", sizes["bytes"], sizes["devices"], bench.probe.seed)
    return Rig((watch(Program(lane.run, False), before=lane.before, begin=lane.begin),), lane.close)
