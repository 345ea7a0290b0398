"""The one error tree of Tandem.

Every message answers three questions in one line: what was got, what was expected, what to do.
A failed probe is not an exception but data: see `core.probe.ProbeFailure`.
"""


class TandemError(Exception):
    """Base of every error that Tandem raises on purpose; its text is fit to be shown to a user."""


class BadInput(TandemError):
    """Something that a person or a file gave cannot be used; the command line exits with 2."""

    def __init__(self, got: str, expected: str, remedy: str) -> None:
        """Build the one line that is shown.

        Args:
            got: what was given, already shortened.
            expected: what would have been accepted.
            remedy: what to do now.
        """
        self.got, self.expected, self.remedy = got, expected, remedy
        super().__init__(one_line(f"got {got}; expected {expected}; {remedy}"))


class NotFound(BadInput):
    """A named thing (run, preset, accelerator, runtime) does not exist."""


class StoreError(TandemError):
    """The database cannot be used: too old a library, a network file system, a full disk, a newer schema."""


class WorkerError(TandemError):
    """A worker process broke its protocol; the launcher turns this into a `ProbeFailure`."""


class Cancelled(TandemError):
    """The user asked a run to stop; what was measured until then is kept."""


def one_line(text: str, limit: int = 400) -> str:
    """Return `text` as one printable line of at most `limit` characters.

    Args:
        text: any text, control characters included.
        limit: the greatest length; the cut is marked with an ellipsis.
    """
    joined = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return joined if len(joined) <= limit else joined[: limit - 1] + "…"
