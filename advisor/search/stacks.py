"""Which published stack stands for a runtime: the library whose measurements say most of what the runtime reaches when tuned.

Published figures are almost all the vendors' own and well tuned. A runtime that nobody has published for a class of model takes
the figures of a stack that starts operations in the same way (of that class, else of language models), a little slower and with
a wider band: nothing says that it is faster than the best that was measured, and something usually keeps it from being as fast.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from advisor.cost.fitting import CLASS_LEVEL
from core.sketch import TRAINING

_LANGUAGE = ("decoder", "mixture")
_TRAINING = {"jax": "jax/maxtext", "torch-eager": "torch/llm-foundry", "torch-compile": "torch/nemo"}
_GENERATION = {"torch-compile": "torch/gpt-fast"}
_PLAIN = {
    "jax": "jax", "torch-eager": "torch", "torch-compile": "torch-compile", "torch-xla": "torch/xla", "torch-tpu": "torch/tpu",
    "tf-graph": "tensorflow", "tf-xla": "tensorflow+xla", "keras-jax": "jax/keras", "keras-tensorflow": "tensorflow+keras",
    "keras-torch": "torch/keras", "mxnet": "mxnet",
}  # fmt: skip
_ONE_BY_ONE = ("torch-eager", "keras-torch", "tf-graph", "mxnet")
_COMPILED_LENDERS = (
    "jax/maxtext", "jax/pax", "jax", "tensorflow+xla", "jax/t5x-vit", "jax/t5x", "torch/nemo", "torch/gpt-fast", "torch",
    "trtllm",
)  # fmt: skip
_OTHER_LENDERS = ("torch/llm-foundry", "torch", "mxnet", "tensorflow+xla", "torch/gpt-fast", "jax")
TITLES = {
    "jax/maxtext": "MaxText", "jax/pax": "Pax", "jax/t5x": "T5X", "jax/t5x-vit": "T5X", "torch/nemo": "NVIDIA NeMo",
    "torch/llm-foundry": "MosaicML LLM Foundry", "torch/gpt-fast": "gpt-fast",
}  # fmt: skip
"""Libraries that stand for a runtime, as their authors write them."""
BORROWED_SIGMA = 0.20
BORROWED_SHIFT = 0.16
"""Spread of a borrowed figure, and the mean of ln(time) above the lender's: that of a half-normal of this spread."""


@dataclass(frozen=True, slots=True)
class Stack:
    """A runtime as the cost model names it.

    Args:
        own: how its host starts operations goes by this name.
        label: under which its published figures are found.
        borrowed: whether those are another stack's.
    """

    own: str
    label: str
    borrowed: bool

    @property
    def library(self) -> str:
        """The library whose figures these are; empty where they are of the runtime by itself, or another's."""
        return "" if self.borrowed or self.label == self.own else TITLES.get(self.label, self.label)


def stack_for(runtime: str, model_class: str, regime: str, seen: Mapping[str, frozenset[str]]) -> Stack:
    """Return the stack under which a runtime's published figures are found.

    Args:
        runtime: one of `RUNTIME_IDS`.
        model_class: of the sketch. regime: what is run.
        seen: labels by level that the fit has seen.
    """
    own = _PLAIN.get(runtime, runtime)
    tuned = (_TRAINING if regime == TRAINING else _GENERATION).get(runtime) if model_class in _LANGUAGE else None
    pairs = seen.get(CLASS_LEVEL, frozenset())
    for label in (tuned, own):
        if label is not None and f"{label}|{model_class}" in pairs:
            return Stack(own, label, borrowed=False)
    lenders = _OTHER_LENDERS if runtime in _ONE_BY_ONE else _COMPILED_LENDERS
    lender = next((label for label in lenders if f"{label}|{model_class}" in pairs), lenders[0])
    return Stack(own, lender, borrowed=True)


_CHOSEN = {"decoder": (0.025, 0.06), "mixture": (0.0, 0.17)}


def chosen_of(model_class: str, regime: str) -> tuple[float, float]:
    """Return by how much, in ln(time), the best of all plans is told too fast, and what is to be added to its band.

    The least of many predictions leans to what is predicted too fast. Of classes that little was published of, and of what is not
    trained, nothing is known: zero.

    Args:
        model_class: of the sketch. regime: what is run.

    Source: `python -m bench.advised`, which holds these against published runs.
    """
    return _CHOSEN.get(model_class, (0.0, 0.0)) if regime == TRAINING else (0.0, 0.0)
