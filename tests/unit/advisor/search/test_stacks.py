"""Whose published programs stand for a runtime, and what is said of them."""

from advisor.cost.fitting import CLASS_LEVEL
from advisor.search.stacks import stack_for
from core.sketch import TRAINING

SEEN = {CLASS_LEVEL: frozenset({"torch/nemo|decoder", "jax|vision", "jax/maxtext|decoder"})}


def test_a_runtime_that_tuned_programs_stand_for_names_their_library() -> None:
    assert stack_for("torch-compile", "decoder", TRAINING, SEEN).library == "NVIDIA NeMo"


def test_a_runtime_s_own_figures_and_borrowed_ones_name_none() -> None:
    assert stack_for("jax", "vision", TRAINING, SEEN).library == ""
    lent = stack_for("tf-xla", "decoder", TRAINING, SEEN)
    assert (lent.borrowed, lent.library) == (True, "")
