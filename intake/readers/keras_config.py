"""Reads a Keras model's config as data: Sequential and Functional models of Keras 2 and 3, whatever they nest.

The graph of layers is followed as the config states it; each layer is read by a function of ours (`keras_layers`). A model whose
class is somebody's own says nothing of its layers in its config, so it is refused with what to do.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import TypeAlias

from core.errors import BadInput
from core.graph import Graph, Shape
from core.symbols import BATCH, LENGTH
from intake.readers.keras_layers import DEPTH, INPUTS, LAYERS, MODELS, foreign, kind_of, make
from intake.readers.keras_layers_base import Call, Layer, NeedsNumber, Ref, Registry, Stated, Trace, dtype_of, flat
from intake.readers.keras_layers_open import open_shape, stated_shape
from intake.readers.plain_json import is_list, is_mapping, mapping, sequence

CAPTURE = "capture the model where it runs: ./tandem capture script.py:make_model"
_IMAGE, _LENGTH, _MOST_LAYERS = 224, 128, 100_000
History: TypeAlias = tuple[str, int, int]
"""Name of a layer, number of its call, number of the result."""


@dataclass(frozen=True, slots=True)
class _Job:
    """One call of one layer."""

    layer: str
    at: int
    node: object


def read_model(document: object, kind: str, title: str, options: Mapping[str, object]) -> Graph:
    """Return the graph of a model from its config.

    Args:
        document: with `class_name` and `config`, as Keras writes it.
        kind: format that the graph is said to be of.
        title: name where the config has none.
        options: `batch`, `length` and `image`, where the asker knows them.

    Raises:
        BadInput: a class that is not Keras's own, or settings and shapes that cannot be used.
    """
    held = mapping(document)
    given = kind_of(held)
    if given not in MODELS:
        got = f"a model of class {held.get('registered_name') or held.get('class_name') or 'no name'!s:.80}"
        raise BadInput(got, "a Sequential or Functional model; a class of one's own says nothing of its layers", CAPTURE)
    symbols = {BATCH: _option(options, "batch", 1), LENGTH: _option(options, "length", _LENGTH)}
    fixed: frozenset[str] = frozenset()
    for _ in range(len(symbols) + 1):
        trace = Trace(_REGISTRY, symbols, fixed, _option(options, "image", _IMAGE))
        try:
            layer = make(trace, held, "")
            top = Layer(layer.name, layer.kind, _settings(held), "", layer.compute, layer.variable, layer.trained, layer.build)
            result = trace.apply(top, Call(()))
        except NeedsNumber as needed:
            if not needed.names - fixed:
                break
            fixed |= needed.names
            continue
        notes = tuple(f"{name} is fixed at {symbols[name]}: a size does not follow it as a polynomial" for name in sorted(fixed))
        name = mapping(held.get("config")).get("name")
        return trace.graph(kind, name if isinstance(name, str) and name else title, flat(result), notes)
    raise BadInput("sizes that follow neither batch nor length", "layers whose sizes can be told", CAPTURE)


def _option(options: Mapping[str, object], name: str, default: int) -> int:
    value = options.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 2**31 else default


def _settings(held: Mapping[str, object]) -> Mapping[str, object]:
    """Return a model's config; the oldest Sequential has its list of layers in its place."""
    config = held.get("config")
    return {"layers": config} if is_list(config) else mapping(config)


def _input(trace: Trace, layer: Layer) -> Ref:
    config = layer.config
    shape = config.get("batch_shape") or config.get("batch_input_shape")
    dtype = config.get("dtype")
    return trace.add(
        layer.name, open_shape(trace, shape, layer.name), dtype_of(dtype if isinstance(dtype, str) else "float32"), "input"
    )


