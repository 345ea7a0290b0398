"""Writes small ONNX files byte by byte, so that tests of the reader need no ONNX."""

import struct
from collections.abc import Sequence
from typing import Any

FP32, INT8, INT32, INT64, BOOL, FP64 = 1, 3, 6, 7, 9, 11


def varint(value: int) -> bytes:
    """Return a number in protobuf's groups of seven bits."""
    value &= (1 << 64) - 1
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    return bytes([*found, value])


def field(number: int, value: float | str | bytes) -> bytes:
    """Return one field of a message."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    if isinstance(value, float):
        return varint(number << 3 | 5) + struct.pack("<f", value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def tensor(name: str, shape: Sequence[int], dtype: int = FP32, whole: Sequence[int] | None = None,
           real: Sequence[float] | None = None) -> bytes:
    """Return a stored tensor: with its elements, or as external data when none are given."""
    made = b"".join(field(1, one) for one in shape) + field(2, dtype) + field(8, name)
    if whole is not None:
        return made + b"".join(field(7, one) for one in whole)
    if real is not None:
        return made + field(4, struct.pack(f"<{len(real)}f", *real))
    return made + field(13, field(1, "location") + field(2, "weights.bin")) + field(14, 1)


def value(name: str, shape: Sequence[int | str | None] | None, dtype: int = FP32) -> bytes:
    """Return what is declared of a value."""
    given = (b"" if one is None else field(2, one) if isinstance(one, str) else field(1, one) for one in shape or ())
    dims = b"".join(field(1, one) for one in given)
    kind = field(1, dtype) + (b"" if shape is None else field(2, dims))
    return field(1, name) + field(2, field(1, kind))


def attribute(name: str, given: Any) -> bytes:
    """Return an attribute; bytes are a graph, and those that begin with `tensor:` a tensor."""
    if isinstance(given, bytes):
        is_tensor = given.startswith(b"tensor:")
        return field(1, name) + (field(5, given[7:]) + field(20, 4) if is_tensor else field(6, given) + field(20, 5))
    if isinstance(given, list):
        if given and isinstance(given[0], float):
            return field(1, name) + b"".join(field(7, one) for one in given) + field(20, 6)
        return field(1, name) + b"".join(field(8, one) for one in given) + field(20, 7)
    number, kind = {float: (2, 1), int: (3, 2), str: (4, 3)}[type(given)]
    return field(1, name) + field(number, given) + field(20, kind)


def node(op: str, inputs: Sequence[str], outputs: Sequence[str], *, domain: str = "", label: str = "",
         **attributes: Any) -> bytes:
    """Return one operator."""
    made = b"".join(field(1, one) for one in inputs) + b"".join(field(2, one) for one in outputs)
    made += field(3, label) + field(4, op) + (field(7, domain) if domain else b"")
    return made + b"".join(field(5, attribute(name, given)) for name, given in attributes.items())


def graph(nodes: Sequence[bytes], inputs: Sequence[bytes], outputs: Sequence[bytes], stored: Sequence[bytes] = (),
          declared: Sequence[bytes] = ()) -> bytes:
    """Return a graph."""
    parts = ((1, nodes), (5, stored), (11, inputs), (12, outputs), (13, declared))
    return field(2, "made") + b"".join(field(number, one) for number, several in parts for one in several)


def model(body: bytes, opset: int = 21, functions: Sequence[bytes] = ()) -> bytes:
    """Return a file."""
    sets = field(8, field(1, "") + field(2, opset)) + field(8, field(1, "com.microsoft") + field(2, 1))
    return field(1, 10) + field(2, "tests") + field(7, body) + sets + b"".join(field(25, one) for one in functions)


def function(domain: str, name: str, inputs: Sequence[str], outputs: Sequence[str], nodes: Sequence[bytes]) -> bytes:
    """Return an operator that is defined by others."""
    made = field(1, name) + b"".join(field(4, one) for one in inputs) + b"".join(field(5, one) for one in outputs)
    return made + b"".join(field(7, one) for one in nodes) + field(10, domain)
