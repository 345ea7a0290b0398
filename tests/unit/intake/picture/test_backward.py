"""The derived backward pass: what needs a gradient, what is kept for it, what it computes; against automatic differentiation."""

from itertools import pairwise
from itertools import product as combinations

import pytest

from core.graph import Graph
from core.ops import Op
from core.symbols import symbol, value_of
from intake.picture.backward import backward_nodes, gradients_of
from tests.unit.intake.picture.sketch import Sketch

BATCH = symbol("batch")


def backward_of(graph: Graph, frozen: frozenset[int] = frozenset()) -> list[tuple[str, tuple[object, ...]]]:
    return [(node.kind, node.dims) for _, node in backward_nodes(graph, gradients_of(graph, frozen))]


def test_a_product_has_one_product_for_each_operand_that_needs_a_gradient():
    sketch = Sketch()
    hidden = sketch.product(sketch.given(BATCH, 8), sketch.weight(8, 16))
    out = sketch.product(hidden, sketch.weight(16, 4))
    assert backward_of(sketch.graph(out)) == [
        ("matmul", (1, BATCH, 16, 4)), ("matmul", (1, 16, 4, BATCH)),  # of the hidden layer, of the second weight
        ("matmul", (1, 8, 16, BATCH)),  # the input needs none
    ]  # fmt: skip


def test_a_frozen_weight_needs_no_product_of_its_own_but_passes_the_gradient_on():
    sketch = Sketch()
    first, second = sketch.weight(8, 16), sketch.weight(16, 4)
    out = sketch.product(sketch.product(sketch.given(2, 8), first), second)
    assert backward_of(sketch.graph(out), frozenset({second})) == [("matmul", (1, 2, 16, 4)), ("matmul", (1, 8, 16, 2))]


def test_nothing_comes_before_the_first_weight_that_is_trained():
    sketch = Sketch()
    first, second = sketch.weight(8, 16), sketch.weight(16, 4)
    out = sketch.product(sketch.product(sketch.given(2, 8), first), second)
    found = gradients_of(sketch.graph(out), frozenset({first}))
    assert (found.needing[first], found.needing[second], found.needing[out]) == (False, True, True)
    assert backward_of(sketch.graph(out), frozenset({first})) == [("matmul", (1, 16, 4, 2))]


@pytest.mark.parametrize(("kind", "dims", "expected"), [
    ("conv", (2, 8, 8, 4, 8, 8, 16, 3, 3, 1), [("conv", (2, 8, 8, 4, 8, 8, 16, 3, 3, 1))] * 2),
    ("attention", (2, 4, 4, 8, 8, 16), [("attention", (2, 4, 4, 8, 8, 16))] * 2),
    ("embedding", (6, 16, 100), [("scatter", (6, 16))]),
    ("gather", (6, 16), [("scatter", (6, 16))]),
    ("scatter", (6, 16), [("gather", (6, 16))]),
    ("softmax", (6, 16), [("softmax", (6, 16))]),
    ("norm", (6, 16), [("norm", (6, 16))]),
    ("reduce", (64, 8), [("elementwise", (64, 1, 1))]),
    ("sort", (6, 16), []),
    ("fft", (6, 16), [("fft", (6, 16))]),
    ("linalg", (6, 16), [("linalg", (6, 16))]),
    ("rnn", (5, 2, 8, 16, 4), [("rnn", (5, 2, 8, 16, 4))] * 2),
])  # fmt: skip
def test_each_kind_has_the_backward_part_of_its_kind(kind, dims, expected):
    sketch = Sketch()
    taken, made = (sketch.weight(6, 16), sketch.weight(6, 16)), sketch.tensor(6, 16)
    sketch.node("any", kind, dims, taken, (made,))
    assert backward_of(sketch.graph(made)) == expected


@pytest.mark.parametrize(("kind", "dims"), [("reduce", (32, 4)), ("elementwise", (32, 1, 1)), ("gather", (4, 8))])
def test_what_gives_whole_numbers_or_truths_has_no_backward_part(kind, dims):
    sketch = Sketch()
    weight, made = sketch.weight(4, 8), sketch.tensor(4, dtype="int64")
    sketch.node("aten.argmax", kind, dims, (weight,), (made,))
    assert backward_of(sketch.graph(made)) == []
    assert gradients_of(sketch.graph(made)).kept == {}


def test_an_operation_without_a_result_has_no_backward_part():
    sketch = Sketch()
    out = sketch.product(sketch.given(2, 3), sketch.weight(3, 4))
    sketch.node("jax.debug_callback", "custom", (0, 8, 0), (out,), (), "host_read")
    assert backward_of(sketch.graph(out)) == [("matmul", (1, 3, 4, 2))]


