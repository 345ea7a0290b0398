"""Multilayer perceptrons that classify."""

from core.workload import Block
from intake.families import Family, Shape
from intake.layers import make_block
from intake.sizes import ACTIVATIONS, Sizes, whole, wholes, word

SPECS = (
    whole("inputs", "features of a sample"),
    wholes("hidden", "widths of the hidden layers"),
    whole("classes", "outputs"),
    word("activation", "after each hidden layer", ACTIVATIONS, "relu"),
)


def build(config: Sizes, shape: Shape) -> tuple[Block, ...]:
    """Return the hidden layers and the head.

    Args:
        config: by the keys of `SPECS`.
        shape: batch and dtype.
    """
    hidden, activation = config.wholes("hidden"), config.word("activation")
    tower = {
        "batch": shape.batch,
        "widths": (config.whole("inputs"), *hidden),
        "activation": activation,
        "last_activation": activation,
        "first": 1,
    }
    head = {"batch": shape.batch, "inputs": hidden[-1], "classes": config.whole("classes")}
    return (
        make_block("dense_tower", "hidden layers", tower, 1, shape.dtype),
        make_block("class_head", "head", head, 1, shape.dtype),
    )


FAMILY = Family("multilayer perceptron", "samples", "", SPECS, build)
