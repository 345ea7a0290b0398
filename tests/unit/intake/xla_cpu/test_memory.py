"""What a compiled program sets aside: to the byte what XLA's CPU compiler sets aside, one rule of it at a time."""

from collections.abc import Callable
from typing import Any

import pytest

from core.graph import SetAside
from intake.readers.stablehlo_module import parse
from intake.xla_cpu.buffers import Buffer
from intake.xla_cpu.effort import Effort, NotFollowed
from intake.xla_cpu.foretold import foretold
from intake.xla_cpu.memory import packed, planned, spared

jax = pytest.importorskip("jax")
jnp = jax.numpy


def _shape(*sizes: int, dtype: str = "float32") -> Any:
    return jax.ShapeDtypeStruct(sizes, dtype)


def _convolution(x: Any, kernel: Any, groups: int = 1) -> Any:
    names = ("NHWC", "HWIO", "NHWC")
    return jax.lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=names, feature_group_count=groups)


def _gradient_by_groups(groups: int) -> Callable[..., Any]:
    return jax.grad(lambda kernel, x: _convolution(x, kernel, groups).sum())


def _relu(x: Any) -> Any:
    return jnp.maximum(x, 0)


def _relu6(x: Any) -> Any:
    return jnp.minimum(jnp.maximum(x, 0), 6)


def _convolved_twice(between: Callable[[Any], Any]) -> Callable[..., Any]:
    return lambda x, first, second: _convolution(between(_convolution(x, first)), second).sum((1, 2))


