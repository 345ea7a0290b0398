"""What torch operations become: kinds, sizes and marks from shapes alone."""

import pytest

from core.ops import DIMS, Op
from core.symbols import BATCH, LENGTH, symbol
from intake.readers.aten import COPIES, ELEMENTWISE, FILLS, RANDOM, VIEWS, contiguous, works_of
from intake.readers.aten_call import Call, Shaped, Work
from intake.readers.aten_products import PRODUCTS
from intake.readers.aten_rows import ROWS

B, L = symbol(BATCH), symbol(LENGTH)


def t(*shape: object, dtype: str = "fp32") -> Shaped:
    return Shaped(shape, dtype)  # type: ignore[arg-type]


def works(op: str, result: Shaped | tuple[Shaped, ...], overload: str = "default", **arguments: object) -> tuple[Work, ...]:
    outputs = result if not isinstance(result, Shaped) else (result,)
    return works_of(Call(f"aten.{op}", overload, arguments, outputs))  # type: ignore[arg-type]


def flop(found: tuple[Work, ...]) -> int:
    return sum(Op(one.kind, one.dims, "fp32").flop for one in found)  # type: ignore[arg-type]


@pytest.mark.parametrize(("op", "arguments", "result", "dims"), [
    ("mm", {"self": t(3, 4), "mat2": t(4, 5)}, t(3, 5), (1, 3, 5, 4)),
    ("addmm", {"self": t(5), "mat1": t(3, 4), "mat2": t(4, 5)}, t(3, 5), (1, 3, 5, 4)),
    ("bmm", {"self": t(7, 3, 4), "mat2": t(7, 4, 5)}, t(7, 3, 5), (7, 3, 5, 4)),
    ("matmul", {"self": t(B, L, 8), "other": t(8, 16)}, t(B, L, 16), (1, B * L, 16, 8)),
    ("matmul", {"self": t(B, 4, L, 8), "other": t(B, 4, 8, L)}, t(B, 4, L, L), (4 * B, L, L, 8)),
    ("matmul", {"self": t(6, 2, 3, 4), "other": t(1, 2, 4, 5)}, t(6, 2, 3, 5), (2, 18, 5, 4)),
    ("matmul", {"self": t(3, 4), "other": t(4)}, t(3), (1, 3, 1, 4)),
    ("matmul", {"self": t(4), "other": t(2, 4, 5)}, t(2, 5), (2, 1, 5, 4)),
    ("linear", {"input": t(B, L, 8), "weight": t(16, 8), "bias": t(16)}, t(B, L, 16), (1, B * L, 16, 8)),
    ("mv", {"self": t(3, 4), "vec": t(4)}, t(3), (1, 3, 1, 4)),
    ("_grouped_mm", {"self": t(B * L, 8), "mat2": t(4, 8, 16), "offs": t(4)}, t(B * L, 16), (1, B * L, 16, 8)),
    ("_grouped_mm", {"self": t(8, 96), "mat2": t(96, 16), "offs": t(4)}, t(4, 8, 16), (1, 8, 16, 96)),
    ("einsum", {"equation": "bhqd,bhkd->bhqk", "tensors": (t(B, 4, L, 8), t(B, 4, L, 8))}, t(B, 4, L, L), (4 * B, L, L, 8)),
    ("einsum", {"equation": "...d,df->...f", "tensors": (t(B, L, 8), t(8, 16))}, t(B, L, 16), (1, B * L, 16, 8)),
])  # fmt: skip
def test_a_product_has_its_rows_columns_and_depth(op: str, arguments: dict[str, object], result: Shaped, dims: object) -> None:
    (found,) = works(op, result, **arguments)
    assert (found.kind, found.dims) == ("matmul", dims)


def test_a_chain_of_einsum_operands_is_multiplied_from_the_left() -> None:
    found = works("einsum", t(2, 6), equation="ab,bc,cd->ad", tensors=(t(2, 3), t(3, 4), t(4, 6)))
    assert flop(found) == 2 * 2 * 4 * 3 + 2 * 2 * 6 * 4


