"""What hostile files are made of: a place to harm, zips of any kind, and the case that holds one file."""

import io
import struct
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

READ, REFUSED, EITHER = "read", "refused", "either"


@dataclass(frozen=True, slots=True)
class Target:
    """What a hostile file tries to touch.

    Args:
        canary: a file whose text must stay and must not be told.
        absent: a path at which no file may appear.
        port: of a listener on this machine, to which nothing may connect.
    """

    canary: Path
    absent: Path
    port: int


@dataclass(frozen=True, slots=True)
class Case:
    """One hostile file.

    Args:
        drill: F1 to F18.
        what: it is, in a few words.
        name: of the file.
        make: returns its bytes.
        said: words of the refusal, or of a note when it is read; empty when anything plain will do.
        outcome: `read`, `refused` (a limit counts as such), or `either`.
    """

    drill: str
    what: str
    name: str
    make: Callable[[Target], bytes]
    said: str = ""
    outcome: str = REFUSED


def packed(files: Mapping[str, bytes], how: int = zipfile.ZIP_DEFLATED) -> bytes:
    """Return a zip of files."""
    kept = io.BytesIO()
    with zipfile.ZipFile(kept, "w", how) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return kept.getvalue()


def replaced(archive: bytes, changes: Mapping[str, bytes]) -> bytes:
    """Return a zip with some of its files replaced or added."""
    with zipfile.ZipFile(io.BytesIO(archive)) as opened:
        files = {entry.filename: opened.read(entry) for entry in opened.infolist()}
    return packed({**files, **changes})


def overlapped(count: int, content: bytes = b"#" * 1_000_000) -> bytes:
    """Return a zip whose entries all unpack the same bytes of the archive: small, and large when unpacked."""
    name = b"a.py"  # of all of them, as a header of the archive has to have the name of its entry
    body = packed({name.decode(): content})
    with zipfile.ZipFile(io.BytesIO(body)) as opened:
        entry = opened.infolist()[0]
        end = opened.start_dir
    central = b"".join(
        struct.pack(
            "<4s4B4H3L5H2L", b"PK\x01\x02", 20, 3, 20, 0, 0, entry.compress_type, 0, 33, entry.CRC, entry.compress_size,
            entry.file_size, len(name), 0, 0, 0, 0, 0, 0,
        ) + name for _ in range(count)
    )  # fmt: skip
    tail = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, count, count, len(central), end, 0)
    return body[:end] + central + tail
