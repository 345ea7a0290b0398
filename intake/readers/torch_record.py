"""What a trace of a torch model is made of, without torch: calls, tensors, and when memory was free again."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

_IN_PLACE = ("aten.add", "aten.scatter_add", "aten.index_add", "aten.index_put", "aten._unsafe_index_put", "aten.masked_scatter")
"""What autograd does in place, in gradients that nothing else holds, unless a mode looks on, as a trace's does."""


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


def in_place(trace: Trace) -> Trace:
    """Return a trace whose gradients are summed where the first of them lies, as they are when nothing looks on.

    Source: InputBuffer::accumulate in torch/csrc/autograd/input_buffer.cpp, gather_backward and index_backward in
    torch/csrc/autograd/FunctionsManual.cpp of PyTorch: each asks isTensorSubclassLike, which is true while a mode is on.

    Args:
        trace: of a forward and a backward pass; its calls stay as they are.
    """
    deaths = dict(trace.deaths)
    moved: dict[int, int] = {}
    for at, made in enumerate(trace.calls):
        if not (made.op in _IN_PLACE and made.inputs and len(made.outputs) == 1) or not made.backward:
            continue
        first, new = trace.tensors[made.inputs[0]], trace.tensors[made.outputs[0]]
        owner = moved.get(first.storage, first.storage)
        whole = trace.tensors[owner]
        same = (first.shape, first.dtype) == (new.shape, new.dtype) == (whole.shape, whole.dtype)
        if same and whole.role == "value" and new.storage == made.outputs[0] and deaths.get(owner) == at:
            moved[new.storage] = owner
            del deaths[owner]
            if new.storage in deaths:
                deaths[owner] = deaths.pop(new.storage)
    tensors = [replace(one, storage=moved.get(one.storage, one.storage)) for one in trace.tensors] if moved else trace.tensors
    return replace(trace, tensors=tensors, deaths=deaths)
