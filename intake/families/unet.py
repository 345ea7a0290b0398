"""U-Net: stages down, stages up with skips, a class for each pixel."""

from core.workload import Block
from intake.families import Family, Shape
from intake.layers import make_block
from intake.sizes import Sizes, whole
from intake.wording import fault

SPECS = (
    whole("in_channels", "colours of a pixel", 3),
    whole("base_channels", "channels of the first stage; each stage down doubles them", 64),
    whole("depth", "stages down", 4, high=20),
    whole("classes", "classes of a pixel", 2),
)


def build(config: Sizes, shape: Shape) -> tuple[Block, ...]:
    """Return the stages down, the stages up and the head.

    Args:
        config: by the keys of `SPECS`.
        shape: batch, dtype and image.

    Raises:
        BadInput: the image cannot be halved `depth` times.
    """
    depth, channels, side = config.whole("depth"), config.whole("base_channels"), shape.pixels
    if side % 2**depth:
        raise fault("image", side, f"a multiple of {2**depth}, since the model halves it {depth} times", "choose such an image")

    def stage(name: str, side: int, inputs: int, outputs: int, before: str, skip: int = 0) -> Block:
        sizes = {"batch": shape.batch, "height": side, "width": side, "in_channels": inputs, "skip_channels": skip,
                 "out_channels": outputs, "before": before}
        return make_block("conv_double", name, sizes, 1, shape.dtype)

    blocks = [stage("start", side, config.whole("in_channels"), channels, "none")]
    for level in range(1, depth + 1):
        blocks.append(stage(f"down {level}", side, channels, 2 * channels, "pool"))
        side, channels = side // 2, 2 * channels
    for level in range(depth, 0, -1):
        blocks.append(stage(f"up {level}", side, channels, channels // 2, "up", channels // 2))
        side, channels = 2 * side, channels // 2
    head = {"batch": shape.batch, "height": side, "width": side, "in_channels": channels, "classes": config.whole("classes")}
    return (*blocks, make_block("pixel_head", "head", head, 1, shape.dtype))


FAMILY = Family("segmentation network", "samples", "image", SPECS, build)
