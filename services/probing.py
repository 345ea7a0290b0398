"""Probing as a use case: plan, measure, tell how far it is, keep every outcome at once."""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

from core.device import Device
from core.errors import BadInput
from core.format import seconds
from core.probe import Measurement, Outcome, Runtime
from core.run import Progress
from core.settings import Settings
from probes.accounting import Spent
from probes.inventory import devices
from probes.kernels import kernel_modules
from probes.plan import Planned, kernel_probes
from probes.runtimes import installed_runtimes, usable_by
from probes.session import Answered, Event, Stage, Started, Waiting, run_probes
from services.context import context

Listener: TypeAlias = Callable[[Progress, Outcome | None], None]


class Reporter:
    """Turns events of a session into progress.

    Args:
        total: probes that are planned.
        keep: stores one outcome before it is told.
        tell: hears of every change.
        budget_s: seconds after which no probe is begun.
        clock: seconds, monotonic.
    """

    def __init__(
        self,
        total: int,
        keep: Callable[[Outcome], None],
        tell: Listener,
        budget_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.progress = Progress("starting runtimes", total=total)
        self.outcomes: list[Outcome] = []
        self.spent: list[Spent] = []
        self._keep, self._tell, self._clock, self._started = keep, tell, clock, clock()
        self._subject, self._budget_s = "", budget_s

    def hear(self, event: Event) -> None:
        """Take one event in."""
        outcome: Outcome | None = None
        match event:
            case Stage(text):
                self.progress = replace(self.progress, stage=text, current=self._subject, place=0)
            case Started(probe):
                self._subject = probe.label
                self.progress = replace(self.progress, stage="preparing", current=f"{probe.label} in {probe.runtime}", place=0)
            case Spent():
                self.spent.append(event)
                return
            case Waiting(device):
                self.progress = replace(self.progress, stage=f"waiting for {device}, which another run holds", place=1)
            case Answered(outcome):
                self._keep(outcome)
                self.outcomes.append(outcome)
                self.progress = replace(self.progress, done=len(self.outcomes), last=_say(outcome))
        self.progress = self._timed()
        self._tell(self.progress, outcome)

    def more(self, count: int) -> None:
        """Take note that `count` more probes were planned."""
        self.progress = replace(self.progress, total=self.progress.total + count)

    def at(self, stage: str) -> None:
        """Take note of a stage that no session tells."""
        self.progress = replace(self._timed(), stage=stage, current="", remaining_s=None)
        self._tell(self.progress, None)

    def _timed(self) -> Progress:
        elapsed = self._clock() - self._started
        done, total = self.progress.done, self.progress.total
        remaining = min(elapsed / done * (total - done), max(0.0, self._budget_s - elapsed)) if done else None
        return replace(self.progress, elapsed_s=elapsed, remaining_s=remaining)


def _say(outcome: Outcome) -> str:
    name = f"{outcome.probe.label} in {outcome.probe.runtime}"
    if isinstance(outcome, Measurement):
        return f"{name}: {seconds(outcome.median_s)}" + ("" if outcome.trusted else ", not trusted")
    return f"{name}: failed at {outcome.stage}, {outcome.error}"


def chosen_runtimes(ids: Sequence[str], settings: Settings) -> tuple[Runtime, ...]:
    """Return the runtimes that are installed, or those of them that were asked for.

    Raises:
        BadInput: one that was asked for is not installed, with the reason.
    """
    known = installed_runtimes(settings.interpreters)
    for name in ids:
        runtime = next((r for r in known if r.id == name), None)
        if runtime is None or not runtime.installed:
            reason = runtime.reason if runtime else "no such runtime"
            raise BadInput(f"runtime {name} ({reason})", "an installed runtime", "see ./tandem runtimes list")
    return tuple(r for r in known if r.installed and (not ids or r.id in ids))


def usable(device: Device, runtimes: Sequence[Runtime]) -> tuple[Runtime, ...]:
    """Return the runtimes that can use a device."""
    able = {pair.runtime for pair in usable_by((device,), runtimes) if pair.ok}
    return tuple(runtime for runtime in runtimes if runtime.id in able)


def probe(
    runtimes: Sequence[str] = (),
    tier: str = "quick",
    only: str | None = None,
    on_progress: Listener | None = None,
    budget_s: float = 3600.0,
) -> tuple[Outcome, ...]:
    """Measure the kernels of every attached device in each runtime, and keep the outcomes.

    Raises:
        BadInput: an unknown kernel, or a runtime that is not installed.
    """
    here = context()
    attached = devices()
    installed = chosen_runtimes(tuple(runtimes), here.settings)
    planned: list[Planned] = []
    for device in attached:
        planned.extend(kernel_probes(usable(device, installed), device, tier, only))
    if not planned:
        raise BadInput(f"kernel {only!r}", f"one of {', '.join(kernel_modules())}", "choose one of these")
    reporter = Reporter(len(planned), here.store.keep_loose, on_progress or (lambda _progress, _outcome: None), budget_s)
    run_probes(planned, attached, installed, here.settings, reporter.hear, lambda: False, budget_s)
    return tuple(reporter.outcomes)
