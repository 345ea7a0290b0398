"""End of an image model: optional 1x1 convolution, global average pool, classifier and cross entropy."""

from intake.counting import Counts, Tally
from intake.sizes import BATCH, Sizes, whole

SIZES = (
    BATCH,
    whole("height", "pixels from top to bottom of the input", high=10**5),
    whole("width", "pixels from left to right of the input", high=10**5),
    whole("in_channels", "channels of the input"),
    whole("features", "channels of the 1x1 convolution with batch norm and relu6; 0: none", 0, low=0),
    whole("classes", "outputs of the classifier"),
)


def count(sizes: Sizes, dtype: str) -> Counts:
    """Count one head.

    Args:
        sizes: as in `SIZES`.
        dtype: compute dtype.
    """
    tally = Tally(dtype)
    batch, height, width = sizes.whole("batch"), sizes.whole("height"), sizes.whole("width")
    channels, features = sizes.whole("in_channels"), sizes.whole("features")
    if features:
        tally.conv((batch, height, width), (channels, features), 1)
        tally.norm(batch * height * width, features, "batch")
        tally.activate(batch * height * width * features, "relu6")
        channels = features
    tally.pool(batch * height * width * channels, batch * channels, height * width, indices=False)
    tally.save(batch * channels)
    tally.dense(batch, channels, sizes.whole("classes"))
    tally.cross_entropy(batch, sizes.whole("classes"))
    return tally.counts()
