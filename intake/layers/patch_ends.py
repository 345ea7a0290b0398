"""Both ends of a vision transformer: patch convolution, class token and positions; final norm, classifier, cross entropy.

Source: Dosovitskiy et al., arXiv:2010.11929; transformers 5.24, ViTForImageClassification, whose parameters it equals.
"""

from intake.counting import Counts, Tally
from intake.sizes import BATCH, WIDTH, Sizes, whole
from intake.wording import fault

SIZES = (
    BATCH,
    whole("image", "pixels of each side", high=10**5),
    whole("patch", "pixels of each side of a patch", high=10**5),
    whole("channels", "colours of a pixel", 3),
    WIDTH,
    whole("classes", "outputs of the classifier"),
)


def check(where: str, sizes: Sizes) -> None:
    """Refuse images that patches do not tile.

    Raises:
        BadInput: they do not.
    """
    image, patch = sizes.whole("image"), sizes.whole("patch")
    if image % patch:
        raise fault(f"{where}.image", image, f"a multiple of patch = {patch}", "choose an image that patches tile")


def count(sizes: Sizes, dtype: str) -> Counts:
    """Count the ends of one model; the images need no gradient.

    Args:
        sizes: as in `SIZES`.
        dtype: compute dtype.
    """
    tally = Tally(dtype)
    batch, image, patch, width = sizes.whole("batch"), sizes.whole("image"), sizes.whole("patch"), sizes.whole("width")
    tokens = (image // patch) ** 2 + 1
    tally.conv((batch, image, image), (sizes.whole("channels"), width), patch, patch, bias=True, input_gradient=False, padding=0)
    tally.add(batch * tokens * width)
    tally.parameters += width + tokens * width
    tally.norm(batch * tokens, width)
    tally.save(batch * width)
    tally.dense(batch, width, sizes.whole("classes"))
    tally.cross_entropy(batch, sizes.whole("classes"))
    return tally.counts()