def _history(item: object) -> History | None:
    """Return what a reference to a layer's result says, in Keras 3's form or in Keras 2's."""
    if mapping(item).get("class_name") == "__keras_tensor__":
        item = mapping(mapping(item).get("config")).get("keras_history")
    parts = sequence(item)
    if (
        len(parts) in (3, 4)
        and isinstance(parts[0], str)
        and isinstance(parts[1], int)
        and isinstance(parts[2], int)
        and min(parts[1], parts[2]) >= 0
    ):
        return parts[0], parts[1], parts[2]
    return None


def _histories(item: object) -> Iterable[tuple[History, object]]:
    found = _history(item)
    if found is not None:
        yield found, item
        parts = sequence(item)
        if len(parts) == 4:
            yield from _histories(parts[3])
        return
    for one in mapping(item).values() if is_mapping(item) else sequence(item):
        yield from _histories(one)


class _Results:
    """What has been computed so far, by layer and number of its call."""

    def __init__(self, late: frozenset[str] = frozenset()) -> None:
        self.held: dict[tuple[str, int], tuple[Ref, ...]] = {}
        self.late = late

    def key(self, history: History) -> tuple[str, int]:
        """Return layer and call; those of a model within the model are counted from 1 where its own making counts as one."""
        return history[0], history[1] - (history[0] in self.late and history[1] > 0)

    def find(self, history: History) -> Ref:
        """Return a tensor that a reference names."""
        found = self.held.get(self.key(history), ())
        if not 0 <= history[2] < len(found):
            raise BadInput(f"a reference to result {history[2]} of call {history[1]} of layer {history[0]:.60}",
                "a result that it has",
                           "save the model again with Keras")  # fmt: skip
        return found[history[2]]

    def resolve(self, trace: Trace, item: object) -> object:
        """Return arguments with their references replaced by tensors."""
        found = _history(item)
        if found is not None:
            return self.find(found)
        held = mapping(item)
        if held.get("class_name") in ("__tensor__", "__numpy__"):
            config = mapping(held.get("config"))
            return trace.add("stored", _nest_shape(config.get("value")), dtype_of(config.get("dtype")), "constant")
        if is_mapping(item):
            return {key: self.resolve(trace, one) for key, one in held.items()}
        return [self.resolve(trace, one) for one in sequence(item)] if is_list(item) else item


def _nest_shape(value: object) -> Shape:
    shape: list[int] = []
    while is_list(value) and len(shape) < 16:
        items = sequence(value)
        shape.append(len(items))
        value = items[0] if items else None
    return tuple(shape)


def functional(trace: Trace, layer: Layer, call: Call) -> object:
    """A Functional model: its layers in an order in which they can run."""
    config, entries = layer.config, sequence(layer.config.get("layers"))
    if not entries or len(entries) > _MOST_LAYERS or trace.depth >= DEPTH:
        raise BadInput(f"model {layer.name:.60} of {len(entries)} layers, {trace.depth} models deep",
                       f"1 to {_MOST_LAYERS} layers, at most {DEPTH} deep", "save the model again with Keras")  # fmt: skip
    parts = _parts(trace, layer, entries)
    old = any(is_list(node) for entry in map(mapping, entries) for node in sequence(entry.get("inbound_nodes")))
    made = frozenset(
        name for name, part in parts.items() if part.kind in MODELS and (part.kind != "Sequential" or (old and _has_input(part)))
    )
    results, jobs = _Results(made if old else frozenset()), list[_Job]()
    _feed(trace, parts, results, config.get("input_layers"), call)
    for entry in map(mapping, entries):
        name = str(entry.get("name") or mapping(entry.get("config")).get("name"))
        jobs += [
            _Job(name, at, node) for at, node in enumerate(sequence(entry.get("inbound_nodes"))) if parts[name].kind not in INPUTS
        ]
    declared = _declared(jobs, results)
    trace.depth += 1
    for job in _in_order(jobs, results):
        _perform(trace, parts[job.layer], job, results, declared.get((job.layer, job.at), {}))
    trace.depth -= 1
    if config.get("output_layers") is None:
        raise BadInput(
            f"model {layer.name:.60} without output_layers", "those that Keras writes", "save the model again with Keras"
        )
    results.late = made
    return results.resolve(trace, config["output_layers"])


