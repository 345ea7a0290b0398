"""Speed and memory of the search: every runtime on every accelerator in counts up to 1,024 under all plans.

Bounds: at least 100,000 candidates (runtime x plan) of a 70-billion-parameter training job priced and the best of each pool
chosen in at most 1.0 s of one core; a preset on two given pools in at most 0.1 s; less than 500 MB of memory. Times are
processor time of this process with one thread, the least of three.
"""

import argparse
import json
import os
import resource
import time
from collections.abc import Callable

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import catalog
from advisor.search import Search
from core.device import Accelerator
from core.probe import RUNTIME_IDS
from core.workload import Workload
from intake import read_text

COUNTS = tuple(1 << power for power in range(11))
MOST_S, MOST_PRESET_S, MOST_BYTES, LEAST_CANDIDATES = 1.0, 0.1, 500e6, 100_000
LARGE = """
schema: 1
task: train
model: {params: 7.0e10}
batch: 1024
length: 4096
dtype: bf16
optimizer: adamw
"""


def main() -> int:
    """Measure, print, and say whether the bounds hold."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    large, preset = read_text(LARGE).workload, read_text("gpt2-small:train").workload
    every = [(chip, count) for chip in catalog.accelerators().values() for count in COUNTS]
    two = [(catalog.accelerator("h100-sxm"), 8), (catalog.accelerator("tpu-v6e"), 8)]
    plans, whole_s = _least(lambda: _all(large, every))
    _, preset_s = _least(lambda: _all(preset, two))
    used_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    found = {
        "candidates": plans * len(RUNTIME_IDS),
        "plans": plans,
        "whole_s": whole_s,
        "preset_s": preset_s,
        "memory_bytes": used_bytes,
    }
    holds = (
        found["candidates"] >= LEAST_CANDIDATES and whole_s <= MOST_S and preset_s <= MOST_PRESET_S and used_bytes <= MOST_BYTES
    )
    if arguments.json:
        print(json.dumps({**found, "holds": holds}))
    else:
        print(f"plans {plans:,} on {len(every)} pools, candidates {found['candidates']:,}")
        print(
            f"{'HOLDS' if holds else 'falls short'}: all in {whole_s:.2f} s (bound {MOST_S}), a preset on two pools in "
            f"{preset_s:.3f} s (bound {MOST_PRESET_S}), {used_bytes / 1e6:.0f} MB (bound {MOST_BYTES / 1e6:.0f})"
        )
    return 0 if holds else 1


def _all(workload: Workload, pools: list[tuple[Accelerator, int]]) -> int:
    search = Search(workload)
    search.prepare(pools)
    for runtime in RUNTIME_IDS:
        search.timed(runtime)
    return search.plans


def _least(work: Callable[[], int]) -> tuple[int, float]:
    plans, seconds = 0, float("inf")
    for _ in range(3):
        start = time.process_time()
        plans = work()
        seconds = min(seconds, time.process_time() - start)
    return plans, seconds


if __name__ == "__main__":
    raise SystemExit(main())
