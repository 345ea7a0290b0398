"""How a file is spoilt: one function a kind of fault, each a pure function of a random source, the file and another file.

They know no format but zip: bits, lengths, cuts, repeats, splices, numbers and brackets of text are what every format is made of.
"""

import io
import random
import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Mapping

LARGEST_BYTES = 8 * 2**20
"""A mutant is cut to this size."""
_EXTREMES = (0, 1, 2, 0x7F, 0x80, 0xFF, 0xFFFF, 2**31 - 1, 2**31, 2**32 - 1, 2**40, 2**63 - 1, 2**63, 2**64 - 1)
_NUMBERS = (b"0", b"-1", b"1e999", b"NaN", b"9223372036854775808", b"-9223372036854775808", b"1" * 400, b"0.5", b"null", b'"1"')
_NAMES = ("../../escape", "/escape", "a" * 5000, "nul\x00", "..\\escape", "C:\\escape", "\u202egnp.exe", "", "a/" * 300)


def flip_bits(source: random.Random, data: bytes, _other: bytes) -> bytes:
    """Flip one to sixteen bits."""
    changed = bytearray(data)
    for _ in range(source.randint(1, 16)):
        changed[source.randrange(len(changed))] ^= 1 << source.randrange(8)
    return bytes(changed)


def set_bytes(source: random.Random, data: bytes, _other: bytes) -> bytes:
    """Overwrite a run of bytes with one value, or with noise."""
    start, length = source.randrange(len(data)), source.choice((1, 2, 4, 8, 64, 1024))
    filling = source.choice((b"\x00" * length, b"\xff" * length, source.randbytes(length)))
    return data[:start] + filling[: len(data) - start] + data[start + length :]


def cut(source: random.Random, data: bytes, _other: bytes) -> bytes:
    """Keep the beginning, or the end."""
    place = source.randrange(len(data))
    return data[:place] if source.random() < 0.8 else data[place:]


def set_length(source: random.Random, data: bytes, _other: bytes) -> bytes:
    """Write an extreme number where a length may stand: near the start as often as anywhere, in either order, or as a varint."""
    value = source.choice(_EXTREMES) + source.choice((0, 0, 0, -1, 1))
    kind = source.choice(("<B", "<H", ">H", "<I", ">I", "<Q", ">Q", "varint"))
    field = _varint(value) if kind == "varint" else struct.pack(kind, value % 256 ** struct.calcsize(kind))
    start = source.randrange(min(len(data), 64) if source.random() < 0.5 else len(data))
    return data[:start] + field + data[start + len(field) :]


def insert(source: random.Random, data: bytes, _other: bytes) -> bytes:
    """Insert noise, so that everything behind it is shifted."""
    start = source.randrange(len(data) + 1)
    return data[:start] + source.randbytes(source.choice((1, 2, 3, 4, 8, 100))) + data[start:]


def remove(source: random.Random, data: bytes, _other: bytes) -> bytes:
    """Remove a section."""
    start, end = _section(source, data)
    return data[:start] + data[end:]


def repeat(source: random.Random, data: bytes, _other: bytes) -> bytes:
    """Repeat a section up to a thousand times."""
    start, end = _section(source, data)
    times = min(source.choice((2, 3, 10, 100, 1000)), 1 + LARGEST_BYTES // max(1, end - start))
    return data[:start] + data[start:end] * times + data[end:]


def splice(source: random.Random, data: bytes, other: bytes) -> bytes:
    """Go on with another file."""
    return data[: source.randrange(len(data))] + other[source.randrange(len(other)) :]


def swap_sections(source: random.Random, data: bytes, _other: bytes) -> bytes:
    """Let two neighbouring sections change places."""
    first, second, third = sorted(source.randrange(len(data) + 1) for _ in range(3))
    return data[:first] + data[second:third] + data[first:second] + data[third:]


def set_number(source: random.Random, data: bytes, other: bytes) -> bytes:
    """Put an odd number in the place of one that is written in digits."""
    places = [match.span() for match in re.finditer(rb"-?\d+", data[: 2**20])]
    if not places:
        return set_length(source, data, other)
    start, end = source.choice(places)
    return data[:start] + source.choice(_NUMBERS) + data[end:]


def nest(source: random.Random, data: bytes, _other: bytes) -> bytes:
    """Insert brackets, many deep."""
    start, depth = source.randrange(len(data) + 1), source.choice((1, 50, 2000, 100_000))
    opening, closing = source.choice(((b"[", b"]"), (b'{"a":', b"}"), (b"(", b")"), (b"{", b"}"), (b"\x0a", b"")))
    return data[:start] + opening * depth + closing * source.choice((0, depth)) + data[start:]


def change_archive(source: random.Random, data: bytes, other: bytes) -> bytes:
    """Write a zip archive anew with one entry renamed, doubled, emptied, spoilt or swollen; another file is only spoilt."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            entries = [(one.filename, archive.read(one)) for one in archive.infolist() if one.file_size <= LARGEST_BYTES]
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, OSError, RuntimeError, ValueError, EOFError):
        entries = []
    if not entries:
        return set_bytes(source, data, other)
    number = source.randrange(len(entries))
    name, body = entries[number]
    spoilt = _IN_ARCHIVE[source.choice(sorted(_IN_ARCHIVE))](source, body, other) if body else b"x"
    entries[number] = source.choice(
        (
            (source.choice(_NAMES), body),
            (name, b""),
            (name, spoilt),
            (name, spoilt),
            (name, spoilt),
            (name, bytes(LARGEST_BYTES)),
            (name.upper(), body),
        )
    )
    if source.random() < 0.2:
        entries.insert(source.randrange(len(entries) + 1), (name, spoilt))
    return _archive(entries, source.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)))


def _archive(entries: list[tuple[str, bytes]], method: int) -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", method) as archive:
        for name, body in entries:
            entry = zipfile.ZipInfo("name")
            entry.filename, entry.compress_type = name, method
            # a second entry of one name is what is wanted; the module would warn of it
            archive.NameToInfo.pop(name, None)
            archive.writestr(entry, body)
    return held.getvalue()


def _section(source: random.Random, data: bytes) -> tuple[int, int]:
    start = source.randrange(len(data))
    return start, min(len(data), start + source.choice((1, 4, 16, 256, 4096, len(data))))


def _varint(value: int) -> bytes:
    value %= 2**64
    parts = bytearray()
    while value > 0x7F:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*parts, value))


_IN_ARCHIVE: Mapping[str, Callable[[random.Random, bytes, bytes], bytes]] = {
    one.__name__: one
    for one in (flip_bits, set_bytes, cut, set_length, insert, remove, repeat, splice, swap_sections, set_number, nest)
}
MUTATIONS: Mapping[str, Callable[[random.Random, bytes, bytes], bytes]] = {**_IN_ARCHIVE, "change_archive": change_archive}
"""All kinds by name."""


def mutant(seed: int, number: int, data: bytes, other: bytes) -> tuple[str, bytes]:
    """Return one mutant, the same for the same arguments.

    Args:
        seed, number: which one.
        data: what is spoilt.
        other: what it may be spliced with.

    Returns:
        The kinds of fault, and the mutant.
    """
    source = random.Random(f"{seed} {number}")
    kinds = [source.choice(sorted(MUTATIONS)) for _ in range(source.choice((1, 1, 1, 2, 3)))]
    for kind in kinds:
        data = MUTATIONS[kind](source, data or b"\x00", other or b"\x00")[:LARGEST_BYTES]
    return " + ".join(kinds), data
