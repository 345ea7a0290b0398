"""What a trace of a torch model is made of, without torch: calls, tensors, and when memory was free again."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple


class At(NamedTuple):
    """A tensor among the arguments of a call, by its number."""

    number: int


@dataclass(frozen=True, slots=True)
class Seen:
    """One tensor of a trace.

    Args:
        name: of a parameter, buffer or input; else empty.
        shape: as it was.
        dtype: a key of `core.graph.DTYPE_BITS`.
        role: as in `core.graph.Tensor`.
        storage: number of the first tensor that had its memory.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    role: str
    storage: int


@dataclass(frozen=True, slots=True)
class Made:
    """One call of a trace.

    Args:
        op, overload: as in `aten_call.Call`.
        arguments: by the schema's names, tensors as `At`, lists as tuples.
        inputs, outputs: numbers of tensors.
        scope: path of the module.
        backward: whether it belongs to the backward pass.
        marks: what the trace itself found, beyond what the operation says.
    """

    op: str
    overload: str
    arguments: Mapping[str, object]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    scope: str
    backward: bool
    marks: tuple[str, ...] = ()


@dataclass(slots=True)
class Trace:
    """One run of a model over shapes.

    Args:
        tensors, calls: in the order in which they were first seen.
        deaths: by the number of the tensor that owns memory, the call after which it was free.
        outputs: numbers of the tensors that the model gave.
        notes: what was assumed on the way.
    """

    tensors: list[Seen] = field(default_factory=list[Seen])
    calls: list[Made] = field(default_factory=list[Made])
    deaths: dict[int, int] = field(default_factory=dict[int, int])
    outputs: list[int] = field(default_factory=list[int])
    notes: dict[str, None] = field(default_factory=dict[str, None])
