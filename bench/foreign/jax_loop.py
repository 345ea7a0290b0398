"""JAX by hand, timed by the loop that its users write: call, `block_until_ready`, clock.

Source: https://docs.jax.dev/en/latest/benchmarking.html: jit, warm up, wait for the result.
"""

import time
from collections.abc import Callable, Sequence
from functools import partial, reduce
from math import sqrt
from typing import Any

import jax
import jax.numpy as jnp
import optax

from bench.foreign.cases import HEAD_WIDTH, Case

VERSION = jax.__version__
FEWEST_CALLS = 3


def threads() -> None:
    """XLA does not tell its threads."""


def time_calls(steps: Sequence[Callable[[], object]], seconds: float) -> list[list[float]]:
    """Return seconds of each call of each step, called in turn for so long and at least three times, after one not counted."""
    for step in steps:
        step()
    taken: list[list[float]] = [[] for _ in steps]
    end = time.perf_counter() + seconds
    while len(taken[-1]) < FEWEST_CALLS or time.perf_counter() < end:
        for step, calls in zip(steps, taken, strict=True):
            start = time.perf_counter()
            step()
            calls.append(time.perf_counter() - start)
    return taken


def build(one: Case, copies: int) -> Callable[[], object]:
    """Return one step of so many copies of a case, compiled."""
    jax.config.update("jax_default_matmul_precision", "highest")
    key = jax.random.key(0)
    match one.kind:
        case "matmul":
            x, *weights = (jax.random.normal(k, (one.side, one.side)) for k in jax.random.split(key, copies + 1))
            scale = 1 / sqrt(one.side)
            return _waited(jax.jit(lambda weights, x: reduce(lambda y, w: (y @ w) * scale, weights, x)), weights, x)
        case "scale" | "triad":
            return _moving(one, copies)
        case "dense":
            weights = [
                {"w": jax.random.normal(k, (one.side, one.side)) / sqrt(one.side), "b": jnp.zeros(one.side)}
                for k in jax.random.split(key, copies)
            ]
            return _layers(_dense, weights, jax.random.normal(key, (one.batch, one.side)), one)
        case _:
            x = jax.random.normal(key, (one.batch, one.length, one.side))
            weights = [_transformer_weights(k, one.side) for k in jax.random.split(key, copies)]
            return _layers(_transformer, weights, x, one)


def _moving(one: Case, copies: int) -> Callable[[], object]:
    """Return one pass over memory into the place of the last result, which is donated, or next to nothing for no copy."""
    count = one.side // 4 if copies else 1
    x, y, *held = (jax.random.normal(k, (count,)) for k in jax.random.split(jax.random.key(0), 3))

    @partial(jax.jit, donate_argnums=2, keep_unused=True)
    def move(x: Any, y: Any, _into: Any) -> Any:
        return 3.0 * x if one.kind == "scale" else x + 3.0 * y

    def run() -> None:
        held[0] = jax.block_until_ready(move(x, y, held[0]))

    run()
    return run


def _waited(call: Any, *arguments: Any) -> Callable[[], object]:
    jax.block_until_ready(call(*arguments))
    return lambda: jax.block_until_ready(call(*arguments))


def _layers(layer: Any, weights: Any, x: Any, one: Case) -> Callable[[], object]:
    def forward(weights: Any, x: Any) -> Any:
        return reduce(lambda y, w: layer(w, y), weights, x)

    if not one.train:
        return _waited(jax.jit(forward), weights, x)
    optimizer = optax.adamw(1e-6)
    arriving = jax.random.normal(jax.random.key(1), x.shape) * 1e-2

    @partial(jax.jit, donate_argnums=(0, 1))
    def step(weights: Any, memory: Any, x: Any, arriving: Any) -> Any:
        if one.first:
            y, pull = jax.vjp(lambda w: forward(w, x), weights)
            (gradients,), to_input = pull(arriving), None
        else:
            y, pull = jax.vjp(forward, weights, x)
            gradients, to_input = pull(arriving)
        changes, memory = optimizer.update(gradients, memory, weights)
        return optax.apply_updates(weights, changes), memory, y, to_input

    held = [weights, optimizer.init(weights)]

    def run() -> None:
        weights, memory, y, to_input = step(*held, x, arriving)
        held[:] = weights, memory
        jax.block_until_ready((held, y, to_input))

    run()
    return run


def _dense(w: Any, x: Any) -> Any:
    return jax.nn.relu(x @ w["w"] + w["b"])


def _transformer_weights(key: Any, width: int) -> Any:
    sizes = {"qkv": (width, 3 * width), "out": (width, width), "up": (width, 4 * width), "down": (4 * width, width)}
    keys = jax.random.split(key, len(sizes))
    weights = {
        name: {"w": jax.random.normal(k, shape) / sqrt(shape[0]), "b": jnp.zeros(shape[1])}
        for k, (name, shape) in zip(keys, sizes.items(), strict=True)
    }
    return weights | {name: {"w": jnp.ones(width), "b": jnp.zeros(width)} for name in ("norm_1", "norm_2")}


def _norm(w: Any, x: Any) -> Any:
    mean = jnp.mean(x, -1, keepdims=True)
    variance = jnp.mean(jnp.square(x), -1, keepdims=True) - jnp.square(mean)  # as flax does unless told otherwise
    return (x - mean) * jax.lax.rsqrt(variance + 1e-5) * w["w"] + w["b"]


def _transformer(w: Any, x: Any) -> Any:
    batch, length, width = x.shape
    parts = jnp.split(_norm(w["norm_1"], x) @ w["qkv"]["w"] + w["qkv"]["b"], 3, axis=-1)
    query, key, value = (part.reshape(batch, length, -1, HEAD_WIDTH) for part in parts)
    attended = jax.nn.dot_product_attention(query, key, value, is_causal=True).reshape(batch, length, width)
    x = x + (attended @ w["out"]["w"] + w["out"]["b"])  # a layer adds its bias itself: without the brackets XLA fuses otherwise
    hidden = jax.nn.gelu(_norm(w["norm_2"], x) @ w["up"]["w"] + w["up"]["b"], approximate=True)
    return x + (hidden @ w["down"]["w"] + w["down"]["b"])
