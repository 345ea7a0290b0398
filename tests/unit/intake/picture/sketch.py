"""A graph by hand, for tests: tensors and operations are named as they come, so that what is asserted can be counted on paper."""

from dataclasses import dataclass, field, replace

from core.graph import VIEW, Graph, Node, Shape, Tensor
from core.symbols import Extent, product


@dataclass(slots=True)
class Sketch:
    """A graph as it is drawn; every method returns the index of the tensor that it makes.

    Args:
        dtype: of tensors that say none.
        scope: of the operations that follow.
        phase: of the operations that follow.
    """

    dtype: str = "fp32"
    scope: str = ""
    phase: str = "forward"
    tensors: list[Tensor] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)

    def tensor(self, *shape: Extent, role: str = "value", dtype: str = "", of: int | None = None, dies: int | None = None) -> int:
        """Add a tensor; `of` is the one whose memory it looks at."""
        at = len(self.tensors)
        storage = at if of is None else self.tensors[of].storage
        self.tensors.append(Tensor(f"t{at}", tuple(shape), dtype or self.dtype, role, storage, dies))
        return at

    def given(self, *shape: Extent, dtype: str = "") -> int:
        """Add an input."""
        return self.tensor(*shape, role="input", dtype=dtype)

    def weight(self, *shape: Extent, dtype: str = "") -> int:
        """Add a parameter."""
        return self.tensor(*shape, role="parameter", dtype=dtype)

    def node(self, op: str, kind: str, dims: Shape, inputs: tuple[int, ...], outputs: tuple[int, ...], *marks: str) -> None:
        """Add an operation whose results are there already."""
        dtype = self.tensors[outputs[0] if outputs else inputs[0]].dtype
        self.nodes.append(Node(op, kind, dims, dtype, inputs, outputs, self.scope, self.phase, marks))

    def product(self, x: int, w: int) -> int:
        """Add `x @ w` of the last axis of `x` with a matrix."""
        *rows, k = self.tensors[x].shape
        n = self.tensors[w].shape[-1]
        made = self.tensor(*rows, n)
        self.node("aten.mm", "matmul", (1, product(rows), n, k), (x, w), (made,))
        return made

    def each(self, op: str, *inputs: int, flop: int = 1) -> int:
        """Add an elementwise operation."""
        shape = max((self.tensors[at].shape for at in inputs), key=len)
        made = self.tensor(*shape, dtype=self.tensors[inputs[0]].dtype)
        self.node(op, "elementwise", (product(shape), len(inputs), flop), inputs, (made,))
        return made

    def view(self, x: int, *shape: Extent) -> int:
        """Add a view."""
        made = self.tensor(*shape, of=x, dtype=self.tensors[x].dtype)
        self.node("aten.view", VIEW, (), (x,), (made,))
        return made

    def graph(self, *outputs: int, **known: object) -> Graph:
        """Return the graph with these answers; `symbols` and `facts` as pairs, `has_backward` as it is."""
        return replace(Graph("hand", "a sketch", tuple(self.tensors), tuple(self.nodes), outputs), **known)


def layers(count: int, width: int = 8, *, named: bool = True, rows: int = 4) -> Sketch:
    """Return `count` equal layers of two products with a nonlinearity and a residual: four nodes each."""
    sketch = Sketch(scope="embed" if named else "")
    x = sketch.product(sketch.given(rows, 3), sketch.weight(3, width))
    for number in range(count):
        sketch.scope = f"layers.{number}" if named else ""
        wide = sketch.each("aten.relu", sketch.product(x, sketch.weight(width, 2 * width)))
        x = sketch.each("aten.add", x, sketch.product(wide, sketch.weight(2 * width, width)))
    sketch.scope = "head" if named else ""
    sketch.product(x, sketch.weight(width, 5))
    return sketch
