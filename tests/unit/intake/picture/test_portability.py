"""Operations and shapes that decide portability: counted, placed, the largest first, and nothing told that tiles do not pad."""

import pytest

from core.symbols import symbol
from intake.picture import picture_of
from intake.picture.tiles import tiled_bytes
from tests.unit.intake.picture.sketch import Sketch

BATCH = symbol("batch")


@pytest.mark.parametrize(("shape", "dtype", "size"), [
    ((), "fp32", 128 * 4), ((1,), "fp32", 128 * 4), ((129,), "fp32", 256 * 4), ((8, 128), "fp32", 4096),
    ((9, 129), "fp32", 16 * 256 * 4), ((3, 8, 128), "bf16", 3 * 8 * 128 * 2),
    ((12_582_912, 1), "uint32", 12_582_912 * 128 * 4), ((29_184, 1, 2560), "fp32", 29_184 * 2 * 2560 * 4),
    ((0, 128), "fp32", 0), ((8, 128), "int4", 512),
])  # fmt: skip
def test_bytes_in_tiles(shape, dtype, size):
    assert tiled_bytes(shape, dtype) == size


def test_marks_of_one_kind_are_counted_and_the_first_place_is_told():
    sketch = Sketch()
    x = sketch.given(64, 128)
    for number in range(3):
        sketch.scope = f"blocks.{number}.sort"
        made = sketch.tensor(64, 128)
        sketch.node("aten.sort", "sort", (64, 128), (x,), (made,), "sort", "custom:mine", f"custom:own{number}")
        x = made
    found = {(one.mark, one.detail): (one.count, one.where) for one in picture_of(sketch.graph(x)).operations}
    assert found == {
        ("sort", ""): (3, "blocks.*"), ("custom", "mine"): (3, "blocks.*"), ("custom", "own0"): (1, "blocks.*"),
        ("custom", "own1"): (1, "blocks.*"), ("custom", "own2"): (1, "blocks.*"),
    }  # fmt: skip


def test_the_largest_index_of_all_gathers_is_told():
    sketch = Sketch()
    table = sketch.given(1000, 128)
    for rows in (16, 4096, 64):
        made = sketch.tensor(rows, 128)
        sketch.node("aten.index.Tensor", "gather", (rows, 128), (table, sketch.given(rows, dtype="int64")), (made,), "gather")
    (told,) = [one for one in picture_of(sketch.graph(made)).operations if one.mark == "gather"]
    assert (told.count, told.extent, told.padded) == (3, 4096 * 8, 4096 * 8)


def test_a_gather_without_an_index_tensor_is_no_fault():
    sketch = Sketch()
    made = sketch.tensor(8, 128)
    sketch.node("aten.slice", "gather", (8, 128), (), (made,), "gather")
    assert [(one.mark, one.extent) for one in picture_of(sketch.graph(made)).operations] == [("gather", 0)]


def test_shapes_on_the_tiles_and_small_ones_are_not_told():
    sketch = Sketch()
    sketch.each("aten.relu", sketch.given(256, 512))
    sketch.each("aten.relu", sketch.given(4, 3))
    assert picture_of(sketch.graph(1)).operations == ()


def test_shapes_are_judged_for_the_values_of_the_symbols_and_equal_ones_together():
    sketch = Sketch()
    x = sketch.given(BATCH, 1024, 2)
    for _ in range(3):
        x = sketch.each("aten.relu", x)
    (told,) = picture_of(sketch.graph(x, symbols=(("batch", 32),))).operations
    assert (told.mark, told.detail, told.count) == ("off_tile", "32 x 1024 x 2 fp32", 3)
    assert (told.extent, told.padded) == (32 * 1024 * 2 * 4, 32 * 1024 * 128 * 4)


def test_views_move_nothing_and_are_not_told():
    sketch = Sketch()
    sketch.view(sketch.each("aten.relu", sketch.given(1024, 1024)), 1024 * 1024, 1)
    assert picture_of(sketch.graph(1)).operations == ()


def test_the_most_inflated_shapes_come_first_and_a_dozen_is_enough():
    sketch = Sketch()
    for number in range(1, 21):
        sketch.each("aten.relu", sketch.given(1000 * number, 3))
    told = [one.padded for one in picture_of(sketch.graph(1)).operations]
    assert told == [1000 * number * 128 * 4 for number in range(20, 8, -1)]
