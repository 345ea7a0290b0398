"""What a run does, in its own process or in the foreground: look, probe, advise, and leave nothing unsaid in the database."""

import json
import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from importlib import metadata

import intake
from core.advice import Recommendation
from core.device import Device
from core.errors import StoreError, TandemError, one_line
from core.probe import Measurement, Outcome, Runtime
from core.run import Progress, Run
from core.split import SplitOptions, SplitRun
from db import Store
from probes.inventory import devices
from probes.plan import Planned, block_probes
from probes.session import run_probes
from services import split, split_run
from services.advice import answer
from services.context import Context, context
from services.device_history import marking_history
from services.fleet import devices_for
from services.probing import Listener, Reporter, chosen_runtimes, usable
from services.roof import carried_over, roof_probes, stand_ins
from services.runtimes import known_runtimes
from services.split_answer import measured_split
from services.supervision import RUN_VARIABLE, Heart, become_subreaper

ROOM_TRIES, ROOM_S = 10, 1.0
"""How often, and after how many seconds, the reason of a failure is written again when the disk has no room for it."""

SETTLED_REGRET = 0.02
"""Probing until settled stops when choosing the best is expected to cost less than this."""
MANY_POOLS = 8
"""Pools of a split from which on planning is said to take a while."""


def work(run_id: str, on_progress: Listener | None = None) -> None:
    """Do one queued run to its end; whatever happens, its state and what it measured are kept.

    Args:
        run_id: a run in state `queued`.
        on_progress: hears of every change, besides the database.

    Raises:
        NotFound: no such run.
        TandemError: the run failed; the same line is kept with it.
    """
    here = context()
    run = here.store.run(run_id)
    os.environ[RUN_VARIABLE] = run_id
    with suppress(OSError):
        become_subreaper()
    state = _State(here, run, on_progress or (lambda _progress, _outcome: None))
    here.store.set_state(run_id, "running", "")
    with Heart(here.store, run_id, lambda: state.progress) as heart:
        state.heart = heart
        try:
            recommendation, split = state.measure_and_advise()
        except TandemError as error:
            say_failed(here.store, run_id, str(error))
            raise
        except KeyboardInterrupt:
            here.store.finish(run_id, "cancelled", None, f"stopped from the keyboard; kept {len(state.outcomes)} outcomes")
            raise
        except Exception as error:
            here.store.finish(
                run_id, "failed", None, one_line(f"{type(error).__name__}: {error}; this is a fault of Tandem, please report it")
            )
            raise
        cancelled = heart.cancelled()
        what = "probes" if run.options.split is None else "stages"
        kept = f"cancelled; kept {state.progress.done} of {state.progress.total} {what}" if cancelled else ""
        here.store.finish(run_id, "cancelled" if cancelled else "done", recommendation, kept, split)


def say_failed(store: Store, run_id: str, reason: str, pause: Callable[[float], None] = time.sleep) -> bool:
    """Keep why a run failed. A disk that is full, which may be the very reason, gets some seconds to have room again.

    Args:
        store: where the run is kept.
        run_id: the run.
        reason: one line.
        pause: waits so many seconds.

    Returns:
        Whether it was kept; if not, the sweep has the last word.
    """
    for _ in range(ROOM_TRIES):
        try:
            return store.finish(run_id, "failed", None, reason)
        except StoreError:
            pause(ROOM_S)
    return False


