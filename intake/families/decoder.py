"""Decoder-only language models: GPT-2, Llama, Mistral, Qwen2 and their like.

Generation is the forward pass of the prompt, then one decode step for each output token, at the average length of the
cache. Decode steps use the weights of the prompt's layers, so parameters are counted once.
"""

from core.workload import Block, Size
from intake.families import Family, Shape, sharing_weights
from intake.layers import make_block
from intake.sizes import ACTIVATIONS, NORMS, WIDTH, Sizes, flag, whole, word

SPECS = (
    whole("layers", "transformer layers", high=10**5),
    WIDTH,
    whole("heads", "query heads"),
    whole("kv_heads", "key and value heads", follows=lambda config: config.whole("heads")),
    whole("head_width", "features of one head", follows=lambda config: max(1, config.whole("width") // config.whole("heads"))),
    whole("hidden", "features inside the MLP", follows=lambda config: 4 * config.whole("width")),
    whole("vocabulary", "tokens that there are"),
    whole("positions", "learned positions, 0 when there are none", 0, low=0, high=10**7),
    flag("gated", "gated MLP"),
    word("activation", "of the MLP", ACTIVATIONS, "gelu_new"),
    word("norm", "layer norm or RMS norm", NORMS, "layer"),
    flag("bias", "projections have biases", 1),
    flag("rotary", "rotary positions"),
    flag("tied", "the head uses the token table", 1),
    flag("head_bias", "the head has a bias"),
    flag("fused_qkv", "one projection for queries, keys and values"),
)
_LAYER_KEYS = ("width", "heads", "kv_heads", "head_width", "hidden", "gated", "activation", "norm", "bias", "rotary", "fused_qkv")


def build(config: Sizes, shape: Shape) -> tuple[Block, ...]:
    """Return the ends and the layers.

    Args:
        config: by the keys of `SPECS`.
        shape: batch, dtype, and either `length` or `prompt` and `output`.
    """
    if shape.prompt is not None and shape.output is not None:
        return _generating(config, shape, shape.prompt, shape.output)
    ends = make_block("token_ends", "embedding and head", _ends(config, shape, shape.positions), 1, shape.dtype)
    layer = make_block(
        "transformer_layer", "layer", _layer(config, shape, shape.positions, 0), config.whole("layers"), shape.dtype
    )
    return ends, layer


def _generating(config: Sizes, shape: Shape, prompt: int, output: int) -> tuple[Block, ...]:
    layers, dtype = config.whole("layers"), shape.dtype
    cache = prompt + output // 2
    ends = _ends(config, shape, 1)
    blocks = [
        make_block("transformer_layer", "layer, prompt", _layer(config, shape, prompt, 0), layers, dtype),
        sharing_weights(
            make_block("transformer_layer", "layer, decoding", _layer(config, shape, 1, cache), layers * output, dtype)
        ),
        make_block("token_ends", "embedding and head, first token", ends, 1, dtype),
    ]
    if output > 1:
        blocks.append(sharing_weights(make_block("token_ends", "embedding and head, later tokens", ends, output - 1, dtype)))
    return tuple(blocks)


def _layer(config: Sizes, shape: Shape, length: int, cache: int) -> dict[str, Size]:
    taken = {key: config.values[key] for key in _LAYER_KEYS}
    return taken | {"batch": shape.batch, "length": length, "cache": cache, "norm_first": 1, "causal": 1}


def _ends(config: Sizes, shape: Shape, length: int) -> dict[str, Size]:
    taken = {key: config.values[key] for key in ("width", "vocabulary", "positions", "tied", "head_bias")}
    return taken | {"batch": shape.batch, "length": length, "final_norm": config.word("norm")}


FAMILY = Family("decoder-only language model", "tokens", "length", SPECS, build, generates=True, scales=True)
