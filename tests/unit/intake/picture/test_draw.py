"""The picture of a graph, counted by hand; and that large graphs become pictures with work that grows as they do."""

from math import prod
from pathlib import Path

import pytest

from core.graph import Graph
from core.graph_json import graph_from_json
from core.ops import Op
from core.picture import WORD, Picture, greatest
from core.symbols import symbol, value_of
from intake.picture import picture_of
from intake.picture.draw import CACHE, REST, UNUSED
from intake.readers import stablehlo
from intake.source import PathSource
from tests.calls import calls_of
from tests.unit.intake.picture.sketch import Sketch, layers

BATCH, LENGTH = symbol("batch"), symbol("length")
SAMPLES = Path(__file__).parents[3] / "samples" / "models" / "stablehlo"


def flop(picture: Picture, phase: str, **asked: int) -> int:
    """Of products, all repeats together."""
    values = picture.values(**asked)
    return sum(
        block.repeats * one.count * Op(one.kind, tuple(value_of(side, values) for side in one.dims), "fp32").flop
        for block in picture.blocks for one in block.operations if one.phase == phase and one.kind == "matmul"
    )  # fmt: skip


def test_parameters_and_products_are_those_of_the_graph():
    picture = picture_of(layers(6, rows=BATCH).graph(symbols=(("batch", 4),)))
    weights = 3 * 8 + 6 * 2 * 8 * 16 + 8 * 5
    assert picture.parameter_count == weights
    assert flop(picture, "forward") == 2 * 4 * weights
    assert flop(picture, "backward") == 2 * 2 * 4 * weights - 2 * 4 * 3 * 8  # the input needs no gradient
    assert flop(picture, "forward", batch=100) == 25 * flop(picture, "forward")


def test_a_layer_is_told_once_with_its_repeats():
    block = next(block for block in picture_of(layers(6).graph()).blocks if block.name == "layers.*")
    assert (block.repeats, block.parts) == (6, ("layers.0", "layers.1", "layers.2"))
    assert {one.shape: one.count for one in block.parameters} == {(8, 16): 1, (16, 8): 1}
    forward = {(one.kind, one.dims): one.count for one in block.operations if one.phase == "forward"}
    assert forward == {
        ("matmul", (1, 4, 16, 8)): 1, ("elementwise", (64, 1, 1)): 1, ("matmul", (1, 4, 8, 16)): 1,
        ("elementwise", (32, 2, 1)): 1,
    }  # fmt: skip


def test_what_a_layer_keeps_and_is_given_is_told_in_bytes():
    block = next(block for block in picture_of(layers(6, rows=BATCH).graph(symbols=(("batch", 4),))).blocks if block.repeats == 6)
    word = symbol(WORD)
    # the result of the nonlinearity and the sum that the next layer takes; given: the sum of the layer before
    assert block.saved == BATCH * (16 + 8) * word
    assert block.given == BATCH * 8 * word


def test_shared_weights_count_once_and_unused_ones_are_told_apart():
    sketch = Sketch()
    table = sketch.weight(100, 8)
    ids, rows = sketch.given(4, dtype="int64"), sketch.tensor(4, 8)
    sketch.node("aten.embedding", "embedding", (4, 8, 100), (table, ids), (rows,))
    turned = sketch.view(table, 8, 100)
    out = sketch.product(rows, turned)
    sketch.weight(7, 7)
    picture = picture_of(sketch.graph(out))
    assert picture.parameter_count == 100 * 8 + 49
    assert [(block.name, [one.shape for one in block.parameters]) for block in picture.blocks] == [
        ("model", [(100, 8)]), (UNUSED, [(7, 7)]),
    ]  # fmt: skip


def test_buffers_are_no_trained_parameters():
    sketch = Sketch()
    table = sketch.tensor(16, 8, role="constant")
    picture = picture_of(sketch.graph(sketch.each("aten.mul", sketch.weight(16, 8), table)))
    assert picture.parameter_count == 128
    assert sorted((one.shape, one.trained) for block in picture.blocks for one in block.parameters) == [
        ((16, 8), False), ((16, 8), True),
    ]  # fmt: skip


