"""What every Keras layer's reading rests on: a layer's settings with their types checked, and the trace that it writes into.

A layer is read as data: its class name is looked up in a table of ours (`keras_layers.LAYERS`), and a function of ours says which
weights it has, what shape it gives and what it computes. Nothing of Keras is imported, and nothing that a file names is run.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, cast

from core.errors import BadInput
from core.graph import VIEW, Graph, Node, Shape, Tensor
from core.ops import DIMS
from core.symbols import BATCH, LENGTH, Extent, Polynomial, divided, product, symbol, value_of
from intake.readers.plain_json import is_mapping, mapping, sequence

MOST_NODES, MOST_TENSORS, MOST_ELEMENTS, MOST_EXTENT, MOST_RANK = 200_000, 400_000, 2**62, 2**40, 16
_DTYPES = {
    "float32": "fp32", "float64": "fp64", "float16": "fp16", "bfloat16": "bf16", "half": "fp16", "string": "string",
    "bool": "bool", "complex64": "complex64", "complex128": "complex128", "float8_e4m3fn": "fp8", "float8_e5m2": "fp8",
    "int": "int32", **{f"{sign}int{bits}": f"{sign}int{bits}" for sign in ("", "u") for bits in (4, 8, 16, 32, 64)},
}  # fmt: skip
_POLICIES = {"mixed_float16": ("fp16", "fp32"), "mixed_bfloat16": ("bf16", "fp32")}


class NeedsNumber(Exception):
    """A size that no polynomial of these symbols says: the reader starts again with them as numbers."""

    def __init__(self, names: frozenset[str]) -> None:
        super().__init__(", ".join(sorted(names)))
        self.names = names


Stated: TypeAlias = tuple[tuple[int | None, ...], str]
"""Shape, None where it is open, and dtype that a config states of a result."""


@dataclass(frozen=True, slots=True)
class Ref:
    """A tensor, by its number; tells it from a number among the arguments of a layer."""

    index: int


@dataclass(frozen=True, slots=True)
class Call:
    """What a layer was called with.

    Args:
        args, kwargs: of the call; tensors are `Ref`s, alone or in lists.
        declared: shapes and dtypes that the file says the results have, by number of the result.
    """

    args: tuple[object, ...]
    kwargs: Mapping[str, object] = field(default_factory=dict[str, object])
    declared: Mapping[int, Stated] = field(default_factory=dict[int, "Stated"])

    def tensor(self, position: int, name: str) -> Ref | None:
        """Return one argument if it is a tensor."""
        value = self.args[position] if position < len(self.args) else self.kwargs.get(name)
        return value if isinstance(value, Ref) else None

    def every(self) -> tuple[Ref, ...]:
        """Return all tensors, in order."""
        return (*flat(self.args), *flat(tuple(self.kwargs.values())))


@dataclass(slots=True)
class Layer:
    """One layer of a config; it keeps its weights, so that a layer called twice has them once.

    Args:
        name, kind: its own name, and its class.
        config: as the file has it.
        scope: path of the modules around it, with its name.
        compute, variable: dtypes of its arithmetic and of its weights.
        trained: whether its weights are.
        build: shapes that it was built with, as the file says; None without.
    """

    name: str
    kind: str
    config: Mapping[str, object]
    scope: str
    compute: str = "fp32"
    variable: str = "fp32"
    trained: bool = True
    build: object = None
    weights: dict[str, Ref] = field(default_factory=dict[str, Ref])
    parts: dict[str, "Layer"] = field(default_factory=dict[str, "Layer"])

    def fault(self, key: str, expected: str) -> BadInput:
        """Return the error for a setting that cannot be used."""
        got = f"{self.config.get(key)!r:.60}"
        return BadInput(f"layer {self.name:.60} ({self.kind:.40}) with {key} {got}", expected, "save the model again with Keras")

    def whole(self, key: str, default: int | None = None, low: int = 1) -> int:
        """Return a whole number."""
        value = self.config.get(key)
        value = default if value is None else value
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= MOST_EXTENT:
            raise self.fault(key, f"a whole number of at least {low}")
        return value

    def wholes(self, key: str, count: int, default: int | None = None, low: int = 1) -> tuple[int, ...]:
        """Return so many whole numbers; one stands for all."""
        value = self.config.get(key)
        value = default if value is None else value
        items = [value] * count if isinstance(value, int) else sequence(value)
        if len(items) != count or not all(
            isinstance(one, int) and not isinstance(one, bool) and low <= one <= MOST_EXTENT for one in items
        ):
            raise self.fault(key, f"{count} whole numbers of at least {low}")
        return tuple(cast("list[int]", list(items)))

    def flag(self, key: str, default: bool = False) -> bool:
        """Return whether a setting is on."""
        value = self.config.get(key)
        return default if value is None else bool(value)

    def text(self, key: str, default: str = "") -> str:
        """Return a short text."""
        value = self.config.get(key)
        if value is not None and not isinstance(value, str):
            raise self.fault(key, "a text")
        return default if value is None else value

    def axis(self, value: object, rank: int, key: str = "axis") -> int:
        """Return an axis, counted from the front."""
        value = sequence(value)[0] if len(sequence(value)) == 1 else value
        if not isinstance(value, int) or not -rank <= value < rank:
            raise self.fault(key, f"an axis of {rank}")
        return value % rank

    def axes(self, value: object, rank: int, key: str = "axis") -> tuple[int, ...]:
        """Return axes, counted from the front; every one for None."""
        if value is None:
            return tuple(range(rank))
        return tuple(sorted({self.axis(one, rank, key) for one in ([value] if isinstance(value, int) else sequence(value))}))

    def first(self, rank: int) -> bool:
        """Whether channels come first."""
        return rank > 2 and self.text("data_format", "channels_last") == "channels_first"


Writer: TypeAlias = Callable[["Trace", Layer, Call], object]
Registry: TypeAlias = Mapping[str, Writer]


class Trace:
    """Tensors and operations, as layers write them."""

    def __init__(self, registry: Registry, symbols: Mapping[str, int], fixed: frozenset[str], image: int) -> None:
        """Start empty.

        Args:
            registry: what each known class of layer does.
            symbols: their values.
            fixed: those that stand as numbers.
            image: pixels of a side that the config leaves open.
        """
        self.registry, self.symbols, self.fixed, self.image = registry, dict(symbols), fixed, image
        self.tensors: list[Tensor] = []
        self.nodes: list[Node] = []
        self.notes: list[str] = []
        self.shared: dict[object, Layer] = {}
        self.depth = 0

    def apply(self, layer: Layer, call: Call) -> object:
        """Add what a layer computes, and return its results; one of another class than ours goes to `custom`.

        Raises:
            BadInput: settings or shapes that do not fit, or a custom layer whose shape the file does not state.
        """
        return self.registry.get(layer.kind, self.registry["custom"])(self, layer, call)

    def extent(self, name: str) -> Extent:
        """Return a symbol, or its number where it is fixed."""
        return self.symbols[name] if name in self.fixed else symbol(name)

    def note(self, text: str) -> None:
        """Keep a note once."""
        if text not in self.notes and len(self.notes) < 200:
            self.notes.append(text[:300])

    def number(self, extent: Extent) -> int:
        """Return the value that an extent has in the file."""
        return value_of(extent, self.symbols)

    def add(self, name: str, shape: Iterable[Extent], dtype: str, role: str = "value", storage: int | None = None) -> Ref:
        """Add a tensor.

        Raises:
            BadInput: too many of them, a negative extent, or a product that no machine holds.
        """
        kept, index = tuple(shape), len(self.tensors)
        values = [self.number(extent) for extent in kept]
        total = 1
        for value in values:
            total = min(total * max(value, 0), 2 * MOST_ELEMENTS)
        if index >= MOST_TENSORS or len(kept) > MOST_RANK or min(values, default=0) < 0 or total > MOST_ELEMENTS:
            raise BadInput(f"tensor {name:.80} of shape {values}"[:200],
                f"at most {MOST_TENSORS} tensors, of sizes from 0 to 2**62",
                           "check the layers before it")  # fmt: skip
        self.tensors.append(Tensor(name[:300], kept, dtype, role, index if storage is None else storage))
        return Ref(index)

    def weight(self, layer: Layer, name: str, shape: Iterable[Extent], trained: bool = True, dtype: str = "") -> Ref:
        """Return a weight of a layer, made at its first call."""
        kept = tuple(shape)
        if any(isinstance(extent, Polynomial) for extent in kept):
            raise NeedsNumber(names_of(kept))
        if name not in layer.weights:
            role = "parameter" if trained and layer.trained else "constant"
            layer.weights[name] = self.add(f"{layer.scope}.{name}", kept, dtype or layer.variable, role)
        held = self.shape(layer.weights[name])
        if held != kept:
            raise BadInput(f"layer {layer.name:.60} called with inputs that need {name} {held} and {kept}", "inputs of one width",
                           "save the model again with Keras")  # fmt: skip
        return layer.weights[name]

    def shape(self, ref: Ref) -> Shape:
        """Return a tensor's shape."""
        return self.tensors[ref.index].shape

    def dtype(self, ref: Ref) -> str:
        """Return a tensor's dtype."""
        return self.tensors[ref.index].dtype

    def node(self, layer: Layer, op: str, kind: str, dims: Iterable[Extent], inputs: Iterable[Ref], outputs: Iterable[Ref],
             marks: tuple[str, ...] = (), dtype: str = "") -> None:  # fmt: skip
        """Add an operation; marks for fp64 and complex numbers are added here."""
        kept = tuple(dims)
        assert kind == VIEW or len(kept) == len(DIMS[kind]), kind
        if len(self.nodes) >= MOST_NODES:
            raise BadInput(f"more than {MOST_NODES} operations", "a smaller model", "hand in one part of it")
        used = dtype or layer.compute
        wide = {"fp64": ("fp64",), "complex64": ("complex",), "complex128": ("complex",)}.get(used, ())
        self.nodes.append(Node(op[:100], kind, kept, used, tuple(one.index for one in inputs),
            tuple(one.index for one in outputs),
                               layer.scope[:300], "forward", (*marks, *wide)))  # fmt: skip

    def value(self, layer: Layer, shape: Iterable[Extent], dtype: str = "") -> Ref:
        """Add what a layer computes."""
        return self.add(f"{layer.scope}:{len(self.tensors)}", shape, dtype or layer.compute)

    def elementwise(self, layer: Layer, op: str, inputs: Sequence[Ref], flop: int, shape: Shape | None = None, dtype: str = "",
                    marks: tuple[str, ...] = ()) -> Ref:  # fmt: skip
        """Add an elementwise operation; its shape is its inputs' broadcast, or the one given."""
        given = shape if shape is not None else broadcast([self.shape(one) for one in inputs])
        result = self.value(layer, given, dtype)
        arithmetic = dtype or layer.compute
        self.node(layer, op, "elementwise", (product(given), len(inputs), flop), inputs, (result,), marks, arithmetic)
        return result

    def view(self, layer: Layer, op: str, source: Ref, shape: Iterable[Extent]) -> Ref:
        """Add a reshape, a transpose or a slice."""
        held = self.tensors[source.index]
        result = self.add(f"{layer.scope}:{len(self.tensors)}", shape, held.dtype, "value", held.storage)
        self.node(layer, op, VIEW, (), (source,), (result,), (), held.dtype)
        return result

    def matmul(self, layer: Layer, op: str, inputs: Sequence[Ref], dims: tuple[Extent, Extent, Extent, Extent],
               shape: Iterable[Extent]) -> Ref:  # fmt: skip
        """Add a matrix product of dims (batch, m, n, k)."""
        result = self.value(layer, shape)
        self.node(layer, op, "matmul", dims, inputs, (result,))
        return result

    def rowwise(self, layer: Layer, op: str, kind: str, source: Ref, width: Extent, more: Sequence[Ref] = (), dtype: str = "",
                marks: tuple[str, ...] = ()) -> Ref:  # fmt: skip
        """Add a softmax, norm or sort over rows of a width, with a result of the source's shape."""
        shape = self.shape(source)
        result = self.value(layer, shape, dtype)
        self.node(layer, op, kind, (self.ratio(product(shape), width), width), (source, *more), (result,), marks)
        return result

    def reduce(self, layer: Layer, op: str, source: Ref, shape: Iterable[Extent], dtype: str = "") -> Ref:
        """Add a reduction."""
        kept = tuple(shape)
        result = self.value(layer, kept, dtype)
        self.node(layer, op, "reduce", (product(self.shape(source)), product(kept)), (source,), (result,), (), dtype)
        return result

    def ratio(self, extent: Extent, by: Extent) -> Extent:
        """Return the exact quotient; the floor of numbers."""
        if isinstance(extent, int) and isinstance(by, int):
            return extent // by if by else 0
        found = divided(extent, by) if by != 0 else 0
        if found is None:
            raise NeedsNumber(names_of((extent, by)))
        return found

    def floor(self, extent: Extent, by: int) -> Extent:
        """Return the quotient rounded down, of a polynomial too where its symbols divide."""
        if isinstance(extent, int):
            return extent // by
        constant = dict(extent.terms).get((), 0)
        found = divided(extent - constant, by)
        if found is None:
            raise NeedsNumber(names_of((extent,)))
        return found + constant // by

    def graph(self, kind: str, title: str, outputs: Sequence[Ref], notes: tuple[str, ...]) -> Graph:
        """Return all of it as a graph."""
        used = names_of(extent for tensor in self.tensors for extent in tensor.shape)
        symbols = tuple(
            (name, self.symbols[name]) for name in sorted(used, key=lambda name: (name != BATCH, name != LENGTH, name))
        )
        return Graph(kind, title[:200], tuple(self.tensors), tuple(self.nodes), tuple(one.index for one in outputs), symbols,
            False,
                     (*notes, *self.notes))  # fmt: skip


