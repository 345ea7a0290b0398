"""Classes of requests in a document: what is read, and what is refused with which line."""

from typing import Any

import pytest

import intake
from core.errors import BadInput
from core.workload import RequestClass

BASE: dict[str, Any] = {"schema": 1, "task": "serve", "model": {"preset": "gpt2-small"}, "batch": 8, "prompt": 64, "output": 16}
CHAT: dict[str, Any] = {"name": "chat", "per_s": 5, "prompt": 500, "output": 200}


def read(**changes: Any) -> tuple[RequestClass, ...]:
    return intake.read_document({**BASE, **changes}).requests


def test_classes_are_read_in_order_with_their_targets() -> None:
    found = read(requests=[CHAT, {**CHAT, "name": "long", "per_token_ms": 50, "first_token_ms": 2000, "latency_ms": 9000}])
    assert found == (RequestClass("chat", 5.0, 500, 200), RequestClass("long", 5.0, 500, 200, 2000.0, 50.0, 9000.0))


def test_a_document_without_classes_has_none() -> None:
    assert read() == ()


@pytest.mark.parametrize(("changes", "said"), [
    ({"requests": [{"name": "chat", "per_s": 5, "prompt": 500}]}, "requests[0]"),
    ({"requests": [{**CHAT, "per_s": 0}]}, "requests[0].per_s"),
    ({"requests": [{**CHAT, "tokens": 3}]}, "tokens"),
    ({"requests": [CHAT, CHAT]}, "two classes named chat"),
    ({"requests": [CHAT], "task": "infer"}, "task serve"),
    ({"requests": {"chat": 5}}, "a list of classes"),
])  # fmt: skip
def test_what_cannot_be_used_is_refused_with_its_place(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(BadInput) as caught:
        read(**changes)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
