"""How a fault of a document is put into one line, and how a near miss is named."""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

from core.errors import BadInput

_LONGEST = 60
_LISTED = 12


def say(value: object) -> str:
    """Return a value as it is shown in a fault: its literal, cut when it is long."""
    try:
        text = repr(value)
    except ValueError:
        text = "a number of thousands of digits"
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def fault(path: str, value: object, expected: str, remedy: str = "correct the value") -> BadInput:
    """Return the error for one value of a document.

    Args:
        path: where it stands, `model.layers`.
        value: what was found there.
        expected: what would have been accepted.
        remedy: what to do now.
    """
    return BadInput(f"{path}: {say(value)}", expected, remedy)


def unknown(path: str, what: str, given: str, known: Iterable[str]) -> BadInput:
    """Return the error for a name that is none of the known ones, with the nearest of them.

    Args:
        path: where it stands; empty for the document itself.
        what: what kind of name it is ("key", "task").
        given: the name.
        known: the names that exist.
    """
    names = tuple(known)
    where = f"{path}: " if path else ""
    listed = ", ".join(names[:_LISTED]) + (f" and {len(names) - _LISTED} more" if len(names) > _LISTED else "")
    return BadInput(f"{where}unknown {what} {say(given)}", f"one of {listed}", nearest(given, names) or "correct or remove it")


def nearest(given: str, known: Iterable[str]) -> str:
    """Return "did you mean ...?" for a near miss, or an empty text."""
    lowered = {name.lower(): name for name in known}
    near = get_close_matches(given.lower(), lowered, n=1)
    return f"did you mean {lowered[near[0]]!r}?" if near else ""


def refuse_other_separators(heading: Sequence[str]) -> None:
    """Refuse a table whose cells are not parted by commas, as spreadsheets in some countries save them.

    Args:
        heading: cells of the first line.

    Raises:
        BadInput: the heading is one cell with semicolons or tabs in it.
    """
    for mark, name in ((";", "semicolons"), ("\t", "tabs")):
        if len(heading) == 1 and mark in heading[0]:
            raise BadInput(f"cells parted by {name}", "commas between the cells", "save the table as CSV with commas")