def test_an_outer_product_by_einsum_is_elementwise() -> None:
    (found,) = works("einsum", t(5, 7), equation="i,j->ij", tensors=(t(5), t(7)))
    assert (found.kind, found.dims) == ("elementwise", (35, 2, 1))


@pytest.mark.parametrize(("given", "weight", "result", "extra", "expected"), [
    (t(2, 8, 16, 16), t(12, 8, 3, 3), t(2, 12, 14, 14), {}, 2 * 2 * 14 * 14 * 12 * 8 * 9),
    (t(2, 8, 16, 16), t(8, 1, 3, 3), t(2, 8, 16, 16), {"groups": 8}, 2 * 2 * 16 * 16 * 8 * 9),
    (t(2, 8, 16), t(12, 8, 3), t(2, 12, 14), {}, 2 * 2 * 14 * 12 * 8 * 3),
    (t(2, 3, 4, 8, 8), t(5, 3, 2, 3, 3), t(2, 5, 3, 6, 6), {}, 2 * 2 * 3 * 36 * 5 * 3 * 18),
    (t(2, 8, 4, 4), t(8, 6, 2, 2), t(2, 6, 8, 8), {"transposed": True}, 2 * 2 * 4 * 4 * 8 * 6 * 4),
    (t(2, 8, 4, 4), t(8, 3, 2, 2), t(2, 6, 8, 8), {"transposed": True, "groups": 2}, 2 * 2 * 4 * 4 * 8 * 3 * 4),
    (t(8, 16, 16), t(12, 8, 3, 3), t(12, 14, 14), {}, 2 * 14 * 14 * 12 * 8 * 9),
])  # fmt: skip
def test_a_convolution_multiplies_each_output_position_by_its_kernel(
    given: Shaped, weight: Shaped, result: Shaped, extra: dict[str, object], expected: int
) -> None:
    found = works("convolution", result, input=given, weight=weight, **extra)
    assert [one.kind for one in found] == ["conv"]
    assert flop(found) == expected
    assert found[0].marks == (("conv3d",) if len(weight.shape) == 5 else ())


