"""Residual networks of bottlenecks: ResNet-50, -101, -152 and their wider kin."""

from core.workload import Block, Size
from intake.families import Family, Shape
from intake.layers import make_block
from intake.sizes import Sizes, flag, whole, wholes
from intake.wording import fault

SPECS = (
    wholes("depths", "bottlenecks of each stage", high=10**4),
    wholes("channels", "output channels of each stage"),
    whole("stem_channels", "channels of the first convolution", 64),
    whole("in_channels", "colours of a pixel", 3),
    whole("reduction", "output channels for each inner channel of a bottleneck", 4, high=1000),
    flag("stride_first", "1: v1, the first 1x1 convolution strides; 0: v1.5, the 3x3 does"),
    flag("conv_bias", "convolutions have biases"),
    whole("classes", "outputs of the classifier", 1000),
)


def build(config: Sizes, shape: Shape) -> tuple[Block, ...]:
    """Return the stem, the stages and the head.

    Args:
        config: by the keys of `SPECS`.
        shape: batch, dtype and image.

    Raises:
        BadInput: depths and channels are not of one length.
    """
    depths, channels = config.wholes("depths"), config.wholes("channels")
    if len(depths) != len(channels):
        raise fault(
            "model.channels", list(channels), f"{len(depths)} numbers, one for each of depths", "give both one number a stage"
        )
    stem = {
        "batch": shape.batch,
        "height": shape.pixels,
        "width": shape.pixels,
        "in_channels": config.whole("in_channels"),
        "out_channels": config.whole("stem_channels"),
        "kernel": 7,
        "stride": 2,
        "pool": 1,
        "conv_bias": config.whole("conv_bias"),
    }
    blocks = [make_block("conv_stem", "stem", stem, 1, shape.dtype)]
    side, inputs = _halved(_halved(shape.pixels)), config.whole("stem_channels")
    for stage, (depth, outputs) in enumerate(zip(depths, channels, strict=True), 1):
        stride = 1 if stage == 1 else 2
        common: dict[str, Size] = {
            "batch": shape.batch,
            "mid_channels": max(1, outputs // config.whole("reduction")),
            "out_channels": outputs,
            "stride_first": config.whole("stride_first"),
            "conv_bias": config.whole("conv_bias"),
        }
        first = common | {"height": side, "width": side, "in_channels": inputs, "stride": stride,
                          "projection": int(stride > 1 or inputs != outputs)}
        blocks.append(make_block("conv_bottleneck", f"stage {stage}, first", first, 1, shape.dtype))
        side = _halved(side) if stride == 2 else side
        if depth > 1:
            rest = common | {"height": side, "width": side, "in_channels": outputs}
            blocks.append(make_block("conv_bottleneck", f"stage {stage}, rest", rest, depth - 1, shape.dtype))
        inputs = outputs
    head = {"batch": shape.batch, "height": side, "width": side, "in_channels": inputs, "classes": config.whole("classes")}
    return (*blocks, make_block("conv_head", "head", head, 1, shape.dtype))


def _halved(side: int) -> int:
    return (side - 1) // 2 + 1


FAMILY = Family("residual convolutional network", "samples", "image", SPECS, build)
