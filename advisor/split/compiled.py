"""Functions over arrays that are compiled when they are first called: the one way in which planners call Numba.

What was compiled is kept on disk, beside the source or, where that may not be written, in the user's cache folder; where neither
may be, each process compiles anew. It is found again by the file of the function that was called, and by the types: a file must
therefore hold all that its functions call, and all numbers that they name.
"""

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import numba

P = ParamSpec("P")
R = TypeVar("R")
_library: Any = numba


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Return a function compiled for the types of its first call; other threads run meanwhile. Indices are not checked."""
    options = {"nogil": True, "error_model": "numpy"}
    try:
        return _library.njit(cache=True, **options)(function)
    except RuntimeError:  # no folder may be written
        return _library.njit(**options)(function)


def inner(function: Callable[P, R]) -> Callable[P, R]:
    """Do the same for a function that only compiled ones of its file call: no way in from Python halves the time to compile."""
    return _library.njit(error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)(function)
