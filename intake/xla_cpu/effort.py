"""How much work following the compiler may be, and why it is given up: too much of it, or something that is not followed.

Files come from anywhere: what would take long or much memory ends at a count of steps, which is the same on every machine.
"""

from dataclasses import dataclass

MOST_STEPS = 30_000_000
"""Under 10 seconds; a training step of 12 layers, unrolled, takes 600,000, one of 96 layers 20 million."""
MADE_STEPS, JOIN_STEPS = 100, 16
"""Of what is kept in memory: an operation, and one that is computed inside another."""


class NotFollowed(Exception):
    """The compiler is not followed through this program; the message says why, in a phrase."""


@dataclass(slots=True)
class Effort:
    """Steps that are left.

    Args:
        left: how many.
    """

    left: int = MOST_STEPS

    def spend(self, steps: int = 1) -> None:
        """Count some steps.

        Raises:
            NotFollowed: none is left.
        """
        self.left -= steps
        if self.left < 0:
            raise NotFollowed("the program is too large to follow the compiler through it")
