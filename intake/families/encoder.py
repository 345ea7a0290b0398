"""Encoder-only language models with a masked language model head: BERT and its like."""

from core.workload import Block
from intake.families import Family, Shape
from intake.layers import make_block
from intake.sizes import ACTIVATIONS, NORMS, WIDTH, Sizes, flag, whole, word

SPECS = (
    whole("layers", "transformer layers", high=10**5),
    WIDTH,
    whole("heads", "heads"),
    whole("kv_heads", "key and value heads", follows=lambda config: config.whole("heads")),
    whole("head_width", "features of one head", follows=lambda config: max(1, config.whole("width") // config.whole("heads"))),
    whole("hidden", "features inside the MLP", follows=lambda config: 4 * config.whole("width")),
    whole("vocabulary", "tokens that there are"),
    whole("positions", "learned positions, 0 when there are none", 512, low=0, high=10**7),
    whole("segments", "learned segments, 0 when there are none", 2, low=0, high=10**4),
    word("activation", "of the MLP", ACTIVATIONS, "gelu"),
    word("norm", "layer norm or RMS norm", NORMS, "layer"),
    flag("bias", "projections have biases", 1),
    flag("norm_first", "pre-norm", 0),
    flag("embed_norm", "a layer norm after the embeddings", 1),
    flag("transform", "dense, gelu and layer norm before the head", 1),
    flag("tied", "the head uses the token table", 1),
    flag("head_bias", "the head has a bias", 1),
    flag("fused_qkv", "one projection for queries, keys and values"),
)
_LAYER_KEYS = ("width", "heads", "kv_heads", "head_width", "hidden", "activation", "norm", "bias", "norm_first", "fused_qkv")
_END_KEYS = ("width", "vocabulary", "positions", "segments", "embed_norm", "transform", "tied", "head_bias")


def build(config: Sizes, shape: Shape) -> tuple[Block, ...]:
    """Return the ends and the layers.

    Args:
        config: by the keys of `SPECS`.
        shape: batch, dtype and length.
    """
    common = {"batch": shape.batch, "length": shape.positions}
    final_norm = config.word("norm") if config.flag("norm_first") else "none"
    ends = {key: config.values[key] for key in _END_KEYS} | common | {"final_norm": final_norm}
    layer = {key: config.values[key] for key in _LAYER_KEYS} | common
    return (
        make_block("token_ends", "embedding and head", ends, 1, shape.dtype),
        make_block("transformer_layer", "layer", layer, config.whole("layers"), shape.dtype),
    )


FAMILY = Family("encoder-only language model", "tokens", "length", SPECS, build, scales=True)
