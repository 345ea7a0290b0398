"""DLRM interaction: dot products of every pair of feature vectors, joined to the first vector.

Source: Naumov et al., arXiv:1906.00091, section 2.1; the full square is computed and its strict lower triangle kept.
"""

from intake.counting import Counts, Tally
from intake.sizes import BATCH, WIDTH, Sizes, whole

SIZES = (BATCH, whole("features", "vectors of each sample", low=2, high=10**5), WIDTH)


def count(sizes: Sizes, dtype: str) -> Counts:
    """Count the products and the gather of the triangle.

    Args:
        sizes: as in `SIZES`.
        dtype: compute dtype.
    """
    tally = Tally(dtype)
    batch, features, width = sizes.whole("batch"), sizes.whole("features"), sizes.whole("width")
    pairs = features * (features - 1) // 2
    tally.save(batch * features * width)
    tally.product(batch, features, features, width)
    tally.go("gather", batch, pairs)
    tally.back("scatter", batch, features * features)
    tally.go("custom", 0, batch * (pairs + width), batch * (pairs + width))
    return tally.counts()
