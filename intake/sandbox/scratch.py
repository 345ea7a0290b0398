"""The scratch folder of a read: the only place that a reader may write to, measured meanwhile and removed afterwards.

A folder is locked as long as its read goes on. One that a portal left behind when it was killed is therefore told from one in
use, on whichever machine or in whichever container that is, and the next worker that starts removes it.
"""

import contextlib
import fcntl
import os
import shutil
import tempfile
import time
from pathlib import Path

from intake.sandbox.limits import SCRATCH_FILES

_PREFIX = "tandem-read-"
_YOUNG_S = 60.0
"""A folder that is younger may be about to be locked."""


class Scratch:
    """A fresh folder of this user alone; `path` is where it lies."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix=_PREFIX)).resolve()
        self._lock = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        with contextlib.suppress(OSError):
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def remove(self) -> None:
        """Remove the folder with what it holds."""
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._lock)


def is_full(folder: Path, most_bytes: int) -> bool:
    """Return whether a scratch folder holds more than it may, in bytes or in files; it has no folders of its own."""
    used = 0
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for count, entry in enumerate(entries, 1):
            if count > SCRATCH_FILES:
                return True
            with contextlib.suppress(OSError):
                used += entry.stat(follow_symlinks=False).st_size
    return used > most_bytes


def remove_stale() -> None:
    """Remove what reads left behind whose portal was killed."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):
            status = folder.stat(follow_symlinks=False)
            if status.st_uid == os.getuid() and time.time() - status.st_mtime > _YOUNG_S:
                _remove_unless_locked(folder)


def _remove_unless_locked(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(descriptor)
