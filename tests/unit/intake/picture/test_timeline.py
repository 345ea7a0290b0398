"""Bytes over time: what is held at the worst moment, against a plain simulation that allocates and frees step after step."""

from dataclasses import replace
from itertools import product as combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.graph import VIEW, Graph
from core.picture import WORD, greatest
from core.symbols import Extent, symbol, value_of
from intake.picture.backward import gradients_of
from intake.picture.timeline import compute_dtype, derived_spans, forward_spans, peaks, size_of, traced_spans
from tests.unit.intake.picture.sketch import Sketch

BATCH, LENGTH = symbol("batch"), symbol("length")
SYMBOLS = {"batch": 20, "length": 40}
ROWS = (BATCH, BATCH * LENGTH, 12, LENGTH + 3)


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """A chain with branches: products, sums, views; some results are asked for again much later."""
    sketch = Sketch(dtype=draw(st.sampled_from(["fp32", "bf16"])))
    rows = draw(st.sampled_from(ROWS))
    made = [sketch.given(rows, 4)]
    for _ in range(draw(st.integers(1, 9))):
        x = made[draw(st.integers(0, len(made) - 1))]
        match draw(st.sampled_from(["product", "each", "view", "mean"])):
            case "product":
                wide = draw(st.sampled_from([2, 4, 16]))
                x = sketch.product(sketch.product(x, sketch.weight(4, wide)), sketch.weight(wide, 4))
            case "each":
                op = draw(st.sampled_from(["aten.mul", "aten.add", "aten.relu"]))
                x = sketch.each(op, x) if op == "aten.relu" else sketch.each(op, x, made[-1])
            case "view":
                x = sketch.view(x, *sketch.tensors[x].shape)
            case _:
                index = sketch.tensor(rows, dtype="int64")
                sketch.node("aten.argmax", "reduce", (rows * 4, rows), (x,), (index,))
        made.append(x)
    sketch.product(made[-1], sketch.weight(4, 3))
    return sketch.graph(draw(st.sampled_from(made)), len(sketch.tensors) - 1, symbols=tuple(SYMBOLS.items()))


def grid() -> list[dict[str, int]]:
    values = combinations((2, 20, 640), (4, 40, 640), (1, 4))
    return [{"batch": batch, "length": length, WORD: word} for batch, length, word in values]


def sizes(graph: Graph, dtype: str, values: dict[str, int]) -> list[int]:
    return [value_of(size_of(graph, at, dtype), values) for at in range(len(graph.tensors))]


def simulated_forward(graph: Graph, dtype: str, values: dict[str, int]) -> int:
    """Allocate a result when it is made, free it when nobody will use it and nobody asked for it."""
    size, held, worst = sizes(graph, dtype, values), set[int](), 0
    owner = [one.storage for one in graph.tensors]
    asked = {owner[at] for at in graph.outputs}
    for moment, node in enumerate(graph.nodes):
        held |= {owner[at] for at in node.outputs}
        worst = max(worst, sum(size[at] for at in held if graph.tensors[at].role == "value"))
        later = {owner[at] for after in graph.nodes[moment + 1 :] for at in (*after.inputs, *after.outputs)}
        held &= later | asked
    return worst


def simulated_training(graph: Graph, dtype: str, values: dict[str, int]) -> int:
    """Go forward and keep what backward parts read; go back, make gradients when first needed, free them behind their maker."""
    size, found = sizes(graph, dtype, values), gradients_of(graph)
    owner = [one.storage for one in graph.tensors]
    asked = {owner[at] for at in graph.outputs}
    makers: dict[int, int] = {}
    for moment, node in enumerate(graph.nodes):
        for at in node.outputs:
            makers.setdefault(owner[at], moment)
    held, gradients, worst = set[int](), set[int](), 0

    def weigh() -> int:
        values_held = sum(size[at] for at in held if graph.tensors[at].role == "value")
        return values_held + sum(size[at] for at in gradients)

    for moment, node in enumerate(graph.nodes):
        held |= {owner[at] for at in node.outputs}
        worst = max(worst, weigh())
        later = {owner[at] for after in graph.nodes[moment + 1 :] for at in (*after.inputs, *after.outputs)}
        held &= later | asked | set(found.kept)
    for moment, node in reversed(list(enumerate(graph.nodes))):
        touched = {owner[at] for at in (*node.inputs, *node.outputs)}
        gradients |= {at for at in touched if found.needing[at] and graph.tensors[at].role in {"value", "parameter"}}
        worst = max(worst, weigh())
        gradients -= {at for at in gradients if makers.get(at) == moment}
        held -= {at for at in held - asked if found.kept.get(at) == moment}
    return worst


@settings(max_examples=120, deadline=None)
@given(graphs())
def test_a_forward_pass_holds_what_a_simulation_holds(graph):
    dtype = compute_dtype(graph)
    found = peaks(forward_spans(graph, dtype), SYMBOLS)
    for values in grid():
        assert greatest(found, values) == simulated_forward(graph, dtype, values)


@settings(max_examples=120, deadline=None)
@given(graphs())
def test_training_holds_what_a_simulation_holds(graph):
    dtype = compute_dtype(graph)
    found = peaks(derived_spans(graph, gradients_of(graph), dtype), SYMBOLS)
    for values in grid():
        assert greatest(found, values) == simulated_training(graph, dtype, values)


def spans(graph: Graph, how=forward_spans) -> set[tuple[Extent, int, int]]:
    return {(span.size, span.born, span.dies) for span in how(graph, compute_dtype(graph))}


