"""U-Net stage: pool or upsample and join, then twice a 3x3 convolution with batch norm and relu.

Source: Ronneberger et al., arXiv:1505.04597, figure 1, with padded convolutions and batch norms.
"""

from intake.counting import Counts, Tally
from intake.sizes import BATCH, Sizes, whole, word
from intake.wording import fault

SIZES = (
    BATCH,
    whole("height", "pixels from top to bottom of the input, before pool or up", high=10**5),
    whole("width", "pixels from left to right of the input, before pool or up", high=10**5),
    whole("in_channels", "channels of the input"),
    whole("skip_channels", "channels that are joined after up", 0, low=0),
    whole("out_channels", "channels of the output"),
    word("before", "`none` at the start of a model, `pool` going down, `up` going up", ("none", "pool", "up"), "none"),
)


def check(where: str, sizes: Sizes) -> None:
    """Refuse odd channels before an upsampling, a skip without one, and images too small to pool.

    Raises:
        BadInput: one of these.
    """
    before = sizes.word("before")
    if before == "up" and sizes.whole("in_channels") % 2:
        raise fault(f"{where}.in_channels", sizes.whole("in_channels"), "an even number before an upsampling", "make it even")
    if before != "up" and sizes.whole("skip_channels"):
        raise fault(f"{where}.skip_channels", sizes.whole("skip_channels"), "0 where nothing is joined", "set before: up")
    if before == "pool" and min(sizes.whole("height"), sizes.whole("width")) < 2:
        raise fault(f"{where}.height", sizes.whole("height"), "at least 2 before a pool", "use a larger image or fewer stages")


def count(sizes: Sizes, dtype: str) -> Counts:
    """Count one stage; with `before: none` it is the first of a model, whose images need no gradient.

    A 2x2 transposed convolution of stride 2 is a matrix product of each pixel with four output pixels, and counted so.

    Args:
        sizes: as in `SIZES`.
        dtype: compute dtype.
    """
    tally = Tally(dtype)
    batch, height, width = sizes.whole("batch"), sizes.whole("height"), sizes.whole("width")
    channels, outputs, before = sizes.whole("in_channels"), sizes.whole("out_channels"), sizes.word("before")
    if before == "pool":
        pooled = batch * (height // 2) * (width // 2) * channels
        tally.pool(batch * height * width * channels, pooled, 4, indices=True)
        height, width = height // 2, width // 2
    if before == "up":
        half = channels // 2
        tally.save(batch * height * width * channels)
        tally.product(1, batch * height * width, 4 * half, channels)
        tally.parameters += channels * half * 4 + half
        height, width, channels = 2 * height, 2 * width, half + sizes.whole("skip_channels")
        tally.go("custom", 0, batch * height * width * channels, batch * height * width * channels)
        tally.back("custom", 0, batch * height * width * channels, batch * height * width * channels)
    for inputs, input_gradient in ((channels, before != "none"), (outputs, True)):
        tally.conv((batch, height, width), (inputs, outputs), 3, input_gradient=input_gradient)
        tally.norm(batch * height * width, outputs, "batch")
        tally.activate(batch * height * width * outputs, "relu")
    return tally.counts()
