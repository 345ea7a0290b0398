"""How a rule of the code scan is declared: what it is, what it means on each target, what is usually done, and what that costs.

Facts only. What makes a rule apply is in `intake/code/match`, so that either can be read and changed alone.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from core.finding import SEVERITIES, TARGETS

AS_OF = "2026-11-30"
LETTERS = {"J": "jax-tpu", "T": "torch-tpu", "X": "torch-xla", "A": "gpu-amd", "N": "gpu-nvidia", "F": "framework"}
TPU_GUIDE = 'cloud.google.com/tpu/docs/intro-to-tpu, "When to use TPUs" (2026)'
TORCH_TPU = "torch_tpu 0.2.0 wheel; docs.cloud.google.com/tpu/docs/pytorch-on-tpu (2026)"
XLA_TROUBLE = "pytorch/xla docs/source/learn/troubleshoot.md (@41398bf)"
XLA_DOCS = "pytorch/xla README and docs (@41398bf)"
JAX_DOCS = "jax documentation (@cec06d1)"
METADATA = "package metadata and pip resolver, 2026-11-30"
HIP = "pytorch.org/docs/stable/notes/hip.html (recalled)"
TORCH_DOCS = "pytorch.org/docs (recalled)"
TF_DOCS = "tensorflow.org/guide (recalled)"
KERAS_3 = "keras.io/guides/migrating_to_keras_3 (recalled)"
MXNET = "package metadata, 2026-11-30; apache/mxnet, last commit 2023-01-26"


@dataclass(frozen=True, slots=True)
class Effect:
    """What a rule means on one target.

    Args:
        target: one of `core.finding.TARGETS`.
        severity: one of `core.finding.SEVERITIES`.
        meaning: what happens there.
        remedy: what is usually done; empty when nothing is to be done.
    """

    target: str
    severity: str
    meaning: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Rule:
    """One kind of finding.

    Args:
        id: a few words joined by dashes.
        topic: of its module.
        title: what was found.
        effects: at most one for each target; a target without one needs nothing.
        first_h: hours (low, high) for the first place, learning and testing included.
        each_h: hours (low, high) for a further place.
        source: of the facts.
        as_of: when they were read.
        per_step: whether it only costs what it says when it runs in every step.
    """

    id: str
    topic: str
    title: str
    effects: tuple[Effect, ...]
    first_h: tuple[float, float]
    each_h: tuple[float, float]
    source: str
    as_of: str = AS_OF
    per_step: bool = False

    def effect(self, target: str) -> Effect:
        """Return what it means on a target; of one without an effect that nothing is to be done."""
        return next((one for one in self.effects if one.target == target), Effect(target, "none", "nothing to do", ""))


def declared(
    topic: str, id: str, title: str, source: str, hours: tuple[float, float, float, float],  # noqa: A002
    effects: Mapping[str, tuple[str, str, str]], *, per_step: bool = False,
) -> Rule:
    """Return a rule.

    Args:
        topic: of its module.
        id, title, source: as in `Rule`.
        hours: first low, first high, each low, each high.
        effects: (severity, meaning, remedy) by the letters of the targets that share it: J jax-tpu, T torch-tpu, X torch-xla,
            A gpu-amd, N gpu-nvidia, F framework.
        per_step: as in `Rule`.

    Raises:
        ValueError: an unknown letter or severity, or a target named twice.
    """
    found = [Effect(LETTERS[letter], *effect) for letters, effect in effects.items() for letter in letters]
    if any(one.severity not in SEVERITIES for one in found) or len({one.target for one in found}) != len(found):
        raise ValueError(f"rule {id}: a severity of {', '.join(SEVERITIES)}, each of {', '.join(TARGETS)} at most once")
    return Rule(id, topic, title, tuple(found), hours[:2], hours[2:], source, AS_OF, per_step)