class _State:
    """One run at work."""

    def __init__(self, here: Context, run: Run, tell: Listener) -> None:
        self.here, self.run, self.tell = here, run, tell
        self.heart: Heart | None = None
        self.progress = Progress("starting runtimes")
        self.outcomes: list[Outcome] = []

    def measure_and_advise(self) -> tuple[Recommendation, SplitRun | None]:
        """Probe as the options say, then answer; where a split was asked, plan it and run it as they say."""
        options = self.run.options
        attached = devices()
        known = known_runtimes(self.here.settings, attached)
        self.here.store.save_facts(self.run.id, attached, versions_of(known))
        reporter = Reporter(0, self._keep, self._tell, options.budget_s)
        if options.probe != "none":
            installed = chosen_runtimes(options.runtimes, known)
            self._probe(reporter, self._plan(attached, installed), attached, installed, options.budget_s)
            if options.probe == "settle":
                self._settle(reporter, attached, installed, known)
        reporter.at("advising")
        if options.split is None:
            answered = self._advise(attached, known), None
        else:
            answered = self._divide(options.split, known, reporter)
        reporter.at("finished")
        return answered

    def _divide(self, asked: SplitOptions, known: Sequence[Runtime], reporter: Reporter) -> tuple[Recommendation, SplitRun]:
        """Plan the split over what was measured before, and run it where that was asked."""
        attached = devices_for(asked.pools)
        stored = self.here.store.measurements(tuple(device.uuid for device in attached))
        wanted = json.loads(self.run.document)
        patience = "; so many unlike ones may take most of a minute" if len(asked.pools) >= MANY_POOLS else ""
        over = f"{len(asked.pools)} pools{patience}" if asked.pools else "the pools of the workload"
        reporter.at(f"planning over {over}")
        told, alone = split.planned(wanted, asked, self.run.options.objective, attached, known, stored)
        if not asked.verify:
            return alone, SplitRun(told)
        came = split_run.verified(wanted, asked, told, attached, known, self.here.settings, reporter, self._stop)
        return alone, SplitRun(measured_split(told, came), came)

    def _plan(self, attached: Sequence[Device], installed: Sequence[Runtime]) -> tuple[Planned, ...]:
        planned: list[Planned] = []
        for device in attached:
            able = usable(device, installed)
            planned.extend(block_probes(self.run.workload, able, device))
            planned.extend(self._roof(able, device))
        return tuple(planned)

    def _roof(self, able: Sequence[Runtime], device: Device) -> list[Planned]:
        """Return what of the roof is to be measured; what was measured today is kept with this run as it is."""
        job = self.run.workload
        roof = tuple({one.probe: one for one in (*roof_probes(able, device, job.dtype), *stand_ins(job, able, device))}.values())
        carried = carried_over(roof, self.here.store.measurements((device.uuid,)), device, able, datetime.now(UTC))
        for measurement in carried:
            self._keep(measurement)
        return [one for one in roof if one.probe not in {measurement.probe for measurement in carried}]

    def _probe(
        self,
        reporter: Reporter,
        planned: Sequence[Planned],
        attached: Sequence[Device],
        installed: Sequence[Runtime],
        budget_s: float,
    ) -> None:
        reporter.more(len(planned))
        hear = marking_history(self.here.store, reporter.hear)
        run_probes(planned, attached, installed, self.here.settings, hear, self._stop, budget_s)

    def _settle(
        self, reporter: Reporter, attached: Sequence[Device], installed: Sequence[Runtime], known: Sequence[Runtime]
    ) -> None:
        """Measure the contenders again, longer, until the choice between them is settled or time is up."""
        while not self._stop() and reporter.progress.elapsed_s < self.run.options.budget_s:
            said = self._advise(attached, known)
            if said.confidence is None or said.confidence.expected_regret < SETTLED_REGRET or said.best is None:
                return
            contenders = {said.best.candidate.runtime} | {
                e.candidate.runtime for e in said.ranked if e.candidate.label in said.equal
            }
            able = tuple(runtime for runtime in installed if runtime.id in contenders)
            planned = [
                p for device in attached for p in block_probes(self.run.workload, usable(device, able), device, "full")
            ]
            before = len(self.outcomes)
            self._probe(reporter, planned, attached, installed, self.run.options.budget_s - reporter.progress.elapsed_s)
            if not any(isinstance(outcome, Measurement) for outcome in self.outcomes[before:]):
                return

    def _advise(self, attached: Sequence[Device], known: Sequence[Runtime]) -> Recommendation:
        stored = self.here.store.measurements(tuple(device.uuid for device in attached))
        batches = intake.batches_of(json.loads(self.run.document))
        return answer(self.run.workload, self.run.options, attached, known, (*stored, *self.outcomes), batches)

    def _keep(self, outcome: Outcome) -> None:
        self.here.store.save_outcome(self.run.id, outcome)
        self.outcomes.append(outcome)

    def _tell(self, progress: Progress, outcome: Outcome | None) -> None:
        self.progress = progress
        if outcome is not None and self.heart is not None:
            self.heart.beat()
        self.tell(progress, outcome)

    def _stop(self) -> bool:
        return self.heart is not None and self.heart.cancelled()


def versions_of(runtimes: Sequence[Runtime]) -> tuple[tuple[str, str], ...]:
    """Return (name, version) of Tandem's own libraries and of every installed runtime, each once."""
    found = {name: version for runtime in runtimes for name, version in runtime.versions}
    for name in ("streamlit", "altair", "SQLAlchemy"):
        with suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return tuple(sorted(found.items()))
