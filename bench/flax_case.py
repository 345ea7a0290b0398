"""What a model of flax is to a bench: its shapes, how it is called, and the FLOPs of its products counted by hand."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp


@dataclass(frozen=True, slots=True)
class Case:
    """One model with its inputs.

    Args:
        name: of it.
        variables: shapes of its parameters, and of its other state.
        trained: the part of the variables that is trained.
        inputs: shapes of what it is called with.
        apply: (variables, *inputs) -> its answer.
        flop: of its products, forward.
        flop_training: of its products, forward and backward, by hand.
    """

    name: str
    variables: Any
    trained: Any
    inputs: tuple[Any, ...]
    apply: Callable[..., Any]
    flop: int
    flop_training: int

    @property
    def parameter_count(self) -> int:
        """The pytree's own count."""
        return sum(int(leaf.size) for leaf in jax.tree.leaves(self.trained))

    def loss(self, variables: Any, *inputs: Any) -> Any:
        """A loss of every element of the answer."""
        return jnp.mean(jnp.square(jnp.asarray(self.apply(variables, *inputs), jnp.float32)))


def shape(*sizes: int, dtype: Any = jnp.float32) -> Any:
    """Return an input's shape."""
    return jax.ShapeDtypeStruct(sizes, dtype)


def linen(name: str, module: nn.Module, inputs: tuple[Any, ...], flop: int, flop_training: int) -> Case:
    """Return a case of a module of flax's linen; `flop` and `flop_training` as in `Case`."""
    variables = jax.eval_shape(module.init, jax.random.key(0), *inputs)
    return Case(name, variables, variables["params"], inputs, module.apply, flop, flop_training)