def flat(value: object) -> tuple[Ref, ...]:
    """Return the tensors of a nest of lists and mappings, in order."""
    if isinstance(value, Ref):
        return (value,)
    items = mapping(value).values() if is_mapping(value) else sequence(value)
    return tuple(one for item in items for one in flat(item))


def names_of(extents: Iterable[Extent]) -> frozenset[str]:
    """Return the symbols of extents."""
    kept = (extent for extent in extents if isinstance(extent, Polynomial))
    return frozenset(name for extent in kept for monomial, _ in extent.terms for name in monomial)


def broadcast(shapes: Sequence[Shape]) -> Shape:
    """Return the shape of an elementwise operation.

    Raises:
        BadInput: shapes that do not fit.
    """
    rank = max((len(shape) for shape in shapes), default=0)
    result: list[Extent] = [1] * rank
    for shape in shapes:
        for at, extent in enumerate(shape, rank - len(shape)):
            if result[at] in (1, extent) or (isinstance(result[at], Polynomial) and extent != 1):
                result[at] = extent
            elif extent != 1 and not isinstance(extent, Polynomial):
                shown = " and ".join("x".join(map(str, one)) for one in shapes)
                raise BadInput(f"shapes {shown} that meet in one operation"[:200], "equal sizes, or 1", "check the layers' sizes")
    return tuple(result)


