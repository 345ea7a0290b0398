"""Each way of dividing that can be run: what is measured of both sides, and the task that the plan made of it.

A mode measures pieces of a step, lets the planner choose, measures again what the choice needs, and returns what is to be run
with what it should take. Sides change places where the plan has it so.
"""

from collections.abc import Callable
from dataclasses import replace
from math import prod

from advisor.split.compose import MODES_OF
from advisor.split.data_parallel import plan_data
from core.errors import BadInput
from core.workload import Workload
from probes.model import cut
from probes.split.modes.actors import Sampler
from probes.split.run import FEWEST_STEPS, WARM_STEPS
from probes.split.words import MODES, Calibrated, SplitTask
from probes.split.work import check_task, pieces_of
from services.split_measured import data_problem, link_of, single_s, task_of
from services.split_measured_local import alone_s, plan_rounds, task_of_rounds
from services.split_measured_parts import learning_alone_s, plan_learning_step, plan_parts
from services.split_measured_pipeline import stretches_of
from services.split_run_bench import SMALL_BYTES, Bench, Ready
from services.split_run_pipeline import prepared_stages

FEWEST_SAMPLES = 2
GENERATED = 4
"""Positions that an actor samples where the workload does not say."""


def check_mode(workload: Workload, mode: str) -> None:
    """Refuse a way of dividing that cannot be run with a workload, before anything is started.

    Raises:
        BadInput: what is in the way.
    """
    if mode not in MODES:
        raise BadInput(f"mode {mode} with --verify", f"one of {', '.join(MODES)}", "choose one of these, or run without --verify")
    allowed = modes_of(workload)
    if allowed and mode not in allowed:
        raise BadInput(f"mode {mode} for task {workload.task}", f"one of {', '.join(allowed)}", "choose one of these")
    if not workload.trains or not allowed:
        raise BadInput(f"a workload of task {workload.task} with --verify", "one that trains", "run without --verify")
    if mode in ("data", "local") and workload.batch < FEWEST_SAMPLES:
        got = f"a batch of {workload.batch} to be shared by two sides"
        raise BadInput(got, "2 samples at least", "give a larger batch or another --mode")
    task = task_for(workload, mode)
    if mode == "pipeline":
        stretches_of(workload, pieces_of(task))
        task = replace(task, cut=first_cut(task))
    check_task(task)
    if mode == "rl":
        Sampler(pieces_of(task), task)


def modes_of(workload: Workload) -> tuple[str, ...]:
    """Return the modes that can be run of those that are planned for a workload's task."""
    return tuple(mode for mode in MODES_OF[workload.task] if mode in MODES)


def task_for(workload: Workload, mode: str) -> SplitTask:
    """Return a task of a workload before anything was planned: halves of the batch, a cut as early as there is one."""
    half = workload.batch // 2
    blocks = tuple((block.kind, block.sizes, block.repeats) for block in workload.blocks)
    task = SplitTask(
        mode, blocks, workload.batch, rows=(workload.batch - half, half), optimizer=workload.optimizer, dtype=workload.dtype,
        generate=GENERATED if workload.rollouts is None else workload.rollouts.output,
    )
    return replace(task, cut=first_cut(task)) if mode == "operators" else task


def first_cut(task: SplitTask) -> int:
    """Return the fewest pieces that can be parted from the rest: tables, or the layer that takes the data in.

    Raises:
        BadInput: a model that cannot be cut.
    """
    pieces = pieces_of(task)
    refused = BadInput(f"a model of {len(pieces)} piece", "one that can be cut in two", "choose --mode data")
    for at in range(1, len(pieces)):
        try:
            cut(pieces, at)
        except BadInput as error:
            refused = error
        else:
            return at
    raise refused


def prepared(bench: Bench, mode: str) -> Ready | None:
    """Measure and plan; None where something could not be measured.

    Args:
        bench: with both sides open.
        mode: one of `probes.split.words.MODES`.

    Raises:
        SideLost: a side ended or failed.
        Cancelled: stopped meanwhile.
    """
    return _PREPARE[mode](bench)


def _shared(batch: int) -> list[tuple[int, int]]:
    """Return shares of a batch at which both sides are measured together: little, half, most."""
    firsts = sorted({max(1, min(batch - 1, round(batch * part))) for part in (0.125, 0.5, 0.875)})
    return [(first, batch - first) for first in firsts]


