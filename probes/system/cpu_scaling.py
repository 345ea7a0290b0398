"""P12: a matrix product and a sweep over memory on 1, 2, 4 ... all cores of the processor.

The cores are taken away before the framework is imported, so that its pools are sized by what is left.
"""

from core.device import Device
from probes.blocks import Sizes
from probes.environment import Setting
from probes.kernels import kernel_modules
from probes.rig import Rig, SystemBench, watch
from probes.system import FRAMEWORK_RUNTIMES

TITLE = "Scaling over cores"
RUNTIMES = FRAMEWORK_RUNTIMES
ROUNDS = 3
GEMM_N = 1024
SWEEP_BYTES = 64 * 2**20
FLOAT_BYTES = 4.0


def seconds(sizes: Sizes, tier: str) -> float:
    """Return the seconds of timed samples over all rounds."""
    return {"quick": 0.3, "full": 4.0}[tier]


def setting(sizes: Sizes) -> Setting:
    """Return a worker that may use so many cores; the plain one when these are all of them."""
    return Setting(cpus=0 if sizes["cores"] == sizes["of"] else sizes["cores"])


def quick(device: Device, runtime: str) -> tuple[Sizes, ...]:
    """Return one core and all of them."""
    cores = device.cores or 1
    return _sweep(device, tuple(sorted({1, cores})))


def full(device: Device, runtime: str) -> tuple[Sizes, ...]:
    """Return counts of cores by factors of two, and all of them."""
    cores = device.cores or 1
    return _sweep(device, tuple(sorted({*(2**i for i in range(cores.bit_length())), cores})))


def flop(sizes: Sizes) -> int:
    """Return the work of one call."""
    return kernel_modules()[sizes["kernel"]].flop(_own(sizes))


def traffic(sizes: Sizes) -> int:
    """Return the bytes of one call, read and written."""
    return kernel_modules()[sizes["kernel"]].traffic(_own(sizes), FLOAT_BYTES)


def prepare(bench: SystemBench, sizes: Sizes) -> Rig:
    """Build the kernel, its answer checked, and return its stopwatch."""
    return Rig((watch(bench.kernel(sizes["kernel"], _own(sizes))),))


def _own(sizes: Sizes) -> Sizes:
    return {name: value for name, value in sizes.items() if name not in ("kernel", "cores", "of")}


def _sweep(device: Device, counts: tuple[int, ...]) -> tuple[Sizes, ...]:
    """Return both kernels at each count; the sweep goes over four times the last cache, as STREAM asks."""
    if device.kind != "cpu":
        return ()
    wanted = max(SWEEP_BYTES, 4 * (device.cache_bytes or 0) // 3)
    kernels: tuple[Sizes, ...] = (
        {"kernel": "matmul_chain", "n": GEMM_N},
        {"kernel": "memory_triad", "bytes": min(wanted, device.memory_bytes // 16)},
    )
    return tuple({**kernel, "cores": count, "of": device.cores or 1} for count in counts for kernel in kernels)
