"""Transformer layer: attention and MLP with residuals, pre-norm or post-norm, plain or gated, grouped heads, rotary or not.

Source: Vaswani et al., arXiv:1706.03762 (layer); Ainslie et al., arXiv:2305.13245 (grouped heads); Shazeer, arXiv:2002.05202
(gated MLP); Su et al., arXiv:2104.09864 (rotary positions).
"""

from intake.counting import Counts, Tally
from intake.sizes import ACTIVATIONS, BATCH, LENGTH, NORMS, WIDTH, Sizes, flag, whole, word
from intake.wording import fault

SIZES = (
    BATCH, LENGTH, WIDTH,
    whole("heads", "query heads"),
    whole("kv_heads", "key and value heads; fewer than heads when grouped", follows=lambda sizes: sizes.whole("heads")),
    whole("head_width", "features of one head", follows=lambda sizes: max(1, sizes.whole("width") // sizes.whole("heads"))),
    whole("hidden", "features inside the MLP", follows=lambda sizes: 4 * sizes.whole("width")),
    flag("gated", "1: two up projections, one activated, multiplied"),
    word("activation", "of the MLP", ACTIVATIONS, "gelu"),
    word("norm", "layer norm or RMS norm", NORMS, "layer"),
    flag("norm_first", "1: pre-norm, 0: post-norm", 1),
    flag("bias", "1: every projection has a bias", 1),
    flag("causal", "1: a position sees only those before it; counted in full"),
    flag("rotary", "1: rotary positions on queries and keys"),
    whole("cache", "keys and values that are already there", 0, low=0, high=10**7),
    flag("fused_qkv", "1: one projection for queries, keys and values"),
)


def check(where: str, sizes: Sizes) -> None:
    """Refuse heads that cannot be grouped and rotary heads of odd width.

    Raises:
        BadInput: either.
    """
    heads, kv_heads = sizes.whole("heads"), sizes.whole("kv_heads")
    if heads % kv_heads:
        raise fault(f"{where}.kv_heads", kv_heads, f"a divisor of heads = {heads}", "choose kv_heads so that it divides heads")
    if sizes.flag("rotary") and sizes.whole("head_width") % 2:
        raise fault(
            f"{where}.head_width", sizes.whole("head_width"), "an even number with rotary positions", "make head_width even"
        )


def count(sizes: Sizes, dtype: str) -> Counts:
    """Count one layer.

    Args:
        sizes: as in `SIZES`.
        dtype: compute dtype.
    """
    tally = Tally(dtype)
    rows, width = sizes.whole("batch") * sizes.whole("length"), sizes.whole("width")
    norm = sizes.word("norm")
    tally.norm(rows, width, norm)
    _attention(tally, sizes, rows)
    tally.norm(rows, width, norm)
    _mlp(tally, sizes, rows)
    tally.add(rows * width, times=2)
    return tally.counts()


def _attention(tally: Tally, sizes: Sizes, rows: int) -> None:
    batch, length, width = sizes.whole("batch"), sizes.whole("length"), sizes.whole("width")
    heads, kv_heads, head_width = sizes.whole("heads"), sizes.whole("kv_heads"), sizes.whole("head_width")
    bias = sizes.flag("bias")
    queries, keys = heads * head_width, kv_heads * head_width
    tally.save(rows * width)
    if sizes.flag("fused_qkv"):
        tally.dense(rows, width, queries + 2 * keys, bias)
    else:
        tally.dense(rows, width, queries, bias)
        tally.dense(rows, width, keys, bias, times=2)
    if sizes.flag("rotary"):
        tally.go("elementwise", rows * (queries + keys), 2, 3)
        tally.back("elementwise", rows * (queries + keys), 2, 3)
    dims = (batch, heads, kv_heads, length, length + sizes.whole("cache"), head_width)
    tally.go("attention", *dims)
    tally.back("attention", *dims, times=2)
    tally.save(rows * (queries + 2 * keys))
    tally.saved_bytes += 4 * batch * heads * length
    tally.save(rows * queries)
    tally.dense(rows, queries, width, bias)


def _mlp(tally: Tally, sizes: Sizes, rows: int) -> None:
    width, hidden, bias = sizes.whole("width"), sizes.whole("hidden"), sizes.flag("bias")
    gated = sizes.flag("gated")
    tally.save(rows * width)
    tally.dense(rows, width, hidden, bias, times=2 if gated else 1)
    tally.activate(rows * hidden, sizes.word("activation"))
    if gated:
        tally.multiply(rows * hidden)
    tally.save(rows * hidden)
    tally.dense(rows, hidden, width, bias)
