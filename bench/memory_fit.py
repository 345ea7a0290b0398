"""Whether configurations that are known to have run are said to fit in memory: every published training run of a language model.

A run is said to fit when one legal plan of its model and batch on its chips fits by Tandem's count, which is what advice
tells. Bound: at least 98 % of them. How many fit on the very division that was published is told beside it, without a bound:
what a source offloads or keeps in fewer bits is rarely in a row. Runs that failed for memory are in `python -m bench.cases`.
"""

import argparse
import json
from collections.abc import Sequence

import numpy as np

import catalog
from advisor.search.grid import Grid
from advisor.search.sketched import LANGUAGE, division_of, needed_bytes, plans_of
from catalog.measurements import measurements_text
from intake.published import read_runs

LEAST = 0.98


def main(asked: Sequence[str] | None = None) -> int:
    """Count, print those that are said not to fit, and say whether the bound holds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args(asked)
    counted, own_fits, out = 0, 0, []
    for run in read_runs(measurements_text()):
        if run.group != "training" or run.setup is None or run.setup.sketch.kind not in LANGUAGE or run.setup.assumed:
            continue
        counted += 1
        chip = catalog.accelerator(run.setup.accelerator)
        own = Grid(*(np.array([value]) for value in division_of(run.setup)))
        every = plans_of(run.setup, chip)
        need = needed_bytes(run.setup, own)[0]
        own_fits += int(need <= chip.memory_bytes)
        least = min(need, needed_bytes(run.setup, every).min() if len(every) else np.inf)
        if least > chip.memory_bytes:
            out.append((run.id, least / 2**30, chip.memory_bytes / 2**30))
    share = 1 - len(out) / counted
    if arguments.json:
        print(json.dumps({"runs": counted, "said_to_fit": share, "on_their_own_division": own_fits / counted, "out": out}))
    else:
        for identity, need, have in out:
            print(f"  {identity}: {need:.1f} GiB counted, the chip has {have:.1f}")
        word = "HOLDS" if share >= LEAST else "falls short"
        fits = f"{counted - len(out)} of {counted} runs are said to fit ({share:.1%}; bound {LEAST:.0%})"
        print(f"{word}: {fits}, {own_fits / counted:.1%} on their own division")
    return 0 if share >= LEAST else 1


if __name__ == "__main__":
    raise SystemExit(main())
