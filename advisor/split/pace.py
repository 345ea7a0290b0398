"""How long one pool takes for a batch: measured or estimated at a few sizes, a line between them."""

from bisect import bisect_left
from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True, slots=True)
class Pace:
    """Seconds of one pool by batch.

    Args:
        points: (samples, seconds), samples ascending from 1 or more, seconds above zero and never falling.
        grain: samples of a batch come in multiples of it (the pool's chips that must each have as many).
        most: largest batch at one go that fits in memory, a multiple of `grain`; larger ones are accumulated. None: no limit.

    Raises:
        ValueError: no points, or not ascending.
    """

    points: tuple[tuple[int, float], ...]
    grain: int = 1
    most: int | None = None

    def __post_init__(self) -> None:
        samples = [size for size, _ in self.points]
        seconds = [value for _, value in self.points]
        rising = all(low <= high for low, high in pairwise(seconds))
        if not samples or samples[0] < 1 or sorted(set(samples)) != samples or seconds[0] <= 0 or not rising:
            raise ValueError(f"got points {self.points}; expected samples from 1, ascending, and seconds that do not fall")

    def at_once(self, samples: float) -> float:
        """Return seconds of a batch that is done at one go; 0 for none.

        Between points a line; above the last the line of the last two (through nothing when there is one); below the first the
        line of the first two, but not under what part of the first one's time would be.
        """
        if samples <= 0:
            return 0.0
        if len(self.points) == 1:
            size, value = self.points[0]
            return value * max(1.0, samples / size)
        index = min(max(bisect_left([size for size, _ in self.points], samples), 1), len(self.points) - 1)
        (left, low), (right, high) = self.points[index - 1], self.points[index]
        value = low + (high - low) * (samples - left) / (right - left)
        return value if samples >= left else max(value, low * samples / left)

    def seconds(self, samples: int) -> float:
        """Return seconds of a batch, in equal turns where it does not fit at one go; 0 for none."""
        turns = self.turns(samples)
        return turns * self.at_once(samples / turns) if turns else 0.0

    def turns(self, samples: int) -> int:
        """Return in how many turns of gradient accumulation a batch is done; 0 for none."""
        if samples <= 0:
            return 0
        return 1 if self.most is None else -(-samples // self.most)
