"""Random kills, hangs, full disks, signals and clock jumps during probing: what is lost, left over or harmed?

Each drill starts one small run as a page does, by a supervisor process that looks at it and tells each outcome that it was
shown; at a random moment one fault strikes its worker, its run process, its supervisor or its disk: in a quarter of the drills
while it starts, otherwise once a first outcome was told, after a random one of its probes and a little more, or in its answer.
The home lies on a small file system in memory where root may mount one; without, a full disk is only drilled by a limit on the
size of files (RLIMIT_FSIZE), and the table says so. The wall clock jumps by a preloaded library that is compiled here
(`bench/native/clock_jump.c`); monotonic clocks go on.

Bounds, all of which must hold for exit 0, after every drill: each outcome that was told is kept; the run is over and marked as
what it is (a `done` one has answered everything that it planned, any other says why in one line); no process that carries the
run lives, none is left unwaited for; the device's lease can be had; SQLite finds its database intact; times are positive. A
fault that could not strike, since the run was over before, is counted apart: of four or more drills of it, half must have
struck.

Run: `python -m bench.drill [--json] [--count N] [--seed N] [--only FAULT] [--runtime ID]`. 60 take some 15 minutes on two
cores.
"""

import argparse
import json
import os
import resource
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from bench.drills.faults import FAULTS, START_S, Drill, drills, strike_at
from bench.drills.scene import DOCUMENT, Scene, Stage, fill, harmed, held_leases, left_over, small_disk
from bench.drills.supervisor import key_of
from core.errors import StoreError, TandemError
from core.probe import Measurement
from core.run import Run
from services import runs
from services.processes import become_subreaper

OVER_S = 120.0
CANCEL_AFTER_S = 2.0
LOOKS_WITHOUT = 20
"""Looks without a process of the run, a tenth of a second apart, after which it has none."""
SMALL_FILE_BYTES = 4096
LONGEST_WAIT_S = 0.5
"""Beyond the probe after which a fault strikes, at most."""
BUDGET_SHARE = 0.8
"""Of the budget that is used up when the last faults strike: what is left of the probes then is answered all at once."""
FEW = 4
"""So many drills of a fault at least, before it counts as one that strikes too seldom."""


@dataclass(frozen=True, slots=True)
class Result:
    """What one drill showed.

    Args:
        fault: its name.
        moment_s: seconds after the run was acknowledged.
        struck: whether the fault met what it was meant for.
        state: what the run was marked as.
        told, kept: outcomes that the supervisor was told, and that are kept.
        run_s: from acknowledgement to the end of the run.
        seconds: from start to the last check.
        findings: what was wrong; empty when nothing was.
    """

    fault: str
    moment_s: float
    struck: bool
    state: str
    told: int
    kept: int
    run_s: float
    seconds: float
    findings: tuple[str, ...]


def carry_out(scene: Scene, drill: Drill, asked: argparse.Namespace) -> Result:
    """Do one drill from start to checks."""
    start = time.monotonic()
    scene.set_clock(0)
    stage = _staged(scene, drill, asked)
    if not stage.acknowledged.wait(60) or not stage.run_id:
        stage.end()
        return Result(drill.fault.name, 0.0, False, "", 0, 0, 0.0, time.monotonic() - start, ("the run was never acknowledged",))
    acknowledged = time.monotonic()
    _wait_for_moment(scene, stage, drill, asked.budget_s)
    moment_s = time.monotonic() - acknowledged
    struck, undo = strike(scene, stage, drill)
    try:
        ended = _until_over(scene, stage, cancel=drill.fault.action == "hang" and struck)
    finally:
        undo()
    run_s = time.monotonic() - acknowledged
    scene.set_clock(0)
    run = _settled(scene, stage)
    stage.end()
    findings = [] if ended else [f"still at work {OVER_S:.0f} s after the fault"]
    findings += check(scene, stage, drill, run)
    told, kept, took = len(stage.told), len(run.outcomes), time.monotonic() - start
    return Result(drill.fault.name, moment_s, struck, run.state, told, kept, run_s, took, tuple(findings))


def _staged(scene: Scene, drill: Drill, asked: argparse.Namespace) -> Stage:
    environment, extra = scene.environment(), dict[str, str]()
    clock = drill.fault.target if drill.fault.action == "clock" else ""
    if clock == "supervisor":
        environment |= scene.preloaded()
    elif clock == "run":
        extra = scene.preloaded()
    elif clock == "worker":
        environment["TANDEM_PYTHON_" + asked.runtime.upper().replace("-", "_")] = str(scene.wrapper())
    request = {"document": DOCUMENT, "budget_s": asked.budget_s, "runtime": asked.runtime, "environment": extra}
    return Stage(scene, request, environment)


def _watched(scene: Scene, stage: Stage) -> runs.Watch | None:
    try:
        return runs.watch(stage.run_id, 0, here=scene.here)
    except StoreError:
        return None  # the disk is full at this moment


