"""Starts one run as a page does, looks at it again and again, and prints each outcome that it was told: one JSON line each.

`python -m bench.drills.supervisor REQUEST`, a JSON object of `document`, `budget_s`, `runtime` and `environment` (what the
process of the run gets beside its own). It is the process that drills kill, stop and move the clock of.
"""

import json
import os
import sys
import time

from core.errors import StoreError
from core.probe import Outcome
from core.run import FINAL_STATES, RunOptions
from services import runs

LOOK_S = 0.15


def main() -> None:
    """Start, tell, and end when the run is over."""
    asked = json.loads(sys.argv[1])
    os.environ.pop("LD_PRELOAD", None)
    os.environ.update(asked["environment"])
    options = RunOptions(probe="quick", budget_s=asked["budget_s"], runtimes=(asked["runtime"],), pools="attached")
    run_id = runs.start(asked["document"], options, "drill")
    _tell({"run": run_id})
    told: set[tuple[str, str, str]] = set()
    while (state := _look(run_id, told)) not in FINAL_STATES:
        time.sleep(LOOK_S)
    _tell({"state": state})


def _look(run_id: str, told: set[tuple[str, str, str]]) -> str:
    """Look once, tell each outcome that is new, and return the state; empty when the database cannot be read now."""
    try:
        watch = runs.watch(run_id, 100)
    except StoreError as error:
        _tell({"error": str(error)})
        return ""
    for key in map(key_of, watch.recent):
        if key not in told:
            told.add(key)
            _tell({"outcome": key})
    return watch.state


def key_of(outcome: Outcome) -> tuple[str, str, str]:
    """Return what tells one outcome from all others."""
    return (outcome.probe.label, outcome.probe.runtime, outcome.taken_at)


def _tell(value: object) -> None:
    try:
        sys.stdout.write(json.dumps(value) + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        sys.exit(1)


if __name__ == "__main__":
    main()
