"""Fit the cost model on the catalog's published measurements: writes `catalog/data/coefficients.json` and `.npz`.

`python -m bench.fit` keeps the scales that are stored and takes seconds; `--tune N` chooses them anew in N passes, which takes
minutes. Each accelerator is left out in turn, for what is added to the bands of chips of which nothing is published. The report
is `./tandem accuracy`, which leaves out each source, and `./tandem accuracy --unseen-chips`, each accelerator.
"""

import argparse
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from advisor.cost import Coefficients, between_chips, choose_scales, learn, leave_out_chips
from advisor.cost.fitting import BETWEEN_CHIPS, WIDENING
from catalog.coefficients import fitted, write
from core.errors import TandemError
from services.accuracy import GROUPS, observations_of

LEAST_SCALE = 0.02
"""A group whose coefficients may not move by more than this is left out: nothing would be seen of it."""


def main() -> int:
    """Fit, write, and say how many coefficients and rows there are."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tune", type=int, default=0, metavar="N", help="choose the scales anew in N passes")
    arguments = parser.parse_args()
    groups: dict[str, dict[str, Any]] = {}
    covariances: dict[str, Sequence[float] | NDArray[np.float64]] = {}
    for group in GROUPS[:2]:
        rows = observations_of(group)
        scales = _stored(group)
        if arguments.tune or scales is None:
            scales = choose_scales(
                rows, max(1, arguments.tune), lambda line, group=group: print(f"{group}: {line}", flush=True), scales
            )
        for measured in (WIDENING, BETWEEN_CHIPS):
            scales.pop(measured, None)
        told = learn(rows, scales)
        scales[WIDENING] = told.widening
        scales[BETWEEN_CHIPS] = round(between_chips(leave_out_chips(rows, scales)), 6)
        groups[group] = _written(told, scales, len(rows), len({row.source for row in rows}))
        covariances[group] = told.covariance[np.tril_indices(len(told.names))]
        print(f"{group}: {len(rows)} rows of {groups[group]['sources']} sources, {len(told.names)} coefficients")
    write(
        groups,
        covariances,
        {"by": "python -m bench.fit", "on": datetime.now(UTC).date().isoformat(), "from": "catalog/data/measurements.csv"},
    )
    print("written: catalog/data/coefficients.json, catalog/data/coefficients.npz")
    return 0


def _stored(group: str) -> dict[str, float] | None:
    try:
        return dict(fitted(group).scales)
    except TandemError:
        return None


def _written(told: Coefficients, scales: dict[str, float], rows: int, sources: int) -> dict[str, Any]:
    spread = np.sqrt(np.maximum(np.diag(told.covariance), 0.0))
    listed = [
        {"slot": name[0], "level": name[1], "label": name[2], "prior_sd": round(float(told.prior[i]), 6),
         "mean": round(float(told.mean[i]), 6), "sd": round(float(spread[i]), 6)}
        for i, name in enumerate(told.names)
    ]  # fmt: skip
    return {
        "coefficients": listed, "scales": {name: round(value, 6) for name, value in scales.items()},
        "seen": {level: sorted(labels) for level, labels in told.seen.items()},
        "latest": {stack: round(year, 3) for stack, year in sorted(told.latest.items())},
        "ranges": {slot: [round(low, 6), round(high, 6)] for slot, (low, high) in sorted(told.ranges.items())},
        "residuals": {name: round(spread, 6) for name, spread in sorted(told.residuals.items())}, "rows": rows,
        "sources": sources,
    }  # fmt: skip


if __name__ == "__main__":
    raise SystemExit(main())