def _over(scene: Scene, stage: Stage) -> bool:
    watch = _watched(scene, stage)
    return watch is not None and watch.over


def _wait_for_moment(scene: Scene, stage: Stage, drill: Drill, budget_s: float) -> None:
    """Wait until the fault is to strike, or the run is over.

    Moments are of what the run did, or of its budget, and not of how long runs took before: one with warm caches or on a busy
    machine takes another time.
    """
    began = time.monotonic()
    due = began + drill.moment * START_S if drill.starting else 0.0
    while (now := time.monotonic()) < began + OVER_S and (not due or now < due):
        stage.processes()
        watch = _watched(scene, stage)
        if watch is not None and watch.over:
            return
        if watch is not None and watch.progress.total and stage.told and not due:
            done, total = watch.progress.done, watch.progress.total
            probes, beyond = strike_at(drill, total)
            if done >= probes or watch.progress.elapsed_s >= BUDGET_SHARE * drill.moment * budget_s:
                usual_s = min(LONGEST_WAIT_S, (now - began) / (done + 1)) if done < total else 0.0
                due = now + beyond * usual_s
        time.sleep(min(0.05, max(0.0, due - now)) if due else 0.05)


def _until_over(scene: Scene, stage: Stage, *, cancel: bool) -> bool:
    """Wait until the run is over, or has no process left to end it; False when it still works after the limit.

    On a full disk the state of a run that died cannot be written: the next visitor settles it once there is room.
    """
    end = time.monotonic() + OVER_S
    ask_at = time.monotonic() + CANCEL_AFTER_S
    looks_without = 0
    while time.monotonic() < end:
        if _over(scene, stage):
            return True
        found = stage.processes()
        looks_without = 0 if found["run"] or found["worker"] else looks_without + 1
        if looks_without > LOOKS_WITHOUT:
            return True
        if cancel and time.monotonic() > ask_at:
            with suppress(StoreError):
                runs.cancel(stage.run_id, here=scene.here)
                cancel = False
        time.sleep(0.1)
    return False


def strike(scene: Scene, stage: Stage, drill: Drill) -> tuple[bool, "Undo"]:
    """Let the fault happen; returns whether it met its target, and what sets things right afterwards."""
    action, undo = drill.fault.action, Undo(None)
    over = _over(scene, stage)
    if action == "none":
        return True, undo
    if action == "clock":
        scene.set_clock(drill.jump_s)
        return not over and scene.preload is not None, undo
    if action.startswith("full"):
        if not scene.mounted:
            return False, undo
        undo = Undo(fill(scene.home))
        if action == "full briefly":
            time.sleep(drill.lasting_s)
            undo()
        return not over, undo
    part = "run" if drill.fault.target == "disk" else drill.fault.target
    pid = stage.wait_for(part, OVER_S, lambda: _over(scene, stage))
    if pid is None:
        return False, undo
    return _hit(pid, action, drill.lasting_s), undo


def _hit(pid: int, action: str, lasting_s: float) -> bool:
    """Do one thing to one process; False when it had ended."""
    try:
        if action == "file limit":
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (SMALL_FILE_BYTES, SMALL_FILE_BYTES))
        elif action in ("pause", "hang"):
            os.kill(pid, signal.SIGSTOP)
            if action == "pause":
                time.sleep(lasting_s)
                os.kill(pid, signal.SIGCONT)
        else:
            os.kill(pid, getattr(signal, f"SIG{action}"))
    except ProcessLookupError:
        return False
    return True


class Undo:
    """Removes what filled the disk; may be called twice."""

    def __init__(self, filler: Path | None) -> None:
        self.filler = filler

    def __call__(self) -> None:
        """Make room again."""
        if self.filler is not None:
            self.filler.unlink(missing_ok=True)


def _settled(scene: Scene, stage: Stage) -> Run:
    """Return the run as the next visitor of the portal finds it."""
    runs.sweep(here=scene.here)
    return runs.open_run(stage.run_id, here=scene.here)


def check(scene: Scene, stage: Stage, drill: Drill, run: Run) -> list[str]:
    """Return everything that is wrong after a drill."""
    findings: list[str] = []
    kept = {key_of(outcome) for outcome in run.outcomes}
    lost = [told for told in stage.told if told not in kept]
    findings += [f"lost: {label} in {runtime} of {taken}" for label, runtime, taken in lost]
    if run.state not in drill.fault.states:
        findings.append(f"marked {run.state or 'nothing'} ({run.error}); expected {' or '.join(drill.fault.states)}")
    if run.state == "done" and len(run.outcomes) < run.progress.total:
        findings.append(f"done with {len(run.outcomes)} of {run.progress.total} probes")
    if run.state == "done" and run.recommendation is None:
        findings.append("done without an answer")
    if run.state != "done" and not run.error:
        findings.append(f"{run.state} without a reason")
    if len({(o.probe, o.taken_at) for o in run.outcomes}) < len(run.outcomes):
        findings.append("an outcome is kept twice")
    measured = [o for o in run.outcomes if isinstance(o, Measurement)]
    if any(ns <= 0 for one in measured for timing in one.timings for ns in (*timing.samples_ns, *timing.warm_ns)):
        findings.append("a time that is not positive")
    return findings + left_over(stage) + held_leases(scene.leases) + harmed(scene.database)


