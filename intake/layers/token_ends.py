"""Both ends of a token model: embeddings at the start, final norm, vocabulary head and cross entropy at the end.

Source: transformers 5.24, GPT2LMHeadModel, LlamaForCausalLM and BertForMaskedLM, whose parameters it equals.
"""

from intake.counting import Counts, Tally
from intake.sizes import BATCH, LENGTH, WIDTH, Sizes, flag, whole, word
from intake.wording import fault

SIZES = (
    BATCH, LENGTH, WIDTH,
    whole("vocabulary", "tokens that there are"),
    whole("positions", "learned positions; 0 when there are none", 0, low=0, high=10**7),
    whole("segments", "learned segments; 0 when there are none", 0, low=0, high=10**4),
    flag("embed_norm", "1: a layer norm after the embeddings"),
    word("final_norm", "norm before the head", ("layer", "rms", "none"), "none"),
    flag("transform", "1: dense, gelu and layer norm before the head, as in BERT"),
    flag("tied", "1: the head uses the token table"),
    flag("head_bias", "1: the head has a bias"),
)


def check(where: str, sizes: Sizes) -> None:
    """Refuse sequences longer than the learned positions.

    Raises:
        BadInput: they are.
    """
    positions, length = sizes.whole("positions"), sizes.whole("length")
    if positions and length > positions:
        raise fault(f"{where}.length", length, f"at most {positions}, as many as there are learned positions",
                    "lower length or raise positions")


def count(sizes: Sizes, dtype: str) -> Counts:
    """Count the ends of one model.

    Args:
        sizes: as in `SIZES`.
        dtype: compute dtype.
    """
    tally = Tally(dtype)
    rows, width, vocabulary = sizes.whole("batch") * sizes.whole("length"), sizes.whole("width"), sizes.whole("vocabulary")
    tally.lookup(rows, width, vocabulary)
    for name in ("positions", "segments"):
        if sizes.whole(name):
            tally.add(rows * width)
            tally.parameters += sizes.whole(name) * width
    if sizes.flag("embed_norm"):
        tally.norm(rows, width)
    if sizes.word("final_norm") != "none":
        tally.norm(rows, width, sizes.word("final_norm"))
    if sizes.flag("transform"):
        tally.save(rows * width)
        tally.dense(rows, width, width)
        tally.activate(rows * width, "gelu")
        tally.norm(rows, width)
    tally.save(rows * width)
    tally.product(1, rows, vocabulary, width)
    tally.parameters += (0 if sizes.flag("tied") else width * vocabulary) + (vocabulary if sizes.flag("head_bias") else 0)
    tally.cross_entropy(rows, vocabulary)
    return tally.counts()