def one_input(trace: Trace, layer: Layer, call: Call, rank: int = 0) -> Ref:
    """Return the tensor that a layer was called with.

    Args:
        trace: that holds it.
        layer: that was called.
        call: its arguments.
        rank: that it must have at least.

    Raises:
        BadInput: none, or one of too few axes.
    """
    found = flat(call.args) or call.every()
    if not found or len(trace.shape(found[0])) < rank:
        got = f"an input of {len(trace.shape(found[0]))} axes" if found else "no input"
        raise BadInput(f"layer {layer.name:.60} ({layer.kind:.40}) with {got}", f"a tensor of at least {rank} axes",
                       "save the model again with Keras")  # fmt: skip
    return found[0]


def dtype_of(name: object) -> str:
    """Return the dtype that Keras's name stands for.

    Raises:
        BadInput: an unknown one.
    """
    if isinstance(name, str) and name in _DTYPES:
        return _DTYPES[name]
    raise BadInput(f"dtype {name!r:.60}", f"one of {', '.join(_DTYPES)}", "save the model again with Keras")


def policy_of(value: object) -> tuple[str, str]:
    """Return the dtypes of arithmetic and of weights that a layer's `dtype` stands for.

    Args:
        value: a name, or a serialised policy; None is float32.
    """
    if is_mapping(value):
        config = mapping(mapping(value).get("config"))
        name = config.get("source_name") or config.get("name") or mapping(config.get("default_policy")).get("config")
        return policy_of(mapping(name).get("name") if is_mapping(name) else name)
    if value is None:
        return "fp32", "fp32"
    if isinstance(value, str) and "_from_" in value:
        return policy_of(value.partition("_from_")[2])
    if isinstance(value, str) and value in _POLICIES:
        return _POLICIES[value]
    found = dtype_of(value)
    return found, found
