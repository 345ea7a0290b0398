"""P14: a copy, or a collective, together with a matrix product: how much of the shorter hides behind the longer.

All three, both together and each alone, are sampled in turn, so that a drift of the machine falls on all alike. The overlap
fraction is (alone + alone - together) / shorter: 1 when the shorter costs nothing, 0 when they take turns, less when they hinder
each other.
"""

from concurrent.futures import ThreadPoolExecutor

from core.device import Device
from probes.backends.system_parts import Lane
from probes.blocks import Sizes
from probes.case import Program
from probes.environment import Setting
from probes.rig import Rig, SystemBench, SystemWatch, random_floats, watch

TITLE = "Overlap"
RUNTIMES = ("jax", "torch-eager")
ROUNDS = 3
PRODUCT, BESIDE = "product", "beside"
"""Parts that are timed alone."""


def seconds(sizes: Sizes, tier: str) -> float:
    """Return the seconds of timed samples over all rounds, all three together."""
    return 6.0


def setting(sizes: Sizes) -> Setting:
    """Return a worker that sees two devices for a collective."""
    return Setting(devices=sizes["devices"] if sizes["with"] == "all_reduce" else 0)


def quick(device: Device, runtime: str) -> tuple[Sizes, ...]:
    """It is no part of the quick tier."""
    return ()


def full(device: Device, runtime: str) -> tuple[Sizes, ...]:
    """Return a copy and an all-reduce beside a product of about their length."""
    n = 1024 if device.kind == "cpu" else 8192
    size = 2**25 if device.kind == "cpu" else 2**28
    return ({"with": "copy", "n": n, "bytes": size, "devices": 1}, {"with": "all_reduce", "n": n, "bytes": size, "devices": 2})


def flop(sizes: Sizes) -> int:
    """Return the work of the product."""
    return 2 * sizes["n"] ** 3


def traffic(sizes: Sizes) -> int:
    """Return the bytes that move beside it."""
    return sizes["bytes"]


def prepare(bench: SystemBench, sizes: Sizes) -> Rig:
    """Build all three, their answers checked, and return their stopwatches, both together first."""
    links, seed, n = bench.links, bench.probe.seed, sizes["n"]
    left, right = (random_floats(n * n, seed + i).reshape(n, n) for i in range(2))
    product: Lane = links.gemm(n, left, right)
    pool = ThreadPoolExecutor(1)
    if sizes["with"] == "copy":
        values = random_floats(sizes["bytes"] // 4, seed + 2)
        beside = Lane(lambda: pool.submit(links.upload, values), lambda future: links.drop(future.result()))
    else:
        beside = links.lane("all_reduce", sizes["bytes"], sizes["devices"], seed)

    def together() -> None:
        moving = beside.start()
        computing = product.start()
        product.wait(computing)
        beside.wait(moving)

    def of(run: Program, part: str, lane: Lane | None) -> SystemWatch:
        return watch(run, part=part, **({"before": lane.before, "begin": lane.begin} if lane else {}))

    watches = (
        of(Program(together, False), "", beside),
        of(Program(product.run, False), PRODUCT, None),
        of(Program(beside.run, False), BESIDE, beside),
    )

    def close() -> None:
        pool.shutdown()
        beside.close()

    return Rig(watches, close)
