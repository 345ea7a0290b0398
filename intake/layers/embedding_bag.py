"""Sparse features: rows of several tables, looked up and summed for each sample and table.

Source: Naumov et al., arXiv:1906.00091, section 2.1; torch.nn.EmbeddingBag.
"""

from intake.counting import Counts, Tally
from intake.sizes import BATCH, WIDTH, Sizes, whole

SIZES = (
    BATCH,
    whole("tables", "tables, one for each sparse feature", high=10**5),
    whole("rows", "rows of each table"),
    WIDTH,
    whole("per_bag", "rows that are summed for each sample and table", 1, high=10**6),
)


def count(sizes: Sizes, dtype: str) -> Counts:
    """Count all tables; row numbers are kept for the backward pass, 8 bytes each.

    Args:
        sizes: as in `SIZES`.
        dtype: compute dtype.
    """
    tally = Tally(dtype)
    batch, tables, width, per_bag = sizes.whole("batch"), sizes.whole("tables"), sizes.whole("width"), sizes.whole("per_bag")
    lookups = batch * tables * per_bag
    tally.lookup(lookups, width, tables * sizes.whole("rows"))
    if per_bag > 1:
        tally.go("reduce", lookups * width, batch * tables * width)
    tally.saved_bytes += 8 * lookups
    return tally.counts()
