"""Timing of prepared programs: calibrated loops, warm-up, interleaved raw samples.

Rules kept here (numbers of the measurement protocol in docs/guide.md): compile time apart (4), warm to steady state (5), sync on
one's own output (6, inside `Program.run`), slopes by depth (7), raw samples kept (11). Nothing is dropped.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from core.probe import Timing
from core.statistics import median
from probes.case import Program
from probes.proof import settle
from probes.steady import Warmth

SHORTEST_SAMPLE_S = 0.010
"""Calls are looped until a sample is at least this long; shorter ones drown in the clock and the scheduler."""
WARM_CALLS = 3
WARM_S = 0.15
WARM_MOST_S = 0.2
"""A machine whose blocks never agree is not waited for any longer; the measurement says so."""
MOST_SAMPLES = 400


@dataclass
class Stopwatch:
    """One program being timed.

    Args:
        program: what to run.
        depth: copies of the subject in one call.
        clock: nanoseconds, monotonic.
    """

    program: Program
    depth: int
    clock: Callable[[], int] = time.perf_counter_ns
    first_ns: int = 0
    loops: int = 1
    warm: list[int] = field(default_factory=list[int])
    samples: list[int] = field(default_factory=list[int])
    late: list[int] = field(default_factory=list[int])
    warmth: Warmth = field(default_factory=Warmth)

    def first_call(self) -> object:
        """Run once and return the output; for a compiling program this holds the compilation."""
        start = self.clock()
        output = self.program.run()
        self.first_ns = self.clock() - start
        return output

    def warm_up(self) -> None:
        """Run until calls and seconds are enough and the last blocks agree, `WARM_MOST_S` at most; then fix the loops.

        After each call it is asked, outside the timed region, how long its output was still to come.
        """
        spent, clock = 0, self.clock
        taken: list[int] = []
        while len(taken) < WARM_CALLS or spent < WARM_S * 1e9 or (spent < WARM_MOST_S * 1e9 and not self.warmth.steady):
            start = clock()
            output = self.program.run()
            ran = clock()
            settle(output)
            self.late.append(clock() - ran)
            taken.append(ran - start)
            self.warmth.add(taken[-1])
            spent += taken[-1]
        self.warm.extend(taken)
        steady = max(1.0, median(taken[len(taken) // 2 :]))
        self.loops = max(1, round(SHORTEST_SAMPLE_S * 1e9 / steady + 0.5))

    def rewarm(self) -> None:
        """Run once after a pause, so that caches and clocks are where they would be in a steady run."""
        self.warm.append(self._time(1))

    def start_again(self) -> None:
        """Begin with new samples; those taken so far are kept among the warm-up calls."""
        self.warm.extend(self.samples)
        self.samples.clear()

    def sample(self) -> int:
        """Take one sample, keep it, and return how long it took in nanoseconds."""
        elapsed = self._time(self.loops)
        self.samples.append(round(elapsed / self.loops))
        return elapsed

    def timing(self) -> Timing:
        """Return the raw samples; compile time is the first call minus a steady one."""
        compiled = None
        if self.program.compiles and self.samples:
            compiled = max(0.0, (self.first_ns - median(self.samples)) * 1e-9)
        return Timing(self.depth, self.loops, tuple(self.samples), tuple(self.warm), compiled)

    def _time(self, loops: int) -> int:
        run, clock = self.program.run, self.clock
        start = clock()
        for _ in range(loops):
            run()
        return clock() - start


def sample_in_turn(watches: tuple[Stopwatch, ...], budget_s: float, fewest: int) -> None:
    """Sample all programs in turn, one each, until the budget is spent and at least `fewest` rounds are done.

    Args:
        watches: warmed up.
        budget_s: seconds for all of them together.
        fewest: rounds at least.
    """
    for watch in watches:
        watch.rewarm()
    spent, rounds = 0, 0
    while (rounds < fewest or spent < budget_s * 1e9) and rounds < MOST_SAMPLES:
        for watch in watches:
            spent += watch.sample()
        rounds += 1
