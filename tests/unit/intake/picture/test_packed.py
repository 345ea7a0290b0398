"""A picture as text: it comes back whole, and whatever else is given is refused in one line."""

import json
import zlib
from base64 import urlsafe_b64encode
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import BadInput
from core.graph import Compiled, SetAside
from core.symbols import symbol
from intake.picture import picture_of
from intake.picture.packed import MOST_BYTES, packed, picture_rows, unpacked
from intake.pictured import blocks_of
from tests.unit.intake.picture.sketch import layers

BATCH = symbol("batch")
GRAPH = layers(3, rows=BATCH).graph(0, symbols=(("batch", 4),), notes=("a note",), facts=(("active_parameters", 7),))
PICTURE = picture_of(GRAPH)
ROWS: Any = picture_rows(PICTURE)


def text_of(rows: object) -> str:
    return deflated(json.dumps(rows).encode())


def changed(path: tuple[Any, ...], value: object) -> object:
    rows = deepcopy(ROWS)
    within = rows
    for key in path[:-1]:
        within = within[key]
    within[path[-1]] = value
    return rows


def test_a_picture_comes_back_whole():
    assert unpacked(packed(PICTURE)) == PICTURE
    assert packed(PICTURE).replace("-", "").replace("_", "").isalnum()


def test_what_tiles_hold_comes_back_and_a_picture_of_before_they_were_counted_is_read():
    picture = replace(PICTURE, tiled_forward=(4096 * BATCH,), tiled_training=(4096 * BATCH, 7))
    assert unpacked(packed(picture)) == picture
    before = {key: value for key, value in ROWS.items() if not key.startswith("tiled")}
    assert unpacked(text_of(before)) == replace(PICTURE, tiled_forward=(), tiled_training=())


def test_what_a_compiler_sets_aside_comes_back_and_a_picture_of_before_it_was_told_is_read():
    memory = SetAside(3, 4, 5)
    for compiled in (Compiled("a compiler", 2, memory), Compiled("a compiler", 2, None, "it branches")):
        picture = replace(PICTURE, compiled=compiled, program=memory)
        assert unpacked(packed(picture)) == picture
    before = {key: value for key, value in ROWS.items() if key not in {"compiled", "program"}}
    assert unpacked(text_of(before)) == PICTURE


def deflated(data: bytes) -> str:
    return urlsafe_b64encode(zlib.compress(data)).decode()


@pytest.mark.parametrize("text", [
    "", "!", "abc", "ü" * 8, packed(PICTURE)[:-9], packed(PICTURE)[9:], urlsafe_b64encode(b"{}").decode(), text_of([]),
    text_of({}), text_of("picture"), text_of({"schema": 2}), deflated(b"[" * 100_000), deflated(b"\xff\xfe"),
    deflated(b'{"schema": 1, "schema": 1}'),
])  # fmt: skip
def test_damaged_text_is_refused(text):
    with pytest.raises(BadInput) as caught:
        unpacked(text)
    assert "\n" not in str(caught.value)


def test_text_that_inflates_without_end_is_refused_before_it_fills_the_memory():
    with pytest.raises(BadInput, match="cut or is too large"):
        unpacked(deflated(b" " * (MOST_BYTES + 1)))


@pytest.mark.parametrize(("path", "value"), [
    (("blocks", 0, 1), 0), (("blocks", 0, 1), 10**40), (("blocks", 0, 2, 0, 0), "product"), (("blocks", 0, 2, 0, 1), [1, 2]),
    (("blocks", 0, 2, 0, 1, 1), -4), (("blocks", 0, 2, 0, 1, 1), "tokens"), (("blocks", 0, 2, 0, 2), "float"),
    (("blocks", 0, 2, 0, 3), 0), (("blocks", 0, 3, 0, 0), ["batch"]), (("blocks", 0, 4), "tokens"), (("peak_forward",), ["q*q"]),
    (("tiled_forward",), ["q*q"]), (("peak_training", 0), -1), (("inputs",), "batch + "), (("cache",), None),
    (("symbols",), []), (("symbols", 0, 1), 0), (("title",), 7), (("operations",), [["fp64", "", -1, "", 0, 0]]),
    (("facts",), [["n", -1]]), (("notes",), [None]), (("program",), [1, 2]), (("program",), [1, 2, -3]),
    (("compiled",), ["a compiler"]), (("compiled",), ["a compiler", 2, [1, 2, -3], ""]),
])  # fmt: skip
def test_a_field_that_no_picture_has_is_refused(path, value):
    with pytest.raises(BadInput, match=r"got no picture of a model \("):
        unpacked(text_of(changed(path, value)))


def leaves(value: object, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(found for key, one in inner for found in leaves(one, (*path, key)))]


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(leaves(ROWS)[1:]), st.sampled_from([None, -1, 10**40, 0.5, "", "x", [], {}, True, [[]], ["a"], 2**70]))
def test_what_is_not_refused_gives_blocks(path, value):
    try:
        picture = unpacked(text_of(changed(path, value)))
    except BadInput:
        return
    found = blocks_of(picture, 10**6, None, "bf16")
    assert all(op.flop * block.repeats < float("inf") for block in found.blocks for op in block.ops_forward + block.ops_backward)
