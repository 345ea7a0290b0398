"""Frames: what is taken from a worker, and what is refused before it is decoded or waited for."""

import math
import struct

import pytest

from intake.sandbox.wire import Frames, Malformed, decode, encode, frame

MARK = bytes(range(16))


def test_frames_are_taken_in_pieces_of_any_size() -> None:
    sent = frame(MARK, b'{"a":1}') + frame(MARK, b"[]")
    frames = Frames(MARK, 100)
    for byte in sent:
        frames.take(bytes([byte]))
    assert frames.bodies == [b'{"a":1}', b"[]"]
    assert frames.whole


@pytest.mark.parametrize("value", [None, True, -1.5, "é\u202e\n", [1, [2]], {"a": {"b": []}}, 2**70])
def test_a_value_comes_back_as_it_was(value: object) -> None:
    assert decode(encode(value)) == value


def test_half_of_a_pair_is_written_as_a_question_mark() -> None:
    assert decode(encode("a\ud800b")) == "a?b"


def test_text_that_looks_like_half_of_a_pair_is_text() -> None:
    assert decode(encode("\\ud800")) == "\\ud800"


@pytest.mark.parametrize("value", [math.nan, math.inf, {1j: 2}, object()])
def test_what_json_cannot_hold_is_not_written(value: object) -> None:
    with pytest.raises((TypeError, ValueError)):
        encode(value)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"NaN",
        b"-Infinity",
        b"1e999",
        b"9" * 5000,
        b"[" * 200_000,
        b'"\\ud800"',
        b"\xff",
        b"\x80\x04K\x01.",
        b"1 2",
    ],
    ids=lambda body: repr(body[:12]),
)
def test_what_is_not_such_json_is_refused(body: bytes) -> None:
    with pytest.raises(Malformed):
        decode(body)


def test_a_frame_with_another_mark_is_refused() -> None:
    with pytest.raises(Malformed, match="does not answer this question"):
        Frames(MARK, 100).take(frame(bytes(16), b"[]"))


@pytest.mark.parametrize("length", [101, 2**63, 2**64 - 1])
def test_a_length_over_the_limit_is_refused_before_the_body_is_waited_for(length: int) -> None:
    with pytest.raises(Malformed, match=str(length)):
        Frames(MARK, 100).take(struct.pack("<16sQ", MARK, length))


def test_what_is_left_of_a_frame_is_known() -> None:
    frames = Frames(MARK, 100)
    frames.take(frame(MARK, b"[]")[:-1])
    assert (frames.bodies, frames.whole) == ([], False)
