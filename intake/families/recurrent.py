"""Recurrent language models: embedding, LSTM layers of one width, vocabulary head."""

from core.workload import Block
from intake.families import Family, Shape
from intake.layers import make_block
from intake.sizes import WIDTH, Sizes, flag, whole

SPECS = (
    whole("layers", "LSTM layers", high=10**5),
    WIDTH,
    whole("vocabulary", "tokens that there are"),
    flag("tied", "the head uses the token table", 1),
    whole("biases", "bias vectors of a layer: 2 in torch, 1 elsewhere", 2, low=0, high=2),
    flag("head_bias", "the head has a bias", 1),
)


def build(config: Sizes, shape: Shape) -> tuple[Block, ...]:
    """Return the ends and the layers.

    Args:
        config: by the keys of `SPECS`.
        shape: batch, dtype and length.
    """
    width, common = config.whole("width"), {"batch": shape.batch, "length": shape.positions}
    ends = common | {key: config.values[key] for key in ("width", "vocabulary", "tied", "head_bias")}
    layer = common | {"inputs": width, "hidden": width, "biases": config.whole("biases")}
    return (
        make_block("token_ends", "embedding and head", ends, 1, shape.dtype),
        make_block("lstm_layer", "LSTM layer", layer, config.whole("layers"), shape.dtype),
    )


FAMILY = Family("recurrent language model", "tokens", "length", SPECS, build)
