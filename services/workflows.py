"""Workflows of stages and portfolios of a team: what is not said is estimated, the whole is planned, the answer is a split.

A stage or workload that names a workload of Tandem is estimated on every pool for which no seconds are given, by the best runtime
that the advisor knows there. Nothing of a workflow is kept as a run: a run is one workload.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from math import sqrt
from pathlib import Path

import catalog
from advisor.beliefs import BELIEFS
from advisor.split.portfolio import plan_portfolio
from advisor.split.portfolio_words import PortfolioProblem, TeamPool, Work, WorkOption
from advisor.split.stage_rules import stage_verdicts
from advisor.split.stages import plan_stages
from advisor.split.stages_words import Edge, Stage, StageOption, StagePool, StagesProblem, Wire
from core.device import Device, Link, Pool
from core.errors import BadInput, NotFound
from core.probe import Outcome, Runtime
from core.run import RunOptions
from core.split import Split
from core.workflow import Portfolio, TeamPoolRequest, TeamWork, Workflow, WorkflowPool, WorkflowStage
from core.workload import PoolRequest, Total, Workload
from intake.syntax import parse
from intake.workflow import read_workflow_file
from probes.inventory import devices as attached_devices
from services import workloads
from services.advice import answer
from services.context import context
from services.pools import pools_for
from services.runtimes import known_runtimes
from services.workflow_answer import portfolio_split, stages_split

HOUR_S = 3600.0
MOST_BYTES = 2**20


@dataclass(frozen=True, slots=True)
class _Here:
    """What is known here for estimating."""

    devices: tuple[Device, ...]
    runtimes: tuple[Runtime, ...]
    outcomes: tuple[Outcome, ...]


def recognised(argument: str) -> bool:
    """Return whether a command line's argument is a file with a workflow or a portfolio.

    Args:
        argument: as typed.
    """
    path = Path(argument)
    if path.suffix.lower() not in (".yaml", ".yml", ".json") or not path.is_file() or path.stat().st_size > MOST_BYTES:
        return False
    try:
        document = parse(path.read_text(encoding="utf-8"))
    except (BadInput, OSError, ValueError):
        return False
    return "workflow" in document or "portfolio" in document


def plan_file(path: str, least_saving: float = 0.2) -> Split:
    """Return the plan of a workflow or portfolio file.

    Args:
        path: of the file.
        least_saving: fraction from which several pools are worth it.

    Raises:
        BadInput: the file, or a workload or pool that it names, cannot be used.
    """
    document = read_workflow_file(path)
    here = context()
    attached = attached_devices()
    stored = here.store.measurements(tuple(device.uuid for device in attached))
    known = _Here(attached, known_runtimes(here.settings, attached), stored)
    folder = Path(path).parent
    if isinstance(document, Portfolio):
        return _portfolio(document, folder, known, least_saving)
    return _workflow(document, folder, known, least_saving)


def _workflow(document: Workflow, folder: Path, known: _Here, least_saving: float) -> Split:
    pools = {pool.name: None if pool.host else _priced(pool.request, known) for pool in document.pools}
    jobs = {stage.name: _job(stage.workload, stage.total, folder) for stage in document.stages if stage.workload}
    problem = StagesProblem(
        tuple(_stage(stage, document.pools, pools, jobs.get(stage.name), known) for stage in document.stages),
        tuple(Edge(hand.source, stage.name, hand.size_bytes, hand.streams) for stage in document.stages for hand in stage.after),
        tuple(_stage_pool(pool, pools[pool.name]) for pool in document.pools),
        tuple(Wire(link.pools, Link(link.latency_s, link.bytes_per_s), link.usd_per_gb) for link in document.links),
        document.store, document.conversions,
        document.objective, None if document.deadline_h is None else HOUR_S * document.deadline_h, document.budget_usd,
        document.most_pools,
    )  # fmt: skip
    shown = {name: pool or Pool(name, 1, "cpu", 0.0, "host") for name, pool in pools.items()}
    plan = plan_stages(problem)
    verdicts = stage_verdicts(problem, plan.placed, shown, jobs, datetime.now(UTC).date().isoformat())
    return stages_split(problem, plan, shown, least_saving, document.assumptions, verdicts)


def _stage_pool(pool: WorkflowPool, priced: Pool | None) -> StagePool:
    if priced is None:
        price = pool.request.price_usd_per_h
        return StagePool(pool.name, price, None, pool.slots, pool.hours, pool.host_of, pool.host and not pool.host_of)
    return StagePool(pool.name, priced.price_usd_per_h, _power_w(priced), pool.slots, pool.hours, pool.host_of)


def _power_w(pool: Pool) -> float | None:
    """Return the power of a pool under load: 60 to 90 % of its boards' limit, modelled, not metered."""
    try:
        limit = catalog.accelerator(pool.accelerator).power_w
    except NotFound:
        return None
    low, high = BELIEFS.power_share
    return None if limit is None else pool.count * limit * sqrt(low * high)


