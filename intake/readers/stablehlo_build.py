"""A graph while a program is walked: tensors, nodes, and the whole numbers that are known beforehand.

Unlike a list of operators, a program has loops whose count is found by trying one pass, so what was added can be taken back
(`back_to`) or be multiplied (`multiply`).
"""

from dataclasses import dataclass, field, replace
from typing import TypeAlias

from core.graph import Node, Shape, Tensor
from core.symbols import Extent
from intake.readers.draft import MOST_NODES, MOST_TENSORS, Work
from intake.readers.symbolic import Extents, Unclear

MOST_STEPS = 3 * MOST_NODES
"""Operations that are walked in all, those that cost nothing included."""
Mark: TypeAlias = tuple[int, int]
"""How many tensors and nodes there were."""
_GROWING = {"reduce": 2, "custom": 3}
"""Dims, from the first, that grow when a node is repeated; 1 for kinds that are not named."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where in the program the walk is.

    Args:
        path: of the call, as JAX writes it.
        loops: around it, outermost first: which pass it is, None where passes are not told apart.
        depth: of calls and regions.
    """

    path: str = ""
    loops: tuple[int | None, ...] = ()
    depth: int = 0


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop that was walked.

    Args:
        first, last: its nodes are those from `first` up to, not including, `last`.
        serial: whether it is known to make more than one pass.
    """

    first: int
    last: int
    serial: bool


@dataclass(slots=True)
class Builder:
    """Tensors and nodes so far.

    Args:
        extents: the program's symbols.
        known: elements of tensors that are known beforehand, by tensor.
        derived: tensors that are a copy or a cast of another, and of which.
        loops: that were walked.
        notes: what was assumed, each once, with how often.
        carried: tensors that a loop hands from one pass to the next: they lie in memory in between.
    """

    extents: Extents
    tensors: list[Tensor] = field(default_factory=list[Tensor])
    nodes: list[Node] = field(default_factory=list[Node])
    known: dict[int, tuple[Extent, ...]] = field(default_factory=dict[int, "tuple[Extent, ...]"])
    derived: dict[int, int] = field(default_factory=dict[int, int])
    loops: list[Loop] = field(default_factory=list[Loop])
    notes: dict[str, int] = field(default_factory=dict[str, int])
    carried: set[int] = field(default_factory=set[int])
    steps: int = 0

    def tensor(self, name: str, shape: Shape, dtype: str, role: str = "value", storage: int | None = None) -> int:
        """Add a tensor and return its number."""
        if len(self.tensors) >= MOST_TENSORS:
            raise Unclear(f"over {MOST_TENSORS} tensors")
        self.extents.check(shape, name)
        at = len(self.tensors)
        self.tensors.append(Tensor(name[:300], shape, dtype, role, at if storage is None else storage))
        return at

    def node(self, node: Node) -> None:
        """Add a node."""
        if len(self.nodes) >= MOST_NODES:
            raise Unclear(f"over {MOST_NODES} operations")
        self.nodes.append(node)

    def step(self) -> None:
        """Count one operation that was walked; refuse a program that unfolds without end."""
        self.steps += 1
        if self.steps > MOST_STEPS:
            raise Unclear(f"over {MOST_STEPS} operations when calls and loops are unfolded")

    def note(self, text: str) -> None:
        """Note something, and how often it occurred."""
        self.notes[text] = self.notes.get(text, 0) + 1

    def mark(self) -> Mark:
        """Return where it stands, for `back_to`."""
        return len(self.tensors), len(self.nodes)

    def back_to(self, mark: Mark) -> None:
        """Take back everything that was added since."""
        tensors, nodes = mark
        for at in range(tensors, len(self.tensors)):
            self.known.pop(at, None)
            self.derived.pop(at, None)
        del self.tensors[tensors:]
        del self.nodes[nodes:]
        self.loops = [one for one in self.loops if one.last <= nodes]
        self.carried = {at for at in self.carried if at < tensors}

    def multiply(self, first: int, times: Extent) -> None:
        """Count the nodes from `first` on `times` times."""
        for at in range(first, len(self.nodes)):
            node = self.nodes[at]
            wide = _GROWING.get(node.kind, 1) if node.dims else 0
            dims = tuple(extent * times if place < wide else extent for place, extent in enumerate(node.dims))
            self.nodes[at] = replace(node, dims=dims)

    def flag(self, first: int, last: int, mark: str, first_only: bool = False) -> None:
        """Mark the nodes from `first` to `last` that compute something, or the first of them."""
        for at in range(first, last):
            node = self.nodes[at]
            if node.dims and mark not in node.marks:
                self.nodes[at] = replace(node, marks=(*node.marks, mark))
            if node.dims and first_only:
                return

    def root(self, at: int) -> Tensor:
        """Return the tensor that owns the memory of another."""
        return self.tensors[self.tensors[at].storage]

    def source(self, at: int) -> int:
        """Return the tensor that another is a copy, a cast or a view of."""
        for _ in range(64):
            before = self.derived.get(at, self.tensors[at].storage)
            if before == at:
                break
            at = before
        return at


def marks_of(work: Work, dtype: str) -> tuple[str, ...]:
    """Return the marks of an operation with those of its dtype."""
    own = ("fp64",) if dtype == "fp64" else ("complex",) if dtype.startswith("complex") else ()
    return tuple(dict.fromkeys((*work.marks, *own)))
