"""One clock for two sides: what one host calls noon, the other does too."""

import time
from dataclasses import dataclass

from probes.split.channel import TensorChannel

ROUNDS = 31
"""Questions of which the quickest answer is believed."""
_KIND, _AT = "clock", "at"


@dataclass
class HostClock:
    """Seconds on the first side's clock.

    Processes of one host share the system's clock where it allows. Each host has a clock of its own, which begins anywhere.

    Args:
        ahead_s: what is added to this host's own.
    """

    ahead_s: float = 0.0

    def __call__(self) -> float:
        """Return the time."""
        return time.perf_counter() + self.ahead_s


def tune(clock: HostClock, channel: TensorChannel, index: int, rounds: int) -> None:
    """Set the second side's clock by the first's, as network time does: each way takes half of the quickest answer.

    A difference that is less than the whole way is none: then both are on one host, or as good as.

    Args:
        clock: of this side.
        channel: to the other, not shaped yet.
        index: of this side; the first answers.
        rounds: questions.
    """
    if index == 0:
        for _ in range(rounds):
            channel.receive(_KIND)
            channel.send(_KIND, [], {_AT: repr(clock())})
        channel.flush()
        return
    least_s, apart_s = float("inf"), 0.0
    for _ in range(rounds):
        start_s = clock()
        channel.send(_KIND, [])
        told = float(channel.receive(_KIND).note[_AT])
        stop_s = clock()
        if stop_s - start_s < least_s:
            least_s, apart_s = stop_s - start_s, told - (start_s + stop_s) / 2
    if abs(apart_s) > least_s:
        clock.ahead_s += apart_s
