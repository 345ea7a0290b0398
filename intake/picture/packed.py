"""A picture as one short text, so that a document, an address or a database can hold it: rows of JSON, deflated, base64."""

import zlib
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as NotBase64
from collections.abc import Sequence
from dataclasses import astuple
from json import dumps
from typing import Any

from core.codec import parse_json
from core.errors import BadInput
from core.graph import DTYPE_BITS, SetAside
from core.graph_json import compiled_from_json, compiled_to_json
from core.ops import DIMS
from core.picture import Operation, ParameterShape, Picture, PictureBlock, Portability
from core.symbols import MOST_VALUE, Extent, read, symbols_in, written

SCHEMA = 1
MOST_BYTES = 64_000_000
"""Of the rows, once inflated."""


def packed(picture: Picture) -> str:
    """Return a picture as text of letters, digits, `-` and `_`."""
    return urlsafe_b64encode(zlib.compress(dumps(picture_rows(picture), separators=(",", ":")).encode(), 9)).decode().rstrip("=")


def unpacked(text: str) -> Picture:
    """Return the picture that `packed` gave.

    Raises:
        BadInput: anything else; one line.
    """
    try:
        inflater = zlib.decompressobj()
        plain = inflater.decompress(urlsafe_b64decode(text + "=" * (-len(text) % 4)), MOST_BYTES)
        if not inflater.eof:
            raise BadInput("a picture of a model that was cut or is too large", "the whole text", "read the model file again")
        return _picture(parse_json(plain))
    except (NotBase64, zlib.error, KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        got = f"no picture of a model ({str(error)[:80]})"
        raise BadInput(got, "what Tandem made of a model file", "read the file again") from None


def picture_rows(picture: Picture) -> dict[str, object]:
    """Return a picture as plain values for JSON."""
    blocks = [
        [block.name, block.repeats,
         [[o.kind, [written(one) for one in o.dims], o.dtype, o.count, int(o.phase == "backward"), o.source]
          for o in block.operations],
         [[list(p.shape), p.dtype, p.count, int(p.trained)] for p in block.parameters],
         written(block.saved), written(block.given), list(block.parts)]
        for block in picture.blocks
    ]  # fmt: skip
    marks = [[p.mark, p.detail, p.count, p.where, p.extent, p.padded] for p in picture.operations]
    return {
        "schema": SCHEMA, "title": picture.title, "format": picture.format, "blocks": blocks,
        "symbols": list(map(list, picture.symbols)), "inputs": written(picture.inputs), "cache": written(picture.cache),
        "peak_forward": [written(one) for one in picture.peak_forward],
        "peak_training": [written(one) for one in picture.peak_training],
        "peak_step": [written(one) for one in picture.peak_step], "operations": marks,
        "facts": list(map(list, picture.facts)), "notes": list(picture.notes), "derived": picture.derived,
        "tiled_forward": [written(one) for one in picture.tiled_forward],
        "tiled_training": [written(one) for one in picture.tiled_training],
        "compiled": compiled_to_json(picture.compiled),
        "program": None if picture.program is None else list(astuple(picture.program)),
    }  # fmt: skip


def _picture(plain: Any) -> Picture:
    if plain["schema"] != SCHEMA:
        raise ValueError(f"schema {plain['schema']!r:.20}")
    picture = Picture(
        _text(plain["title"]), _text(plain["format"]), tuple(map(_block, plain["blocks"])), _pairs(plain["symbols"]),
        _extents(plain["peak_forward"]), _extents(plain["peak_training"]), _extents(plain["peak_step"]), _extent(plain["inputs"]),
        _extent(plain["cache"]),
        tuple(_portability(row) for row in plain["operations"]), _pairs(plain["facts"]),
        tuple(map(_text, plain["notes"])), plain["derived"] is True,
        _extents(plain.get("tiled_forward", ())), _extents(plain.get("tiled_training", ())),
        compiled_from_json(plain.get("compiled")), None if plain.get("program") is None else _set_aside(plain["program"]),
    )  # fmt: skip
    _check(picture)
    return picture


def _set_aside(row: Sequence[Any]) -> SetAside:
    return SetAside(*map(_whole, row))


def _check(picture: Picture) -> None:
    """Check that every symbol that a size follows has a value: another batch or length is put in its place."""
    tiled = (*picture.tiled_forward, *picture.tiled_training)
    used = symbols_in((picture.inputs, picture.cache, *picture.peak_forward, *picture.peak_training, *picture.peak_step, *tiled))
    for block in picture.blocks:
        used |= symbols_in((block.saved, block.given, *(side for one in block.operations for side in one.dims)))
    if unknown := sorted(used - {name for name, value in picture.symbols if value > 0}):
        raise ValueError(f"symbol {unknown[0]!r:.40} without a value")


def _block(row: Sequence[Any]) -> PictureBlock:
    name, repeats, operations, parameters, saved, given, parts = row
    return PictureBlock(_text(name), _whole(repeats, 1), tuple(map(_operation, operations)), tuple(map(_parameter, parameters)),
                        _extent(saved), _extent(given), tuple(map(_text, parts)))  # fmt: skip


def _operation(row: Sequence[Any]) -> Operation:
    kind, dims, dtype, count, backward, source = row
    if len(dims) != len(DIMS[kind]) or (dtype and dtype not in DTYPE_BITS):
        raise ValueError(f"operation {kind!r:.20} with {len(dims)} dims and dtype {dtype!r:.20}")
    return Operation(kind, _extents(dims), dtype, _whole(count, 1), "backward" if backward else "forward", _text(source))


def _parameter(row: Sequence[Any]) -> ParameterShape:
    shape, dtype, count, trained = row
    if dtype and dtype not in DTYPE_BITS:
        raise ValueError(f"dtype {dtype!r:.20}")
    return ParameterShape(tuple(_whole(side) for side in shape), dtype, _whole(count, 1), bool(trained))


def _portability(row: Sequence[Any]) -> Portability:
    mark, detail, count, where, extent, padded = row
    return Portability(_text(mark), _text(detail), _whole(count), _text(where), _whole(extent), _whole(padded))


def _extents(rows: Sequence[Any]) -> tuple[Extent, ...]:
    return tuple(_extent(one) for one in rows)


def _extent(value: Any) -> Extent:
    return _whole(value) if isinstance(value, int) else read(value)


def _pairs(rows: Sequence[Any]) -> tuple[tuple[str, int], ...]:
    return tuple((_text(name), _whole(value)) for name, value in rows)


def _whole(value: Any, low: int = 0) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= MOST_VALUE:
        raise ValueError(f"{value!r:.20} where a whole number from {low} was expected")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r:.20} where a text was expected")
    return value[:400]