def _data(bench: Bench) -> Ready | None:
    workload, names = bench.workload, bench.names
    task, batch = task_for(workload, "data"), workload.batch
    bench.tell("measuring the pieces of a step on both sides")
    found = bench.measure(task, _shared(batch), ((batch,), (batch,)))
    problem = data_problem(found, names, batch, least_pools=len(names))
    plan = None if problem is None else plan_data(problem)
    if problem is None or plan is None:
        return None
    first, second = (share.weight for share in plan.shares)
    alone = (single_s(found, 0, batch), single_s(found, 1, batch))
    evidence = "pieces of a step, measured while both sides work"
    return Ready(task_of(task, plan), plan.seconds, plan.timeline, (first, second), alone, problem.links[0][1], evidence)


def _local(bench: Bench) -> Ready | None:
    task, batch = task_for(bench.workload, "local"), bench.workload.batch
    bench.tell("measuring the pieces of a round on both sides")
    found = bench.measure(task, _shared(batch), ((batch,), (batch,)))
    longest_s = bench.running_s / (WARM_STEPS + FEWEST_STEPS + 1)
    plan = plan_rounds(found, bench.names, batch, longest_s)
    if plan is None:
        return None
    first, second = (share.weight for share in plan.shares)
    alone = (alone_s(found, 0, plan, batch), alone_s(found, 1, plan, batch))
    said = f"a round of {plan.inner_steps} steps and a meeting, from pieces measured while both sides work"
    return Ready(
        task_of_rounds(task, plan), plan.round_s, plan.timeline, (first, second), alone, link_of(found.exchanges), said
    )


def _operators(bench: Bench) -> Ready | None:
    task, batch = task_for(bench.workload, "operators"), bench.workload.batch
    bench.tell("measuring both parts of the model")
    found = bench.measure(task, [(batch, batch)], ((batch,), (batch,)))
    told = plan_parts(found, bench.names, batch)
    if told is None:
        return None
    bench.tell("measuring the whole model on each side alone")
    whole = bench.measure(task_for(bench.workload, "data"), [], ((batch,), (batch,)), sizes=(SMALL_BYTES,))
    alone = (single_s(whole, 0, batch), single_s(whole, 1, batch))
    how = "the first side a step ahead" if told.ahead else "both in turn"
    evidence = f"the first {task.cut} layers here, the rest there, {how}, from passes measured"
    ready = replace(task, ahead=told.ahead)
    return Ready(ready, told.course.seconds, told.course.bars, told.fractions, alone, told.link, evidence)


def _learning(bench: Bench) -> Ready | None:
    task, batch = task_for(bench.workload, "rl"), bench.workload.batch
    roles = (task, replace(task, actor=1))
    found: list[Calibrated] = []
    for one in roles:
        bench.tell(f"measuring rollouts on {bench.names[one.actor]}, learning on {bench.names[1 - one.actor]}")
        found.append(bench.measure(one, [(batch, batch)], ((batch,), (batch,)), windows=3 * len(roles)))
    rollouts = bench.workload.rollouts
    aheads = (0, 1) if rollouts is None or rollouts.most_stale else (0,)
    plans = [
        (one, plan_learning_step(taken, bench.names, batch, sample_bytes(task), one.actor, aheads))
        for one, taken in zip(roles, found, strict=True)
    ]
    able = [(one, told) for one, told in plans if told is not None]
    if not able:
        return None
    best, told = min(able, key=lambda pair: pair[1].course.seconds)
    how = "rollouts a step ahead" if told.ahead else "actor and learner in turn"
    evidence = f"rollouts on {bench.names[best.actor]}, {how}, from rollouts, training and pushes measured"
    alone = (learning_alone_s(found[0], found[1], 0, batch), learning_alone_s(found[1], found[0], 1, batch))
    return Ready(
        replace(best, ahead=told.ahead), told.course.seconds, told.course.bars, told.fractions, alone, told.link, evidence
    )


def sample_bytes(task: SplitTask) -> float:
    """Return bytes of a rollout on its way to the learner: the data of its samples and a log-probability of each draw."""
    pieces = pieces_of(task)
    data = sum(prod(spec.shape) for piece in pieces for spec in piece.data.values())
    return 4.0 * (data + task.batch * max(1, Sampler(pieces, task).count))


def _pipeline(bench: Bench) -> Ready | None:
    return prepared_stages(bench, task_for(bench.workload, "data"), task_for(bench.workload, "pipeline"))


_PREPARE: dict[str, Callable[[Bench], Ready | None]] = {
    "data": _data, "local": _local, "pipeline": _pipeline, "operators": _operators, "rl": _learning,
}  # fmt: skip
