"""A graph while it is being read: tensors and operations are added in the order in which they run.

Operators of a format are described by what they make and what work they do (`Result`, `Work`); here that becomes tensors and
nodes, bounded, with views sharing the memory of what they look at.
"""

from dataclasses import dataclass, field
from typing import TypeAlias

from core.graph import DTYPE_BITS, VIEW, Graph, Node, Shape, Tensor
from core.ops import DIMS
from core.symbols import Extent, Polynomial, product
from intake.readers.symbolic import Extents, Unclear

MOST_NODES, MOST_TENSORS, MOST_NAME, MOST_KNOWN = 200_000, 400_000, 300, 4096
Known: TypeAlias = tuple[Extent | float, ...]
"""Elements of a small tensor in order, where they are known; those of shapes may be polynomials."""
_SPREAD = {"conv": 1, "attention": 1, "reduce": 2, "custom": 3}
"""Dims, from the first, that grow when an operation is repeated; 1 for kinds that are not named."""


@dataclass(slots=True)
class Value:
    """What an operation takes or makes.

    Args:
        name: in the file.
        shape, dtype: of the tensor.
        role: as in `core.graph.ROLES`.
        index: its number in the draft; None while no operation that counts has used it.
        known: its elements, where they are.
        items: of a sequence of tensors; None for a tensor.
        source: number of the tensor whose memory it looks at, when it has no tensor of its own yet.
        trained: whether it is a parameter, or a view or copy of one.
    """

    name: str
    shape: Shape
    dtype: str
    role: str = "value"
    index: int | None = None
    known: Known | None = None
    items: "tuple[Value, ...] | None" = None
    source: int | None = None
    trained: bool = False


@dataclass(frozen=True, slots=True)
class Result:
    """One result of an operator.

    Args:
        shape, dtype: of it.
        known: its elements, where they follow from those of the operands.
        view_of: number of the operand whose memory it shares; None when it has its own.
        items: of a sequence.
    """

    shape: Shape
    dtype: str
    known: Known | None = None
    view_of: int | None = None
    items: tuple[Value, ...] | None = None


@dataclass(frozen=True, slots=True)
class Work:
    """Arithmetic of an operator.

    Args:
        kind, dims, marks: as in `core.graph.Node`.
        dtype: of the arithmetic; that of the operator's first fraction when empty.
        between: shape of what it hands on to the operator's next work; None for the last one.
    """

    kind: str
    dims: tuple[Extent, ...]
    marks: tuple[str, ...] = ()
    dtype: str = ""
    between: Shape | None = None


@dataclass(frozen=True, slots=True)
class Done:
    """What an operator makes and does: no work for views and for what is known beforehand."""

    results: tuple[Result, ...]
    work: tuple[Work, ...] = ()