def test_a_traced_backward_operation_stands_at_the_part_that_took_what_it_takes():
    sketch = Sketch()
    x = sketch.given(4, 8)
    sketch.scope = "first.body"
    w = sketch.weight(8, 16)
    h = sketch.product(x, w)
    sketch.scope = "second.body"
    v = sketch.weight(16, 2)
    out = sketch.product(h, v)
    sketch.phase, sketch.scope = "backward", ""
    gradient = sketch.tensor(4, 2)
    sketch.node("aten.mm", "matmul", (1, 16, 2, 4), (h, gradient), (sketch.tensor(16, 2),))
    back = sketch.product(gradient, v)
    sketch.node("aten.mm", "matmul", (1, 8, 16, 4), (x, back), (sketch.tensor(8, 16),))
    picture = picture_of(sketch.graph(out, has_backward=True))
    counted = {block.name: sum(one.count for one in block.operations if one.phase == "backward") for block in picture.blocks}
    assert counted == {"first.body": 1, "second.body": 2}


def test_what_does_not_come_out_even_over_the_layers_is_beside_them():
    sketch = layers(3)
    sketch.phase = "backward"
    sketch.each("aten.neg", sketch.nodes[-2].inputs[-1])  # what the sum at the end of the last layer takes
    picture = picture_of(sketch.graph(has_backward=True))
    rest = next(block for block in picture.blocks if block.name == REST)
    assert [(one.kind, one.phase, one.source) for one in rest.operations] == [("elementwise", "backward", "aten.neg")]
    assert not picture.derived


def test_operations_in_another_dtype_than_the_weights_say_so():
    sketch = Sketch(dtype="bf16")
    x = sketch.product(sketch.given(4, 8), sketch.weight(8, 8))
    wide = sketch.tensor(4, 8, dtype="fp32")
    sketch.node("aten._softmax", "softmax", (4, 8), (x,), (wide,))
    picture = picture_of(sketch.graph(wide))
    assert {one.kind: one.dtype for one in picture.blocks[0].operations if one.phase == "forward"} == {
        "matmul": "", "softmax": "fp32",
    }  # fmt: skip
    assert dict(picture.symbols)[WORD] == 2


def test_the_cache_of_keys_and_values_follows_length_and_word():
    picture = picture_of(layers(2).graph(facts=((CACHE, 96), ("active_parameters", 5))))
    assert value_of(picture.cache, {"length": 10, WORD: 2}) == 96 // 4 * 10 * 2
    assert picture.facts == (("active_parameters", 5),)


def test_inputs_are_bytes_of_one_call_and_views_of_them_nothing():
    sketch = Sketch(dtype="bf16")
    ids = sketch.given(BATCH, LENGTH, dtype="int64")
    sketch.product(sketch.given(BATCH, 8), sketch.weight(8, 8))
    sketch.view(ids, BATCH * LENGTH)
    picture = picture_of(sketch.graph(symbols=(("batch", 2), ("length", 3))))
    assert value_of(picture.inputs, {"batch": 2, "length": 3, WORD: 2}) == 8 * 6 + 2 * 16


def test_an_empty_graph_has_a_picture():
    picture = picture_of(Graph("hand", "nothing", (), ()))
    assert (picture.blocks, picture.parameter_count, picture.peak_training) == ((), 0, ())


def test_an_operation_without_a_result_is_counted_and_breaks_nothing():
    sketch = layers(2)
    sketch.node("jax.debug_callback", "custom", (0, 20, 0), (sketch.nodes[-1].outputs[0],), (), "host_read")
    picture = picture_of(sketch.graph())
    assert sum(one.count for block in picture.blocks for one in block.operations if one.kind == "custom") == 1
    assert [one.mark for one in picture.operations if one.mark == "host_read"] == ["host_read"]


