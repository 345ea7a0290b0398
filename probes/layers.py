"""Layers as data: what a block is made of, said once for every backend.

A `Layer` names shapes, not tensors. Each backend turns it into what its own users would write (an `nn.Linear`, a
`keras.layers.Dense`, a dict of arrays), from the same float32 arrays, so that all runtimes hold the same weights.
Canonical layouts: dense (inputs, outputs); convolution (height, width, inputs, outputs); images are NHWC.
"""

from dataclasses import dataclass
from math import prod, sqrt
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.random import Generator

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer of a block.

    Args:
        kind: `dense`, `norm`, `conv`, `batch_norm`, `up_conv`, `embedding`, `bag`, `lstm`, `table` or `attention`.
        arrays: (name, shape, standard deviation or None for ones, -1 for zeros) of each trainable array.
        options: what the kind needs besides shapes, by name.
    """

    kind: str
    arrays: tuple[tuple[str, Shape, float | None], ...]
    options: tuple[tuple[str, Any], ...] = ()

    def option(self, name: str) -> Any:
        """Return one option; raises KeyError when the layer has none of that name."""
        return dict(self.options)[name]

    def shape(self, name: str) -> Shape:
        """Return the canonical shape of one array; raises KeyError when there is none of that name."""
        return {key: shape for key, shape, _ in self.arrays}[name]

    @property
    def parameter_count(self) -> int:
        """Trainable parameters."""
        return sum(prod(shape) for _, shape, _ in self.arrays)

    def values(self, generator: "Generator") -> dict[str, Any]:
        """Return float32 arrays by name, drawn from the generator in order."""
        import numpy as np

        result: dict[str, Any] = {}
        for name, shape, scale in self.arrays:
            if scale is None:
                result[name] = np.ones(shape, np.float32)
            else:
                spread = scale if scale > 0 else 0.02
                result[name] = generator.standard_normal(shape, dtype=np.float32) * np.float32(spread)
        return result


def dense(inputs: int, outputs: int, bias: bool = True) -> Layer:
    """A dense layer: kernel (inputs, outputs), optional bias (outputs,)."""
    arrays: list[tuple[str, Shape, float | None]] = [("kernel", (inputs, outputs), 1 / sqrt(inputs))]
    if bias:
        arrays.append(("bias", (outputs,), -1))
    return Layer("dense", tuple(arrays), (("bias", bias), ("inputs", inputs), ("outputs", outputs)))


def norm(kind: str, width: int) -> Layer:
    """A layer norm (scale and offset) or an RMS norm (scale) over the last axis of `width`."""
    arrays: list[tuple[str, Shape, float | None]] = [("scale", (width,), None)]
    if kind == "layer":
        arrays.append(("offset", (width,), -1))
    return Layer("norm", tuple(arrays), (("kind", kind), ("width", width)))


def conv(inputs: int, outputs: int, kernel: int, stride: int = 1, groups: int = 1, bias: bool = False) -> Layer:
    """A square convolution, padded by kernel // 2; groups equal to inputs makes it depthwise."""
    arrays: list[tuple[str, Shape, float | None]] = [
        ("kernel", (kernel, kernel, inputs // groups, outputs), 1 / sqrt(kernel * kernel * inputs / groups)),
    ]
    if bias:
        arrays.append(("bias", (outputs,), -1))
    options = (
        ("bias", bias),
        ("groups", groups),
        ("kernel", kernel),
        ("stride", stride),
        ("inputs", inputs),
        ("outputs", outputs),
    )
    return Layer("conv", tuple(arrays), options)


def batch_norm(channels: int) -> Layer:
    """A batch norm over the channels; running statistics are state, not parameters."""
    return Layer("batch_norm", (("scale", (channels,), None), ("offset", (channels,), -1)), (("channels", channels),))


def up_conv(inputs: int, outputs: int) -> Layer:
    """A 2x2 transposed convolution of stride 2 with bias; kernel (2, 2, outputs, inputs)."""
    arrays = (("kernel", (2, 2, outputs, inputs), 1 / sqrt(inputs)), ("bias", (outputs,), -1.0))
    return Layer("up_conv", arrays, (("inputs", inputs), ("outputs", outputs)))


def embedding(rows: int, width: int) -> Layer:
    """A table of `rows` vectors."""
    return Layer("embedding", (("table", (rows, width), 0.02),), (("rows", rows), ("width", width)))


def bag(tables: int, rows: int, width: int) -> Layer:
    """`tables` tables whose looked-up rows are summed for each sample."""
    arrays = tuple((f"table_{i}", (rows, width), 0.05) for i in range(tables))
    return Layer("bag", arrays, (("tables", tables), ("rows", rows), ("width", width)))


def lstm(inputs: int, hidden: int) -> Layer:
    """One LSTM layer, gates in the order input, forget, cell, output."""
    arrays = (
        ("kernel", (inputs, 4 * hidden), 1 / sqrt(inputs)),
        ("recurrent", (hidden, 4 * hidden), 1 / sqrt(hidden)),
        ("bias", (4 * hidden,), -1.0),
    )
    return Layer("lstm", arrays, (("inputs", inputs), ("hidden", hidden)))


def table(*shape: int) -> Layer:
    """A bare trainable array, such as learned positions."""
    return Layer("table", (("value", shape, 0.02),), (("shape", shape),))


def attention(width: int, heads: int, kv_heads: int, head_width: int, bias: bool, fused: bool) -> Layer:
    """Projections of a multi-head attention; `fused` keeps query, key and value in one kernel."""
    q, kv, scale = heads * head_width, kv_heads * head_width, 1 / sqrt(width)
    parts = (("qkv", q + 2 * kv),) if fused else (("query", q), ("key", kv), ("value", kv))
    arrays: list[tuple[str, Shape, float | None]] = []
    for name, outputs in parts:
        arrays.append((f"{name}_kernel", (width, outputs), scale))
        if bias:
            arrays.append((f"{name}_bias", (outputs,), -1))
    arrays.append(("out_kernel", (q, width), 1 / sqrt(q)))
    if bias:
        arrays.append(("out_bias", (width,), -1))
    options = (
        ("bias", bias),
        ("fused", fused),
        ("head_width", head_width),
        ("heads", heads),
        ("kv_heads", kv_heads),
        ("width", width),
    )
    return Layer("attention", tuple(arrays), options)


def strided(side: int, kernel: int, stride: int) -> int:
    """Return the pixels of one side behind a convolution or a pool that is padded by kernel // 2."""
    return (side + 2 * (kernel // 2) - kernel) // stride + 1


@dataclass(frozen=True, slots=True)
class Input:
    """One input of a block.

    Args:
        kind: `float` (standard normal), `image` (standard normal, NHWC), `heads` (standard normal, batch x heads x length x
            width), `factor` (uniform in 0.5 to 0.9) or `token` (whole numbers below `high`).
        shape: canonical shape.
        high: for tokens.
    """

    kind: str
    shape: Shape
    high: int = 0

    def values(self, generator: "Generator") -> Any:
        """Return float32 or int32 values drawn from the generator."""
        import numpy as np

        if self.kind == "token":
            return generator.integers(0, self.high, self.shape, dtype=np.int32)
        if self.kind == "factor":
            return generator.uniform(0.5, 0.9, self.shape).astype(np.float32)
        return generator.standard_normal(self.shape, dtype=np.float32)
