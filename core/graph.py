"""What was read of a model file: tensors and operations in the order in which they run, whatever the format was.

A reader says of each operation what it is in Tandem's own kinds (`core.ops.DIMS`), so that everything behind it (FLOPs, memory,
repeats, portability) is written once. A graph holds no weights and no code: names, shapes and dtypes alone.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from core.symbols import Extent

ROLES = ("input", "parameter", "constant", "value")
"""Of a tensor: given with each call, trained, stored with the model but not trained, or computed."""
DTYPE_BITS: dict[str, int] = {
    "fp64": 64, "fp32": 32, "bf16": 16, "fp16": 16, "fp8": 8, "fp4": 4, "int64": 64, "int32": 32, "int16": 16, "int8": 8,
    "int4": 4, "int2": 2, "uint64": 64, "uint32": 32, "uint16": 16, "uint8": 8, "uint4": 4, "bool": 8, "complex64": 64,
    "complex128": 128, "string": 64, "token": 0,
}  # fmt: skip
"""Bits of one element by the dtype's name in a graph."""
VIEW = "view"
"""Kind of an operation that moves and computes nothing: reshapes, slices that alias, tuples."""
Shape: TypeAlias = tuple[Extent, ...]


@dataclass(frozen=True, slots=True)
class Tensor:
    """One tensor.

    Args:
        name: as the format has it, or its number.
        shape: extents; an unknown one makes the reader refuse the file or name a symbol.
        dtype: a key of `DTYPE_BITS`.
        role: one of `ROLES`.
        storage: index of the tensor whose memory it shares; its own index when it has its own.
        dies: of one with its own memory, the index of the node after which that memory was seen to be free; None where no
            trace saw it, or where it lives to the end.
    """

    name: str
    shape: Shape
    dtype: str
    role: str
    storage: int
    dies: int | None = None


@dataclass(frozen=True, slots=True)
class Node:
    """One operation.

    Args:
        op: its name in the format (`aten.mm`, `Conv`, `stablehlo.dot_general`).
        kind: a key of `core.ops.DIMS`, or `VIEW`.
        dims: as `core.ops.DIMS[kind]` names them; empty for a view.
        dtype: of the arithmetic, a key of `DTYPE_BITS`.
        inputs, outputs: indices of tensors.
        scope: path of the module that it belongs to (`model.layers.3.mlp`); empty where the format keeps none.
        phase: `forward`, `backward` or `update`.
        marks: facts that decide portability, keys of `MARKS`, each with a detail after a colon where there is one
            (`custom:flash_attn`).
    """

    op: str
    kind: str
    dims: tuple[Extent, ...]
    dtype: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    scope: str = ""
    phase: str = "forward"
    marks: tuple[str, ...] = ()


MARKS: dict[str, str] = {
    "dynamic_shape": "its result's shape depends on values (nonzero, unique, boolean mask)",
    "data_loop": "a loop whose count, or a branch whose side, depends on values",
    "gather": "reads rows by an index tensor",
    "scatter": "writes rows by an index tensor",
    "sort": "sorts, or takes the greatest few",
    "fp64": "computes in fp64",
    "complex": "computes in complex numbers",
    "fft": "a Fourier transform",
    "linalg": "a factorisation, an inverse or an eigenproblem",
    "conv3d": "a convolution over three dimensions",
    "serial_scan": "a recurrence that runs step after step",
    "host_read": "a value that goes to the host",
    "custom": "an operation that the framework does not have itself",
    "random": "draws random numbers",
}
"""What a reader marks in a node; unit axes and sizes off the tiles are found from shapes."""


@dataclass(frozen=True, slots=True)
class SetAside:
    """Memory that is set aside for a program that is run as it was written; bytes.

    Args:
        arguments_bytes: what the program is given.
        results_bytes: what it gives out.
        temporary_bytes: what lies beside at the worst moment.
        reused_bytes: of the results, what is written into memory of arguments that were given away (donated); it counts once.
    """

    arguments_bytes: int
    results_bytes: int
    temporary_bytes: int
    reused_bytes: int = 0

    @property
    def total_bytes(self) -> int:
        """All of it."""
        return self.arguments_bytes + self.results_bytes + self.temporary_bytes - self.reused_bytes


@dataclass(frozen=True, slots=True)
class Compiled:
    """What one compiler would set aside for a program: worked out by following its rules, neither compiled nor measured.

    Args:
        compiler: which one, with the version whose rules are followed.
        arguments: how many tensors the program is given; they are the graph's first.
        memory: None where the compiler is not followed.
        silent: why it is not; empty where it is.
        reused_bytes: of the results, what the program writes into memory of its arguments, whatever compiles it.
    """

    compiler: str
    arguments: int
    memory: SetAside | None
    silent: str = ""
    reused_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Graph:
    """A model as it was read.

    Args:
        format: of the file, such as `onnx`.
        title: what people call it: the model's own name or the file's.
        tensors: every tensor once.
        nodes: in an order in which they can run.
        outputs: indices of the tensors that are the answer.
        symbols: name and the value that the file or the trace had for it.
        has_backward: whether the backward pass was traced; it is derived where not.
        notes: what was assumed, guessed or left out, one short phrase each.
        facts: whole numbers that the reader knows of the model and that no node shows, by name (`active_parameters`).
        compiled: what a compiler would set aside for it; None for a format that is no compiler's program.
    """

    format: str
    title: str
    tensors: tuple[Tensor, ...]
    nodes: tuple[Node, ...]
    outputs: tuple[int, ...] = ()
    symbols: tuple[tuple[str, int], ...] = ()
    has_backward: bool = False
    notes: tuple[str, ...] = ()
    facts: tuple[tuple[str, int], ...] = ()
    compiled: Compiled | None = None


@dataclass(frozen=True, slots=True)
class Parameters:
    """What a file of weights alone says: no operations, so an architecture can only be guessed from it.

    Args:
        format, title: as in `Graph`.
        tensors: with role `parameter` or `constant`.
        metadata: what the file says of itself, by key; short texts alone.
        guess: a `config.json` (Hugging Face's keys) of the architecture that the names and shapes speak for; empty without one.
        reasons: what the guess rests on.
        notes: as in `Graph`.
    """

    format: str
    title: str
    tensors: tuple[Tensor, ...]
    metadata: tuple[tuple[str, str], ...] = ()
    guess: Mapping[str, object] | None = None
    reasons: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