IMAGES = (_shape(2, 16, 16, 24), _shape(3, 3, 24, 32), _shape(3, 3, 32, 48))
PROGRAMS: dict[str, tuple[Any, ...]] = {
    "a product lies in memory, what is done to each element of it in the same place": (
        lambda x, a, b: jnp.tanh(x @ a) @ b, _shape(32, 64), _shape(64, 128), _shape(128, 16),
    ),
    "a chain of elementwise operations is one": (lambda x: jnp.tanh(jnp.exp(x) * 2) + 1, _shape(64, 64)),
    "what is dear is stored for two readers, and what gives two results has a table": (
        lambda x, a, b: (jnp.tanh(x) @ a, jnp.tanh(x) @ b), _shape(32, 64), _shape(64, 128), _shape(64, 16),
    ),
    "a small sum over a long axis is made in windows": (lambda x: jnp.exp(x - x.mean(-1, keepdims=True)), _shape(8, 128)),
    "a large one by the library": (lambda x: jnp.exp(x - x.mean(-1, keepdims=True)), _shape(64, 128)),
    "a softmax lies where its answer will": (lambda x: jax.nn.softmax(x @ x.T), _shape(128, 128)),
    "each channel by itself: its gradient is made of all pairs": (
        _gradient_by_groups(24), _shape(3, 3, 1, 24), _shape(2, 16, 16, 24),
    ),
    "groups: their gradient is made with one more axis": (_gradient_by_groups(4), _shape(3, 3, 6, 24), _shape(2, 16, 16, 24)),
    "the library takes convolutions and what is between": (_convolved_twice(_relu), *IMAGES),
    "but no clamp": (_convolved_twice(_relu6), *IMAGES),
    "short rows are joined where they are read": (
        lambda x, y, a: jnp.concatenate([jnp.tanh(x), jnp.tanh(y)], 1) @ a, _shape(64, 40), _shape(64, 24), _shape(64, 8),
    ),
    "long rows are stored before they are joined": (
        lambda x, y, a: jnp.concatenate([jnp.tanh(x), jnp.tanh(y)], 1) @ a, _shape(64, 80), _shape(64, 48), _shape(128, 8),
    ),
    "a convolution of 1 x 1 over many channels stays one": (
        lambda x, kernel: jnp.tanh(_convolution(x, kernel)), _shape(2, 16, 16, 24), _shape(1, 1, 24, 32),
    ),
    "a product reads what is turned over, where nothing is computed in it": (
        lambda x, a: x.T @ jnp.exp(a), _shape(48, 64), _shape(48, 96),
    ),
    "the gradient of a look-up is scattered into what it is added to": (
        jax.grad(lambda table, ids: (table[ids] @ table.T).sum()), _shape(200, 32), _shape(40, dtype="int32"),
    ),
    "what is sorted lies where it was": (lambda x: jnp.sort(x @ x) * 2, _shape(64, 64)),
    "the exact GELU is one with what is beside it": (
        jax.grad(lambda x, a: (jax.nn.gelu(x @ a, approximate=False) @ a.T).sum()), _shape(64, 128), _shape(128, 256),
    ),
    "running sums are made within stretches first": (lambda x: jnp.cumsum(x @ x, 1) * 2, _shape(64, 64)),
    "those of stretches' ends too, where there are many": (lambda x: jnp.cumsum(x * 3, 1) * 2, _shape(16, 1000)),
    "along other axes, and from the end": (lambda x: jnp.tanh(jax.lax.cumsum(x @ x, 0, reverse=True)), _shape(64, 64)),
    "bytes stay bytes": (lambda x, a: (x.astype("float32") / 255) @ a, _shape(64, 64, dtype="uint8"), _shape(64, 32)),
    "a loop's state lies in one place": (
        lambda x: jax.lax.while_loop(lambda at: at[0] < 5, lambda at: (at[0] + 1, jnp.tanh(at[1] @ at[1])), (0.0, x)),
        _shape(64, 64),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_memory_is_what_the_compiler_sets_aside(name: str):
    function, *shapes = PROGRAMS[name]
    lowered = jax.jit(function, keep_unused=True).lower(*shapes)
    true = lowered.compile().memory_analysis()
    found = planned(parse(lowered.as_text().encode(), name))
    assert found == SetAside(true.argument_size_in_bytes, true.output_size_in_bytes, true.temp_size_in_bytes)


def test_what_does_not_change_in_a_loop_is_made_before_it_and_lies_until_its_end():
    def scanned(x: Any, a: Any, b: Any) -> Any:
        def step(state: Any, row: Any) -> Any:
            state = jnp.tanh(row @ jnp.concatenate([a, b], 1) + state)
            return state, state

        return jax.lax.scan(step, jnp.zeros((x.shape[1], 128)), x)[1]

    given = (_shape(12, 8, 32), _shape(32, 64), _shape(32, 64))
    lowered = jax.jit(scanned).lower(*given)
    found = planned(parse(lowered.as_text().encode(), "m"))
    joined = 32 * 128 * 4
    assert joined < found.temporary_bytes
    assert found.temporary_bytes == pytest.approx(lowered.compile().memory_analysis().temp_size_in_bytes, rel=0.1)


@pytest.mark.parametrize(
    "draw", [jax.random.normal, jax.random.uniform, lambda key, sizes: jax.random.bernoulli(key, 0.5, sizes)],
)  # fmt: skip
def test_random_numbers_are_drawn_in_a_loop_that_keeps_what_is_still_read(draw: Callable[..., Any]):
    lowered = jax.jit(lambda key, x: draw(key, (64, 64)) * x).lower(_shape(2, dtype="uint32"), _shape(64, 64))
    found = planned(parse(lowered.as_text().encode(), "m"))
    assert found.temporary_bytes == pytest.approx(lowered.compile().memory_analysis().temp_size_in_bytes, rel=0.01)


def test_a_loop_that_starts_from_what_others_read_copies_it():
    def program(x: Any, rows: Any) -> Any:
        first = x @ x
        return first.sum(), jax.lax.fori_loop(0, 3, lambda i, held: held * rows[i], first)

    lowered = jax.jit(program).lower(_shape(64, 64), _shape(4, 64))
    found = planned(parse(lowered.as_text().encode(), "m"))
    assert found.temporary_bytes == pytest.approx(lowered.compile().memory_analysis().temp_size_in_bytes, rel=0.01)
    assert found.temporary_bytes > 64 * 64 * 4


def _layers(weights: Any, x: Any) -> Any:
    for weight in weights:
        x = jnp.tanh(x @ weight)
    return (x * x).sum()


def _descend(weights: Any, x: Any) -> Any:
    return jax.tree.map(lambda weight, slope: weight - 0.1 * slope, weights, jax.grad(_layers)(weights, x))


def _remember(cache: Any, x: Any) -> Any:
    seen = (cache * x).sum()
    return jax.lax.dynamic_update_slice(cache, x[None], (3, 0)), seen


@pytest.mark.parametrize(
    ("program", "arguments"),
    [
        (_descend, ([_shape(128, 128)] * 3, _shape(32, 128))),
        (_descend, ([_shape(32, 32)] * 3, _shape(256, 32))),
        (lambda cache, x: jax.lax.dynamic_update_slice(cache, x[None], (3, 0)), (_shape(64, 32), _shape(32))),
        (_remember, (_shape(64, 32), _shape(32))),
        (lambda kept, more: (kept, more + 1), (_shape(64, 64), _shape(64, 64))),
        (lambda old, rows: (old + 1, jax.lax.fori_loop(0, 3, lambda i, x: x * rows[i], old)), (_shape(64, 64), _shape(4, 64))),
        (lambda rows, more: rows.at[jnp.arange(5)].add(more), (_shape(100, 64), _shape(5, 64))),
    ],
)  # fmt: skip
def test_results_that_are_written_into_arguments_count_once_and_what_is_read_later_is_copied(
    program: Callable[..., Any], arguments: tuple[Any, ...]
):
    lowered = jax.jit(program, donate_argnums=(0,), keep_unused=True).lower(*arguments)
    true = lowered.compile().memory_analysis()
    found = planned(parse(lowered.as_text().encode(), "m"))
    assert found.reused_bytes == true.alias_size_in_bytes > 0
    assert found.temporary_bytes == pytest.approx(true.temp_size_in_bytes, rel=0.01, abs=64)
    whole = true.argument_size_in_bytes + true.output_size_in_bytes + true.temp_size_in_bytes - true.alias_size_in_bytes
    assert found.total_bytes == pytest.approx(whole, rel=0.01)


@pytest.mark.parametrize(
    "program",
    [
        lambda cache, x: jax.lax.fori_loop(0, 7, lambda i, held: held * x[i], cache),
        lambda cache, _: (cache.reshape(-1) * 2).reshape(8, 8),
        lambda _, __: jnp.zeros((8, 8)),
    ],
)  # fmt: skip
def test_what_is_written_into_an_argument_in_a_way_that_is_not_followed_is_refused(program: Callable[..., Any]):
    lowered = jax.jit(program, donate_argnums=(0,), keep_unused=True).lower(_shape(8, 8), _shape(8, 8))
    with pytest.raises(NotFollowed, match="donated"):
        planned(parse(lowered.as_text().encode(), "m"))


@pytest.mark.parametrize(
    ("given", "reused"),
    [
        ("%a: tensor<8xf32> {tf.aliasing_output = 1 : i32}, %b: tensor<4xf32>", 32),
        ("%a: tensor<8xf32> {jax.buffer_donor = true}, %b: tensor<4xf32> {jax.buffer_donor = true}", 32),
        ("%a: tensor<8xf32> {tf.aliasing_output = 0 : i32}, %b: tensor<4xf32>", 0),
        ("%a: tensor<8xf32> {tf.aliasing_output = 9 : i32}, %b: tensor<4xf32>", 32),
        ("%a: tensor<8xf32>, %b: tensor<4xf32>", 0),
    ],
)  # fmt: skip
def test_only_what_a_result_is_written_into_counts_as_reused(given: str, reused: int):
    body = "%c = stablehlo.abs %a : tensor<8xf32> return %d, %c : tensor<2xf32>, tensor<8xf32>"
    start = "%d = stablehlo.constant dense<0.0> : tensor<2xf32>"
    text = f"func.func @main({given}) -> (tensor<2xf32>, tensor<8xf32>) {{ {start} {body} }}"
    assert foretold(parse(text.encode(), "m")).reused_bytes == reused


def test_an_open_shape_is_refused():
    text = b"func.func @main(%x: tensor<?x4xf32>) -> tensor<?x4xf32> { return %x : tensor<?x4xf32> }"
    with pytest.raises(NotFollowed, match="sizes are open"):
        planned(parse(text, "m"))


def test_an_answer_serves_as_memory_until_it_is_written():
    answer = Buffer(100, 5, 9, answer=True)
    before, after = Buffer(100, 0, 4), Buffer(100, 5, 6)
    assert spared([before, after, answer], Effort()) == [after]


def test_buffers_share_memory_that_they_need_at_different_moments():
    assert packed([Buffer(128, 0, 2), Buffer(128, 3, 5), Buffer(64, 2, 3)], Effort()) == 192
    assert packed([Buffer(100, 0, 2), Buffer(100, 1, 3)], Effort()) == 228  # the second begins at a multiple of 64
