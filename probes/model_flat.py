"""What every framework's model does alike: where each array lies in the flat vector, and what is refused.

The flat vector is float32, arrays end to end in the order and layout of `probes.model.weights_of`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any, Protocol

from core.errors import BadInput
from probes.layers import Layer, Shape
from probes.model import OPTIMIZERS, Part, Slot

DTYPES = ("fp32", "bf16")
LEARNING_RATE = 1e-3
WEIGHT_DECAY = 0.01
MOMENTUM = 0.9
"""The same in every framework; their own defaults of the decay differ."""


class Model(Protocol):
    """A part of a model in one framework. Arrays that go in and out are numpy's, in canonical layout; images are NHWC.

    Weights and what the optimizer remembers are float32 whatever the dtype of the arithmetic: the frameworks' update kernels
    differ in bfloat16, where 0.999 is 1.

    Batch norms use the statistics of what one call is given: those of a share are not those of the whole batch. Their running
    means are state of each process, used by `infer` alone, and neither weights nor compared.
    """

    parameter_count: int

    def weights(self) -> Any:
        """Return the flat weights, float32."""
        ...

    def load(self, flat: Any) -> None:
        """Take flat weights; what the optimizer remembers is kept.

        Raises:
            BadInput: another length.
        """
        ...

    def run(self, inputs: Mapping[str, Any], weight: float) -> float:
        """Run the whole model forward and backward, add `weight` times the gradient to what is accumulated, return the loss."""
        ...

    def forward(self, key: int, inputs: Mapping[str, Any]) -> Any:
        """Run a part forward in training and keep what `backward(key)` needs; between the two no weights may change.

        Returns:
            Activations, float32; the loss as a float when the part ends the model.
        """
        ...

    def backward(self, key: int, cotangent: Any, weight: float) -> Any:
        """Run a part backward, add `weight` times the gradient of its weights to what is accumulated.

        Args:
            key: of a `forward`, used up by this.
            cotangent: gradient of the loss at the output; None for a part that ends the model.
            weight: of this batch among those of a step; it does not touch what is returned, so every part is given the same.

        Returns:
            The gradient of the loss at `x`, float32, for the part before; None when the part starts the model.
        """
        ...

    def gradients(self, out: Any = None) -> Any:
        """Return what was accumulated, flat, float32, and start anew; zeros when nothing was.

        Args:
            out: a float32 vector to be filled and returned; without one the result may not be written to.
        """
        ...

    def update(self, flat: Any) -> None:
        """Make one step of the optimizer with these gradients, which may be reused as soon as this returns."""
        ...

    def infer(self, inputs: Mapping[str, Any]) -> Any:
        """Return the output of a forward pass without gradients, float32: logits when the part ends the model."""
        ...


class OpenModel(Protocol):
    """What a module of a framework's models offers as `open_model`."""

    def __call__(
        self, backend: Any, part: Part, optimizer: str, dtype: str, seed: int, learning_rate: float = LEARNING_RATE
    ) -> Model:
        """Return a part of a model with the weights that the seed fixes.

        Args:
            backend: an open backend of that framework.
            part: of a model.
            optimizer: one of `probes.model.OPTIMIZERS`.
            dtype: one of `DTYPES`.
            seed: of the weights.
            learning_rate: of the optimizer.

        Raises:
            BadInput: an optimizer or a dtype that is not known.
        """
        ...


@dataclass(frozen=True, slots=True)
class Stretch:
    """One array in the flat vector.

    Args:
        slot: the layer.
        array: its name there.
        start, stop: in the flat vector.
        shape: canonical.
    """

    slot: Slot
    array: str
    start: int
    stop: int
    shape: Shape

    @property
    def layer(self) -> Layer:
        """What the array belongs to."""
        return self.slot.layer


def stretches(slots: Iterable[Slot]) -> tuple[Stretch, ...]:
    """Return where each array lies, in order."""
    found: list[Stretch] = []
    at = 0
    for slot in slots:
        for name, shape, _ in slot.layer.arrays:
            found.append(Stretch(slot, name, at, at + prod(shape), shape))
            at += prod(shape)
    return tuple(found)


def check_settings(optimizer: str, dtype: str) -> None:
    """Refuse what no model can be opened with.

    Raises:
        BadInput: an unknown optimizer or dtype.
    """
    if optimizer not in OPTIMIZERS:
        raise BadInput(f"optimizer {optimizer}", f"one of {', '.join(OPTIMIZERS)}", "choose one of these")
    if dtype not in DTYPES:
        raise BadInput(f"dtype {dtype}", f"one of {', '.join(DTYPES)}", "verify in one of these")


def check_length(flat: Any, expected: int) -> None:
    """Refuse a flat vector of another length or dtype.

    Raises:
        BadInput: it differs.
    """
    if flat.shape != (expected,) or str(flat.dtype) != "float32":
        raise BadInput(
            f"{flat.dtype} of shape {flat.shape}", f"float32 of shape ({expected},)", "give the flat vector of the same part"
        )


def check_inputs(inputs: Mapping[str, Any], wanted: frozenset[str]) -> None:
    """Refuse inputs that lack one that a part needs.

    Raises:
        BadInput: one is missing.
    """
    lacking = sorted(wanted - set(inputs))
    if lacking:
        raise BadInput(
            f"inputs {', '.join(sorted(inputs)) or 'of no name'}",
            f"{', '.join(lacking)} too",
            "take them from `batch_of`, and `x` from the part before",
        )


def owned(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Return copies of inputs that are kept for a backward pass: what they came in may be filled again before that."""
    import numpy as np

    return {name: np.array(array) for name, array in inputs.items()}


def no_such_key(key: int) -> BadInput:
    """Return the refusal of a backward pass that no forward pass came before."""
    return BadInput(f"a backward pass of {key}", "the key of a forward pass not yet used", "call forward with this key first")


def no_optimizer() -> BadInput:
    """Return the refusal of an update without an optimizer."""
    return BadInput(
        "an update of a model without an optimizer", "sgd, momentum, adam or adamw", "open the model with one of these"
    )
