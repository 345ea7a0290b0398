"""What a pass holds in the tiles of a TPU: as programs that failed for memory had it, and no more where models are ordinary."""

from dataclasses import replace

import pytest

from core.picture import WORD, greatest
from core.symbols import symbol
from intake.picture import picture_of
from intake.picture.tiles import Tiles
from tests.unit.intake.picture.sketch import Sketch

BATCH = symbol("batch")


@pytest.mark.parametrize(("shape", "dtype", "times"), [
    ((256, 512, 128, 2), "fp32", 64),  # github.com/tensorflow/tensorflow/issues/30803
    ((8_388_608, 8, 4), "int32", 32),  # github.com/DifferentiableUniverseInitiative/flowpm/issues/27
    ((1, 8, 2176, 1056, 2), "fp32", 64),  # github.com/google/flax/issues/1733
    ((1, 8, 2176, 1056, 1), "fp32", 128),
])
def test_arrays_of_programs_that_failed_grow_as_xla_reported(shape, dtype, times):
    sketch = Sketch(dtype=dtype)
    given = sketch.given(*shape)
    picture = picture_of(sketch.graph(sketch.each("mul", given)))
    held = 2 * times * 4  # the input and the result
    for one in shape:
        held *= one
    assert greatest(picture.tiled_forward, dict(picture.symbols)) == held


def test_an_axis_that_follows_the_batch_is_taken_to_fill_its_tiles():
    sketch = Sketch()
    given = sketch.given(BATCH, 16, 2)
    picture = picture_of(sketch.graph(sketch.each("mul", given), symbols=(("batch", 3),)))
    for batch in (3, 1000):
        assert greatest(picture.tiled_forward, picture.values(batch=batch)) == 2 * batch * 16 * 128 * 4


def test_words_of_another_dtype_are_put_in():
    sketch = Sketch()
    picture = picture_of(sketch.graph(sketch.each("mul", sketch.given(64, 2))))
    assert greatest(picture.tiled_forward, {**picture.values(), WORD: 2}) == 2 * 64 * 128 * 2


def test_around_a_convolution_batch_and_channels_lie_innermost():
    sketch = Sketch()
    made = [sketch.tensor(32, 768, 7, 7) for _ in range(2)]
    given = sketch.given(32, 768, 7, 7)
    sketch.node("conv", "conv", (32, 7, 7, 768, 7, 7, 768, 1, 1, 1), (given, sketch.weight(768, 768, 1, 1)), (made[0],))
    sketch.node("relu", "elementwise", (32 * 768 * 49, 1, 1), (made[0],), (made[1],))
    graph = sketch.graph(made[1])
    tiles, plain = Tiles(graph, "fp32"), 32 * 768 * 49 * 4
    assert [tiles.numbers_of(at)[1:] for at in made] == [(plain, plain)] * 2
    assert picture_of(graph).tiled_forward == ()


def test_what_a_normalisation_keeps_of_each_row_is_no_unit_axis():
    sketch = Sketch()
    out, mean = sketch.tensor(32, 3136, 64), sketch.tensor(32, 3136, 1)
    sketch.node("aten.native_layer_norm", "norm", (32 * 3136, 64), (sketch.given(32, 3136, 64),), (out, mean))
    tiles = Tiles(sketch.graph(out), "fp32")
    assert tiles.numbers_of(mean)[2] == 32 * 25 * 128 * 4  # rows along the lanes


def test_a_view_that_turns_a_unit_axis_inwards_is_written_out():
    """Source: github.com/pytorch/xla/issues/6674, 1 GiB that became 4."""
    sketch = Sketch(dtype="bf16")
    given = sketch.given(2048, 1, 2048, 128)
    turned = sketch.view(given, 2048, 128, 1, 2048)
    total = sketch.tensor()
    sketch.node("reduce", "reduce", (2048 * 2048 * 128, 1), (turned,), (total,))
    picture = picture_of(sketch.graph(total))
    held = greatest(picture.tiled_forward, dict(picture.symbols))
    assert 5 * 2**30 <= held < 5 * 2**30 + 1024


def test_ordinary_arrays_hold_no_more_in_tiles():
    sketch = Sketch()
    x = sketch.given(512, 300)
    for _ in range(3):
        x = sketch.product(x, sketch.weight(300, 300))
    picture = picture_of(sketch.graph(x))
    assert (picture.tiled_forward, picture.tiled_training) == ((), ())


def test_a_view_is_held_in_the_pass_that_answers_whatever_a_loss_does_before_it():
    sketch = Sketch(dtype="bf16")
    given = sketch.given(2048, 1, 2048, 128)
    loss = sketch.tensor()
    for _ in range(5):
        sketch.node("reduce", "reduce", (2048 * 2048 * 128, 1), (given,), (loss,))
    turned = sketch.view(given, 2048, 128, 1, 2048)
    out = sketch.each("copy", turned)
    graph = replace(sketch.graph(out), outputs=(loss, out), has_backward=True)
    picture = picture_of(graph)
    assert greatest(picture.tiled_forward, dict(picture.symbols)) == 9 * 2**30  # what is given, the view and the answer
