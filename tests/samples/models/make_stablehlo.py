"""Makes the samples of StableHLO and of jaxpr text; needs jax, which the tests do not.

Run: `python tests/samples/models/make_stablehlo.py`.
"""

from pathlib import Path

import jax
import jax.numpy as jnp
from jax import export, lax

HERE = Path(__file__).parent
SHAPE = jax.ShapeDtypeStruct


def stack(params, x):
    """Five layers by scan between two products, with a loss."""
    with jax.named_scope("stem"):
        x = jnp.tanh(x @ params["stem"] + params["bias"])
    with jax.named_scope("layers"):
        x, sums = lax.scan(lambda carry, w: (jnp.tanh(carry @ w), carry.sum()), x, params["layers"])
    return jnp.mean(x @ params["head"]) + sums.sum()


def images(params, x):
    """A grouped, strided convolution, a pool, a transposed convolution."""
    numbers = ("NHWC", "HWIO", "NHWC")
    x = lax.conv_general_dilated(x, params["kernel"], (2, 2), "SAME", dimension_numbers=numbers, feature_group_count=2)
    x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    return lax.conv_transpose(x, params["up"], (2, 2), "SAME", dimension_numbers=numbers)


def mixed(table, ids, x):
    """What decides portability: lookups, sorts, transforms, factorisations, loops and branches on values."""
    rows = table[ids]
    steps, x = lax.while_loop(lambda c: (c[1] ** 2).sum() > 1e-3, lambda c: (c[0] + 1, c[1] * 0.5), (0, x))
    x = lax.cond(steps > 3, lambda a: a @ a, lambda a: a + 1, x)
    order = jnp.sort(x, axis=0)
    spectrum = jnp.fft.fft(x).real
    factor = jnp.linalg.cholesky(x @ x.T + jnp.eye(4))
    return rows, lax.top_k(order, 2)[0], spectrum, factor, x.at[jnp.array([0, 2])].add(1.0)


def counted(w, x):
    """A recurrence of 500 steps whose inner loop runs 3 times."""

    def step(carry, part):
        carry = lax.fori_loop(0, 3, lambda _, one: jnp.tanh(one @ w), carry)
        return carry + part, None

    return lax.scan(step, jnp.zeros_like(x[0]), x)[0]


def attention(params, ids):
    """One head of attention over lookups."""
    x = params["embedding"][ids]
    q, k, v = (x @ params[name] for name in ("q", "k", "v"))
    return jax.nn.softmax(q @ jnp.swapaxes(k, -1, -2)) @ v


def main() -> None:
    """Write every sample, without the names of folders on this machine."""
    jax.config.update("jax_hlo_source_file_canonicalization_regex", ".*/")
    floats = lambda *sizes: SHAPE(sizes, jnp.float32)  # noqa: E731
    weights = {"stem": floats(16, 32), "bias": floats(32), "layers": floats(5, 32, 32), "head": floats(32, 4)}
    gradients = jax.value_and_grad(stack)
    given = (weights, floats(8, 16))
    write("stablehlo/stack.mlir", jax.jit(stack).lower(*given).as_text(debug_info=True))
    write("stablehlo/stack_plain.mlir", jax.jit(stack).lower(*given).as_text())
    write("stablehlo/gradients.mlir", jax.jit(gradients).lower(*given).as_text(debug_info=True))
    write("stablehlo/gradients_plain.mlir", jax.jit(gradients).lower(*given).as_text())
    exported = export.export(jax.jit(gradients))(*given)
    write("stablehlo/gradients.mlirbc", exported.mlir_module_serialized)
    write("stablehlo/gradients.jax_export", bytes(exported.serialize()))
    write("jaxpr/gradients.jaxpr", str(jax.make_jaxpr(gradients)(*given)))
    write("jaxpr/stack_names.jaxpr", jax.make_jaxpr(stack)(*given).pretty_print(name_stack=True))

    kernels = {"kernel": floats(3, 3, 2, 8), "up": floats(4, 4, 8, 3)}
    write("stablehlo/images.mlir", jax.jit(images).lower(kernels, floats(2, 16, 16, 4)).as_text(debug_info=True))
    write("jaxpr/images.jaxpr", str(jax.make_jaxpr(images)(kernels, floats(2, 16, 16, 4))))

    asked = (floats(100, 8), SHAPE((3,), jnp.int32), floats(4, 4))
    write("stablehlo/mixed.mlir", jax.jit(mixed).lower(*asked).as_text(debug_info=True))
    write("jaxpr/mixed.jaxpr", str(jax.make_jaxpr(mixed)(*asked)))

    write("stablehlo/counted.mlir", jax.jit(counted).lower(floats(8, 8), floats(500, 2, 8)).as_text())
    write("jaxpr/counted.jaxpr", str(jax.make_jaxpr(counted)(floats(8, 8), floats(500, 2, 8))))

    batch, time = export.symbolic_shape("b, t")
    square = floats(16, 16)
    names = {"embedding": floats(50, 16), "q": square, "k": square, "v": square}
    ids = SHAPE((batch, time), jnp.int32)
    write("stablehlo/symbols.mlirbc", export.export(jax.jit(attention))(names, ids).mlir_module_serialized)
    write("jaxpr/symbols.jaxpr", str(jax.make_jaxpr(attention)(names, ids)))


def write(name: str, content: str | bytes) -> None:
    """Write one sample."""
    (HERE / name).write_bytes(content.encode() if isinstance(content, str) else content)


if __name__ == "__main__":
    main()
