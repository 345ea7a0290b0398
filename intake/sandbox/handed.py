"""The input as a reader sees it: descriptors that the parent opened, under names that the parent listed; never a path.

A single file is one descriptor. The files of a folder are fetched one by one over a socket: the reader says a number of the
list, the parent opens that file and sends its descriptor. A reader that is no longer itself can ask for what is on the list and
for nothing else. Every `open` has a position of its own, whatever the descriptor's is.
"""

import errno
import io
import os
import socket
import struct
from collections.abc import Sequence
from typing import Any, BinaryIO, cast

from core.errors import BadInput, one_line

_NUMBER = struct.Struct("<I")


class _At(io.RawIOBase):
    """A regular file read at a position that belongs to this object alone."""

    def __init__(self, descriptor: int, size: int, *, owned: bool) -> None:
        super().__init__()
        self._descriptor, self._size, self._owned, self._position = descriptor, size, owned, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._descriptor

    def readinto(self, buffer: Any, /) -> int:
        view = memoryview(buffer).cast("B")
        taken = os.preadv(self._descriptor, [view], self._position)
        self._position += taken
        return taken

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        if start + offset < 0:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        self._position = start + offset
        return self._position

    def tell(self) -> int:
        return self._position

    def close(self) -> None:
        if not self.closed and self._owned:
            os.close(self._descriptor)
        super().close()


class HandedFile:
    """One file.

    Args:
        name: without folders; a stranger's text.
        descriptor: open for reading; stays open.
    """

    def __init__(self, name: str, descriptor: int) -> None:
        self.name, self._descriptor = name, descriptor
        self.size = os.fstat(descriptor).st_size

    def names(self) -> tuple[str, ...]:
        """Nothing: it is no folder."""
        return ()

    def open(self, name: str = "") -> BinaryIO:
        """Return the file, open for reading from its start; raises KeyError for any name."""
        if name:
            raise KeyError(name)
        return cast("BinaryIO", io.BufferedReader(_At(self._descriptor, self.size, owned=False)))


class HandedFolder:
    """The regular files of a folder.

    Args:
        name: without folders; a stranger's text.
        files: paths with `/` and their sizes, as the parent listed them.
        descriptor: the socket over which they are fetched.
    """

    def __init__(self, name: str, files: Sequence[tuple[str, int]], descriptor: int) -> None:
        self.name = name
        self.size = sum(size for _, size in files)
        self._numbers = {path: number for number, (path, _) in enumerate(files)}
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, fileno=descriptor)

    def names(self) -> tuple[str, ...]:
        """Paths of the files, sorted."""
        return tuple(sorted(self._numbers))

    def open(self, name: str = "") -> BinaryIO:
        """Return one of the files, open for reading.

        Raises:
            KeyError: it is not on the list.
            BadInput: it cannot be opened, or not any more.
        """
        os.write(self._socket.fileno(), _NUMBER.pack(self._numbers[name]))
        _, descriptors, _, _ = socket.recv_fds(self._socket, 1, 1)
        if not descriptors:
            shown = one_line(repr(name)[1:-1], 80)
            raise BadInput(f"{shown}, a file of the folder that cannot be opened", "one that can be read", "check the folder")
        return cast("BinaryIO", io.BufferedReader(_At(descriptors[0], os.fstat(descriptors[0]).st_size, owned=True)))
