"""P5: copies between host and device, one way, back, and both at once, of pageable and, where there is it, pinned memory.

On a CPU both ends are the same memory; what is measured is the copy that a framework makes, which every batch of input pays.
Copies really copy: after a warm call the source is changed and the copy must not follow.
"""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

from core.device import Device
from core.errors import WorkerError
from probes.blocks import Sizes
from probes.case import Program
from probes.environment import Setting
from probes.rig import Rig, SystemBench, must_equal, random_floats, watch
from probes.system import FRAMEWORK_RUNTIMES

TITLE = "Host to device and back"
RUNTIMES = FRAMEWORK_RUNTIMES
ROUNDS = 3
WAYS = ("to_device", "to_host", "both")
LARGEST_BYTES = 2**30


def seconds(sizes: Sizes, tier: str) -> float:
    """Return the seconds of timed samples over all rounds."""
    return {"quick": 0.15, "full": 1.2}[tier]


def setting(sizes: Sizes) -> Setting:
    """Any worker will do."""
    return Setting()


def quick(device: Device, runtime: str) -> tuple[Sizes, ...]:
    """Return three sizes."""
    return _sweep(device, (2**16, 2**21, 2**25))


def full(device: Device, runtime: str) -> tuple[Sizes, ...]:
    """Return sizes from 4 KiB to 1 GiB by factors of four, as a sixteenth of memory allows."""
    return _sweep(device, tuple(2**12 * 4**i for i in range(10)))


def flop(sizes: Sizes) -> int:
    """Copies compute nothing."""
    return 0


def traffic(sizes: Sizes) -> int:
    """Return the bytes that arrive."""
    return sizes["bytes"] * (2 if sizes["way"] == "both" else 1)


def prepare(bench: SystemBench, sizes: Sizes) -> Rig:
    """Build the copy, prove that it copies, and return its stopwatch."""
    links = bench.links
    values = random_floats(sizes["bytes"] // 4, bench.probe.seed)
    _prove(links, values)
    host = links.host(values, sizes["memory"])
    resident = links.upload(values)
    held: dict[str, Any] = {"fresh": links.fresh(resident), "arrived": None}

    def to_device() -> None:
        held["arrived"] = links.upload(host)

    def to_host() -> None:
        held["landed"] = links.download(held["fresh"])

    def again() -> None:
        if held["arrived"] is not None:
            links.drop(held["arrived"])
            held["arrived"] = None
        held["fresh"] = links.fresh(resident)

    if sizes["way"] != "both":
        run = to_device if sizes["way"] == "to_device" else to_host
        return Rig((watch(Program(run, False, held.clear), before=again),))
    second = ThreadPoolExecutor(1)

    def both() -> None:
        back = second.submit(to_host)
        to_device()
        back.result()

    return Rig((watch(Program(both, False, held.clear), before=again),), second.shutdown)


def _sweep(device: Device, sizes: tuple[int, ...]) -> tuple[Sizes, ...]:
    kinds = ("pageable",) if device.kind == "cpu" else ("pageable", "pinned")
    fitting = [size for size in sizes if size <= min(LARGEST_BYTES, device.memory_bytes // 16)]
    return tuple({"bytes": size, "way": way, "memory": kind} for kind in kinds for way in WAYS for size in fitting)


def _prove(links: Any, values: Any) -> None:
    """Copy there and back, then change the source: neither the device's copy nor the host's may follow."""
    source = values[: 2**14].copy()
    arrived = links.upload(links.host(source, "pageable"))
    landed = links.download(links.fresh(arrived))
    expected = source.copy()
    must_equal(landed, expected, "a copy there and back")
    source[:] = 7.0
    landed[:1] += 1.0 if landed.flags.writeable else 0.0
    still = links.download(links.fresh(arrived))
    if abs(float(still[-1]) - float(expected[-1])) > 0 or abs(float(still[0]) - float(expected[0])) > 0:
        raise WorkerError("got an alias for a copy; expected bytes to move; this version of the framework shares memory here")
