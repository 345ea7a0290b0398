"""Times one case in one runtime: `python -m bench.native.run CASE RUNTIME [--tiny] [--count]` prints one line of JSON.

A process of its own each time, since frameworks share thread pools, allocators and caches. `--count` builds the model and
tells its trainable parameters without running it.
"""

import argparse
import json
import os
import sys
import time
from dataclasses import asdict
from importlib import import_module
from math import isfinite
from typing import Protocol

from bench.native.cases import CASES, RUNTIMES, Case, case, tiny
from bench.native.timing import measure

STEPS = {"torch-xla": "torch_xla"}
"""Runtimes whose steps are not in the file of their framework."""


class Native(Protocol):
    """One built model, ready to step."""

    parameter_count: int

    def step(self) -> float:
        """Do one step and return the loss, or one number of the output; returns only when it is there."""
        ...


def set_environment(runtime: str) -> None:
    """Set what must be in the environment before a framework is imported."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    os.environ["JAX_PLATFORMS"] = "cpu"
    os.environ["PJRT_DEVICE"] = "CPU"
    if runtime.startswith("keras-"):
        os.environ["KERAS_BACKEND"] = runtime.removeprefix("keras-")


def build(one: Case, runtime: str) -> Native:
    """Return the native of a case in a runtime; `set_environment` must have been called in this process before."""
    steps = import_module(f"bench.native.{STEPS.get(runtime, runtime.split('-', maxsplit=1)[0])}_steps")
    native: Native = steps.prepare(one, runtime)
    return native


def main() -> int:
    """Run the command line; exit 0 done, 1 when the step gives a number that is not finite."""
    parser = argparse.ArgumentParser(prog="python -m bench.native.run", description=__doc__)
    parser.add_argument("case", choices=[one.name for one in CASES])
    parser.add_argument("runtime", choices=RUNTIMES)
    parser.add_argument("--tiny", action="store_true", help="tiny sizes: shows that it runs, tells nothing about time")
    parser.add_argument("--count", action="store_true", help="build and count parameters only")
    asked = parser.parse_args()
    set_environment(asked.runtime)
    one = tiny(case(asked.case)) if asked.tiny else case(asked.case)
    start = time.perf_counter()
    native = build(one, asked.runtime)
    answer: dict[str, object] = {
        "case": one.name, "runtime": asked.runtime, "parameter_count": native.parameter_count,
        "build_s": time.perf_counter() - start,
    }
    finite = True
    if not asked.count:
        truth = measure(native.step)
        last = native.step()
        finite = isfinite(last)
        answer |= asdict(truth) | {"value": last if finite else None, "finite": finite}
    sys.stdout.write(json.dumps(answer) + "\n")
    return 0 if finite else 1


if __name__ == "__main__":
    sys.exit(main())
