"""One foreign harness in a process of its own: `python -m bench.foreign.serve torch-eager|jax`.

Each line of standard input is a JSON list, `["build", CASE]` with the fields of a case, or `["time", SECONDS]`; each answer is
one line of JSON.
"""

import json
import sys
from collections.abc import Callable
from importlib import import_module

from bench.foreign.cases import Case

HARNESSES = {"torch-eager": "bench.foreign.torch_timer", "jax": "bench.foreign.jax_loop"}
WARM_S = 0.5


def main() -> None:
    """Answer until standard input ends."""
    harness = import_module(HARNESSES[sys.argv[1]])
    _answer({"version": harness.VERSION, "threads": harness.threads()})
    steps: list[Callable[[], object]] = []
    for line in sys.stdin:
        asked, value = json.loads(line)
        if asked == "build":
            one = Case(**value)
            steps = []  # what the last case holds goes before this one comes
            steps = [harness.build(one, copies) for copies in one.depths]
            harness.time_calls(steps, WARM_S)
            _answer({"built": one.name})
        else:
            _answer({"calls_s": harness.time_calls(steps, value)})


def _answer(value: object) -> None:
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