def test_a_result_is_held_to_its_last_use_and_an_answer_to_the_end():
    sketch = Sketch()
    a = sketch.each("aten.relu", sketch.given(2, 5))
    b = sketch.each("aten.relu", a)
    sketch.each("aten.add", a, b)
    assert spans(sketch.graph(b)) == {(10 * symbol(WORD), 0, 2), (10 * symbol(WORD), 1, 3), (10 * symbol(WORD), 2, 2)}


def test_what_a_trace_saw_of_freed_memory_counts_more_than_the_last_use():
    sketch = Sketch()
    held = sketch.tensor(7, dies=2)
    x = sketch.given(7)
    sketch.node("aten.relu", "elementwise", (7, 1, 1), (x,), (held,))
    y = sketch.each("aten.relu", held)
    z = sketch.each("aten.relu", y)
    word = symbol(WORD)
    # y, of which no release was seen, was there to the end; so was the answer
    assert spans(sketch.graph(z)) == {(7 * word, 0, 2), (7 * word, 1, 3), (7 * word, 2, 3)}


def test_a_result_that_is_gone_before_it_is_made_never_reaches_memory():
    sketch = Sketch()
    first = sketch.each("aten.relu", sketch.given(4, 4))
    second = sketch.each("aten.relu", first)
    third = sketch.each("aten.relu", second)
    sketch.tensors[first] = replace(sketch.tensors[first], dies=1)
    sketch.tensors[second] = replace(sketch.tensors[second], dies=0)
    spans = forward_spans(sketch.graph(third), "fp32")
    assert [(one.storage, one.born, one.dies) for one in spans] == [(first, 0, 1), (third, 2, 3)]


def traced() -> Sketch:
    """y = relu(x @ w), the loss its sum, and the gradient of w; nobody saw memory become free."""
    sketch = Sketch()
    x, w = sketch.given(BATCH, 8), sketch.weight(8, 4)
    y = sketch.each("aten.relu", sketch.product(x, w))
    loss = sketch.tensor()
    sketch.node("aten.sum", "reduce", (4 * BATCH, 1), (y,), (loss,))
    sketch.phase = "backward"
    g = sketch.each("aten.threshold_backward", y, y)
    made = sketch.tensor(8, 4)
    sketch.node("aten.mm", "matmul", (1, 8, 4, BATCH), (x, g), (made,))
    return sketch


def test_gradients_of_parameters_are_what_a_traced_backward_pass_leaves():
    graph = traced().graph(4, has_backward=True, symbols=(("batch", 2),))
    word = symbol(WORD)
    assert spans(graph, traced_spans) == {
        (4 * BATCH * word, 0, 1), (4 * BATCH * word, 1, 3), (word, 2, 5), (4 * BATCH * word, 3, 4), (32 * word, 4, 5),
    }  # fmt: skip


def test_a_forward_pass_out_of_a_traced_training_step_leaves_the_loss_out():
    sketch = traced()
    graph = sketch.graph(4, 3, has_backward=True, symbols=(("batch", 2),))  # the loss and the result of the nonlinearity
    assert [(span.born, span.dies) for span in forward_spans(graph, "fp32")] == [(0, 1), (1, 2)]
    assert len(forward_spans(sketch.graph(4, has_backward=True), "fp32")) == 3  # where the loss is all there is, it counts


def test_the_worst_moment_may_be_another_one_for_another_length():
    sketch = Sketch()
    x = sketch.given(LENGTH, 4)
    scores = sketch.tensor(LENGTH, LENGTH)
    sketch.node("aten.mm", "matmul", (1, LENGTH, LENGTH, 4), (x, x), (scores,))
    narrow = sketch.product(scores, sketch.weight(LENGTH, 4))
    wide = sketch.product(narrow, sketch.weight(4, 1000))
    found = peaks(forward_spans(sketch.graph(sketch.product(wide, sketch.weight(1000, 2))), "fp32"), {"length": 640})
    assert len(found) == 2
    short, long = ({"length": length, WORD: 4} for length in (64, 10_240))
    assert greatest(found, short) == 4 * 64 * (4 + 1000)
    assert greatest(found, long) == 4 * 10_240 * (10_240 + 4)


def test_nothing_held_is_nothing_told():
    assert peaks([], {"batch": 4}) == ()


@pytest.mark.parametrize(("weights", "arithmetic", "expected"), [
    ((("bf16", 100), ("fp32", 10)), "fp32", "bf16"), ((("fp16", 10), ("fp32", 100)), "fp16", "fp32"), ((), "bf16", "bf16"),
    ((("int8", 100),), "fp16", "fp16"), ((("int8", 100),), "int8", "fp32"),
])  # fmt: skip
def test_the_compute_dtype_is_that_of_most_weights_else_of_most_operations(weights, arithmetic, expected):
    sketch = Sketch()
    for dtype, count in weights:
        sketch.weight(count, dtype=dtype)
    sketch.each("aten.relu", sketch.given(4, dtype=arithmetic))
    assert compute_dtype(sketch.graph()) == expected


@pytest.mark.parametrize(("dtype", "size"), [
    ("bf16", 6 * symbol(WORD)), ("int64", 48), ("bool", 6), ("fp32", 24), ("int4", 6), ("complex64", 48),
])  # fmt: skip
def test_only_the_compute_dtype_follows_the_word(dtype, size):
    sketch = Sketch()
    assert size_of(sketch.graph(sketch.tensor(2, 3, dtype=dtype)), 0, "bf16") == size


def test_a_view_is_no_memory_of_its_own():
    sketch = Sketch()
    x = sketch.each("aten.relu", sketch.given(2, 6))
    sketch.each("aten.relu", sketch.view(x, 12))
    assert [node.kind for node in sketch.nodes] == ["elementwise", VIEW, "elementwise"]
    assert spans(sketch.graph(3)) == {(12 * symbol(WORD), 0, 2), (12 * symbol(WORD), 2, 3)}
