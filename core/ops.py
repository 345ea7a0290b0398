"""One operation of a model: its shape, its arithmetic and its traffic.

An `Op` says what has to be computed, not how: every runtime does the same FLOPs, and only time tells them apart.
Counts follow the convention of torch's FlopCounterMode: two FLOPs for a multiply-add, attention in full (a causal mask is
not halved), nothing for reshapes.
"""

from dataclasses import dataclass
from math import prod

DTYPE_BYTES: dict[str, float] = {
    "fp64": 8,
    "fp32": 4,
    "tf32": 4,
    "bf16": 2,
    "fp16": 2,
    "fp8": 1,
    "int8": 1,
    "int4": 0.5,
    "fp4": 0.5,
    "int64": 8,
    "int32": 4,
    "int16": 2,
    "bool": 1,
    "complex64": 8,
    "complex128": 16,
}
"""Bytes of one element by dtype name. tf32 is stored as fp32."""
COMPUTE_DTYPES = ("fp64", "fp32", "tf32", "bf16", "fp16", "fp8", "int8", "int4", "fp4")
"""Those that a workload may be computed in."""

DIMS: dict[str, tuple[str, ...]] = {
    "matmul": ("batch", "m", "n", "k"),
    "conv": (
        "batch",
        "in_height",
        "in_width",
        "in_channels",
        "out_height",
        "out_width",
        "out_channels",
        "kernel_height",
        "kernel_width",
        "groups",
    ),
    "attention": ("batch", "heads", "kv_heads", "queries", "keys", "head_width"),
    "elementwise": ("elements", "inputs", "flop_each"),
    "norm": ("rows", "width"),
    "softmax": ("rows", "width"),
    "reduce": ("elements", "outputs"),
    "gather": ("rows", "width"),
    "scatter": ("rows", "width"),
    "embedding": ("rows", "width", "table_rows"),
    "rnn": ("steps", "batch", "inputs", "hidden", "gates"),
    "sort": ("rows", "width"),
    "fft": ("rows", "width"),
    "linalg": ("batch", "n"),
    "host_sync": ("transfers",),
    "custom": ("flop", "elements_read", "elements_written"),
}
"""The meaning of `Op.dims` by kind, in order."""


@dataclass(frozen=True, slots=True)
class Op:
    """One operation, `count` times.

    Args:
        kind: a key of `DIMS`.
        dims: sizes in elements, in the order that `DIMS[kind]` names.
        dtype: a key of `DTYPE_BYTES`.
        count: how often it occurs in its block.
        phase: `forward`, `backward` or `update`.
    """

    kind: str
    dims: tuple[int, ...]
    dtype: str
    count: int = 1
    phase: str = "forward"

    def __post_init__(self) -> None:
        if self.kind not in DIMS or len(self.dims) != len(DIMS[self.kind]):
            raise ValueError(f"got op {self.kind!r} with {len(self.dims)} dims; expected one of {sorted(DIMS)} with its dims")

    @property
    def flop(self) -> int:
        """Floating-point operations of all `count` occurrences."""
        return self.count * _flop(self.kind, self.dims)

    @property
    def bytes_read(self) -> int:
        """Bytes read from memory by all occurrences, each operand once."""
        return int(self.count * _elements_read(self.kind, self.dims) * DTYPE_BYTES[self.dtype])

    @property
    def bytes_written(self) -> int:
        """Bytes written to memory by all occurrences, each result once."""
        return int(self.count * _elements_written(self.kind, self.dims) * DTYPE_BYTES[self.dtype])


def _flop(kind: str, d: tuple[int, ...]) -> int:
    match kind:
        case "matmul":
            return 2 * prod(d)
        case "conv":
            batch, _, _, in_channels, out_height, out_width, out_channels, kh, kw, groups = d
            return 2 * batch * out_height * out_width * out_channels * (in_channels // groups) * kh * kw
        case "attention":
            batch, heads, _, queries, keys, width = d
            return 4 * batch * heads * queries * keys * width
        case "elementwise":
            return d[0] * d[2]
        case "norm":
            return 8 * d[0] * d[1]
        case "softmax":
            return 5 * d[0] * d[1]
        case "reduce":
            return d[0]
        case "rnn":
            steps, batch, inputs, hidden, gates = d
            return 2 * steps * batch * gates * hidden * (inputs + hidden)
        case "sort" | "fft":
            return 5 * d[0] * d[1] * max(1, d[1].bit_length() - 1)
        case "linalg":
            return 2 * d[0] * d[1] ** 3 // 3
        case "custom":
            return d[0]
        case _:
            return 0


def _elements_read(kind: str, d: tuple[int, ...]) -> int:
    match kind:
        case "matmul":
            batch, m, n, k = d
            return batch * (m * k + k * n)
        case "conv":
            batch, ih, iw, in_channels, _, _, out_channels, kh, kw, groups = d
            return batch * ih * iw * in_channels + out_channels * (in_channels // groups) * kh * kw
        case "attention":
            batch, heads, kv_heads, queries, keys, width = d
            return batch * width * (heads * queries + 2 * kv_heads * keys)
        case "elementwise":
            return d[0] * d[1]
        case "rnn":
            steps, batch, inputs, hidden, gates = d
            return steps * (batch * (inputs + hidden) + gates * hidden * (inputs + hidden))
        case "linalg":
            return d[0] * d[1] ** 2
        case "reduce":
            return d[0]
        case "host_sync":
            return d[0]
        case "custom":
            return d[1]
        case _:
            return d[0] * d[1]


def _elements_written(kind: str, d: tuple[int, ...]) -> int:
    match kind:
        case "matmul":
            batch, m, n, _ = d
            return batch * m * n
        case "conv":
            batch, _, _, _, out_height, out_width, out_channels, _, _, _ = d
            return batch * out_height * out_width * out_channels
        case "attention":
            batch, heads, _, queries, _, width = d
            return batch * heads * queries * width
        case "elementwise" | "host_sync":
            return d[0]
        case "reduce":
            return d[1]
        case "rnn":
            steps, batch, _, hidden, _ = d
            return steps * batch * hidden
        case "linalg":
            return d[0] * d[1] ** 2
        case "custom":
            return d[2]
        case _:
            return d[0] * d[1]
