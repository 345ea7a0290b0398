"""Ray objects as a transport, for `bench.transport`: a vector goes to an actor by the store, which answers with its length.

Run in a Python that holds Ray and numpy: `python -m bench.transport_ray SIZE ...` starts a cluster of this host alone, prints one
JSON document of seconds there and back for each size and of processor seconds, and ends the cluster.
"""

import json
import sys
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

ROUNDS_S, FEWEST, MOST, UNCOUNTED = 0.4, 5, 400, 2


class FarEnd:
    """Holds each vector as an array of its own, as the far ends of the other candidates do."""

    def take(self, values: Any) -> int:
        """Return the length of a vector."""
        return int(np.array(values).size)


def timed(trip: Callable[[Any], int], count: int) -> tuple[list[float], float]:
    """Return the seconds of round trips of a vector of so many numbers, the first ones left out, and processor seconds of one."""
    values = np.ones(count, np.float32)
    taken: list[float] = []
    before_s, end_s = time.process_time(), time.perf_counter() + ROUNDS_S
    while len(taken) < FEWEST + UNCOUNTED or (time.perf_counter() < end_s and len(taken) < MOST):
        begin_s = time.perf_counter()
        answer = trip(values)
        taken.append(time.perf_counter() - begin_s)
        if answer != count:
            raise RuntimeError(f"got an answer of {answer}; expected {count}: a vector was lost")
    return taken[UNCOUNTED:], (time.process_time() - before_s) / len(taken)


def main(sizes: list[int]) -> None:
    """Measure and print."""
    ray: Any = import_module("ray")
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, configure_logging=False, object_store_memory=2**31)
    try:
        far = ray.remote(FarEnd).remote()

        def trip(values: Any) -> int:
            return int(ray.get(far.take.remote(values)))

        told = [(size, *timed(trip, size // 4)) for size in (4, *sizes)]
    finally:
        ray.shutdown()
    print(json.dumps(told))


if __name__ == "__main__":
    main([int(argument) for argument in sys.argv[1:]])
