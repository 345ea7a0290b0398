import json
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import load

from core.errors import WorkerError
from probes.split.frames import LENGTH, LONGEST_HEADER, header_bytes, header_of, read_header


def _header(content):
    return json.dumps(content).encode()


def _entry(dtype="F32", shape=(2,), offsets=(0, 8)):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}


ABOUT = {"kind": "rollout", "sent_s": "1.5"}


def test_a_frame_is_a_safetensors_file() -> None:
    arrays = [np.arange(6, dtype=np.float32).reshape(2, 3), np.array([7, -8], np.int32)]
    frame = header_of("rollout", arrays, 2.5, {"version": "3"}) + b"".join(array.tobytes() for array in arrays)
    read = load(frame)
    assert [read[name].tolist() for name in sorted(read)] == [[[0, 1, 2], [3, 4, 5]], [7, -8]]


def test_a_header_says_what_follows() -> None:
    head = header_of("rollout", [np.zeros((2, 3), np.float32), np.zeros(5, np.uint16)], 2.5, {"version": "3"})
    message, slots = read_header(head[LENGTH.size :])
    assert header_bytes(head[: LENGTH.size]) == len(head) - LENGTH.size
    assert (message.kind, message.sent_s, message.note) == ("rollout", 2.5, {"version": "3"})
    assert [(slot.dtype, slot.shape, slot.size_bytes) for slot in slots] == [("<f4", (2, 3), 24), ("<u2", (5,), 10)]


@pytest.mark.parametrize(
    "text",
    [
        b"[]",
        b"{",
        _header({"0000": _entry()}),
        _header({"__metadata__": ABOUT, "0000": _entry(offsets=(4, 12))}),
        _header({"__metadata__": ABOUT, "0000": _entry(offsets=(0, 12))}),
        _header({"__metadata__": ABOUT, "0000": _entry(), "0001": _entry()}),
        _header({"__metadata__": ABOUT, "0001": _entry()}),
        _header({"__metadata__": ABOUT, "0000": _entry(dtype="F7")}),
        _header({"__metadata__": ABOUT, "0000": _entry(shape=(-2,), offsets=(0, -8))}),
        _header({"__metadata__": ABOUT, "0000": _entry(shape=(2**40,), offsets=(0, 2**42))}),
        _header({"__metadata__": {"kind": "x", "sent_s": "soon"}}),
        _header({"__metadata__": [1]}),
        b"[" * 100_000,
    ],
)
def test_a_header_with_faults_is_refused_before_memory_is_taken(text) -> None:
    with pytest.raises(WorkerError, match="expected a frame of tensors"):
        read_header(text)


@given(st.binary(max_size=200))
def test_no_bytes_crash_the_reader_of_headers(text) -> None:
    try:
        found = read_header(text)[0].kind
    except WorkerError as error:
        found = str(error)
    assert found, "a message says what it is, a refusal what was expected"


@pytest.mark.parametrize("size", [0, 1, LONGEST_HEADER + 1, 2**63])
def test_a_header_of_no_sensible_length_is_refused(size) -> None:
    with pytest.raises(WorkerError, match="header"):
        header_bytes(struct.pack("<Q", size))
