"""Recommendation models after DLRM: dense tower, embedding tables, pairwise interaction, second tower, one logit."""

from core.workload import Block
from intake.families import Family, Shape
from intake.layers import make_block
from intake.sizes import Sizes, whole, wholes

SPECS = (
    whole("dense_features", "dense features of a sample", 13),
    wholes("bottom", "widths of the first tower; the last is the width of the tables"),
    whole("tables", "sparse features, one table each", 26, high=10**5),
    whole("rows", "rows of each table"),
    whole("per_bag", "rows that are summed for each sample and table", 1, high=10**6),
    wholes("top", "widths of the second tower, before the logit"),
)


def build(config: Sizes, shape: Shape) -> tuple[Block, ...]:
    """Return the towers, the tables, the interaction and the head.

    Args:
        config: by the keys of `SPECS`.
        shape: batch and dtype.
    """
    batch, dtype = shape.batch, shape.dtype
    bottom, top, features = config.wholes("bottom"), config.wholes("top"), config.whole("tables") + 1
    width = bottom[-1]
    first = {"batch": batch, "widths": (config.whole("dense_features"), *bottom), "first": 1}
    bags = {"batch": batch, "width": width} | {key: config.whole(key) for key in ("tables", "rows", "per_bag")}
    joined = features * (features - 1) // 2 + width
    return (
        make_block("dense_tower", "bottom tower", first, 1, dtype),
        make_block("embedding_bag", "tables", bags, 1, dtype),
        make_block("dot_interaction", "interaction", {"batch": batch, "features": features, "width": width}, 1, dtype),
        make_block("dense_tower", "top tower", {"batch": batch, "widths": (joined, *top)}, 1, dtype),
        make_block("class_head", "head", {"batch": batch, "inputs": top[-1], "classes": 1, "loss": "binary"}, 1, dtype),
    )


FAMILY = Family("recommendation model", "samples", "", SPECS, build)
