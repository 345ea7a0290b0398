"""From traces at several batches and lengths to polynomials, without torch."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import BadInput
from core.graph import Graph
from core.symbols import BATCH, LENGTH, symbol, value_of
from intake.readers.torch_fit import BOTH, ONE, Fitter, Misfit, Point, fitted
from intake.readers.torch_follow import follow
from intake.readers.torch_record import At, Made, Seen, Trace

B, L = symbol(BATCH), symbol(LENGTH)
POINTS = (Point(11, 128), Point(13, 128), Point(11, 264), Point(13, 264), Point(2, 196))
WHOLE = st.integers(-50, 50)


@settings(deadline=None)
@given(WHOLE, WHOLE, WHOLE, WHOLE)
def test_a_polynomial_is_found_again_from_its_values(none: int, batch: int, length: int, both: int) -> None:
    wanted = none + batch * B + length * L + both * (B * L)
    values = tuple(value_of(wanted, {BATCH: one.batch, LENGTH: one.length}) for one in POINTS)
    assert Fitter(BOTH, POINTS).extent(values) == wanted


@settings(deadline=None)
@given(st.lists(st.integers(0, 10**6), min_size=5, max_size=5))
def test_whatever_is_found_passes_through_every_value(values: list[int]) -> None:
    try:
        found = Fitter(BOTH, POINTS).extent(tuple(values))
    except Misfit:
        return
    assert [value_of(found, {BATCH: one.batch, LENGTH: one.length}) for one in POINTS] == values


@pytest.mark.parametrize("by", [3, 5, 7, 100])
def test_a_floor_division_is_no_polynomial(by: int) -> None:
    with pytest.raises(Misfit):
        Fitter(BOTH, POINTS).extent(tuple(one.batch * (one.length // by) for one in POINTS))


def test_a_padding_to_chunks_is_no_polynomial() -> None:
    with pytest.raises(Misfit):
        Fitter(BOTH, POINTS).extent(tuple(one.batch * (-(-one.length // 256) * 256) for one in POINTS))


def _model(layers: int, point: Point, odd: bool = False) -> Trace:
    """Layers of one product each, as a recorder would write them down."""
    rows = point.batch * point.length
    trace = Trace([Seen("x", (point.batch, point.length, 8), "fp32", "input", 0)], outputs=[0])
    last = 0
    for layer in range(layers):
        weight, made = len(trace.tensors), len(trace.tensors) + 1
        trace.tensors += [Seen(f"layers.{layer}.weight", (8, 8), "fp32", "parameter", weight),
                          Seen("", (rows, 8), "fp32", "value", made)]
        arguments = {"self": At(last), "mat2": At(weight)}
        trace.calls.append(Made("aten.mm", "default", arguments, (last, weight), (made,), f"layers.{layer}", False))
        if odd and point.length > 150:
            trace.calls.append(trace.calls[-1])
        last = made
    trace.deaths[0] = 0
    trace.outputs[:] = [last]
    return trace


def _flat(point: Point) -> Trace:
    """As `_model`, its input already two-dimensional."""
    trace = _model(3, point)
    trace.tensors[0] = Seen("x", (point.batch * point.length, 8), "fp32", "input", 0)
    return trace


def test_traces_become_one_graph_that_follows_batch_and_length() -> None:
    graph = fitted("small", [_flat(point) for point in POINTS], POINTS, BOTH, {})
    assert [node.dims for node in graph.nodes] == [(1, B * L, 8, 8)] * 3
    assert graph.tensors[0].dies == 0
    assert graph.tensors[1].dies is None


def _followed(short: bool, odd: bool = False) -> tuple[Graph, list[int]]:
    made: list[int] = []

    def run(layers: int, point: Point) -> Trace:
        trace = _model(layers, point, odd)
        trace.tensors[0] = Seen("x", (point.batch * point.length, 8), "fp32", "input", 0)
        made.append(layers)
        return trace

    graph = follow("small", Point(1, 128), lambda point: run(20, point), {}, lengths=(128, 264, 196),
                   short=(lambda point: run(2, point)) if short else None)
    return graph, made


def test_a_shortened_model_saves_the_whole_one_from_being_traced_more_than_once() -> None:
    graph, made = _followed(short=True)
    assert made.count(20) == 1
    assert graph == _followed(short=False)[0]
    assert graph.symbols == ((BATCH, 1), (LENGTH, 128))


def test_a_length_that_changes_the_operations_is_fixed_and_said() -> None:
    graph, _ = _followed(short=False, odd=True)
    assert graph.symbols == ((BATCH, 1),)
    assert graph.nodes[0].dims == (1, 128 * B, 8, 8)
    assert graph.notes == ("length is fixed at 128: the operations, or their sizes, change with it",)


def test_a_module_that_loops_over_the_steps_is_marked_as_serial() -> None:
    def run(point: Point) -> Trace:
        trace = _flat(point)
        trace.calls += [trace.calls[-1]] * (point.length // 4)
        return trace

    graph = follow("small", Point(1, 128), run, {}, lengths=(128, 264, 196))
    assert graph.symbols == ((BATCH, 1),)
    assert {node.scope for node in graph.nodes if node.marks == ("serial_scan",)} == {"layers.0", "layers.1", "layers.2"}


def test_a_model_that_fails_everywhere_is_refused_in_one_line() -> None:
    def run(_: Point) -> Trace:
        raise RuntimeError("no kernel\nfor this")

    with pytest.raises(BadInput, match=r"got small that cannot be traced over shapes \(RuntimeError: no kernel for this\)"):
        follow("small", Point(1, 128), run, {}, lengths=(128, 264, 196))


def test_a_tensor_beyond_any_memory_is_refused() -> None:
    def run(point: Point) -> Trace:
        trace = _flat(point)
        trace.tensors[1] = Seen("weight", (2**40, 2**40), "fp32", "parameter", 1)
        return trace

    with pytest.raises(BadInput, match="machine can address"):
        follow("small", Point(1, 128), run, {})


def test_one_batch_alone_leaves_the_length_a_number() -> None:
    points = (Point(2, 64), Point(3, 64), Point(5, 64))
    graph = fitted("small", [_flat(point) for point in points], points, ONE, {})
    assert graph.nodes[0].dims == (1, 64 * B, 8, 8)
    assert graph.symbols == ((BATCH, 2),)