@pytest.mark.parametrize(("op", "kept"), [
    ("aten.add.Tensor", ()), ("aten.sub.Tensor", ()), ("aten.mul.Tensor", ("a", "b")), ("aten.div.Tensor", ("a", "b")),
    ("stablehlo.multiply", ("a", "b")), ("Mul", ("a", "b")), ("Add", ()), ("aten.where.self", ()),
])  # fmt: skip
def test_of_two_operands_the_one_is_kept_for_the_gradient_of_the_other(op, kept):
    sketch = Sketch()
    names = {"a": sketch.weight(4, 8), "b": sketch.weight(4, 8)}
    made = sketch.each(op, *names.values())
    assert set(gradients_of(sketch.graph(made)).kept) == {names[one] for one in kept}


@pytest.mark.parametrize(("op", "kept"), [
    ("aten.relu.default", "result"), ("aten.tanh.default", "result"), ("aten.sigmoid.default", "result"), ("Exp", "result"),
    ("stablehlo.logistic", "result"), ("aten.gelu.default", "operand"), ("aten.silu.default", "operand"),
    ("aten.sin.default", "operand"), ("aten.neg.default", ""), ("aten._to_copy.default", ""), ("stablehlo.convert", ""),
    ("aten.pow.Tensor_Scalar", "operand"),
])  # fmt: skip
def test_of_one_operand_it_or_the_result_is_kept_as_torch_keeps_it(op, kept):
    sketch = Sketch()
    operand = sketch.weight(4, 8)
    names = {"operand": operand, "result": sketch.each(op, operand)}
    assert set(gradients_of(sketch.graph(names["result"])).kept) == ({names[kept]} if kept else set())


def test_a_tensor_that_a_view_looks_at_is_kept_once_and_by_the_first_that_reads_it():
    sketch = Sketch()
    hidden = sketch.product(sketch.given(2, 8), sketch.weight(8, 16))
    looked_at = sketch.view(hidden, 16, 2)
    sketch.product(looked_at, sketch.weight(2, 3))
    out = sketch.product(hidden, sketch.weight(16, 4))
    # moments: 0 the product, 1 the view, 2 the product of the view, 3 the last
    assert gradients_of(sketch.graph(out)).kept[hidden] == 2


def in_torch(widths: tuple[int, ...], rows: int, activation: str, frozen: int) -> tuple[int, int]:
    """FLOPs of the products that PyTorch's backward pass computes for a chain of linear layers, and bytes that it keeps."""
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    weights = [torch.randn(k, n, requires_grad=at != frozen) for at, (k, n) in enumerate(pairwise(widths))]
    kept: dict[int, int] = {}

    def keep(one: torch.Tensor) -> torch.Tensor:
        if not any(one.data_ptr() == weight.data_ptr() for weight in weights):
            kept[one.data_ptr()] = one.numel() * one.element_size()
        return one

    x = start = torch.randn(rows, widths[0])  # held, so that nothing else comes to lie where it is
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda one: one):
        for weight in weights:
            x = getattr(torch, activation)(x @ weight)
    counter = FlopCounterMode(display=False)
    with counter:
        x.sum().backward()
    kept.pop(start.data_ptr(), None)
    return counter.get_total_flops(), sum(kept.values())


@pytest.mark.parametrize(("widths", "rows", "activation", "frozen"), [
    (widths, 6, activation, frozen)
    for widths, activation, frozen in combinations([(8, 16, 4), (5, 7, 7, 3)], ["relu", "tanh", "sin"], [-1, 0, 1])
])  # fmt: skip
def test_a_chain_of_layers_costs_and_keeps_what_it_does_in_torch(widths, rows, activation, frozen):
    sketch = Sketch()
    x, weights = sketch.given(rows, widths[0]), []
    for k, n in pairwise(widths):
        weights.append(sketch.weight(k, n))
        x = sketch.each(f"aten.{activation}", sketch.product(x, weights[-1]))
    graph, still = sketch.graph(x), frozenset(weights[at] for at in (frozen,) if at >= 0)
    found = gradients_of(graph, still)
    nodes = [node for _, node in backward_nodes(graph, found) if node.kind == "matmul"]
    flop = sum(Op("matmul", tuple(value_of(side, {}) for side in node.dims), "fp32").flop for node in nodes)
    kept = [graph.tensors[at].shape for at in found.kept if graph.tensors[at].role == "value"]
    flops, size = in_torch(widths, rows, activation, frozen)
    assert (flop, 4 * sum(m * n for m, n in kept)) == (flops, size)
