"""What every framework spells alike: arithmetic through Python's own operators."""

from typing import Any


class Operators:
    """Sums, products and scales of arrays of whichever framework."""

    def add(self, a: Any, b: Any) -> Any:
        return a + b

    def multiply(self, a: Any, b: Any) -> Any:
        return a * b

    def scaled(self, a: Any, scale: float, into: Any) -> Any:
        """Return scale a, in the place of `into` where the framework stores into arrays that are there."""
        return a * scale

    def scaled_sum(self, a: Any, b: Any, scale: float, into: Any) -> Any:
        """Return a + scale b, in the place of `into` where the framework stores into arrays that are there."""
        return a + scale * b

    def multiply_add(self, x: Any, factor: Any, summand: Any) -> Any:
        """Return x * factor + summand, the last two of one element."""
        return x * factor + summand

    def gather(self, x: Any, places: Any) -> Any:
        """Return the elements of a vector at whole-number places."""
        return x[places]
