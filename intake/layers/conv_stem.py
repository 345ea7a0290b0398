"""Start of an image model: convolution, batch norm, activation and an optional 3x3 max pool of stride 2.

Source: He et al., arXiv:1512.03385, table 1; Sandler et al., arXiv:1801.04381, table 2.
"""

from intake.counting import Counts, Tally
from intake.sizes import BATCH, Sizes, flag, whole, word

SIZES = (
    BATCH,
    whole("height", "pixels from top to bottom", high=10**5),
    whole("width", "pixels from left to right", high=10**5),
    whole("in_channels", "colours of a pixel", 3),
    whole("out_channels", "channels of the output"),
    whole("kernel", "side of the kernel", 7, high=99),
    whole("stride", "step of the kernel", 2, high=99),
    flag("pool", "1: a 3x3 max pool of stride 2 at the end"),
    word("activation", "after the batch norm", ("relu", "relu6"), "relu"),
    flag("conv_bias", "1: the convolution has a bias"),
)


def count(sizes: Sizes, dtype: str) -> Counts:
    """Count one stem; the images need no gradient.

    Args:
        sizes: as in `SIZES`.
        dtype: compute dtype.
    """
    tally = Tally(dtype)
    batch, channels = sizes.whole("batch"), sizes.whole("out_channels")
    height, width = tally.conv((batch, sizes.whole("height"), sizes.whole("width")), (sizes.whole("in_channels"), channels),
                               sizes.whole("kernel"), sizes.whole("stride"), bias=sizes.flag("conv_bias"), input_gradient=False)
    tally.norm(batch * height * width, channels, "batch")
    tally.activate(batch * height * width * channels, sizes.word("activation"))
    if sizes.flag("pool"):
        outputs = batch * ((height - 1) // 2 + 1) * ((width - 1) // 2 + 1) * channels
        tally.pool(batch * height * width * channels, outputs, 9, indices=True)
    return tally.counts()
