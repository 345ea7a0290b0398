"""How a plan is said in a sentence: every way in which the work is divided, over how many."""

import pytest

from advisor.words import plan_words
from core.advice import Plan


@pytest.mark.parametrize(("plan", "chips", "words"), [
    (Plan(), 1, ""),
    (Plan(data=8), 8, "data parallel"),
    (Plan(fsdp=8), 8, "fully sharded (FSDP)"),
    (Plan(data=4, micro_batch=2), 4, "data parallel, 2 samples a chip at a time"),
    (Plan(fsdp=8, tensor=2, micro_batch=1), 16,
     "fully sharded (FSDP) over 8, tensor parallel over 2, 1 sample a replica at a time"),
    (Plan(tensor=8), 8, "tensor parallel over 8"),
    (Plan(data=2, tensor=4, pipeline=2, remat=True), 16,
     "data parallel over 2, tensor parallel over 4, a pipeline over 2, activations computed again"),
    (Plan(data=8, expert=4), 8, "data parallel over 8, experts over 4"),
])  # fmt: skip
def test_a_plan_is_said_in_whole(plan: Plan, chips: int, words: str) -> None:
    assert plan_words(plan, chips) == words
