"""A classifier: one dense layer with bias and its loss, cross entropy over classes or binary over one logit."""

from intake.counting import Counts, Tally
from intake.sizes import BATCH, Sizes, whole, word
from intake.wording import fault

SIZES = (
    BATCH,
    whole("inputs", "features of the input"),
    whole("classes", "outputs; 1 with a binary loss"),
    word("loss", "cross_entropy or binary", ("cross_entropy", "binary"), "cross_entropy"),
)


def check(where: str, sizes: Sizes) -> None:
    """Refuse a binary loss over more than one logit.

    Raises:
        BadInput: there is another number of classes than one.
    """
    if sizes.word("loss") == "binary" and sizes.whole("classes") != 1:
        raise fault(f"{where}.classes", sizes.whole("classes"), "1 with a binary loss", "set classes: 1, or loss: cross_entropy")


def count(sizes: Sizes, dtype: str) -> Counts:
    """Count one head.

    Args:
        sizes: as in `SIZES`.
        dtype: compute dtype.
    """
    tally = Tally(dtype)
    batch, inputs, classes = sizes.whole("batch"), sizes.whole("inputs"), sizes.whole("classes")
    tally.save(batch * inputs)
    tally.dense(batch, inputs, classes)
    if sizes.word("loss") == "cross_entropy":
        tally.cross_entropy(batch, classes)
    else:
        tally.back("elementwise", batch * classes, 2, 10)
        tally.saved_bytes += 4 * batch * classes
    return tally.counts()
