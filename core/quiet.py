"""Keeps what native libraries print off standard output, where a script reads one JSON document.

Solvers print now and then although they were told not to; their text waits in the C library's buffer, so that the buffer is
emptied on both sides of the call.
"""

import ctypes
import os
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress

STDOUT, STDERR = 1, 2


@contextmanager
def native_output_aside() -> Generator[None]:
    """Send what is printed on file descriptor 1 to 2 while the block runs; nothing where there is none of them."""
    try:
        kept = os.dup(STDOUT)
        os.fstat(STDERR)
    except OSError:
        yield
        return
    _flush()
    os.dup2(STDERR, STDOUT)
    try:
        yield
    finally:
        _flush()
        os.dup2(kept, STDOUT)
        os.close(kept)


def _flush() -> None:
    with suppress(OSError, ValueError, AttributeError):
        sys.stdout.flush()
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).fflush(None)
