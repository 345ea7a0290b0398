"""Who else used the processor while something was timed: neighbours on this machine, and on the host behind it (steal).

And how much of it what was timed used itself: a program on one core of two reaches half of a peak that counts both.
"""

import os
import time
from dataclasses import dataclass, field

import psutil

CONTENDED_SHARE = 0.10
"""Share of all cores that others may use before a measurement is flagged."""
BUSY_SHARE = 0.6
"""Share of the cores that a large product must keep busy."""
LEAST_THREAD_S = 0.1
"""The kernel counts in hundredths of a second; less tells nothing."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Processor seconds at one moment.

    Args:
        busy_s: all cores together, whoever used them, time stolen by other machines of the host counted.
        own_s: of this process and of the worker that is timed.
        wall_s: monotonic seconds.
        threads_s: of each thread of the worker, by its id.
    """

    busy_s: float
    own_s: float
    wall_s: float
    threads_s: tuple[tuple[int, float], ...] = ()


def usage(worker: int) -> Usage:
    """Read the clocks of the kernel.

    Args:
        worker: process id of the worker that is timed; one that has ended counts nothing.
    """
    times = psutil.cpu_times()
    busy = times.user + times.system + sum(getattr(times, name, 0.0) for name in ("nice", "irq", "softirq", "steal"))
    own = os.times()
    try:
        process = psutil.Process(worker)
        theirs, threads = process.cpu_times(), process.threads()
        worker_s = theirs.user + theirs.system
    except psutil.Error:
        worker_s, threads = 0.0, []
    by_thread = tuple((thread.id, thread.user_time + thread.system_time) for thread in threads)
    return Usage(busy, own.user + own.system + worker_s, time.monotonic(), by_thread)


@dataclass
class Bystanders:
    """Adds up what others used, and what each thread of the worker used, over the rounds of one probe."""

    others_s: float = 0.0
    threads_s: dict[int, float] = field(default_factory=dict[int, float])
    wall_s: float = 0.0

    def add(self, before: Usage, after: Usage) -> None:
        """Add one round of samples."""
        self.others_s += max(0.0, (after.busy_s - before.busy_s) - (after.own_s - before.own_s))
        earlier = dict(before.threads_s)
        for thread, spent in after.threads_s:
            self.threads_s[thread] = self.threads_s.get(thread, 0.0) + spent - earlier.get(thread, 0.0)
        self.wall_s += after.wall_s - before.wall_s

    def warning(self, cores: int) -> str:
        """Return what to say when others used too much, else nothing."""
        share = self.others_s / (self.wall_s * cores) if self.wall_s > 0 else 0.0
        return f"contended: other processes used {share:.0%} of the machine meanwhile" if share > CONTENDED_SHARE else ""

    def narrow(self, cores: int) -> str:
        """Return what to say when a program that should fill the machine works in too few threads, else nothing.

        Threads are counted by what each used against the busiest, which holds on a machine that others use as well.
        """
        most = max(self.threads_s.values(), default=0.0)
        if most < LEAST_THREAD_S:
            return ""
        equal = sum(self.threads_s.values()) / most
        if equal >= BUSY_SHARE * cores:
            return ""
        return f"narrow: {equal:.1f} threads did the work on {cores} cores; the peak counts all of them"