def _has_input(part: Layer) -> bool:
    first = mapping((sequence(part.config.get("layers")) or [None])[0])
    return first.get("class_name") in INPUTS or "batch_input_shape" in mapping(first.get("config"))


def _parts(trace: Trace, layer: Layer, entries: Iterable[object]) -> dict[str, Layer]:
    if not layer.parts:
        for entry in entries:
            made = make(trace, entry, layer.scope)
            if made.name in layer.parts:
                raise BadInput(f"two layers with the name {made.name:.60}", "a name for each", "save the model again with Keras")
            layer.parts[made.name] = made
            if made.kind in MODELS:
                made.config = _settings(mapping(entry))
            made.trained = made.trained and layer.trained
    return layer.parts


def _feed(trace: Trace, parts: Mapping[str, Layer], results: _Results, inputs: object, call: Call) -> None:
    """Give a model's input layers their tensors: those of the call, or new inputs."""
    named = [history for history, _ in _histories(inputs)]
    given = flat(call.args)
    first = call.args[0] if call.args else None
    if is_mapping(first) and is_mapping(inputs):
        pairs = [(_history(mapping(inputs).get(key)), flat(value)) for key, value in mapping(first).items()]
        named = [history for history, refs in pairs if history and refs]
        given = tuple(refs[0] for history, refs in pairs if history and refs)
    if given and len(given) < len(named):
        raise BadInput(f"a model of {len(named)} inputs called with {len(given)}", "as many", "save the model again with Keras")
    for at, history in enumerate(named):
        if history[0] not in parts:
            raise BadInput(
                f"an input layer {history[0]:.60} that the model does not have",
                "one of its layers",
                "save the model again with Keras",
            )
        results.held[history[0], 0] = (given[at] if given else _input(trace, parts[history[0]]),)
    for name, part in parts.items():
        if part.kind in INPUTS and (name, 0) not in results.held:
            results.held[name, 0] = (_input(trace, part),)


def _declared(jobs: Iterable[_Job], results: _Results) -> dict[tuple[str, int], dict[int, Stated]]:
    """Return the shapes that a config says of layers' results where others use them."""
    found: dict[tuple[str, int], dict[int, Stated]] = {}
    for job in jobs:
        for history, item in _histories(job.node):
            config = mapping(mapping(item).get("config"))
            if config.get("shape") is not None:
                dtype = config.get("dtype")
                told = stated_shape(config["shape"], history[0]), dtype_of(dtype if isinstance(dtype, str) else "float32")
                found.setdefault(results.key(history), {})[history[2]] = told
    return found


def _in_order(jobs: list[_Job], results: _Results) -> Iterable[_Job]:
    """Yield calls so that each comes after those whose results it takes.

    Raises:
        BadInput: a circle, or a result that no call gives.
    """
    known = set(results.held)
    waiting: dict[tuple[str, int], list[int]] = {}
    missing: list[int] = []
    for at, job in enumerate(jobs):
        needed = {results.key(history) for history, _ in _histories(job.node)} - known
        missing.append(len(needed))
        for one in needed:
            waiting.setdefault(one, []).append(at)
    ready = [at for at, number in enumerate(missing) if number == 0]
    heapify(ready)
    done = 0
    while ready:
        job = jobs[heappop(ready)]
        yield job
        done += 1
        for at in waiting.pop((job.layer, job.at), []):
            missing[at] -= 1
            if missing[at] == 0:
                heappush(ready, at)
    if done < len(jobs):
        name = next((name for name, _ in waiting), "")
        raise BadInput(f"layers that wait for layer {name:.60} in a circle, or for one that is not there",
            "layers that can run in some order",
                       "save the model again with Keras")  # fmt: skip


