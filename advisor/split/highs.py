"""HiGHS through SciPy, with what the library prints kept off standard output: the one way in which planners call it."""

from typing import Any

from core.quiet import native_output_aside


def milp(*arguments: Any, **options: Any) -> Any:
    """Call `scipy.optimize.milp`; arguments and result are its own."""
    import scipy.optimize

    optimize: Any = scipy.optimize
    with native_output_aside():
        return optimize.milp(*arguments, **options)
