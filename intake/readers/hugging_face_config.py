"""Hugging Face `config.json`: any architecture that transformers itself contains, traced over shapes.

The only reader that asks a library what the model is, since 800 families are written down nowhere else: it runs in the sandbox,
makes no weight, and never runs code that the file names.
"""

# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false, reportUntypedBaseClass=false
# torch has no types here: it is imported inside functions, and its objects are Any.

from collections.abc import Mapping
from contextlib import nullcontext
from importlib import import_module
from typing import Any, cast

from core.errors import BadInput
from core.graph import Graph
from core.graph_json import graph_to_json
from core.picture import FIXED_LENGTH
from core.symbols import LENGTH
from intake.readers.hugging_face_facts import cache_per_token, facts_of, window_facts
from intake.readers.hugging_face_inputs import Inputs
from intake.readers.hugging_face_model import model_of
from intake.readers.hugging_face_scan import fused_scans
from intake.readers.hugging_face_values import asked_dtype, asked_phase, values_of
from intake.readers.torch_fit import FAILURES, Point
from intake.readers.torch_follow import follow
from intake.readers.torch_functions import NAMES
from intake.readers.torch_record import Trace
from intake.readers.torch_recorder import Recorder
from intake.readers.torch_trace import shortened, trace
from intake.source import Source

TITLE = "Hugging Face config.json"
SUFFIXES = (".json",)
NEEDS = ("torch", "transformers")
MOST_BATCH, MOST_LENGTH = 2**20, 2**24


def fits(name: str, head: bytes) -> bool:
    """Whether a file is a configuration: JSON that names its model type."""
    del name
    start = head.lstrip()[:1]
    return start == b"{" and (b'"model_type"' in head or b'"architectures"' in head)


def prepare() -> None:
    """Import what every configuration needs; the family's own module is imported when it is known."""
    for name in (
        "torch._meta_registrations", "torch._refs.nn.functional", "transformers.modeling_utils",
        "transformers.models.auto.modeling_auto", "transformers.utils.output_capturing",
    ):  # fmt: skip
        import_module(name)


def read(source: Source, options: Mapping[str, object]) -> dict[str, object]:
    """Return the graph of a configuration.

    Args:
        source: the file.
        options: `phase` (`train`, `infer` or `decode`; training unless said otherwise), `batch`, `length`, `dtype`, and for
            decoding `context`, the tokens that the cache holds. `kernels` is `processor` where torch's own for the processor are
            meant, which has fewer that are fused; those of accelerators otherwise.

    Raises:
        BadInput: transformers does not contain it, or it cannot be traced over shapes.
    """
    return graph_to_json(graph_of(values_of(source), options))


def graph_of(values: object, options: Mapping[str, object]) -> Graph:
    """Return the graph of the mapping that a configuration holds; arguments and errors as in `read`."""
    phase = asked_phase(options)
    module, notes = model_of(values, asked_dtype(options))
    return traced_graph(module, notes, phase, options)


def traced_graph(module: Any, notes: list[str], phase: str, options: Mapping[str, object]) -> Graph:
    """Return the graph of a model on the meta device; arguments and errors as in `read`."""
    inputs = Inputs(module, phase == "train")
    if phase != "train":
        module.requires_grad_(False)
    asked = _asked(inputs, phase, options, notes)
    run = _runner(module, inputs, phase, options.get("kernels") == "processor")
    _settle(inputs, run, asked, notes)

    lengths = _lengths(inputs, asked.length) if inputs.has_length() else ()
    with shortened(module) as worth:
        pass
    title = type(module).__name__
    graph = follow(title, asked, run, NAMES, lengths=lengths, short=_shortly(module, run) if worth else None)
    facts = (*facts_of(module, graph), *cache_per_token(module, inputs), *window_facts(module))
    if lengths and LENGTH not in dict(graph.symbols):
        facts = (*facts, (FIXED_LENGTH, asked.length))
    told = tuple(dict.fromkeys((*notes, *graph.notes)))
    said = [f"{name} {value}" for name, value in facts if name == "active_parameters"]
    more = (f"mixture of experts: {said[0].replace('_', ' ')}",) if said else ()
    return Graph(
        "hugging_face", title, graph.tensors, graph.nodes, graph.outputs, graph.symbols, graph.has_backward, told + more, facts
    )


def _shortly(module: Any, run: Any) -> Any:
    def short(point: Point) -> Trace:
        with shortened(module):
            return cast("Trace", run(point))

    return short


def _asked(inputs: Inputs, phase: str, options: Mapping[str, object], notes: list[str]) -> Point:
    batch = _whole(options, "batch", 1, MOST_BATCH)
    name = "context" if phase == "decode" and "context" in options else "length"
    length = _whole(options, name, min(128, inputs.longest() or 128), MOST_LENGTH)
    longest = inputs.longest()
    if longest is not None and length > longest and inputs.has_length():
        notes.append(f"length {length} is beyond the {longest} positions of the model: {longest} is taken")
        length = longest
    return Point(batch, length)


def _whole(options: Mapping[str, object], name: str, default: int, most: int) -> int:
    value = options.get(name, default)
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= most:
        raise BadInput(f"{name} {value!r:.40}", f"a whole number from 1 to {most}", f"give a {name} in that range")
    return value


def _lengths(inputs: Inputs, asked: int) -> tuple[int, int, int]:
    """Three lengths: the asked one and two beyond it where the model has positions for them, else three below its bound.

    Where a model works in chunks, multiples of them: what is padded up to a chunk follows no polynomial.
    """
    longest, chunk = inputs.longest(), inputs.chunk()
    if chunk > 1 and asked % chunk == 0:
        return asked, 2 * asked, 3 * asked
    far = 2 * asked + 8
    if longest is None or far <= longest:
        return asked, far, asked + asked // 2 + 4
    top = min(asked, longest - 1)
    return max(3, top * 3 // 4), max(1, top // 2 - 1), max(2, top * 5 // 8)


def _runner(module: Any, inputs: Inputs, phase: str, processor: bool) -> Any:
    def run(point: Point) -> Trace:
        def make(recorder: Recorder) -> tuple[tuple[Any, ...], dict[str, Any]]:
            if phase == "decode":
                return (), inputs.decoding(recorder, point)
            return (), inputs.make(recorder, point)

        with nullcontext() if processor else fused_scans():
            return trace(module, make, phase == "train", processor=processor)

    return run


def _settle(inputs: Inputs, run: Any, asked: Point, notes: list[str]) -> None:
    """Leave labels out where the loss cannot be computed over shapes; say why where not even that helps."""
    if not inputs.training:
        return
    small = Point(2, min(asked.length, 32))
    try:
        with shortened(inputs.model):
            run(small)
    except FAILURES:
        _settle_whole(inputs, run, small, notes)  # not every model bears to be shortened


def _settle_whole(inputs: Inputs, run: Any, small: Point, notes: list[str]) -> None:
    try:
        run(small)
    except FAILURES:
        inputs.labels = False
        notes.append("the loss hangs on values: the sum of all results stands in for it")