@pytest.mark.parametrize(("forward", "traced"), [
    ("stack.mlir", "gradients.mlir"), ("stack_plain.mlir", "gradients_plain.mlir"),
])  # fmt: skip
def test_a_derived_backward_pass_computes_the_products_that_jax_traces(forward, traced):
    derived, real = (picture_of(_sample(name)) for name in (forward, traced))
    assert (derived.derived, real.derived) == (True, False)
    assert flop(derived, "backward") == flop(real, "backward") == 2 * flop(derived, "forward") - 2 * 8 * 16 * 32
    assert flop(derived, "forward") == flop(real, "forward")


@pytest.mark.parametrize(("forward", "traced"), [
    ("stack.mlir", "gradients.mlir"), ("stack_plain.mlir", "gradients_plain.mlir"),
])  # fmt: skip
def test_a_derived_backward_pass_holds_what_jax_traces(forward, traced):
    derived, real = (picture_of(_sample(name)) for name in (forward, traced))
    values, weights = {WORD: 4}, 4 * (16 * 32 + 32 + 5 * 32 * 32 + 32 * 4)
    assert greatest(real.peak_forward, values) == greatest(derived.peak_forward, values)
    assert greatest(real.peak_step, values) == pytest.approx(greatest(derived.peak_step, values), rel=0.01)
    assert greatest(real.peak_training, values) >= greatest(real.peak_step, values) - weights  # all gradients, and no more


def test_what_is_kept_is_what_the_backward_pass_reads_even_where_a_compiler_put_parts_of_it_early():
    sketch = Sketch()
    x, w = sketch.given(4, 8), sketch.weight(8, 16)
    sketch.phase = "backward"
    sketch.each("stablehlo.broadcast", sketch.given(4, 16))
    sketch.phase = "forward"
    kept = sketch.each("stablehlo.tanh", sketch.product(x, w))
    sketch.product(kept, sketch.weight(16, 2))
    sketch.phase = "backward"
    sketch.each("stablehlo.multiply", kept, kept)
    picture = picture_of(sketch.graph(has_backward=True))
    assert sum(value_of(block.saved, {WORD: 4}) for block in picture.blocks) == 4 * 16 * 4


def _sample(name: str) -> Graph:
    found = graph_from_json(stablehlo.read(PathSource(SAMPLES / name), {}))
    assert isinstance(found, Graph)
    return found


def large(count: int, *, named: bool) -> Graph:
    """Layers of 200 operations each, half of them views, as exporters write them."""
    sketch = Sketch()
    x = sketch.given(BATCH, 128)
    for number in range(count):
        sketch.scope = f"layers.{number}.mlp" if named else ""
        for at in range(50):
            x = sketch.product(sketch.view(x, BATCH, 128), sketch.weight(128, 128))
            x = sketch.each("aten.gelu" if at % 9 else "aten.relu", sketch.view(x, BATCH, 128))
    return sketch.graph(x, symbols=(("batch", 4),))


def test_a_graph_of_ten_thousand_operations_is_drawn_with_a_bounded_number_of_calls():
    graph = large(50, named=True)
    pictures: list[Picture] = []
    calls = calls_of(lambda: pictures.append(picture_of(graph)))
    assert len(graph.nodes) == 10_000
    assert [(block.name, block.repeats) for block in pictures[0].blocks] == [("layers.*", 50), (REST, 1)]
    assert pictures[0].parameter_count == prod((50, 50, 128, 128))
    assert calls < 200 * len(graph.nodes)


@pytest.mark.parametrize("named", [True, False])
def test_four_times_as_large_a_graph_takes_no_more_than_four_times_the_calls(named):
    small, fourfold = large(3, named=named), large(12, named=named)
    assert calls_of(lambda: picture_of(fourfold)) < 4.2 * calls_of(lambda: picture_of(small))
