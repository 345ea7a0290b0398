"""A split run for real on two attached sides: measured piece by piece, planned from that, run, and held to the plan.

The sides may be two devices, or two runtimes on one device whose cores they divide.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from typing import Any

import intake
from core.device import Device
from core.errors import BadInput, Cancelled
from core.probe import Runtime
from core.quantity import log_normal
from core.settings import Settings
from core.split import Split, SplitOptions, Verified
from core.workload import Workload
from probes.environment import only_device
from probes.lease import Place
from probes.split.handle import SideLost
from probes.split.run import run
from probes.split.session import SplitSession
from probes.split.words import MODES, LinkSpec, Ran, SideSpec, SplitFailure, SplitTask
from probes.split.work import is_side
from services.context import context
from services.fleet import check_cluster, devices_for, is_reached, reach_of, relay_interpreter
from services.probing import Reporter
from services.runtimes import known_runtimes
from services.split import asked_pools
from services.split_measured import MEASURED_SIGMA
from services.split_run_bench import Bench, Ready
from services.split_run_modes import check_mode, modes_of, prepared

STAGES = 5
"""Stages that are told at least: starting, measuring, planning and measuring again, running, done."""
RUNTIMES_SHOWN = 6


class Stages:
    """Tells how far a run is, stage by stage.

    Args:
        reporter: hears of every stage; what it counted before stays counted.
    """

    def __init__(self, reporter: Reporter) -> None:
        self._reporter, self._begun = reporter, False
        reporter.more(STAGES)
        self._last = reporter.progress.total

    def begin(self, stage: str) -> None:
        """Tell what is done now; what was done before is counted, but never as the last while something is done."""
        progress = self._reporter.progress
        done = min(progress.done + 1, self._last - 1) if self._begun else progress.done
        self._begun = True
        self._reporter.progress = replace(progress, done=done, place=0)
        self._reporter.at(stage)

    def wait(self, place: Place) -> None:
        """Tell the place in the queue for a device."""
        self._reporter.at(f"waiting for the device: {place.words}")

    def end(self) -> None:
        """Tell that nothing is left to do."""
        self._reporter.progress = replace(self._reporter.progress, done=self._last)
        self._reporter.at("the split was run")


def check(document: Mapping[str, Any], options: SplitOptions) -> None:
    """Refuse what cannot be run, before anything is planned or started.

    Args:
        document: of the workload.
        options: pools and mode.

    Raises:
        BadInput: pools that are not two attached ones, a runtime that is not installed, a mode or model that cannot be run.
    """
    attached = devices_for(options.pools)
    runtimes = known_runtimes(context().settings)
    workload = intake.read_document(document)
    asked = asked_pools(workload, options.pools, attached, runtimes)
    _refuse_pools([(one.pool.accelerator, one.pool.attached) for one in asked])
    for one in asked:
        if one.runtime and not is_side(one.runtime):
            raise BadInput(f"{one.runtime} as a side of a split", "jax, torch or TensorFlow", "name one of their runtimes")
        if is_reached(one.pool.accelerator):
            _refuse_unnamed(one.pool.accelerator, one.runtime)
        elif one.runtime:
            _runtime(one.runtime, runtimes)
    mode_to_run(workload, options.mode, "")
    settings, known = context().settings, {device.id: device for device in attached}
    reached = [one.pool for one in asked if is_reached(one.pool.accelerator)]
    if reached:
        check_cluster(settings, [reach_of(known[pool.accelerator], pool.count, settings) for pool in reached])


def mode_to_run(workload: Workload, asked: str, planned: str) -> str:
    """Return the mode that was asked for, else that of the plan where it can be run, else the first that can.

    Args:
        workload: the job.
        asked: empty for none.
        planned: that was found to be the best; empty where nothing was planned yet.

    Raises:
        BadInput: the mode that was asked for, or every mode, cannot be run.
    """
    if asked:
        check_mode(workload, asked)
        return asked
    able = modes_of(workload) or MODES
    refused: list[BadInput] = []
    for mode in (*([planned] if planned in able else []), *able):
        try:
            check_mode(workload, mode)
        except BadInput as error:
            refused.append(error)
        else:
            return mode
    raise refused[0]


def verified(
    document: Mapping[str, Any], options: SplitOptions, split: Split, devices: Sequence[Device], runtimes: Sequence[Runtime],
    settings: Settings, reporter: Reporter, should_stop: Callable[[], bool],
) -> Verified:
    """Run a split and return what came of it; whatever ends it early is told with what was measured until then.

    Args:
        document: of the workload.
        options: pools, link, mode, budget.
        split: as it was planned from the catalog and from stored measurements.
        devices, runtimes: attached and known.
        settings: for leases and caches.
        reporter: hears of every stage.
        should_stop: asked several times a second.

    Raises:
        BadInput: pools that are not two attached ones, runtimes that cannot be run here, or a model that cannot be run so.
    """
    workload = intake.read_document(document)
    sides = sides_to_run(workload, options, split, devices, runtimes, settings)
    mode = mode_to_run(workload, options.mode, split.mode)
    transport = "memory" if all(side.reach is None for side in sides) else "grpc"
    link = LinkSpec(transport, bytes_per_s=options.link_bytes_per_s, latency_s=options.link_latency_s or 0.0)
    return run_sides(workload, sides, mode, link, options.budget_s, settings, reporter, should_stop)


def run_sides(
    workload: Workload, sides: tuple[SideSpec, SideSpec], mode: str, link: LinkSpec, budget_s: float, settings: Settings,
    reporter: Reporter, should_stop: Callable[[], bool],
) -> Verified:
    """Measure, plan and run a workload on two sides in one mode; arguments as `verified` has them.

    Args:
        workload: checked by `check_mode`.
        sides: in the order asked.
        mode: one of `probes.split.words.MODES`.
        link: between them.
        budget_s: seconds of running at most.
        settings, reporter, should_stop: as `verified` has them.
    """
    found = _measured(workload, sides, mode, link, budget_s, settings, reporter, should_stop)
    asked = [side.name for side in sides]
    places = tuple(asked.index(name) for name in found.sides)
    return replace(found, places=places, runtimes=tuple(sides[place].runtime for place in places))


def _measured(
    workload: Workload, sides: tuple[SideSpec, SideSpec], mode: str, link: LinkSpec, budget_s: float, settings: Settings,
    reporter: Reporter, should_stop: Callable[[], bool],
) -> Verified:
    stages = Stages(reporter)
    names, ready = (sides[0].name, sides[1].name), None
    held: list[SplitSession] = []
    with ExitStack() as stack:
        def opened(swapped: bool) -> SplitSession:
            nonlocal names
            pair = (sides[1], sides[0]) if swapped else sides
            names = (pair[0].name, pair[1].name)
            held.append(stack.enter_context(SplitSession(pair, settings, None, should_stop, stages.wait)))
            held[-1].open(link)
            return held[-1]

        try:
            stages.begin("starting both sides")
            bench = Bench(opened, names, workload, budget_s, stages.begin)
            ready = prepared(bench, mode)
            if ready is None:
                failed = SplitFailure("pace", "the pieces of a step could not be measured")
                return told(mode, names, None, failed)
            stages.begin(f"running the plan: {ready.evidence}")
            ran = _ran(bench, ready.task)
            stages.end()
            return told(mode, names, ready, ran)
        except (SideLost, Cancelled) as error:
            return told(mode, names, ready, held[-1].failure(error))


def _ran(bench: Bench, task: SplitTask) -> Ran:
    """Run a task, and go on where few steps were timed because the first ones still compiled.

    What is compared is of the first steps; what is timed, of the later ones.
    """
    first = run(bench.session, task, bench.running_s)
    left_s = bench.running_s - sum(first.step_s)
    if left_s < bench.running_s / 2:
        return first
    later = run(bench.session, task, left_s, fresh=False, prove=False)
    return replace(first, steps=later.steps)


def sides_to_run(
    workload: Workload, options: SplitOptions, split: Split, devices: Sequence[Device], runtimes: Sequence[Runtime],
    settings: Settings,
) -> tuple[SideSpec, SideSpec]:
    """Return the two sides as they are started.

    Args:
        workload: the job.
        options: with two pools.
        split: tells the runtime of a pool for which none was asked.
        devices, runtimes: attached and known.
        settings: tell how a cluster is reached.

    Raises:
        BadInput: more or fewer than two attached pools, or a runtime that is not installed.
    """
    asked = asked_pools(workload, options.pools, devices, runtimes)
    _refuse_pools([(one.pool.accelerator, one.pool.attached) for one in asked])
    cores = _cores(asked[0].pool.accelerator == asked[1].pool.accelerator)
    specs: list[SideSpec] = []
    for index, one in enumerate(asked):
        device = next(device for device in devices if device.id == one.pool.accelerator)
        twice = f" {index + 1}" if options.pools[0] == options.pools[1] else ""
        if is_reached(device.id):
            specs.append(SideSpec(
                f"{device.id} ({one.runtime}){twice}", one.runtime, device.kind, relay_interpreter(settings),
                reach=reach_of(device, one.pool.count, settings),
            ))
            continue
        runtime = _runtime(one.runtime or split.singles[index].runtime, runtimes)
        name = f"{device.id} ({runtime.id}){twice}"
        specs.append(SideSpec(
            name, runtime.id, device.kind, runtime.interpreter, cores[index] if device.kind == "cpu" else (),
            device.uuid if index == 0 or device.id != asked[0].pool.accelerator else "", tuple(only_device(device).items()),
            device.board.vendor if device.board is not None else "",
        ))
    return specs[0], specs[1]


def _refuse_pools(pools: Sequence[tuple[str, bool]]) -> None:
    """Refuse pools, (name, attached), that are not two attached ones."""
    rented = [name for name, attached in pools if not attached]
    if rented or len(pools) != 2:
        got = f"{', '.join(rented)}, not attached" if rented else f"{len(pools)} pools"
        raise BadInput(f"{got} with --verify", "two attached devices, such as cpu:0@jax and cpu:0@torch-eager", "run without it")


def _refuse_unnamed(device: str, runtime: str) -> None:
    """Refuse a device of a cluster without a runtime: what is installed there is not known here."""
    if not runtime:
        raise BadInput(f"{device} without a runtime", "one that is installed there", f"write it behind the pool: {device}@jax")


def _cores(shared: bool) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the cores of both sides: halves where they share a processor and there are two, else whatever the system gives."""
    usable = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    if not shared or len(usable) < 2:
        return (), ()
    half = len(usable) // 2
    return tuple(usable[:half]), tuple(usable[half:])


