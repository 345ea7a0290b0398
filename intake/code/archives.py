"""Opens a zip as data, within bounds: never writes a file, never follows a link, never trusts a size that it declares.

What the archive says of an entry is checked first (count, size, ratio); what really comes out of it is counted while it is read.
"""

import io
import stat
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import PurePosixPath

from core.errors import BadInput, one_line
from intake.code.kinds import is_wanted
from intake.code.limits import DEFAULT, Limits
from intake.code.source import SourceFile

_CHUNK = 1 << 16
_ENDS = 56 + 20
"""Bytes that a zip of the larger kind (zip64) has between its list and its end."""
_BROKEN = (zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError, RuntimeError, ValueError, OverflowError)


def open_archive(raw: bytes, limits: Limits = DEFAULT) -> Iterator[SourceFile]:
    """Yield the files of a zip that a scan reads.

    Args:
        raw: the archive.
        limits: entries, bytes and ratio.

    Raises:
        BadInput: it is no zip, is encrypted or broken, has paths that lead out of it, or would unpack to more than the limits.
    """
    listed = _listed(raw)
    if listed > limits.archive_entries:
        raise _refused(f"{listed} entries", f"at most {limits.archive_entries}", "pack only the source files")
    try:
        archive = zipfile.ZipFile(io.BytesIO(raw))
    except _BROKEN as error:
        raise _refused(f"no zip archive ({one_line(str(error), 80)})", "a zip of source files",
            "pack the folder again") from error
    with archive:
        entries = archive.infolist()
        if len(entries) > limits.archive_entries:
            raise _refused(f"{len(entries)} entries", f"at most {limits.archive_entries}", "pack only the source files")
        left = limits.archive_bytes
        for entry in entries:
            if not _is_file(entry):
                continue
            name = _safe_name(entry.filename)
            if not is_wanted(name):
                continue
            content = _read(archive, entry, min(left, limits.bytes_each + 1), limits)
            left -= len(content)
            if left <= 0:
                raise _refused(f"over {limits.archive_bytes} bytes when unpacked", "less", "pack only the source files")
            yield SourceFile(name, content)


def _listed(raw: bytes) -> int:
    """Return how many entries stand in an archive's list, without building any of them."""
    end = raw.rfind(b"PK\5\6")
    if end < 0 or end + 16 > len(raw):
        return 0
    length = int.from_bytes(raw[end + 12 : end + 16], "little")
    return raw.count(b"PK\1\2", max(0, end - length - _ENDS), end)


def _is_file(entry: zipfile.ZipInfo) -> bool:
    """Whether an entry is a plain file; links and devices are passed over, as nothing of them can be read as text."""
    kind = stat.S_IFMT(entry.external_attr >> 16)
    return not entry.is_dir() and kind in (0, stat.S_IFREG)


def _safe_name(name: str) -> str:
    plain = name.replace("\\", "/")
    path = PurePosixPath(plain)
    if path.is_absolute() or ".." in path.parts or (path.parts and path.parts[0].endswith(":")):
        raise _refused(f"an entry {one_line(name, 60)!r}", "paths within the archive", "pack the folder again")
    return str(path)


def _read(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, most: int, limits: Limits) -> bytes:
    shown = one_line(entry.filename, 60)
    if entry.flag_bits & 1:
        raise _refused(f"an encrypted entry {shown!r}", "a zip without a password", "pack it without one")
    if entry.file_size > limits.archive_ratio * max(entry.compress_size, 1) + _CHUNK:
        raise _refused(f"an entry {shown!r} that unpacks to {entry.file_size} bytes from {entry.compress_size}",
                       f"a ratio of at most {limits.archive_ratio:.0f}", "pack only the source files")
    parts: list[bytes] = []
    size = 0
    try:
        with archive.open(entry) as opened:
            while size < most and (part := opened.read(min(_CHUNK, most - size))):
                parts.append(part)
                size += len(part)
    except _BROKEN as error:
        raise _refused(f"a broken entry {shown!r} ({one_line(str(error), 60)})", "a whole zip",
            "pack the folder again") from error
    return b"".join(parts)


def _refused(got: str, expected: str, remedy: str) -> BadInput:
    return BadInput(f"code: {got}", expected, remedy)