def table(results: Sequence[Result]) -> list[str]:
    """Return fault x count x findings as lines, then each finding."""
    lines = [f"{'fault':24} {'drills':>6} {'struck':>6} {'told':>5} {'kept':>5} {'findings':>8}  ended as"]
    for name in dict.fromkeys(result.fault for result in results):
        same = [result for result in results if result.fault == name]
        states = {state: sum(r.state == state for r in same) for state in dict.fromkeys(r.state for r in same)}
        ended = ", ".join(f"{state or 'nothing'} {count}" for state, count in sorted(states.items()))
        lines.append(
            f"{name:24} {len(same):6} {sum(r.struck for r in same):6} {sum(r.told for r in same):5} "
            f"{sum(r.kept for r in same):5} {sum(len(r.findings) for r in same):8}  {ended}"
        )
    found = [f"{r.fault} at {r.moment_s:.1f} s: {finding}" for r in results for finding in r.findings]
    return [*lines, *(["", *found] if found else [])]


def verdict(results: Sequence[Result], seconds: float) -> tuple[bool, str]:
    """Return whether every bound holds, and the line that ends the bench."""
    findings = sum(len(result.findings) for result in results)
    struck = sum(result.struck for result in results)
    kinds = {name: [r.struck for r in results if r.fault == name] for name in dict.fromkeys(r.fault for r in results)}
    missed = [name for name, met in kinds.items() if sum(met) * 2 < len(met) and len(met) >= FEW]
    held = bool(results) and not findings and not missed
    told = sum(result.told for result in results)
    said = f"{len(results)} drills in {seconds / 60:.0f} minutes, {struck} struck, {told} outcomes told, {findings} findings" + (
        f"; struck too seldom: {', '.join(missed)}" if missed else ""
    )
    return held, f"HOLDS: {said}" if held else f"FALLS SHORT: {said}"


def drill_all(asked: argparse.Namespace) -> tuple[list[Result], list[str]]:
    """Carry out all drills, and return the results and what could not be drilled here."""
    results: list[Result] = []
    chosen = tuple(fault for fault in FAULTS if not asked.only or fault.name in asked.only)
    with suppress(OSError):
        become_subreaper()
    with tempfile.TemporaryDirectory(prefix="tandem-drill-") as name, small_disk(Path(name) / "home") as mounted:
        scene = Scene(Path(name), mounted=mounted)
        notes = [] if mounted else ["no file system of our own (not root): a full disk is drilled by a limit on files alone"]
        notes += [] if scene.preload else ["no C compiler: no clock was moved"]
        impossible = [] if mounted else ["full", "full briefly"]
        impossible += [] if scene.preload else ["clock"]
        usable = tuple(fault for fault in chosen if fault.action not in impossible)
        for index, drill in enumerate(drills(asked.count, asked.seed, usable)):
            result = carry_out(scene, drill, asked)
            results.append(result)
            _say(
                f"{index + 1:3} {result.fault:24} at {result.moment_s:5.1f} s: {result.state:12} {result.seconds:5.1f} s "
                f"{'' if result.struck else 'not struck '}{'; '.join(result.findings)}"
            )
        scene.here.store.close()
    return results, notes


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; exit 0 when every bound holds, 1 when one does not, 2 for bad input."""
    asked = _parse(arguments)
    start = time.monotonic()
    signal.signal(signal.SIGTERM, lambda _number, _frame: sys.exit(143))  # so that what was mounted is unmounted
    try:
        results, notes = drill_all(asked)
    except TandemError as error:
        _say(str(error))
        return 2
    held, said = verdict(results, time.monotonic() - start)
    if asked.json:
        plain = [asdict(result) for result in results]
        print(json.dumps({"schema_version": 1, "holds": held, "drills": plain, "notes": notes, "verdict": said}))
    else:
        print("\n".join([*table(results), *notes, "", said]))
    return 0 if held else 1


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.drill", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", action="store_true", help="one JSON document in place of the table")
    parser.add_argument("--count", type=int, default=200, help="drills")
    parser.add_argument("--seed", type=int, default=0, help="equal seeds give equal drills")
    parser.add_argument("--only", action="append", choices=[fault.name for fault in FAULTS], metavar="FAULT")
    parser.add_argument("--runtime", default="torch-eager", help="what probes; it must be installed")
    parser.add_argument("--budget-s", type=float, default=6.0, help="seconds of probing in one drill")
    return parser.parse_args(arguments)


def _say(text: str) -> None:
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
