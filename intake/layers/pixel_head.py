"""End of a segmentation model: 1x1 convolution with bias, cross entropy at each pixel."""

from intake.counting import Counts, Tally
from intake.sizes import BATCH, Sizes, whole

SIZES = (
    BATCH,
    whole("height", "pixels from top to bottom", high=10**5),
    whole("width", "pixels from left to right", high=10**5),
    whole("in_channels", "channels of the input"),
    whole("classes", "classes of a pixel"),
)


def count(sizes: Sizes, dtype: str) -> Counts:
    """Count one head.

    Args:
        sizes: as in `SIZES`.
        dtype: compute dtype.
    """
    tally = Tally(dtype)
    batch, height, width, classes = sizes.whole("batch"), sizes.whole("height"), sizes.whole("width"), sizes.whole("classes")
    tally.conv((batch, height, width), (sizes.whole("in_channels"), classes), 1, bias=True)
    tally.cross_entropy(batch * height * width, classes)
    return tally.counts()
