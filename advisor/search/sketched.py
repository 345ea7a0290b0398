"""Plans of a model that is known by its sketch alone, as published runs are: what may be divided, what memory each plan takes.

A row that does not say how its run was divided says nothing that could not have run: what is assumed of it fits in memory.
"""

from dataclasses import fields, replace

import numpy as np

import catalog
from advisor.beliefs import CHIP_HABITS
from advisor.cost import Predictor, columns_of, labels_of, silicon_of
from advisor.cost.columns import ADAPTER_SHARE, Numbers
from advisor.memory import ModelBytes
from advisor.search.evaluate import divisions
from advisor.search.grid import Chips, Divisible, Grid, grid_of
from advisor.search.room import Apart, Parts, parts_of
from core.device import Accelerator
from core.format import memory
from core.ops import DTYPE_BYTES
from core.sketch import TRAINING, Layout, Setup

LANGUAGE = ("decoder", "mixture", "encoder")
"""Models whose memory a sketch tells."""
_LEAST_SHARE = 2
"""Replicas for each sample of a step up to which a run is believed: programs that shard samples have half of one a chip."""
_DEGREES = ("data", "tensor", "pipeline", "context", "expert")
"""What a row states when it says how its run was divided."""


def divided_to_fit(setup: Setup, chip: Accelerator, predictor: Predictor) -> Setup:
    """Return a training run whose division nobody stated as its authors would have divided it; any other stays as it is.

    Who publishes a run has tuned it: it is the soonest of the plans that fit, within what was stated; of equal ones that which
    asks for the fewest things beyond plain replicas. What is stated but for the samples at a time stays where it fits.

    Args:
        setup: as published. chip: that it ran on. predictor: of training steps.
    """
    silicon = silicon_of(chip, setup.dtype)
    if not setup.guessed or setup.regime != TRAINING or setup.sketch.kind not in LANGUAGE or setup.chips < 1:
        return setup
    own = Grid(*(np.array([value]) for value in division_of(setup)))
    need = needed_bytes(setup, own)[0]
    if isinstance(silicon, str) or (need <= chip.memory_bytes and (setup.chips == 1 or "division" not in setup.guessed)):
        return setup
    grid = _within(plans_of(setup, chip), setup)
    fits = needed_bytes(setup, grid) <= chip.memory_bytes if len(grid) else np.zeros(0, dtype=bool)
    if not fits.any():
        told = f"divided as {setup.layout.words}: not stated; by its sizes no plan fits, this one takes {memory(need)} of a chip"
        return replace(setup, assumed=(*setup.assumed, told), guessed=())
    rows = np.flatnonzero(fits)
    layouts = [layout_at(setup, grid, int(row)) for row in rows]
    table = columns_of([(replace(setup, layout=layout), silicon) for layout in layouts])
    seconds = predictor.predict(table, labels_of(setup, silicon)).seconds
    asked = divisions(grid, trains=True)[rows]
    layout = layouts[int(np.lexsort((asked, np.round(np.log(seconds), 3)))[0])]
    told = f"divided as {layout.words}: the row does not say"
    return replace(setup, layout=layout, assumed=(*setup.assumed, told), guessed=())


def impossible(setup: Setup, chip: Accelerator) -> str:
    """Return in one phrase why a run of a language model cannot have been as its row has it; empty where it may well have.

    Args:
        setup: as published, divided. chip: that it ran on.
    """
    if setup.sketch.kind not in LANGUAGE:
        return ""
    weights, room = setup.sketch.parameters * DTYPE_BYTES[setup.dtype], setup.chips * chip.memory_bytes
    if weights > room:
        told = f"weights of {memory(weights)} in {setup.dtype} on chips with {memory(room)} in all"
        return f"{told}: correct the chips or the precision"
    data, batch = setup.layout.data, setup.batch
    if setup.regime == TRAINING and data > _LEAST_SHARE * batch:
        return f"{batch:g} samples a step for {data:g} replicas: state the batch, or how a sample is divided (tp, pp, cp)"
    return ""


def plans_of(setup: Setup, chip: Accelerator) -> Grid:
    """Return every legal plan of a published training run on its chips."""
    batch, layers, experts = (max(1, round(count)) for count in (setup.batch, setup.sketch.layers, setup.sketch.experts))
    work = Divisible(batch, setup.sketch.heads, layers, experts, int(setup.length), trains=True)
    return grid_of(work, Chips(max(1, round(setup.chips)), chip.max_domain_chips or 8, chip.kind == "gpu"))


def needed_bytes(setup: Setup, grid: Grid) -> Numbers:
    """Return bytes of one chip under plans."""
    return np.asarray(np.sum(np.stack(list(memory_of_plans(setup, grid).values())), axis=0))


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
    reserve = CHIP_HABITS[catalog.accelerator(setup.accelerator).kind].reserve_bytes
    return parts_of(model, grid, setup.batch, apart, np.full(len(grid), reserve))


def division_of(setup: Setup) -> tuple[float, ...]:
    """Return the division of a run in the order of `Grid`."""
    layout = setup.layout
    return (
        layout.data, layout.tensor, layout.pipeline, layout.context, layout.expert, layout.virtual, layout.sharded,
        layout.micro_batch or setup.batch / layout.data, float(layout.recompute > 0),
    )  # fmt: skip


def _within(grid: Grid, setup: Setup) -> Grid:
    """Return the plans of a grid that have what was stated of a run."""
    stated = () if "division" in setup.guessed else (*_DEGREES, "sharded") if setup.layout.sharded > 1 else _DEGREES
    alike = np.all([np.ones(len(grid)), *(getattr(grid, name) == getattr(setup.layout, name) for name in stated)], axis=0)
    if "micro-batch" not in setup.guessed:
        alike = alike & (grid.micro == setup.layout.micro_batch)
    return Grid(**{field.name: getattr(grid, field.name)[alike] for field in fields(grid)})


def layout_at(setup: Setup, grid: Grid, row: int) -> Layout:
    """Return a plan as the layout of a run; what a grid does not divide stays as the run has it."""
    return replace(
        setup.layout, data=int(grid.data[row]), tensor=int(grid.tensor[row]), pipeline=int(grid.pipeline[row]),
        context=int(grid.context[row]), expert=int(grid.expert[row]), virtual=int(grid.virtual[row]),
        sharded=int(grid.sharded[row]), micro_batch=float(grid.micro[row]), recompute=float(grid.recompute[row]),
    )  # fmt: skip
