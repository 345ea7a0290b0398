"""MobileNetV2 block: 1x1 expansion, 3x3 depthwise, 1x1 projection, with batch norms and relu6.

Source: Sandler et al., arXiv:1801.04381, table 1.
"""

from intake.counting import Counts, Tally
from intake.sizes import BATCH, Sizes, whole

SIZES = (
    BATCH,
    whole("height", "pixels from top to bottom of the input", high=10**5),
    whole("width", "pixels from left to right of the input", high=10**5),
    whole("in_channels", "channels of the input"),
    whole("expansion", "channels inside for each channel of the input; 1: no expansion layer", 6, high=1000),
    whole("out_channels", "channels of the output"),
    whole("stride", "step of the depthwise convolution", 1, high=99),
)


def count(sizes: Sizes, dtype: str) -> Counts:
    """Count one block; it has a residual when the stride is 1 and the channels stay.

    Args:
        sizes: as in `SIZES`.
        dtype: compute dtype.
    """
    tally = Tally(dtype)
    batch, height, width = sizes.whole("batch"), sizes.whole("height"), sizes.whole("width")
    inputs, outputs, stride = sizes.whole("in_channels"), sizes.whole("out_channels"), sizes.whole("stride")
    mid = inputs * sizes.whole("expansion")
    if sizes.whole("expansion") > 1:
        tally.conv((batch, height, width), (inputs, mid), 1)
        tally.norm(batch * height * width, mid, "batch")
        tally.activate(batch * height * width * mid, "relu6")
    out_height, out_width = tally.conv((batch, height, width), (mid, mid), 3, stride, groups=mid)
    pixels = batch * out_height * out_width
    tally.norm(pixels, mid, "batch")
    tally.activate(pixels * mid, "relu6")
    tally.conv((batch, out_height, out_width), (mid, outputs), 1)
    tally.norm(pixels, outputs, "batch")
    if stride == 1 and inputs == outputs:
        tally.add(pixels * outputs)
    return tally.counts()
