"""A tower of dense layers with biases and activations."""

from itertools import pairwise

from intake.counting import Counts, Tally
from intake.sizes import ACTIVATIONS, BATCH, Sizes, flag, wholes, word
from intake.wording import fault

SIZES = (
    BATCH,
    wholes("widths", "features from the input to the output, at least two"),
    word("activation", "after each layer but the last", (*ACTIVATIONS, "none"), "relu"),
    word("last_activation", "after the last layer", (*ACTIVATIONS, "none"), "relu"),
    flag("first", "1 when it is the first of its model, whose input needs no gradient"),
)


def check(where: str, sizes: Sizes) -> None:
    """Refuse a tower without a layer.

    Raises:
        BadInput: fewer than two widths.
    """
    if len(sizes.wholes("widths")) < 2:
        raise fault(f"{where}.widths", list(sizes.wholes("widths")), "at least two widths, input and output", "add a width")


def count(sizes: Sizes, dtype: str) -> Counts:
    """Count the tower; the gradient of its input only when it is not the first of its model.

    Args:
        sizes: as in `SIZES`.
        dtype: compute dtype.
    """
    tally = Tally(dtype)
    batch, widths = sizes.whole("batch"), sizes.wholes("widths")
    for i, (inputs, outputs) in enumerate(pairwise(widths)):
        tally.save(batch * inputs)
        tally.dense(batch, inputs, outputs, input_gradient=i > 0 or not sizes.flag("first"))
        tally.activate(batch * outputs, sizes.word("last_activation" if i == len(widths) - 2 else "activation"))
    return tally.counts()
