"""A graph becomes a picture: parts, their operations forward and backward, parameters, and bytes over time."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from core.graph import VIEW, Graph, Node
from core.picture import FIXED_LENGTH, WORD, Operation, ParameterShape, Picture, PictureBlock
from core.symbols import LENGTH, Extent, Polynomial, symbol, total
from intake.picture.backward import Gradients, backward_nodes, gradients_of
from intake.picture.parts import Part, parts_of
from intake.picture.portability import portability_of
from intake.picture.program import program_of
from intake.picture.tiles import Tiles, inflated
from intake.picture.timeline import Span, compute_dtype, derived_spans, forward_spans, peaks, size_of, traced_spans

CACHE = "kv_cache_bytes_per_token"
"""Fact of a graph: bytes, in its compute dtype, of keys and values that one more token of one sequence keeps."""
REST, UNUSED = "beside the layers", "parameters that no operation uses"
_WORD_BYTES = {"fp64": 8, "fp32": 4, "bf16": 2, "fp16": 2, "fp8": 1}
_Operations = Counter[tuple[str, tuple[Extent, ...], str, str, str]]
_Parameters = Counter[tuple[tuple[int, ...], str, bool]]
_Key = TypeVar("_Key")


@dataclass(slots=True)
class _Pile:
    """What was found of one part, all repeats together."""

    part: Part
    operations: _Operations = field(default_factory=_Operations)
    parameters: _Parameters = field(default_factory=_Parameters)
    saved: list[Extent] = field(default_factory=list[Extent])
    given: list[Extent] = field(default_factory=list[Extent])


@dataclass(frozen=True, slots=True)
class _Sorted:
    """A graph with its nodes sorted into piles.

    Args:
        graph: it.
        dtype: its compute dtype.
        piles: one for each part.
        places: for each forward node, its pile and its repeat.
    """

    graph: Graph
    dtype: str
    piles: tuple[_Pile, ...]
    places: dict[int, tuple[_Pile, int]]


def picture_of(graph: Graph) -> Picture:
    """Return the picture of a graph.

    Args:
        graph: as a reader made it, forward alone or with the backward pass that was traced.
    """
    dtype, parts, found = compute_dtype(graph), parts_of(graph), gradients_of(graph)
    piles = tuple(_Pile(part) for part in parts)
    places = {at: (pile, turn) for pile in piles for turn, (_, nodes) in enumerate(pile.part.members) for at in nodes}
    work = _Sorted(graph, dtype, piles, places)
    training, kept = _training(graph, found, dtype)
    _add_operations(work, found)
    unused = _add_parameters(work)
    _add_memory(work, kept)
    facts = dict(graph.facts)
    cache, word = facts.pop(CACHE, 0), _WORD_BYTES.get(dtype, 4)
    length = facts.get(FIXED_LENGTH) or symbol(LENGTH)
    given = [size_of(graph, at, dtype) for at, one in enumerate(graph.tensors) if one.role == "input" and one.storage == at]
    symbols, forward = dict(graph.symbols), forward_spans(graph, dtype)
    passing = [span for span in training if not span.left]
    return _with_tiles(Picture(
        graph.title, graph.format, tuple(_blocks(piles, unused)), (*graph.symbols, (WORD, word)),
        peaks(forward, symbols), peaks(passing, symbols), peaks(training, symbols), total(given),
        cache // word * symbol(WORD) * length if cache else 0, portability_of(graph, parts, dtype),
        tuple(facts.items()), graph.notes, not graph.has_backward,
        compiled=graph.compiled, program=program_of(graph, training if graph.has_backward else forward, dtype),
    ), graph, forward, passing)  # fmt: skip


def _with_tiles(picture: Picture, graph: Graph, forward: list[Span], training: list[Span]) -> Picture:
    """Return a picture with what its passes hold, inputs among it, when arrays lie in the tiles of a TPU."""
    tiles, symbols, values = Tiles(graph, compute_dtype(graph)), dict(graph.symbols), dict(picture.symbols)
    given = total(tiles.size_of(at) for at, one in enumerate(graph.tensors) if one.role == "input" and one.storage == at)
    held = [(tiles.spans(forward) + list(tiles.turned()), picture.peak_forward), (tiles.spans(training), picture.peak_training)]
    found = [
        inflated(tuple(one + given for one in peaks(spans, symbols)), tuple(one + picture.inputs for one in plain), values)
        for spans, plain in held
    ]  # fmt: skip
    return replace(picture, tiled_forward=found[0], tiled_training=found[1])


def _training(graph: Graph, found: Gradients, dtype: str) -> tuple[list[Span], frozenset[int]]:
    """Return what a training pass holds, and the storages that are kept from its forward to its backward part."""
    if not graph.has_backward:
        return derived_spans(graph, found, dtype), frozenset(at for at in found.kept if graph.tensors[at].role == "value")
    spans = traced_spans(graph, dtype)
    turn = next((at for at, node in enumerate(graph.nodes) if node.phase == "backward"), len(graph.nodes))
    if any(node.phase == "forward" for node in graph.nodes[turn:]):
        # compilers put parts of the backward pass early, so that there is no moment between: what it reads is what is kept
        made, read = ({graph.tensors[at].storage for node in graph.nodes if node.phase == phase
                       for at in (node.outputs if phase == "forward" else node.inputs)}
                      for phase in ("forward", "backward"))  # fmt: skip
        return spans, frozenset(at for at in made & read if graph.tensors[at].role == "value")
    return spans, frozenset(span.storage for span in spans if span.born < turn <= span.dies)


def _add_operations(work: _Sorted, found: Gradients) -> None:
    """Count each operation in its part; a backward one in that of the forward operation that it belongs to."""
    graph = work.graph
    for i, (pile, _) in work.places.items():
        _count(pile, graph.nodes[i], work.dtype)
    if not graph.has_backward:
        for i, node in backward_nodes(graph, found):
            _count(work.places[i][0], node, work.dtype)
        return
    users, pile = _users(work), work.piles[-1] if work.piles else _Pile(Part("model", ()))
    for i, node in enumerate(graph.nodes):
        if i not in work.places:
            pile = _belongs(graph, node, users, pile)
            _count(pile, node, work.dtype)


def _users(work: _Sorted) -> dict[int, list[_Pile]]:
    """Return for each storage the parts whose forward operations take it, in their order."""
    users: dict[int, list[_Pile]] = {}
    for i, (pile, _) in sorted(work.places.items(), key=lambda item: item[0]):
        for at in work.graph.nodes[i].inputs:
            known = users.setdefault(work.graph.tensors[at].storage, [])
            if not known or known[-1] is not pile:
                known.append(pile)
    return users


def _belongs(graph: Graph, node: Node, users: dict[int, list[_Pile]], before: _Pile) -> _Pile:
    """Return the part that a traced backward operation belongs to: the one that took what it takes, weights first.

    Where several took it, it is the one of the operation before, or else the last, since the backward pass comes from the end;
    one that takes gradients alone belongs with the operation before it.
    """
    storages = [graph.tensors[at].storage for at in node.inputs]
    storages.sort(key=lambda at: graph.tensors[at].role != "parameter")
    found = next((users[at] for at in storages if at in users), None)
    if found is None:
        return before
    return before if any(one is before for one in found) else found[-1]


def _count(pile: _Pile, node: Node, dtype: str) -> None:
    if node.kind != VIEW:
        pile.operations[(node.kind, node.dims, "" if node.dtype == dtype else node.dtype, node.phase, node.op)] += 1


def _owners(work: _Sorted) -> dict[int, _Pile]:
    """Return for each parameter and constant, by its storage, the first part that uses it."""
    graph = work.graph
    first: dict[int, _Pile] = {}
    for i, (pile, _) in sorted(work.places.items(), key=lambda item: item[0]):
        for at in graph.nodes[i].inputs:
            storage = graph.tensors[at].storage
            if graph.tensors[storage].role in {"parameter", "constant"}:
                first.setdefault(storage, pile)
    return first


def _add_parameters(work: _Sorted) -> _Parameters:
    """Give each parameter and constant to the first part that uses it, and return those that none uses."""
    graph = work.graph
    first = _owners(work)
    unused: _Parameters = Counter()
    for at, one in enumerate(graph.tensors):
        if one.role in {"parameter", "constant"} and one.storage == at:
            shape = tuple(side for side in one.shape if isinstance(side, int))
            target = first[at].parameters if at in first else unused
            target[(shape, "" if one.dtype == work.dtype else one.dtype, one.role == "parameter")] += 1
    return unused


def _add_memory(work: _Sorted, kept: frozenset[int]) -> None:
    """Give what is kept to the part that makes it, and what a repeat takes from elsewhere to the first that takes it."""
    graph = work.graph
    makers: dict[int, tuple[_Pile, int]] = {}
    taken: set[int] = set()
    for i, place in sorted(work.places.items(), key=lambda item: item[0]):
        for at in graph.nodes[i].inputs:
            storage = graph.tensors[at].storage
            if graph.tensors[storage].role == "value" and makers.get(storage) != place and storage not in taken:
                taken.add(storage)
                place[0].given.append(size_of(graph, storage, work.dtype))
        for at in graph.nodes[i].outputs:
            makers.setdefault(graph.tensors[at].storage, place)
    for at in kept:
        if at in makers:
            makers[at][0].saved.append(size_of(graph, at, work.dtype))


def _blocks(piles: Sequence[_Pile], unused: _Parameters) -> Iterator[PictureBlock]:
    """Yield the blocks; what does not come out even over the repeats of a part is told in a block of its own at the end."""
    rest_operations: _Operations = Counter()
    rest_parameters: _Parameters = Counter()
    rest_saved: list[Extent] = []
    rest_given: list[Extent] = []
    for pile in piles:
        repeats = len(pile.part.members)
        operations, left = _shared(pile.operations, repeats)
        rest_operations += left
        parameters, left_parameters = _shared(pile.parameters, repeats)
        rest_parameters += left_parameters
        (saved, left_saved), (given, left_given) = _shares(total(pile.saved), repeats), _shares(total(pile.given), repeats)
        rest_saved.append(left_saved)
        rest_given.append(left_given)
        paths = tuple(path for path, _ in pile.part.members[:3])
        yield PictureBlock(pile.part.name, repeats, _operations(operations), _parameters(parameters), saved, given, paths)
    saved, given = total(rest_saved), total(rest_given)
    if rest_operations or rest_parameters or saved:
        yield PictureBlock(REST, 1, _operations(rest_operations), _parameters(rest_parameters), saved, given)
    if unused:
        yield PictureBlock(UNUSED, 1, (), _parameters(unused), 0, 0)


def _shared(counted: Counter[_Key], repeats: int) -> tuple[Counter[_Key], Counter[_Key]]:
    each = Counter({key: count // repeats for key, count in counted.items() if count >= repeats})
    return each, Counter({key: count % repeats for key, count in counted.items() if count % repeats})


def _shares(extent: Extent, repeats: int) -> tuple[Extent, Extent]:
    """Return the share of one repeat, whole numbers of every product of symbols, and what is left over."""
    if isinstance(extent, int):
        return extent // repeats, extent % repeats
    each = total(Polynomial(((monomial, factor // repeats),)) for monomial, factor in extent.terms if factor // repeats)
    return each, extent - each * repeats


def _operations(counted: _Operations) -> tuple[Operation, ...]:
    return tuple(Operation(*key[:3], count, *key[3:]) for key, count in counted.items())


def _parameters(counted: _Parameters) -> tuple[ParameterShape, ...]:
    return tuple(ParameterShape(shape, dtype, count, trained) for (shape, dtype, trained), count in counted.items())
