"""Who else used the processor while something was timed: neighbours on this machine, and on the host behind it (steal).

And how much of it what was timed used itself: a program on one core of two reaches half of a peak that counts both.
"""

import os
import time
from dataclasses import dataclass

import psutil

CONTENDED_SHARE = 0.10
"""Share of all cores that others may use before a measurement is flagged."""
BUSY_SHARE = 0.6
"""Share of the cores that a large product must keep busy."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Processor seconds at one moment.

    Args:
        busy_s: all cores together, whoever used them, time stolen by other machines of the host counted.
        own_s: of this process and of the worker that is timed.
        wall_s: monotonic seconds.
    """

    busy_s: float
    own_s: float
    wall_s: float


def usage(worker: int) -> Usage:
    """Read the clocks of the kernel.

    Args:
        worker: process id of the worker that is timed; one that has ended counts nothing.
    """
    times = psutil.cpu_times()
    busy = times.user + times.system + sum(getattr(times, name, 0.0) for name in ("nice", "irq", "softirq", "steal"))
    own = os.times()
    try:
        theirs = psutil.Process(worker).cpu_times()
        worker_s = theirs.user + theirs.system
    except psutil.Error:
        worker_s = 0.0
    return Usage(busy, own.user + own.system + worker_s, time.monotonic())


@dataclass
class Bystanders:
    """Adds up what others used, and what was used ourselves, over the rounds of one probe."""

    others_s: float = 0.0
    own_s: float = 0.0
    wall_s: float = 0.0

    def add(self, before: Usage, after: Usage) -> None:
        """Add one round of samples."""
        self.others_s += max(0.0, (after.busy_s - before.busy_s) - (after.own_s - before.own_s))
        self.own_s += after.own_s - before.own_s
        self.wall_s += after.wall_s - before.wall_s

    def warning(self, cores: int) -> str:
        """Return what to say when others used too much, else nothing."""
        share = self.others_s / (self.wall_s * cores) if self.wall_s > 0 else 0.0
        return f"contended: other processes used {share:.0%} of the machine meanwhile" if share > CONTENDED_SHARE else ""

    def narrow(self, cores: int) -> str:
        """Return what to say when a program that should fill the machine left cores idle that no one else used, else nothing."""
        busy = self.own_s / self.wall_s if self.wall_s > 0 else float(cores)
        if busy + self.others_s / max(self.wall_s, 1e-9) >= BUSY_SHARE * cores:
            return ""
        return f"narrow: it kept {busy:.1f} of {cores} cores busy; the peak counts all of them"
