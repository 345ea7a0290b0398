"""A split run for real on two attached sides: measured piece by piece, planned from that, run, and held to the plan.

The sides may be two devices, or two runtimes on one device whose cores they divide.
"""

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import intake
from advisor.split.data_parallel import plan_data
from advisor.split.data_parallel_words import DataPlan
from core.device import Device
from core.errors import BadInput, Cancelled
from core.probe import Runtime
from core.quantity import Quantity, log_normal
from core.settings import Settings
from core.split import Split, SplitOptions, Verified
from core.workload import Workload
from probes.environment import only_device
from probes.lease import Place
from probes.split.calibration import calibrate
from probes.split.handle import SideLost
from probes.split.run import run
from probes.split.session import SplitSession
from probes.split.words import Calibrated, LinkSpec, Ran, SideSpec, SplitFailure, SplitTask
from services.probing import Reporter
from services.split import asked_pools
from services.split_measured import data_problem, single_s, task_of

PLANNED_SIGMA = 0.08
"""Deviation of ln(measured / planned) of a step whose pieces were measured; `bench.split_verify` shows what it is."""
CALIBRATION_SHARE = 0.5
"""Part of the budget that measuring the pieces may take; the rest is for steps."""
WINDOWS = 9
SHORTEST_WINDOW_S, LONGEST_WINDOW_S, ROUNDS = 0.1, 1.0, 2
RUNTIMES_SHOWN = 6


def verified(
    document: Mapping[str, Any], options: SplitOptions, split: Split, devices: Sequence[Device], runtimes: Sequence[Runtime],
    settings: Settings, reporter: Reporter, should_stop: Any,
) -> Verified:
    """Run a split and return what came of it; whatever ends it early is told with what was measured until then.

    Args:
        document: of the workload.
        options: pools, link, budget.
        split: as it was planned from the catalog and from stored measurements.
        devices, runtimes: attached and known.
        settings: for leases and caches.
        reporter: hears of every stage.
        should_stop: asked several times a second.

    Raises:
        BadInput: pools that are not two attached ones, or runtimes that cannot be run here.
    """
    workload = intake.read_document(document)
    sides = sides_to_run(workload, options, split, devices, runtimes)
    link = LinkSpec(bytes_per_s=options.link_bytes_per_s, latency_s=options.link_latency_s or 0.0)
    task = SplitTask(
        "data", tuple((block.kind, block.sizes, block.repeats) for block in workload.blocks), workload.batch,
        rows=_halves(workload.batch), optimizer=workload.optimizer, dtype=workload.dtype,
    )
    def waits(place: Place) -> None:
        reporter.at(f"waiting for the device: {place.words}")

    with SplitSession(sides, settings, None, should_stop, waits) as held:
        try:
            reporter.at("starting both sides")
            held.open(link)
            reporter.at("measuring the pieces of a step")
            found = _calibrated(held, task, options.budget_s)
            plan = _plan(found, sides, workload.batch)
            if plan is None:
                return _told(sides, None, None, SplitFailure("pace", "the pieces of a step could not be measured"), None)
            reporter.at("running the plan")
            ran = run(held, task_of(task, plan), options.budget_s * (1.0 - CALIBRATION_SHARE))
            return _told(sides, plan, found, ran, workload.batch)
        except (SideLost, Cancelled) as error:
            return _told(sides, None, None, held.failure(error), None)


def sides_to_run(
    workload: Workload, options: SplitOptions, split: Split, devices: Sequence[Device], runtimes: Sequence[Runtime]
) -> tuple[SideSpec, SideSpec]:
    """Return the two sides as they are started.

    Args:
        workload: the job.
        options: with two pools.
        split: tells the runtime of a pool for which none was asked.
        devices, runtimes: attached and known.

    Raises:
        BadInput: more or fewer than two attached pools, or a runtime that is not installed.
    """
    asked = asked_pools(workload, options.pools, devices, runtimes)
    attached = [one for one in asked if one.pool.attached]
    if len(asked) != 2 or len(attached) != 2:
        rented = [one.pool.accelerator for one in asked if not one.pool.attached]
        got = f"{', '.join(rented)}, not attached" if rented else f"{len(asked)} pools"
        raise BadInput(f"{got} with --verify", "two attached devices, such as cpu:0@jax and cpu:0@torch-eager", "run without it")
    cores = _cores(attached[0].pool.accelerator == attached[1].pool.accelerator)
    specs: list[SideSpec] = []
    for index, one in enumerate(attached):
        device = next(device for device in devices if device.id == one.pool.accelerator)
        runtime = _runtime(one.runtime or split.singles[index].runtime, runtimes)
        name = f"{device.id} ({runtime.id}){f' {index + 1}' if options.pools[0] == options.pools[1] else ''}"
        specs.append(SideSpec(
            name, runtime.id, device.kind, runtime.interpreter, cores[index] if device.kind == "cpu" else (),
            device.uuid if index == 0 or device.id != attached[0].pool.accelerator else "", tuple(only_device(device).items()),
            device.board.vendor if device.board is not None else "",
        ))
    return specs[0], specs[1]


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


def _halves(batch: int) -> tuple[int, int]:
    return batch - batch // 2, batch // 2


def _calibrated(session: SplitSession, task: SplitTask, budget_s: float) -> Calibrated:
    """Measure the pieces at a few shares, both sides at once, and the whole batch on each alone."""
    batch = task.batch
    firsts = sorted({max(1, min(batch - 1, round(batch * part))) for part in (0.125, 0.5, 0.875)})
    together = [(first, batch - first) for first in firsts] if batch > 1 else [(1, 1)]
    windows = len(together) + 2
    each_s = budget_s * CALIBRATION_SHARE / (windows * ROUNDS * 2)
    span_s = min(LONGEST_WINDOW_S, max(SHORTEST_WINDOW_S, each_s))
    return calibrate(session, task, together, ((batch,), (batch,)), seconds=span_s, rounds=ROUNDS)


def _plan(found: Calibrated, sides: tuple[SideSpec, SideSpec], batch: int) -> DataPlan | None:
    """Return the best shares of two sides that both work; a side that is not worth its share is told by its single."""
    problem = data_problem(found, (sides[0].name, sides[1].name), batch, least_pools=2)
    return None if problem is None else plan_data(problem)


def _told(
    sides: tuple[SideSpec, SideSpec], plan: DataPlan | None, found: Calibrated | None, ran: Ran | SplitFailure, batch: int | None
) -> Verified:
    """Return what came of it in words that pages and commands tell."""
    names = (sides[0].name, sides[1].name)
    planned: Quantity | None = None
    if plan is not None:
        planned = log_normal(plan.seconds, PLANNED_SIGMA, "measured", "pieces of a step, measured while both sides work")
    alone = (None, None) if found is None or batch is None else (single_s(found, 0, batch), single_s(found, 1, batch))
    shares = () if plan is None else tuple(share.weight for share in plan.shares)
    ended = ""
    checks, losses, timeline = (), (), ()
    if isinstance(ran, SplitFailure):
        ended = f"{ran.side or 'the run'}: {ran.stage}: {ran.error}"
    else:
        checks, losses = ran.checks, ran.losses
        with suppress(IndexError, ValueError):
            timeline = ran.timeline(names)
    link = None
    if found is not None and plan is not None:
        problem = data_problem(found, names, batch or 1)
        link = problem.links[0][1] if problem is not None else None
    drawn = () if plan is None else plan.timeline
    return Verified("data", names, planned, ran.step_s, alone, shares, timeline, checks, losses, link, ended, drawn)
