"""One foreign harness in a process of its own: `python -m bench.foreign.serve torch-eager|jax`.

Each line of standard input is a JSON list, `["build", CASE]` or `["time", SECONDS]`; each answer is one line of JSON.
"""

import json
import sys
from collections.abc import Callable
from importlib import import_module

from bench.foreign.cases import case

HARNESSES = {"torch-eager": "bench.foreign.torch_timer", "jax": "bench.foreign.jax_loop"}
WARM_S = 0.5


def main() -> None:
    """Answer until standard input ends."""
    harness = import_module(HARNESSES[sys.argv[1]])
    _answer({"version": harness.VERSION, "threads": harness.threads()})
    step: Callable[[], object] = lambda: None  # noqa: E731  (replaced by the first request)
    for line in sys.stdin:
        asked, value = json.loads(line)
        if asked == "build":
            step = harness.build(case(value))
            harness.time_calls(step, WARM_S)
            _answer({"built": value})
        else:
            _answer({"calls_s": harness.time_calls(step, value)})


def _answer(value: object) -> None:
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
