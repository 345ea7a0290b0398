"""Adds up the operations, parameters and saved bytes of one block while its layers are walked in order.

Counts follow torch's FlopCounterMode: a matrix product has two products of the same FLOPs behind it in the backward pass (one
for its input, one for its weights; the first layer of a model has no input gradient), attention has twice its forward
FLOPs, reshapes have none. What a loss adds is counted with the backward pass, since inference does not compute it.

Saved bytes are the tensors that automatic differentiation keeps from the forward to the backward pass with fused attention
(no matrix of scores is kept), each tensor once.

Source: torch/utils/flop_counter.py of PyTorch 2.13; Korthikanti et al., arXiv:2205.05198, section 4 (saved activations).
"""

from dataclasses import dataclass, field

from core.ops import DTYPE_BYTES, Op

ACTIVATION_FLOP = {"relu": 1, "relu6": 2, "silu": 5, "gelu": 8, "gelu_tanh": 10, "gelu_new": 10, "none": 0}
"""Operations for one element; transcendental functions as a handful of operations each."""
_INNER_TENSORS = {"gelu_new": 3}
"""Tensors of the same size that an activation written out of single operations keeps besides its input."""
_LOSS_BYTES = 4
"""Losses keep their log-probabilities in fp32 whatever the compute dtype is."""


@dataclass(frozen=True, slots=True)
class Counts:
    """What one repeat of a block costs; see `core.workload.Block` for the fields."""

    ops_forward: tuple[Op, ...]
    ops_backward: tuple[Op, ...]
    parameter_count: int
    activation_bytes: int


@dataclass(slots=True)
class Tally:
    """A running count of one block.

    Args:
        dtype: compute dtype of every operation.
    """

    dtype: str
    forward: list[Op] = field(default_factory=list[Op])
    backward: list[Op] = field(default_factory=list[Op])
    parameters: int = 0
    saved_bytes: float = 0.0

    def counts(self) -> Counts:
        """Return what was added up."""
        return Counts(tuple(self.forward), tuple(self.backward), self.parameters, int(self.saved_bytes))

    def go(self, kind: str, *dims: int, times: int = 1) -> None:
        """Add a forward operation."""
        self.forward.append(Op(kind, dims, self.dtype, times))

    def back(self, kind: str, *dims: int, times: int = 1) -> None:
        """Add a backward operation."""
        self.backward.append(Op(kind, dims, self.dtype, times, "backward"))

    def save(self, elements: int) -> None:
        """Add a tensor of the compute dtype that is kept for the backward pass."""
        self.saved_bytes += elements * DTYPE_BYTES[self.dtype]

    def product(self, batch: int, m: int, n: int, k: int, times: int = 1, input_gradient: bool = True) -> None:
        """Add `batch` products of m x k and k x n; the left operand is the input."""
        self.go("matmul", batch, m, n, k, times=times)
        if input_gradient:
            self.back("matmul", batch, m, k, n, times=times)
        self.back("matmul", batch, k, n, m, times=times)

    def dense(self, rows: int, inputs: int, outputs: int, bias: bool = True, times: int = 1,
              input_gradient: bool = True) -> None:
        """Add `times` dense layers over `rows` vectors; the input has to be saved by the caller, once for all that share it."""
        self.product(1, rows, outputs, inputs, times, input_gradient)
        self.parameters += times * (inputs * outputs + (outputs if bias else 0))

    def conv(self, image: tuple[int, int, int], channels: tuple[int, int], kernel: int, stride: int = 1, groups: int = 1,
             bias: bool = False, input_gradient: bool = True, padding: int | None = None) -> tuple[int, int]:
        """Add a square convolution whose input is saved.

        Args:
            image: batch, height and width of the input.
            channels: input and output channels.
            kernel, stride, groups: of the convolution.
            padding: on each side; `kernel // 2` when None.

        Returns:
            height and width of the output.
        """
        (batch, height, width), (inputs, outputs) = image, channels
        pad = kernel // 2 if padding is None else padding
        out_height, out_width = (height + 2 * pad - kernel) // stride + 1, (width + 2 * pad - kernel) // stride + 1
        dims = (batch, height, width, inputs, out_height, out_width, outputs, kernel, kernel, groups)
        self.go("conv", *dims)
        self.back("conv", *dims, times=2 if input_gradient else 1)
        self.parameters += outputs * (inputs // groups) * kernel * kernel + (outputs if bias else 0)
        self.save(batch * height * width * inputs)
        return out_height, out_width

    def norm(self, rows: int, width: int, kind: str = "layer") -> None:
        """Add a norm over the last axis, its input saved; `layer` and `batch` have an offset, `rms` has not."""
        self.go("norm", rows, width)
        self.back("norm", rows, width, times=2)
        self.parameters += width if kind == "rms" else 2 * width
        self.save(rows * width)

    def activate(self, elements: int, name: str) -> None:
        """Add an activation; what it keeps is saved, except that relu keeps its output, which the next layer saves anyway."""
        if name == "none":
            return
        self.go("elementwise", elements, 1, ACTIVATION_FLOP[name])
        self.back("elementwise", elements, 2, ACTIVATION_FLOP[name])
        if name != "relu":
            self.save(elements * (1 + _INNER_TENSORS.get(name, 0)))

    def add(self, elements: int, times: int = 1) -> None:
        """Add sums of two tensors; their gradient is passed on as it is, but two gradients meet and are summed."""
        self.go("elementwise", elements, 2, 1, times=times)
        self.back("elementwise", elements, 2, 1, times=times)

    def multiply(self, elements: int) -> None:
        """Add a product of two tensors, both saved."""
        self.go("elementwise", elements, 2, 1)
        self.back("elementwise", elements, 3, 2)
        self.save(2 * elements)

    def lookup(self, rows: int, width: int, table_rows: int) -> None:
        """Add a lookup in a trainable table, whose gradient is a dense tensor of the size of the table."""
        self.go("embedding", rows, width, table_rows)
        self.back("scatter", rows, width)
        self.back("custom", 0, 0, table_rows * width)
        self.parameters += table_rows * width

    def pool(self, elements: int, outputs: int, window: int, indices: bool) -> None:
        """Add a pooling of `elements` into `outputs`, `window` elements each; max pooling keeps its input and indices."""
        self.go("custom", outputs * window, elements, outputs)
        self.back("custom", outputs, outputs, elements)
        if indices:
            self.save(elements)
            self.saved_bytes += 8 * outputs

    def cross_entropy(self, rows: int, classes: int) -> None:
        """Add what training adds to logits: log-probabilities, kept in fp32, the loss and the gradient of the logits.

        That gradient is not saved in the forward pass, but lives while everything that was saved still does, so that it
        belongs to the peak; it is often the largest tensor of a language model.
        """
        self.back("softmax", rows, classes)
        self.back("elementwise", rows * classes, 1, 2)
        self.saved_bytes += rows * classes * _LOSS_BYTES
        self.save(rows * classes)
