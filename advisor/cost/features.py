"""What the fitted correction of a step time may depend on: a few numbers of a run, each with coefficients by label.

A number (the share of a term in the step, the logarithm of the chips) has one coefficient for all runs and small deviations by
kind of chip, generation, chip, stack, class of model or dtype. Deviations are drawn towards zero, so that a label with few
rows stays at the mean of its class, and one that was never seen takes that mean with a wider band.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from advisor.cost.columns import Columns, Numbers
from advisor.cost.silicon import Silicon
from core.sketch import SERVING, Setup

Name = tuple[str, str, str]
"""Slot, level, label; the label of a crossed level joins its parts by `|`."""


@dataclass(frozen=True, slots=True)
class Labels:
    """What a run is called: everything that coefficients may hang on."""

    kind: str
    generation: str
    chip: str
    framework: str
    stack: str
    model_class: str
    dtype: str
    manner: str
    model: str
    grade: str

    def at(self, level: str) -> str:
        """Return the label of a level such as `generation` or `stack|generation`; empty for `all`."""
        if level == "all":
            return ""
        return "|".join(str(getattr(self, part)) for part in level.split("|"))


def labels_of(setup: Setup, silicon: Silicon, grade: str = "A") -> Labels:
    """Return the labels of a run.

    Args:
        setup: the run.
        silicon: its chip.
        grade: of the published row; `A` for a run that is asked about.
    """
    sixteen = setup.dtype in ("bf16", "fp16")
    manner = setup.regime if setup.regime != "training" else "adapters" if setup.low_rank else "full"
    if setup.regime == SERVING:
        manner = "serving"
    return Labels(
        silicon.kind,
        silicon.generation,
        silicon.key,
        setup.stack.split("/")[0].split("+")[0].split("-")[0],
        setup.stack,
        setup.sketch.kind,
        "16" if sixteen else setup.dtype,
        manner,
        setup.sketch.name,
        grade,
    )


_SHARE_LEVELS = {"all": 0.4, "kind": 0.2, "generation": 0.25, "chip": 0.1, "stack": 0.25, "framework": 0.1}
SLOTS: dict[str, dict[str, float]] = {
    "one": {
        "all": 0.3, "kind": 0.1, "framework": 0.1, "stack": 0.2, "stack|generation": 0.1, "model_class": 0.15,
        "model_class|generation": 0.1, "model_class|stack": 0.1, "dtype": 0.1, "dtype|generation": 0.15,
        "dtype|model_class": 0.1, "manner": 0.2, "manner|generation": 0.1, "model": 0.08, "grade": 0.05,
    },
    "share": _SHARE_LEVELS,
    "chips": {"all": 0.03, "generation": 0.02, "stack": 0.02},
    "several": {"all": 0.1, "generation": 0.05},
    "rows": {"all": 0.05, "kind": 0.05, "stack": 0.03},
    "width": {"all": 0.08, "generation": 0.05},
    "narrow": {"all": 0.03},
    "expert rows": {"all": 0.05, "generation": 0.03},
    "expert ways": {"all": 0.05},
    "expert size": {"all": 0.2, "generation": 0.1},
    "bubble": {"all": 0.5},
    "length": {"all": 0.03, "stack": 0.02},
    "recompute": {"all": 0.1, "kind": 0.1},
    "tensor": {"all": 0.05, "kind": 0.03},
    "context": {"all": 0.05},
    "pipeline": {"all": 0.05},
    "binned": {"all": 0.6},  # padding that is left out: anything up to some 70 % of the positions
    "year": {"stack": 0.05, "stack|model_class": 0.1, "model_class|generation": 0.05},
}  # fmt: skip
"""Standard deviation that a coefficient may have before any row is seen, by slot and level.

`share` holds for the share of each term. The scales that the fit chose stand in the coefficients file and multiply these.
"""


def slots_of(c: Columns, shares: Mapping[str, Numbers], bubble: Numbers) -> dict[str, Numbers]:
    """Return the numbers of runs by slot, arrays of shape (runs,).

    Args:
        c: the runs.
        shares: derivative of ln(time) by ln(term), by term.
        bubble: from `bubble_of`.
    """
    rows = c.micro * np.maximum(1.0, c.length) / c.context_ways
    width = np.log2(np.maximum(c.width, 16.0) / 4096)
    mixed = c.experts > 0
    expert_rows = np.where(
        mixed, np.log2(np.maximum(1.0, rows * np.maximum(1.0, c.used) * c.expert_ways / np.maximum(1.0, c.experts)) / 1024), 0.0
    )
    found: dict[str, Any] = {f"share {term}": value for term, value in shares.items()}
    found |= {
        "one": np.ones_like(c.chips), "chips": np.log2(np.maximum(c.chips, 0.5) / 8), "several": (c.chips > 1) * 1.0,
        "rows": np.log2(np.maximum(rows, 1.0) / 4096), "width": width, "narrow": np.minimum(width, 0.0) ** 2,
        "expert rows": expert_rows, "expert ways": np.where(mixed, np.log2(np.maximum(1.0, c.expert_ways)), 0.0),
        "expert size": shares.get("expert", 0.0) * np.log2(np.maximum(c.hidden, 256.0) / 4096),
        "bubble": np.log1p(bubble), "length": np.where(c.length > 1, np.log2(np.maximum(c.length, 1.0) / 4096), 0.0),
        "recompute": c.recompute, "tensor": np.log2(np.maximum(1.0, c.tensor)),
        "context": np.log2(np.maximum(1.0, c.context_ways)), "pipeline": np.log2(np.maximum(1.0, c.pipeline)),
        "binned": c.binned, "year": c.year - 2025.0,
    }  # fmt: skip
    return found


def levels_of(slot: str) -> Mapping[str, float]:
    """Return (level, standard deviation) of a slot."""
    return SLOTS["share" if slot.startswith("share ") else slot]


def group_of(slot: str, level: str) -> str:
    """Return the name under which the scale of a slot's level is kept."""
    return f"{'share' if slot.startswith('share ') else slot}:{level}"


def names_of(slot: str, labels: Labels) -> tuple[tuple[Name, float], ...]:
    """Return the coefficients that a slot has for some labels, each with its standard deviation."""
    return tuple(((slot, level, labels.at(level)), sd) for level, sd in levels_of(slot).items())


def kept_names(slot: str, labels: Labels, scales: Mapping[str, float]) -> list[tuple[Name, float]]:
    """Return the coefficients of a slot that the scales keep, each with its standard deviation; a scale of 0 drops a group."""
    found = ((name, sd * scales.get(group_of(slot, name[1]), 1.0)) for name, sd in names_of(slot, labels))
    return [(name, sd) for name, sd in found if sd > 0]
