from io import BytesIO

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import BadInput
from intake.readers.protobuf import Message
from tests.samples.models.onnx_writer import field, varint


def fields(data: bytes):
    return Message.of(BytesIO(data)).fields()


class Counting(BytesIO):
    """A file that counts the bytes that are read of it."""

    taken = 0

    def read(self, size: int | None = -1, /) -> bytes:
        found = super().read(size)
        self.taken += len(found)
        return found


@given(st.integers(-(1 << 63), (1 << 63) - 1))
def test_a_whole_number_is_read_as_it_was_written(value: int) -> None:
    assert fields(field(3, value)).whole(3) == value


@given(st.lists(st.integers(0, (1 << 63) - 1), max_size=20))
def test_repeated_numbers_are_the_same_packed_and_one_by_one(values: list[int]) -> None:
    packed = field(5, b"".join(varint(one) for one in values))
    assert fields(packed).wholes(5) == fields(b"".join(field(5, one) for one in values)).wholes(5) == values


def test_texts_fractions_and_messages_are_found_by_number() -> None:
    found = fields(field(1, "name") + field(2, 1.5) + field(3, field(1, 7)) + field(3, field(1, 8)) + field(1, "last"))
    assert (found.text(1), found.texts(1), found.real(2)) == ("last", ["name", "last"], 1.5)
    assert [one.fields().whole(1) for one in found.messages(3)] == [7, 8]
    assert (found.whole(9), found.text(9), found.message(9), found.inner(9).whole(1)) == (0, "", None, 0)


def test_a_long_field_is_stepped_over_without_being_read() -> None:
    file = Counting(field(1, field(9, b"\0" * 5_000_000) + field(1, 4)) + field(2, 6))
    whole = Message.of(file).fields()
    assert (whole.whole(2), whole.inner(1).whole(1)) == (6, 4)
    assert file.taken < 1000


@pytest.mark.parametrize(("data", "why"), [
    (b"\x08", "without an end"), (b"\x08" + b"\x80" * 11, "without an end"), (b"\x0a\x05ab", "5 bytes where 2 are left"),
    (b"\x0b", "wire type 3"), (b"\x0f", "wire type 7"), (b"\x00\x01", "field number 0"),
    (b"\x0d\x01", "4 bytes where 1 are left"),
    (b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "are left"),
])  # fmt: skip
def test_bytes_that_are_no_message_are_refused_in_one_line(data: bytes, why: str) -> None:
    with pytest.raises(BadInput, match=why):
        fields(data)


def test_a_field_of_another_kind_than_expected_is_refused() -> None:
    with pytest.raises(BadInput, match="field 1 is no whole number"):
        fields(field(1, "text")).whole(1)
    with pytest.raises(BadInput, match="field 1 is no message"):
        fields(field(1, 5)).message(1)
    with pytest.raises(BadInput, match="no text"):
        fields(field(1, 5)).text(1)
    with pytest.raises(BadInput, match="over 3 numbers"):
        fields(b"".join(field(1, 5) for _ in range(4))).wholes(1, 3)


def test_messages_that_nest_without_end_are_refused() -> None:
    data = b""
    for _ in range(100):
        data = field(1, data)
    message = Message.of(BytesIO(data))
    with pytest.raises(BadInput, match="nested over"):
        while True:
            message = message.fields().message(1) or message


@settings(max_examples=60)
@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    try:
        found = fields(data)
    except BadInput:
        return
    assert all(found.count(number) for number in range(1, 5) if found.has(number))
