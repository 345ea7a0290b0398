"""Reads Keras's `.keras`: the config inside the zip as data, and the shapes of its weights to hold against it.

Nothing of Keras is imported, no class that the file names is looked for, and assets (vocabularies) are not opened.
"""

import struct
import zlib
from collections.abc import Mapping
from io import BytesIO
from typing import BinaryIO
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile, ZipInfo

from core.errors import BadInput
from core.graph import Graph
from core.graph_json import graph_to_json
from intake.readers.hdf5 import weights_of
from intake.readers.hdf5_bytes import Hdf5
from intake.readers.hdf5_groups import contents_of
from intake.readers.keras_config import read_model
from intake.readers.keras_match import matched
from intake.readers.plain_json import read_json
from intake.source import Source

TITLE = "Keras"
SUFFIXES = (".keras",)
NEEDS: tuple[str, ...] = ()
CONFIG, METADATA, WEIGHTS = "config.json", "metadata.json", "model.weights.h5"
MOST_MEMBERS, MOST_CONFIG, MOST_UNPACKED = 100_000, 256 * 2**20, 512 * 2**20
_REMEDY = "save the model again with model.save('name.keras')"


def fits(name: str, head: bytes) -> bool:
    """Whether a file is a `.keras`, by its name or by what its zip begins with."""
    return name.lower().endswith(".keras") or (head.startswith(b"PK\3\4") and METADATA.encode() in head[:64])


def read(source: Source, options: Mapping[str, object]) -> dict[str, object]:
    """Read a `.keras` file, or the folder that one unpacks to, or a config as JSON.

    Args:
        source: the file, or the folder.
        options: `batch`, `length` and `image`, where the asker knows them.

    Raises:
        BadInput: no such file, or a model that cannot be told from its config.
    """
    if source.names():
        return graph_to_json(_folder(source, options))
    with source.open() as stream:
        head = stream.read(4)
        stream.seek(0)
        if head.startswith(b"PK"):
            return graph_to_json(_zipped(stream, source, options))
        if source.size > MOST_CONFIG:
            raise BadInput(f"{source.name:.80}, which is no zip", "a .keras file", _REMEDY)
        document = read_json(stream.read(MOST_CONFIG), source.name, _REMEDY)
        return graph_to_json(read_model(document, "keras", source.name, options))


def _folder(source: Source, options: Mapping[str, object]) -> Graph:
    names = source.names()
    if CONFIG not in names:
        raise BadInput(f"a folder without {CONFIG}", "what a .keras file unpacks to", _REMEDY)
    with source.open(CONFIG) as stream:
        text = stream.read(MOST_CONFIG)
    graph = read_model(read_json(text, CONFIG, _REMEDY), "keras", source.name, options)
    if WEIGHTS not in names:
        return graph
    with source.open(WEIGHTS) as stream:
        size = stream.seek(0, 2)
        contents = contents_of(Hdf5(stream, size))
    return matched(graph, weights_of(contents), contents.notes)


def _zipped(stream: BinaryIO, source: Source, options: Mapping[str, object]) -> Graph:
    try:
        with ZipFile(stream) as archive:
            members = {member.filename: member for member in archive.infolist()}
    except (BadZipFile, ValueError, NotImplementedError, EOFError, struct.error, OSError) as error:
        raise BadInput(f"a zip that cannot be read ({str(error)[:80]})", "a .keras file that is whole", _REMEDY) from None
    if CONFIG not in members or len(members) > MOST_MEMBERS:
        got = f"a zip without {CONFIG}" if CONFIG not in members else f"a zip of {len(members)} files"
        raise BadInput(got, "a .keras file", _REMEDY)
    document = read_json(_unpacked(stream, members[CONFIG], source.size, MOST_CONFIG), CONFIG, _REMEDY)
    graph = read_model(document, "keras", source.name, options)
    if WEIGHTS not in members:
        return matched(graph, (), ())
    member = members[WEIGHTS]
    if member.compress_type == ZIP_STORED:
        window: BinaryIO = _Window(stream, _start(stream, member, source.size), member.file_size)
        size = member.file_size
    else:
        data = _unpacked(stream, member, source.size, MOST_UNPACKED)
        window, size = BytesIO(data), len(data)
    contents = contents_of(Hdf5(window, size))
    return matched(graph, weights_of(contents), contents.notes)


def _start(stream: BinaryIO, member: ZipInfo, size: int) -> int:
    """Return where a member's bytes begin; the directory's word is held against what stands there.

    Source: APPNOTE.TXT of PKWARE, 4.3.7.
    """
    # an offset below zero is what a damaged directory makes of the file's end
    stream.seek(max(member.header_offset, 0))
    head = stream.read(30)
    if member.header_offset < 0 or len(head) != 30 or head[:4] != b"PK\3\4" or member.flag_bits & 1:
        raise BadInput(
            f"a zip whose {member.filename:.40} is encrypted or not where it should be", "a .keras file that is whole", _REMEDY
        )
    name, extra = struct.unpack("<HH", head[26:30])
    start = member.header_offset + 30 + name + extra
    if start + member.compress_size > size or (member.compress_type == ZIP_STORED and member.file_size > member.compress_size):
        raise BadInput(
            f"a zip whose {member.filename:.40} claims more bytes than the file has", "a .keras file that is whole", _REMEDY
        )
    return start


def _unpacked(stream: BinaryIO, member: ZipInfo, size: int, most: int) -> bytes:
    start = _start(stream, member, size)
    stream.seek(start)
    if member.compress_type not in (ZIP_STORED, ZIP_DEFLATED) or member.compress_size > most:
        raise BadInput(f"a zip whose {member.filename:.40} is packed in a way that is not read here, or too large",
                       f"stored or deflated, at most {most >> 20} MiB", _REMEDY)  # fmt: skip
    packed = stream.read(member.compress_size)
    if member.compress_type == ZIP_STORED:
        return packed
    try:
        found = zlib.decompressobj(-zlib.MAX_WBITS).decompress(packed, most + 1)
    except zlib.error as error:
        raise BadInput(
            f"a zip whose {member.filename:.40} cannot be unpacked ({error})"[:160], "a .keras file that is whole", _REMEDY
        ) from None
    if len(found) > most:
        raise BadInput(f"a zip whose {member.filename:.40} unpacks to more than {most >> 20} MiB", "less", _REMEDY)
    return found


class _Window(BytesIO):
    """Part of a stream as a stream of its own; nothing is copied."""

    def __init__(self, stream: BinaryIO, start: int, size: int) -> None:
        super().__init__()
        self._stream, self._start, self._size, self._at = stream, start, size, 0

    def seek(self, offset: int, whence: int = 0, /) -> int:
        """Go to a place."""
        self._at = max(offset + {0: 0, 1: self._at, 2: self._size}[whence], 0)
        return self._at

    def read(self, size: int | None = -1, /) -> bytes:
        """Return bytes from there on."""
        left = max(self._size - self._at, 0)
        self._stream.seek(self._start + self._at)
        found = self._stream.read(left if size is None or size < 0 else min(size, left))
        self._at += len(found)
        return found