def _runtime(name: str, runtimes: Sequence[Runtime]) -> Runtime:
    found = next((one for one in runtimes if one.id == name), None)
    if found is None or not found.installed:
        able = [one.id for one in runtimes if one.installed][:RUNTIMES_SHOWN]
        why = "" if found is None else f": {found.reason}"
        expected = f"one of {', '.join(able)}"
        raise BadInput(f"runtime {name or 'none'} to run{why}", expected, "write it behind the pool: cpu:0@jax")
    return found


def told(mode: str, names: tuple[str, str], ready: Ready | None, ran: Ran | SplitFailure) -> Verified:
    """Return what came of a run in words that pages and commands tell.

    Args:
        mode: that was run.
        names: of the sides.
        ready: what was planned; None where it ended before.
        ran: what was measured.
    """
    ended = ""
    checks, losses, timeline = (), (), ()
    if isinstance(ran, SplitFailure):
        ended = f"{ran.side or 'the run'}: {ran.stage}: {ran.error}"
    else:
        checks, losses = ran.checks, ran.losses
        with suppress(IndexError, ValueError):
            timeline = ran.timeline(names)
    if ready is None:
        return Verified(mode, names, None, ran.step_s, (None, None), (), timeline, checks, losses, None, ended)
    planned = log_normal(ready.seconds, MEASURED_SIGMA, "measured", ready.evidence)
    alone, shares = ready.single_s, ready.shares
    return Verified(
        mode, names, planned, ran.step_s, alone, shares, timeline, checks, losses, ready.link, ended, ready.timeline
    )
