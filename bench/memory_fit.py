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
from advisor.beliefs import CHIP_HABITS
from advisor.cost.columns import ADAPTER_SHARE
from advisor.memory import ModelBytes
from advisor.search.grid import Chips, Divisible, Grid, grid_of
from advisor.search.room import Apart, Parts, parts_of
from catalog.measurements import measurements_text
from core.ops import DTYPE_BYTES
from core.sketch import Setup
from intake.published import read_runs

LEAST = 0.98
_LANGUAGE = ("decoder", "mixture", "encoder")


def main(asked: Sequence[str] | None = None) -> int:
    """Count, print those that are said not to fit, and say whether the bound holds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args(asked)
    counted, own_fits, out = 0, 0, []
    for run in read_runs(measurements_text()):
        if run.group != "training" or run.setup is None or run.setup.sketch.kind not in _LANGUAGE or run.setup.assumed:
            continue
        counted += 1
        chip = catalog.accelerator(run.setup.accelerator)
        own = Grid(*(np.array([value]) for value in _own(run.setup)))
        chips = Chips(max(1, round(run.setup.chips)), chip.max_domain_chips or 8, chip.kind == "gpu")
        every = grid_of(divisible(run.setup), chips)
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


def needed_bytes(setup: Setup, grid: Grid) -> np.ndarray:
    """Return bytes of one chip under plans."""
    return np.sum(np.stack(list(memory_of_plans(setup, grid).values())), axis=0)


def memory_of_plans(setup: Setup, grid: Grid) -> Parts:
    """Return bytes of one chip under plans, by part."""
    sketch = setup.sketch
    width = max(2.0, DTYPE_BYTES[setup.dtype])  # 8-bit recipes keep 16-bit weights
    positions = setup.batch * setup.length
    trained = ADAPTER_SHARE if setup.low_rank else 1.0
    # products of saved elements are kept in the compute dtype; fused attention and norms keep what `saved_elements` counts
    saved = (sketch.saved_elements or 17 * sketch.width * sketch.layers) * width * positions
    kept = sketch.layers * sketch.width * width * positions
    layer = sketch.parameters / max(1.0, sketch.layers) * width
    model = ModelBytes(
        trains=True, weights=sketch.parameters * width, gradients=sketch.parameters * width * trained,
        states=8.0 * sketch.parameters * trained,
        master=4.0 * sketch.parameters * trained if width < 4 else 0.0, activations=saved,
        remat_activations=kept + saved / max(1.0, sketch.layers), forward_activations=0.0,
        cache=0.0, workspace=6.0 * sketch.logits * positions, largest_layer=layer,
    )  # fmt: skip

    whole = max(1.0, sketch.parameters)
    apart = Apart(sketch.expert_parameters / whole, sketch.table_parameters / whole)
    kind = catalog.accelerator(setup.accelerator).kind
    return parts_of(model, grid, setup.batch, apart, np.full(len(grid), CHIP_HABITS[kind].reserve_bytes))


def _own(setup: Setup) -> tuple[float, ...]:
    """Return the division of a run in the order of `Grid`."""
    layout = setup.layout
    return (
        layout.data, layout.tensor, layout.pipeline, layout.context, layout.expert, layout.virtual, layout.sharded,
        layout.micro_batch or setup.batch / layout.data, float(layout.recompute > 0),
    )  # fmt: skip


def divisible(setup: Setup) -> Divisible:
    """Return what of a published run may be divided."""
    sketch = setup.sketch
    heads = int(sketch.attention_flop / 4 / max(1.0, sketch.head_width) / max(1.0, sketch.layers)) or 1
    return Divisible(
        max(1, round(setup.batch)), heads, max(1, int(sketch.layers)), max(1, int(sketch.experts)), int(setup.length), trains=True
    )


if __name__ == "__main__":
    raise SystemExit(main())
