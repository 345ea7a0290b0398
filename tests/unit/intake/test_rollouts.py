"""Rollouts in a document: what is read, and what is refused with which line."""

from typing import Any

import pytest

import intake
from core.errors import BadInput
from core.workload import Rollouts

BASE: dict[str, Any] = {"schema": 1, "task": "rl", "model": {"preset": "llama-3-8b"}, "batch": 64, "length": 4096}
SAID: dict[str, Any] = {"prompt": 512, "output": 1024}


def read(**changes: Any) -> Rollouts | None:
    return intake.read_document({**BASE, **changes}).rollouts


def test_what_is_said_is_read_and_the_rest_is_the_plainest() -> None:
    assert read(rollouts=SAID) == Rollouts(512, 1024, 0.0, None, 1, None)
    every = {**SAID, "deviation": 300, "longest": 3000, "most_stale": 0, "environment_steps_per_s": 5e4}
    assert read(rollouts=every) == Rollouts(512, 1024, 300.0, 3000, 0, 5e4)
    assert read() is None


@pytest.mark.parametrize(("changes", "said"), [
    ({"rollouts": {"prompt": 512}}, "prompt and output"),
    ({"rollouts": {**SAID, "output": 4000}}, "at most the length of 4096"),
    ({"rollouts": {**SAID, "longest": 10}}, "rollouts.longest"),
    ({"rollouts": SAID, "task": "train"}, "task rl"),
])  # fmt: skip
def test_what_cannot_be_used_is_refused_with_its_place(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(BadInput) as caught:
        read(**changes)
    assert said in str(caught.value)