def _stage(
    stage: WorkflowStage, pools: Sequence[WorkflowPool], priced: dict[str, Pool | None], job: Workload | None, known: _Here
) -> Stage:
    said, cannot, forms = dict(stage.seconds), dict(stage.cannot), {form.pool: form for form in stage.forms}
    options: list[StageOption] = []
    for pool in pools:
        form = forms.get(pool.name)
        reads, writes = (form.reads, form.writes) if form is not None else ("", "")
        if pool.name in cannot:
            options.append(StageOption(pool.name, None, cannot[pool.name], reads, writes))
        elif pool.name in said:
            options.append(StageOption(pool.name, said[pool.name], "", reads, writes))
        elif job is not None:
            estimated = _seconds(job, priced[pool.name], known)
            missing = estimated if isinstance(estimated, str) else ""
            options.append(StageOption(pool.name, None if missing else float(estimated), missing, reads, writes))
    return Stage(stage.name, tuple(options), stage.anywhere)


def _portfolio(document: Portfolio, folder: Path, known: _Here, least_saving: float) -> Split:
    pools = {pool.name: _priced(pool.request, known) for pool in document.pools}
    problem = PortfolioProblem(
        tuple(_work(work, document.pools, folder, known) for work in document.works),
        tuple(_team_pool(pool, pools[pool.name]) for pool in document.pools), document.objective, document.budget_usd,
    )
    return portfolio_split(problem, plan_portfolio(problem), pools, least_saving, document.assumptions)


def _team_pool(pool: TeamPoolRequest, priced: Pool) -> TeamPool:
    given = pool.request.price_usd_per_h
    price = given if given is not None else 0.0 if pool.owned else _each(priced)
    watts = _power_w(priced)
    return TeamPool(
        pool.name, priced.count, price, None if watts is None else watts / priced.count,
        tuple((HOUR_S * start, HOUR_S * stop) for start, stop in pool.windows_h), pool.chip_hours, pool.spot,
    )


def _each(pool: Pool) -> float | None:
    return None if pool.price_usd_per_h is None else pool.price_usd_per_h / pool.count


def _work(work: TeamWork, pools: Sequence[TeamPoolRequest], folder: Path, known: _Here) -> Work:
    by_name = {pool.name: pool for pool in pools}
    asked = [(one.pool, one.chips, one.hours) for one in work.options] or [
        (pool.name, pool.request.count, None) for pool in pools
    ]
    job = _job(work.workload, work.total, folder) if work.workload and any(hours is None for _, _, hours in asked) else None
    options: list[WorkOption] = []
    for name, chips, hours in asked:
        if hours is not None:
            options.append(WorkOption(name, chips, HOUR_S * hours))
            continue
        priced = _priced(replace(by_name[name].request, count=chips), known)
        estimated = "no hours and no workload" if job is None else _seconds(job, priced, known)
        missing = estimated if isinstance(estimated, str) else ""
        options.append(WorkOption(name, chips, None if missing else float(estimated), missing))
    deadline_s = None if work.deadline_h is None else HOUR_S * work.deadline_h
    return Work(work.name, tuple(options), HOUR_S * work.release_h, deadline_s, work.priority, work.interruptible)


def _priced(request: PoolRequest, known: _Here) -> Pool:
    """Return a pool with its price, as a workload that names it would have it."""
    pools = pools_for(_naming(request), known.devices, "all")
    return next(pool for pool in pools if pool.accelerator == request.accelerator)


def _naming(request: PoolRequest) -> Workload:
    return Workload("pool", "train", (), 1, "samples", 1.0, "bf16", "none", pools=(request,))


def _job(reference: str, total: Total, folder: Path) -> Workload:
    """Return the workload that a document names, with the total that it gives.

    Raises:
        BadInput: it cannot be read, or nobody says how much of it is to be done.
    """
    inside = folder / reference
    understood = workloads.read(str(inside) if inside.is_file() else reference)
    workload = understood.workload if total == Total() else replace(understood.workload, total=total)
    if workload.total_steps is None:
        expected = "tokens, steps or samples to be done"
        raise BadInput(f"{reference} without a total", expected, "add total: {tokens: N} to the stage")
    return workload


def _seconds(job: Workload, pool: Pool | None, known: _Here) -> float | str:
    """Return seconds of a workload on a pool by its best runtime there, or in one phrase why there are none."""
    if pool is None:
        return f"{job.name} is not estimated on a host: give seconds"
    options = RunOptions(pools=f"{pool.accelerator}={pool.count}")
    found = answer(replace(job, pools=()), options, known.devices, known.runtimes, known.outcomes)
    if found.best is None or found.best.step_time_s is None:
        reasons = [one.reason for one in found.excluded if one.accelerator.endswith(pool.accelerator)]
        return reasons[0] if reasons else f"nothing is known of {job.name} there"
    return found.best.step_time_s.mid * (job.total_steps or 0.0)
