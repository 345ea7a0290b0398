"""What advice promises of published training runs of language models when it picks the plan itself, as it does for everybody.

`./tandem accuracy` predicts a run under the plan that was published; advice takes the best of all plans that fit, which leans to
what is predicted too fast. Here each run's model, batch, chips and stack are searched as advice does, and what the best plan is
told with is held against what was reached. Each run is predicted by coefficients that were fitted without its source: its error
there, less what the best plan is told to gain over the published one. Sources count for 25 runs at most.

Vendors tune their plans, so that what a search claims to gain over them is mostly not there; others may have left something.
Bounds: of decoders and of mixtures the middle within 5 % of what was reached, and 75 to 90 % inside the band of 80 %.
"""

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import exp, hypot, log

import numpy as np

import catalog
from advisor.accuracy import capped
from advisor.cost.columns import columns_of
from advisor.cost.features import labels_of
from advisor.cost.known import known_predictor
from advisor.cost.silicon import silicon_of
from advisor.search.evaluate import handicaps
from advisor.search.sketched import layout_at, memory_of_plans, plans_of
from advisor.search.stacks import chosen_of
from catalog.measurements import measurements_text
from core.quantity import Z_80
from core.sketch import TRAINING, Setup
from intake.published import read_runs
from services.accuracy import MOST_OF_A_SOURCE, accuracy

KINDS = ("decoder", "mixture")
MIDDLE, LEAST, MOST = 0.05, 0.75, 0.90


@dataclass(frozen=True, slots=True)
class Promise:
    """One published run and what advice tells for it.

    Args:
        id, kind, source: of the run.
        gain: ln of how many times sooner the best plan is told to be than the published one.
        error: ln(reached / told). sigma: of the band that is told.
    """

    id: str
    kind: str
    source: str
    gain: float
    error: float
    sigma: float


def main(asked: Sequence[str] | None = None) -> int:
    """Search, print the table by kind, and say whether the bounds hold."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args(asked)
    found = capped(tuple(promises()), MOST_OF_A_SOURCE, lambda one: one.source)
    rows = {kind: _summary([one for one in found if one.kind == kind]) for kind in KINDS}
    holds = all(abs(row["told"] - 1) <= MIDDLE and LEAST <= row["in_band"] <= MOST for row in rows.values())
    if arguments.json:
        print(json.dumps({"kinds": rows, "holds": holds}))
    else:
        for kind, row in rows.items():
            print(
                f"{kind}: {row['runs']:.0f} runs, told {row['told']:.3f} times what was reached (10 to 90 %: {row['low']:.2f} to "
                f"{row['high']:.2f}), {row['in_band']:.1%} in band; its plan alone is told {row['gain']:.3f} times as fast"
            )
        print("HOLDS" if holds else "falls short")
    return 0 if holds else 1


def promises() -> Iterator[Promise]:
    """Yield each published run that advice could have been asked for, with what it tells."""
    judged = {one.id: one for one in accuracy(None).judged}
    for run in read_runs(measurements_text()):
        setup, known = run.setup, judged.get(run.id)
        if run.group != "training" or setup is None or known is None or setup.sketch.kind not in KINDS or setup.chips < 1:
            continue
        best = _searched(setup)
        if best is None:
            continue
        shift, spread = chosen_of(setup.sketch.kind, TRAINING)
        yield Promise(run.id, setup.sketch.kind, known.source, best, known.error + best - shift, hypot(known.sigma, spread))


def _searched(setup: Setup) -> float | None:
    """Return ln of how many times sooner the best plan is told to be; None where no plan fits."""
    chip = catalog.accelerator(setup.accelerator)
    silicon = silicon_of(chip, setup.dtype, False)
    if isinstance(silicon, str):
        return None
    grid = plans_of(setup, chip)
    parts = memory_of_plans(setup, grid)
    fits = np.sum(np.stack(list(parts.values())), axis=0) <= chip.memory_bytes
    if not fits.any():
        return None
    plans = [replace(setup, layout=layout_at(setup, grid, row)) for row in range(len(grid))]
    predictor, labels = known_predictor(training=True), labels_of(setup, silicon)
    seconds = predictor.predict(columns_of([(one, silicon) for one in (setup, *plans)]), labels).seconds
    asked = handicaps(grid, parts, np.full(len(grid), chip.memory_bytes), trains=True)
    weighed = np.where(fits, seconds[1:] * asked, np.inf)
    return log(float(seconds[0]) / float(seconds[1 + int(weighed.argmin())]))


def _summary(found: Sequence[Promise]) -> dict[str, float]:
    errors = np.array([one.error for one in found])
    inside = np.mean([abs(one.error) <= Z_80 * one.sigma for one in found])
    low, middle, high = np.exp(-np.quantile(errors, [0.9, 0.5, 0.1]))
    gain = exp(float(np.median([one.gain for one in found])))
    told = {"told": float(middle), "low": float(low), "high": float(high)}
    return {"runs": len(found), **told, "in_band": float(inside), "gain": gain}


if __name__ == "__main__":
    raise SystemExit(main())
