"""Steady state: a program is warm when its last five blocks of calls agree, not when a number of calls has passed."""

from dataclasses import dataclass, field

BLOCK_NS = 10_000_000
BLOCKS = 5
AGREE = 0.02
"""Spread of the last blocks, as a share of the fastest, at which a program is steady."""
DOUBT = 0.10
"""Spread of the last blocks, without the fastest and the slowest, from which on it is said; below is usual noise."""


@dataclass
class Warmth:
    """Calls of a warm-up, joined to blocks of at least `BLOCK_NS`."""

    blocks: list[float] = field(default_factory=list[float])
    open_ns: int = 0
    open_calls: int = 0

    def add(self, elapsed_ns: int) -> None:
        """Add one call."""
        self.open_ns += elapsed_ns
        self.open_calls += 1
        if self.open_ns >= BLOCK_NS:
            self.blocks.append(self.open_ns / self.open_calls)
            self.open_ns, self.open_calls = 0, 0

    @property
    def spread(self) -> float | None:
        """Difference of the last blocks over the fastest of them; None before there are enough of them."""
        last = self.blocks[-BLOCKS:]
        return (max(last) - min(last)) / min(last) if len(last) == BLOCKS and min(last) > 0 else None

    @property
    def steady(self) -> bool:
        """Whether the last blocks agree."""
        return self.spread is not None and self.spread <= AGREE

    def doubt(self, depth: int) -> str:
        """Return what to say when a warm-up ended before the program was steady, else nothing."""
        middle = sorted(self.blocks[-BLOCKS:])[1:-1]
        if self.spread is None or middle[-1] <= (1 + DOUBT) * middle[0]:
            return ""
        apart = middle[-1] / middle[0] - 1
        return f"unsteady: the middle of the last {BLOCKS} blocks of the warm-up at depth {depth} differs by {apart:.0%}"