@pytest.mark.parametrize("groups", [1, 8])
def test_both_gradients_of_a_convolution_do_the_work_of_its_forward_pass(groups: int) -> None:
    shapes = {"input": t(2, 8, 16, 16), "weight": t(8, 8 // groups, 3, 3)}
    forward = works("convolution", t(2, 8, 16, 16), **shapes, groups=groups)
    backward = works("convolution_backward", (t(2, 8, 16, 16), t(8, 8 // groups, 3, 3)), grad_output=t(2, 8, 16, 16), **shapes,
                     groups=groups, output_mask=(True, True, False))
    assert flop(backward) == 2 * flop(forward)


def test_attention_is_one_operation_and_its_gradient_two_more() -> None:
    shapes = {"query": t(B, 8, L, 64), "key": t(B, 2, L, 64), "value": t(B, 2, L, 64)}
    (forward,) = works("scaled_dot_product_attention", t(B, 8, L, 64), **shapes)
    assert (forward.kind, forward.dims) == ("attention", (B, 8, 2, L, L, 64))
    assert works("_scaled_dot_product_flash_attention_backward", t(B, 8, L, 64), **shapes) == (forward, forward)


def test_widths_of_keys_and_values_that_differ_count_with_their_mean() -> None:
    (found,) = works("scaled_dot_product_attention", t(1, 2, 4, 128), query=t(1, 2, 4, 192), key=t(1, 2, 6, 192),
                     value=t(1, 2, 6, 128))  # fmt: skip
    assert flop((found,)) == 2 * 2 * 4 * 6 * 192 + 2 * 2 * 4 * 6 * 128


@pytest.mark.parametrize(("mode", "gates"), [("lstm", 4), ("gru", 3), ("rnn_tanh", 1)])
def test_a_recurrent_layer_is_a_scan_a_layer_and_direction(mode: str, gates: int) -> None:
    one = (t(gates * 8, 16), t(gates * 8, 8), t(gates * 8), t(gates * 8))
    found = works(mode, t(B, L, 8), "input", input=t(B, L, 16), hx=(t(1, B, 8),), params=one * 2, batch_first=True)
    assert [(work.kind, work.dims, work.marks) for work in found] == [("rnn", (L, B, 16, 8, gates), ("serial_scan",))] * 2


def test_a_projected_lstm_has_three_matrices_a_layer() -> None:
    params = (t(32, 16), t(32, 4), t(4, 8))
    found = works("lstm", t(L, B, 4), "input", input=t(L, B, 16), hx=(), params=params, has_biases=False)
    assert [work.dims for work in found] == [(L, B, 16, 8, 4)]


@pytest.mark.parametrize(("op", "arguments", "result", "kind", "dims", "marks"), [
    ("native_layer_norm", {"input": t(B, L, 8), "normalized_shape": (8,)}, t(B, L, 8), "norm", (B * L, 8), ()),
    ("native_group_norm", {"input": t(2, 8, 4, 4), "group": 2}, t(2, 8, 4, 4), "norm", (4, 64), ()),
    ("batch_norm", {"input": t(B, 8, 4, 4)}, t(B, 8, 4, 4), "norm", (8, 16 * B), ()),
    ("_softmax", {"self": t(B, 4, L), "dim": -1}, t(B, 4, L), "softmax", (4 * B, L), ()),
    ("_log_softmax", {"self": t(3, 5, 7), "dim": 1}, t(3, 5, 7), "softmax", (21, 5), ()),
    ("sum", {"self": t(B, L, 8), "dim": (1,)}, t(B, 8), "reduce", (8 * B * L, 8 * B), ()),
    ("max_pool2d", {"self": t(2, 8, 8, 8), "kernel_size": (2, 2)}, t(2, 8, 4, 4), "reduce", (1024, 256), ()),
    ("embedding", {"weight": t(100, 8), "indices": t(B, L, dtype="int64")}, t(B, L, 8), "embedding", (B * L, 8, 100), ()),
    ("index_select", {"self": t(9, 8), "dim": 0, "index": t(5, dtype="int64")}, t(5, 8), "gather", (5, 8), ("gather",)),
    ("gather", {"self": t(9, 8), "dim": 1, "index": t(9, 3, dtype="int64")}, t(9, 3), "gather", (27, 1), ("gather",)),
    ("index", {"self": t(9, 8), "indices": (None, t(3, dtype="int64"))}, t(9, 3), "gather", (3, 9), ("gather",)),
    ("index", {"self": t(9, 8), "indices": (t(9, dtype="bool"),)}, t(9, 8), "gather", (9, 8), ("gather", "dynamic_shape")),
    ("scatter_add", {"self": t(9, 8), "index": t(4, 8, dtype="int64")}, t(9, 8), "scatter", (32, 1), ("scatter",)),
    ("index_add", {"self": t(9, 8), "dim": 0, "index": t(4, dtype="int64")}, t(9, 8), "scatter", (4, 8), ("scatter",)),
    ("topk", {"self": t(B, 100), "k": 5}, t(B, 5), "sort", (B, 100), ("sort",)),
    ("nonzero", {"self": t(9, 8)}, t(72, 2, dtype="int64"), "gather", (144, 1), ("gather", "dynamic_shape")),
    ("_fft_r2c", {"self": t(B, 64), "dim": (1,)}, t(B, 33, dtype="complex64"), "fft", (B, 64), ("fft",)),
    ("linalg_inv_ex", {"A": t(B, 8, 8)}, t(B, 8, 8), "linalg", (B, 8), ("linalg",)),
    ("add", {"self": t(B, 8), "other": t(8)}, t(B, 8), "elementwise", (8 * B, 2, 1), ()),
    ("mul", {"self": t(B, 8, dtype="fp64"), "other": 2.0}, t(B, 8, dtype="fp64"), "elementwise", (8 * B, 1, 1), ("fp64",)),
    ("exp", {"self": t(8)}, t(8), "elementwise", (8, 1, 4), ()),
    ("gelu", {"self": t(8)}, t(8), "elementwise", (8, 1, 8), ()),
    ("clone", {"self": t(8)}, t(8), "elementwise", (8, 1, 0), ()),
    ("pow", {"self": t(8), "exponent": 2}, t(8), "elementwise", (8, 1, 1), ()),
    ("pow", {"self": t(8), "exponent": 0.3}, t(8), "elementwise", (8, 1, 4), ()),
    ("native_dropout", {"input": t(8), "p": 0.1, "train": True}, t(8), "elementwise", (8, 1, 1), ("random",)),
    ("dropout", {"input": t(8), "p": 0.1, "train": False}, t(8), "view", (), ()),
    ("transpose", {"self": t(2, 3)}, t(3, 2), "view", (), ()),
])  # fmt: skip
def test_an_operation_has_its_kind_its_sizes_and_its_marks(
    op: str, arguments: dict[str, object], result: Shaped, kind: str, dims: object, marks: object
) -> None:
    (found,) = works(op, result, **arguments)
    assert (found.kind, found.dims, found.marks) == (kind, dims, marks)


def test_a_comparison_is_done_in_the_dtype_of_its_operands() -> None:
    (found,) = works("gt", t(8, dtype="bool"), self=t(8, dtype="bf16"), other=0)
    assert found.dtype == "bf16"


def test_the_greater_of_two_tensors_is_elementwise_and_the_greatest_of_one_a_reduction() -> None:
    assert works("max", t(8), "other", self=t(8), other=t(8))[0].kind == "elementwise"
    assert works("max", t(), "default", self=t(8))[0].kind == "reduce"


def test_an_operation_that_torch_does_not_have_is_custom_and_moves_its_operands() -> None:
    (found,) = works_of(Call("flash_attn.forward", "default", {"q": t(4, 8), "k": t(4, 8)}, (t(4, 8),)))
    assert (found.kind, found.dims, found.marks) == ("custom", (0, 64, 32), ("custom:flash_attn.forward",))


def test_an_operation_that_the_tables_lack_is_elementwise_and_says_so() -> None:
    (found,) = works("of_a_later_version", t(8), self=t(8))
    assert (found.kind, found.dims, found.known) == ("elementwise", (8, 1, 1), False)


@pytest.mark.parametrize(("op", "arguments"), [
    ("mm", {"self": t(3, 4)}), ("convolution", {"input": t(2, 3)}), ("einsum", {"equation": "ab,bc->ac", "tensors": (t(2),)}),
    ("einsum", {"tensors": (t(2),)}), ("linear", {}), ("_fft_r2c", {}), ("matmul", {"self": t(), "other": t(3)}),
])  # fmt: skip
def test_a_call_that_lacks_what_it_needs_is_an_error_that_names_it(op: str, arguments: dict[str, object]) -> None:
    with pytest.raises(ValueError):
        works(op, t(2), **arguments)


def test_every_name_is_in_one_table() -> None:
    tables = [VIEWS, COPIES, FILLS, RANDOM, set(ELEMENTWISE), set(PRODUCTS), set(ROWS)]
    names = [name for table in tables for name in table]
    assert sorted(name for name in set(names) if names.count(name) > 1) == []


def test_every_kind_that_comes_out_is_known() -> None:
    kinds = {work.kind for op in ("mm",) for work in works(op, t(3, 5), self=t(3, 4), mat2=t(4, 5))}
    assert kinds <= set(DIMS)


@pytest.mark.parametrize(("shape", "strides", "expected"), [
    ((2, 3), (3, 1), True), ((2, 3), (1, 2), False), ((1, 3), (99, 1), True), ((B, L, 8), (8 * L, 8, 1), True), ((2,), (), False),
])  # fmt: skip
def test_memory_in_order_is_told_from_strides(shape: tuple[object, ...], strides: tuple[object, ...], expected: bool) -> None:
    assert contiguous(shape, strides) is expected  # type: ignore[arg-type]
