"""Vision transformers that classify images."""

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
    whole("patch", "pixels of each side of a patch", 16, high=10**5),
    whole("in_channels", "colours of a pixel", 3),
    word("activation", "of the MLP", ACTIVATIONS, "gelu"),
    word("norm", "layer norm or RMS norm", NORMS, "layer"),
    flag("bias", "projections have biases", 1),
    flag("fused_qkv", "one projection for queries, keys and values"),
    whole("classes", "outputs of the classifier", 1000),
)
_LAYER_KEYS = ("width", "heads", "kv_heads", "head_width", "hidden", "activation", "norm", "bias", "fused_qkv")


def build(config: Sizes, shape: Shape) -> tuple[Block, ...]:
    """Return the ends and the layers.

    Args:
        config: by the keys of `SPECS`.
        shape: batch, dtype and image.
    """
    ends = make_block("patch_ends", "patches and head", {
        "batch": shape.batch, "image": shape.pixels, "patch": config.whole("patch"), "channels": config.whole("in_channels"),
        "width": config.whole("width"), "classes": config.whole("classes"),
    }, 1, shape.dtype)
    tokens = (shape.pixels // config.whole("patch")) ** 2 + 1
    layer = {key: config.values[key] for key in _LAYER_KEYS} | {"batch": shape.batch, "length": tokens, "norm_first": 1}
    return ends, make_block("transformer_layer", "layer", layer, config.whole("layers"), shape.dtype)


FAMILY = Family("vision transformer", "samples", "image", SPECS, build, scales=True)
