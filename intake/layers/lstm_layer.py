"""One LSTM layer over a whole sequence that starts from zeros.

The product with the inputs is one matrix product for all steps; the product with the state is one small product after the
other, which is why it stands apart as a recurrent operation.

Source: Hochreiter and Schmidhuber, Neural Computation 9(8), 1997; gates and biases as in torch.nn.LSTM.
"""

from intake.counting import Counts, Tally
from intake.sizes import BATCH, LENGTH, Sizes, whole

SIZES = (
    BATCH, LENGTH,
    whole("inputs", "features of each input"),
    whole("hidden", "features of the state"),
    whole("biases", "bias vectors: 2 in torch, 1 elsewhere", 2, low=0, high=2),
)
_GATES = 4
_GATE_FLOP = 30


def count(sizes: Sizes, dtype: str) -> Counts:
    """Count one layer; the state before the first step needs no gradient.

    Saved are the gates before and after their activations, the cell, its tanh and the state: a fused kernel keeps a third
    less, single operations half as much again.

    Args:
        sizes: as in `SIZES`.
        dtype: compute dtype.
    """
    tally = Tally(dtype)
    batch, length = sizes.whole("batch"), sizes.whole("length")
    inputs, hidden = sizes.whole("inputs"), sizes.whole("hidden")
    rows, gates = batch * length, _GATES * hidden
    tally.save(rows * inputs)
    tally.product(1, rows, gates, inputs)
    tally.go("rnn", length, batch, 0, hidden, _GATES)
    tally.back("matmul", 1, hidden, gates, rows)
    if length > 1:
        tally.back("rnn", length - 1, batch, 0, hidden, _GATES)
    tally.go("elementwise", rows * hidden, 5, _GATE_FLOP)
    tally.back("elementwise", rows * hidden, 7, _GATE_FLOP)
    tally.save(rows * (2 * gates + 3 * hidden))
    tally.parameters += gates * (inputs + hidden + sizes.whole("biases"))
    return tally.counts()
