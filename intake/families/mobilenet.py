"""MobileNetV2: inverted residuals with depthwise convolutions."""

from core.workload import Block, Size
from intake.families import Family, Shape
from intake.layers import make_block
from intake.sizes import Sizes, whole, wholes
from intake.wording import fault

SPECS = (
    wholes("expansions", "expansion of each stage", (1, 6, 6, 6, 6, 6, 6), high=1000),
    wholes("channels", "output channels of each stage", (16, 24, 32, 64, 96, 160, 320)),
    wholes("depths", "blocks of each stage", (1, 2, 3, 4, 3, 3, 1), high=10**4),
    wholes("strides", "stride of the first block of each stage", (1, 2, 2, 2, 1, 2, 1), high=9),
    whole("stem_channels", "channels of the first convolution", 32),
    whole("in_channels", "colours of a pixel", 3),
    whole("features", "channels of the last convolution", 1280),
    whole("classes", "outputs of the classifier", 1000),
)


def build(config: Sizes, shape: Shape) -> tuple[Block, ...]:
    """Return the stem, the stages and the head.

    Args:
        config: by the keys of `SPECS`.
        shape: batch, dtype and image.

    Raises:
        BadInput: the lists of stages are not of one length.
    """
    stages = len(config.wholes("channels"))
    for key in ("expansions", "depths", "strides"):
        if len(config.wholes(key)) != stages:
            raise fault(
                f"model.{key}", list(config.wholes(key)), f"{stages} numbers, one for each of channels", "give one number a stage"
            )
    stem = {"batch": shape.batch, "height": shape.pixels, "width": shape.pixels, "in_channels": config.whole("in_channels"),
            "out_channels": config.whole("stem_channels"), "kernel": 3, "stride": 2, "activation": "relu6"}
    blocks = [make_block("conv_stem", "stem", stem, 1, shape.dtype)]
    side, inputs = (shape.pixels - 1) // 2 + 1, config.whole("stem_channels")
    rows = zip(
        config.wholes("expansions"), config.wholes("channels"), config.wholes("depths"), config.wholes("strides"), strict=True
    )
    for stage, (expansion, outputs, depth, stride) in enumerate(rows, 1):
        common: dict[str, Size] = {"batch": shape.batch, "expansion": expansion, "out_channels": outputs}
        first = common | {"height": side, "width": side, "in_channels": inputs, "stride": stride}
        blocks.append(make_block("inverted_residual", f"stage {stage}, first", first, 1, shape.dtype))
        side = (side - 1) // stride + 1
        if depth > 1:
            rest = common | {"height": side, "width": side, "in_channels": outputs}
            blocks.append(make_block("inverted_residual", f"stage {stage}, rest", rest, depth - 1, shape.dtype))
        inputs = outputs
    head = {"batch": shape.batch, "height": side, "width": side, "in_channels": inputs, "features": config.whole("features"),
            "classes": config.whole("classes")}
    return (*blocks, make_block("conv_head", "head", head, 1, shape.dtype))


FAMILY = Family("mobile convolutional network", "samples", "image", SPECS, build)