def _perform(trace: Trace, layer: Layer, job: _Job, results: _Results, declared: Mapping[int, Stated]) -> None:
    node, kwargs = job.node, dict[str, object]()
    if is_mapping(node):
        args = [results.resolve(trace, one) for one in sequence(mapping(node).get("args"))]
        kwargs = {key: results.resolve(trace, one) for key, one in mapping(mapping(node).get("kwargs")).items()}
    else:
        found = _history(node)
        whole = [node] if found is not None else sequence(node)
        values = [results.resolve(trace, one) for one in whole]
        args = [values[0] if len(values) == 1 else values]
        for one in whole:
            parts = sequence(one)
            kwargs |= {key: results.resolve(trace, item) for key, item in mapping(parts[3] if len(parts) == 4 else None).items()}
    given = flat(trace.apply(layer, Call(tuple(args), kwargs, declared)))
    for number, (shape, _) in declared.items():
        if number < len(given) and not _agree(trace.shape(given[number]), shape):
            read, told = (
                "x".join("?" if one is None else str(one) for one in group) for group in (trace.shape(given[number]), shape)
            )
            trace.note(f"layer {layer.name:.80} gives {read}, but the file states {told}")
    results.held[job.layer, job.at] = given


def _agree(found: Shape, told: tuple[int | None, ...]) -> bool:
    return len(found) == len(told) and all(
        a == b or not (isinstance(a, int) and isinstance(b, int)) for a, b in zip(found, told, strict=True)
    )


def sequential(trace: Trace, layer: Layer, call: Call) -> object:
    """A Sequential model: each layer takes what the one before gives."""
    entries = sequence(layer.config.get("layers"))
    if not entries or len(entries) > _MOST_LAYERS or trace.depth >= DEPTH:
        raise BadInput(f"model {layer.name:.60} of {len(entries)} layers, {trace.depth} models deep",
                       f"1 to {_MOST_LAYERS} layers, at most {DEPTH} deep", "save the model again with Keras")  # fmt: skip
    parts = list(_parts(trace, layer, entries).values())
    given = flat(call.args)
    value: object = given[0] if given else _first(trace, layer, parts)
    trace.depth += 1
    rest = [part for part in parts if part.kind not in INPUTS]
    for part, after in zip(rest, [*rest[1:], None], strict=True):
        told = mapping(after.build).get("input_shape") if after is not None else None
        single = is_list(told) and not any(is_list(one) for one in sequence(told))
        declared = {0: (stated_shape(told, part.name), part.compute)} if single else {}
        value = trace.apply(part, Call((value,) if value is not None else (), {}, declared))
    trace.depth -= 1
    return value


def _first(trace: Trace, layer: Layer, parts: list[Layer]) -> Ref | None:
    """Return the input of a Sequential model; None where its first layer is a model with inputs of its own."""
    if parts[0].kind in INPUTS:
        return _input(trace, parts[0])
    first = parts[0]
    if first.kind in MODELS:
        return None
    told = (layer.config.get("build_input_shape"), first.config.get("batch_input_shape"), first.config.get("batch_shape"),
            mapping(layer.build).get("input_shape"), mapping(first.build).get("input_shape"))  # fmt: skip
    shape = next((one for one in told if is_list(one)), None)
    if shape is None:
        raise BadInput(f"model {layer.name:.60} that was never built: no input shape",
            "an Input, or a model that was called once",
                       "call the model on one batch and save it again")  # fmt: skip
    whole = first.kind in ("Embedding", "ReversibleEmbedding")
    text = first.kind in ("TextVectorization", "StringLookup")
    return trace.add("input", open_shape(trace, shape, layer.name), "int32" if whole else "string" if text else "fp32", "input")


_REGISTRY: Registry = {**LAYERS, "Functional": functional, "Model": functional, "Sequential": sequential, "custom": foreign}
