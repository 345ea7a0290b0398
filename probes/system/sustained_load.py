"""P10: a matrix product for as long as heat and power take to show, and a burst after rest; the difference is the droop.

Samples are kept in the order they were taken, so that the course of the rate can be seen.
"""

import time

from core.device import Device
from probes.blocks import Sizes
from probes.environment import Setting
from probes.kernels import kernel_modules
from probes.rig import Rig, SystemBench, SystemWatch
from probes.system import FRAMEWORK_RUNTIMES

TITLE = "Sustained load"
RUNTIMES = FRAMEWORK_RUNTIMES
ROUNDS = 1
"""In one go: a pause between rounds would be the rest that a sustained load must not have."""
SUSTAINED_S = {"quick": 3.0, "full": 30.0}
BURST_S = {"quick": 0.5, "full": 1.0}
REST_S = {"quick": 1.0, "full": 5.0}
SAMPLES = 300


class LoadWatch(SystemWatch):
    """A stopwatch that rests before it samples, and whose samples are long enough to fill the whole time."""

    rest_s: float = 0.0
    whole_s: float = 0.0

    def warm_up(self) -> None:
        """Warm up, then let a sample take as many calls as fill the time."""
        super().warm_up()
        steady_s = self.warm[-1] * 1e-9
        self.loops = max(self.loops, round(self.whole_s / SAMPLES / steady_s))

    def rewarm(self) -> None:
        """Rest instead: a burst is what a rested device gives at once."""
        time.sleep(self.rest_s)


def seconds(sizes: Sizes, tier: str) -> float:
    """Return the seconds of timed samples."""
    return (BURST_S if sizes["phase"] == "burst" else SUSTAINED_S)[tier]


def setting(sizes: Sizes) -> Setting:
    """Any worker will do."""
    return Setting()


def quick(device: Device, runtime: str) -> tuple[Sizes, ...]:
    """Return one size: under load, then after rest."""
    n = 1024 if device.kind == "cpu" else 8192
    return ({"phase": "sustained", "n": n}, {"phase": "burst", "n": n})


full = quick


def flop(sizes: Sizes) -> int:
    """Return the work of one product."""
    return kernel_modules()["matmul_chain"].flop(sizes)


def traffic(sizes: Sizes) -> int:
    """It is bound by arithmetic; traffic is not counted."""
    return 0


def prepare(bench: SystemBench, sizes: Sizes) -> Rig:
    """Build the product, its answer checked, and return its stopwatch."""
    made = LoadWatch(bench.kernel("matmul_chain", {"n": sizes["n"]}), 1)
    made.whole_s = seconds(sizes, bench.probe.tier)
    made.rest_s = REST_S[bench.probe.tier] if sizes["phase"] == "burst" else 0.0
    made.first_call()
    return Rig((made,))