@dataclass(slots=True)
class Draft:
    """Tensors and nodes so far.

    Args:
        extents: the file's symbols.
        repeats: by how much the operations that are added now are repeated; 1 outside of loops.
        serial: whether they lie in a loop that runs step after step.
    """

    extents: Extents
    tensors: list[Tensor] = field(default_factory=list[Tensor])
    nodes: list[Node] = field(default_factory=list[Node])
    repeats: Extent = 1
    serial: bool = False
    steps: int = 0

    def tensor(self, name: str, shape: Shape, dtype: str, role: str, storage: int | None = None) -> int:
        """Add a tensor and return its number."""
        if dtype not in DTYPE_BITS:
            raise Unclear(f"{name[:60]} of the dtype {dtype[:40]}")
        if len(self.tensors) >= MOST_TENSORS:
            raise Unclear(f"over {MOST_TENSORS} tensors")
        self.extents.check(shape, name)
        at = len(self.tensors)
        self.tensors.append(Tensor(name[:MOST_NAME], shape, dtype, role, at if storage is None else storage))
        return at

    def index(self, value: Value) -> int:
        """Return the number of a value's tensor; adds the tensor when it has none yet."""
        if value.index is None:
            role = "constant" if value.known is not None and value.role == "value" else value.role
            value.index = self.tensor(value.name, value.shape, value.dtype, role, value.source)
        return value.index

    def step(self) -> None:
        """Count one operator of the file; refuse a file whose loops and functions unfold without end."""
        self.steps += 1
        if self.steps > MOST_NODES:
            raise Unclear(f"over {MOST_NODES} operations")

    def add(self, op: str, scope: str, inputs: list[Value], outputs: list[Value], done: Done) -> None:
        """Add an operator's nodes; none when all of its results are known beforehand.

        Args:
            op, scope: as in `core.graph.Node`.
            inputs: its operands.
            outputs: its results, without tensors as yet.
            done: what it makes and does.
        """
        if outputs and all(value.known is not None for value in outputs):
            return
        tensors = [value for one in inputs for value in (one.items if one.items is not None else (one,))]
        taken = tuple(self.index(value) for value in tensors)
        for result, value in zip(done.results, outputs, strict=False):
            if result.view_of is not None and value.index is None:
                value.source = self.tensors[self.index(inputs[result.view_of])].storage
        made = tuple(self.index(value) for value in outputs if value.items is None)
        dtype = _arithmetic([self.tensors[at].dtype for at in (*taken, *made)])
        if not done.work:
            self._append(Node(op[:100], VIEW, (), dtype, taken, made, scope))
            return
        for work in done.work:
            inner = work.dtype or dtype
            between = () if work.between is None else (self.tensor(f"{outputs[0].name}.part", work.between, inner, "value"),)
            self._append(self._node(op, scope, work, inner, taken, between or made))
            taken = (*taken, *between)

    def _node(self, op: str, scope: str, work: Work, dtype: str, taken: tuple[int, ...], made: tuple[int, ...]) -> Node:
        marks = dict.fromkeys(work.marks)
        if self.serial:
            marks["serial_scan"] = None
        if dtype == "fp64":
            marks["fp64"] = None
        if dtype.startswith("complex"):
            marks["complex"] = None
        return Node(op[:100], work.kind, self._repeated(work), dtype, taken, made, scope[:MOST_NAME], "forward", tuple(marks))

    def _repeated(self, work: Work) -> tuple[Extent, ...]:
        if len(work.dims) != len(DIMS[work.kind]):
            raise Unclear(f"an operation of kind {work.kind} with {len(work.dims)} dims")
        if self.repeats == 1:
            return work.dims
        wide = _SPREAD.get(work.kind, 1)
        return tuple(extent * self.repeats if place < wide else extent for place, extent in enumerate(work.dims))

    def _append(self, node: Node) -> None:
        if len(self.nodes) >= MOST_NODES:
            raise Unclear(f"over {MOST_NODES} operations")
        self.nodes.append(node)

    def graph(self, form: str, title: str, outputs: list[Value]) -> Graph:
        """Return the graph; symbols that nothing follows are left out."""
        answers = tuple(self.index(one) for value in outputs for one in (value.items if value.items is not None else (value,)))
        used: set[str] = set()
        for extent in (*(e for one in self.tensors for e in one.shape), *(e for one in self.nodes for e in one.dims)):
            if isinstance(extent, Polynomial):
                used.update(name for monomial, _ in extent.terms for name in monomial)
        symbols = tuple((name, value) for name, value in self.extents.values.items() if name in used)
        notes = tuple(self.extents.notes)
        return Graph(form, title, tuple(self.tensors), tuple(self.nodes), answers, symbols, notes=notes)


def elements(shape: Shape) -> Extent:
    """Return how many elements a shape has."""
    return product(shape)


def _arithmetic(dtypes: list[str]) -> str:
    fractions = [one for one in dtypes if one.startswith(("fp", "bf", "complex"))]
    return (fractions or [one for one in dtypes if one != "bool"] or dtypes or ["fp32"])[0]
