"""The input as the parent hands it over: opened here, read-only, so that a reader never has a path to choose.

Of a folder the regular files are listed and counted; links and special files are left out, and a file is opened only if it is
still a regular file below that folder when the reader asks for it.
"""

import os
import socket
import stat
import struct
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from core.errors import BadInput, one_line
from intake.sandbox.limits import FOLDER_BYTES, FOLDER_DEPTH, FOLDER_FILES

_NUMBER = struct.Struct("<I")
_QUIETLY = os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)


class Offer:
    """What is handed to one read: a file, bytes, or the list of a folder's files and a socket to fetch them over.

    Args:
        source: a path that the user may read, or bytes.
        name: what it is called; the last part of the path if empty.

    Raises:
        BadInput: it is not there, cannot be read, is neither file nor folder, or the folder holds too much.
    """

    def __init__(self, source: Path | bytes, name: str = "") -> None:
        self.name = name or (source.name if isinstance(source, Path) else "") or "the file"
        self.files: list[tuple[str, int]] | None = None
        self.broker: socket.socket | None = None
        self._root = -1
        if isinstance(source, bytes):
            self.given = bytes_descriptor(source)
            return
        opened = self._open(source)
        if stat.S_ISREG(os.fstat(opened).st_mode):
            self.given = opened
            return
        self._root = opened
        try:
            self.files = _list_files(opened, self.shown)
        except BaseException:
            os.close(opened)
            raise
        self.broker, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        self.broker.setblocking(False)
        self.given = theirs.detach()

    @property
    def shown(self) -> str:
        """The name, fit to be shown."""
        return one_line(repr(self.name)[1:-1], 80)

    def close_given(self) -> None:
        """Close this side's copy of the descriptor that was handed over; may be called twice."""
        if self.given >= 0:
            os.close(self.given)
            self.given = -1

    def close(self) -> None:
        """Close everything."""
        self.close_given()
        if self.broker is not None:
            self.broker.close()
        if self._root >= 0:
            os.close(self._root)
            self._root = -1

    def hang_up(self) -> None:
        """Send no more files: a reader that waits for one is told that it is not there."""
        if self.broker is not None:
            with suppress(OSError):
                self.broker.shutdown(socket.SHUT_RDWR)

    def serve(self) -> bool:
        """Answer what the reader asked over the socket; returns whether it keeps to the rules and is still there."""
        assert self.broker is not None
        assert self.files is not None
        try:
            asked = self.broker.recv(_NUMBER.size + 1)
            if len(asked) != _NUMBER.size:
                return False
            (number,) = _NUMBER.unpack(asked)
            descriptor = self._file(number)
            if descriptor is None:
                self.broker.send(b"-")
                return True
            try:
                socket.send_fds(self.broker, [b"+"], [descriptor])
            finally:
                os.close(descriptor)
        except OSError:
            return False
        return True

    def _file(self, number: int) -> int | None:
        assert self.files is not None
        if number >= len(self.files):
            return None
        try:
            descriptor = open_below(self._root, self.files[number][0].split("/"), _QUIETLY)
        except OSError:
            return None
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            return descriptor
        os.close(descriptor)
        return None

    def _open(self, path: Path) -> int:
        remedy = "check the path"
        try:
            kind = path.stat().st_mode
            if not stat.S_ISREG(kind) and not stat.S_ISDIR(kind):
                raise BadInput(f"{self.shown}, which is a device, a pipe or a socket", "a file or a folder", remedy)
            return os.open(path, _QUIETLY)
        except FileNotFoundError:
            raise BadInput(f"{self.shown}, which is not there", "a file or a folder", remedy) from None
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or "no possible path"
            raise BadInput(f"{self.shown}, which cannot be opened ({why})", "a file that can be read", remedy) from None


def bytes_descriptor(data: bytes) -> int:
    """Return a descriptor of a file without a name that holds `data`."""
    with tempfile.TemporaryFile(prefix="tandem-given-") as file:
        file.write(data)
        file.flush()
        return os.open(f"/proc/self/fd/{file.fileno()}", _QUIETLY) if Path("/proc/self/fd").is_dir() else os.dup(file.fileno())


def open_below(root: int, parts: Sequence[str], flags: int) -> int:
    """Open what lies below a folder, following no link on the way.

    Args:
        root: descriptor of the folder; stays open.
        parts: names of folders, and last of what is opened; none stands for the folder itself.
        flags: for the last one.

    Raises:
        OSError: it is not there, or a link stands on the way.
    """
    here = os.dup(root)
    for position, part in enumerate(parts):
        last = position == len(parts) - 1
        try:
            below = os.open(part, (flags if last else os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC) | _NO_LINK, dir_fd=here)
        finally:
            os.close(here)
        here = below
    return here


def _list_files(root: int, shown: str) -> list[tuple[str, int]]:
    """Return path and size of every regular file below a folder; raises BadInput when there are none, or too many."""
    found: list[tuple[str, int]] = []
    seen = 0
    folders: list[tuple[str, ...]] = [()]
    while folders:
        parts = folders.pop()
        for entry in _entries(root, parts):
            seen += 1
            if seen > FOLDER_FILES or len(parts) > FOLDER_DEPTH:
                limit = f"at most {FOLDER_FILES} files, {FOLDER_DEPTH} folders deep"
                raise BadInput(f"{shown}, a folder that holds more", limit, "give the folder of the model or of the code alone")
            kind, size = entry[1], entry[2]
            if stat.S_ISDIR(kind):
                folders.append((*parts, entry[0]))
            elif stat.S_ISREG(kind):
                found.append(("/".join((*parts, entry[0])), size))
    if not found:
        raise BadInput(f"{shown}, a folder without files", "at least one; links are left out", "give the folder that holds them")
    if sum(size for _, size in found) > FOLDER_BYTES:
        limit = f"at most {FOLDER_BYTES >> 30} GiB"
        raise BadInput(f"{shown}, a folder of more", limit, "give the folder of the model or of the code alone")
    return sorted(found)


def _entries(root: int, parts: Sequence[str]) -> list[tuple[str, int, int]]:
    """Return name, mode and size of what a folder holds; nothing of one that cannot be read."""
    found: list[tuple[str, int, int]] = []
    try:
        descriptor = open_below(root, parts, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return found
    try:
        for name in os.listdir(descriptor):  # noqa: PTH208 - a descriptor has no path
            status = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
            found.append((name, status.st_mode, status.st_size))
    except OSError:
        return found
    finally:
        os.close(descriptor)
    return found
