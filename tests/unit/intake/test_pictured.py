"""Blocks of a workload out of a picture, for any batch, length and dtype, by hand."""

import pytest

from core.ops import Op
from core.symbols import symbol
from core.workload import TRACED
from intake.picture import picture_of
from intake.picture.draw import CACHE
from intake.pictured import blocks_of, follows
from tests.unit.intake.picture.sketch import Sketch, layers

BATCH, LENGTH = symbol("batch"), symbol("length")
SYMBOLS = (("batch", 4), ("length", 16))


def chain(count: int = 5):
    return picture_of(layers(count, rows=BATCH * LENGTH).graph(symbols=SYMBOLS, facts=((CACHE, 96),)))


def test_operations_follow_batch_length_and_dtype():
    found = blocks_of(chain(), 3, 7, "bf16")
    block = next(one for one in found.blocks if one.repeats == 5)
    assert block.kind == TRACED
    assert block.ops_forward == (
        Op("matmul", (1, 21, 16, 8), "bf16"), Op("elementwise", (21 * 16, 1, 1), "bf16"), Op("matmul", (1, 21, 8, 16), "bf16"),
        Op("elementwise", (21 * 8, 2, 1), "bf16"),
    )  # fmt: skip
    assert {op.phase for op in block.ops_backward} == {"backward"}
    assert block.parameter_count == 2 * 8 * 16
    assert block.activation_bytes == 21 * (16 + 8) * 2


@pytest.mark.parametrize(("dtype", "word"), [("fp64", 8), ("fp32", 4), ("bf16", 2), ("fp8", 1), ("int4", 1)])
def test_bytes_are_those_of_the_dtype(dtype, word):
    found = blocks_of(chain(), 2, 8, dtype)
    # the widest moment of a forward pass: the stream beside the wide result and what it is made from
    assert found.peaks.forward_bytes == 16 * (8 + 16 + 16) * word + 16 * 3 * word
    assert found.peaks.cache_bytes == 96 // 4 * 8 * word * 2  # 96 bytes in fp32


def test_gradients_of_parameters_are_no_activations():
    picture = chain()
    few, many = (blocks_of(picture, batch, 16, "fp32").peaks.training_bytes for batch in (100, 200))
    assert abs(many - 2 * few) <= 4 * picture.parameter_count


def test_equal_operations_of_other_names_are_one():
    sketch = Sketch()
    x = sketch.given(8, 16)
    for op in ("aten.add", "aten.sub", "aten.add"):
        x = sketch.each(op, x)
    (block,) = blocks_of(picture_of(sketch.graph(x)), 1, None, "fp32").blocks
    assert block.ops_forward == (Op("elementwise", (128, 1, 1), "fp32", 3),)


@pytest.mark.parametrize(("stored", "told"), [
    ("uint8", "int8"), ("int64", "int64"), ("complex64", "complex64"), ("bool", "bool"), ("uint16", "int16"), ("string", "bool"),
])  # fmt: skip
def test_dtypes_that_operations_have_no_name_for_are_told_as_the_nearest(stored, told):
    sketch = Sketch()
    sketch.weight(3)
    x = sketch.given(8, dtype=stored)
    picture = picture_of(sketch.graph(sketch.each("aten.add", x, x)))
    assert {op.dtype for block in blocks_of(picture, 1, None, "bf16").blocks for op in block.ops_forward} == {told}


def test_a_batch_that_the_file_is_fixed_at_is_said():
    fixed = picture_of(layers(2).graph())
    assert not follows(fixed, "batch")
    assert blocks_of(fixed, 8, None, "fp32").blocks == blocks_of(fixed, 1, None, "fp32").blocks


def test_a_length_that_the_picture_does_not_follow_changes_nothing():
    picture = picture_of(layers(2, rows=BATCH).graph(symbols=(("batch", 4),)))
    assert blocks_of(picture, 4, 1000, "fp32").blocks == blocks_of(picture, 4, None, "fp32").blocks
