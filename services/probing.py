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
from probes.accounting import Spent
from probes.inventory import devices
from probes.kernels import kernel_modules
from probes.plan import Planned, kernel_probes
from probes.session import Answered, Event, Stage, Started, Waiting, run_probes
from probes.suite import system_probes
from probes.system import system_modules
from probes.usability import usable_by
from services.context import context
from services.device_history import marking_history
from services.runtimes import known_runtimes

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
            case Waiting(device, place, words):
                self.progress = replace(self.progress, stage=f"waiting for {device}, {words}", current="", place=place or 1)
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


def chosen_runtimes(ids: Sequence[str], known: Sequence[Runtime]) -> tuple[Runtime, ...]:
    """Return the runtimes that are installed, or those of them that were asked for.

    Raises:
        BadInput: one that was asked for is not installed, with the reason.
    """
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
    only: Sequence[str] = (),
    on_progress: Listener | None = None,
    budget_s: float = 3600.0,
) -> tuple[Outcome, ...]:
    """Measure kernels and system probes of every attached device in each runtime, and keep the outcomes.

    Raises:
        BadInput: an unknown probe, or a runtime that is not installed.
    """
    here = context()
    attached = devices()
    installed = chosen_runtimes(tuple(runtimes), known_runtimes(here.settings, attached))
    planned: list[Planned] = []
    for device in attached:
        able = usable(device, installed)
        for name in dict.fromkeys(only) or (None,):
            planned.extend(kernel_probes(able, device, tier, name))
            planned.extend(system_probes(able, device, tier, name))
    subjects = {one.probe.subject for one in planned}
    unknown = [name for name in only if name not in subjects]
    if unknown or not planned:
        known = ", ".join((*kernel_modules(), *system_modules()))
        asked = ", ".join(map(repr, unknown)) or "nothing"
        raise BadInput(f"probe {asked} for {', '.join(r.id for r in installed)}", f"one of {known}", "choose one that these run")
    reporter = Reporter(len(planned), here.store.keep_loose, on_progress or (lambda _progress, _outcome: None), budget_s)
    run_probes(planned, attached, installed, here.settings, marking_history(here.store, reporter.hear), lambda: False, budget_s)
    return tuple(reporter.outcomes)
