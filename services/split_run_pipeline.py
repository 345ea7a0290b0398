"""A model cut in two stages on two sides: cut by arithmetic, measured where it is cut, and cut anew until the cut stays."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from advisor.split.pipeline import plan_pipeline
from advisor.split.pipeline_words import PipelinePlan
from probes.split.words import Calibrated, SplitTask
from probes.split.work import pieces_of
from services.split_measured import link_of, single_s
from services.split_measured_pipeline import Stretch, guessed, micro_batch_counts, plan_stages, stretches_of
from services.split_run_bench import Bench, Ready, traded_bytes

CUTS = 3
"""Cuts at most that are measured, each planned from what the one before was measured to take."""
WORTH_SWAPPING = 0.05
"""Fraction that a step has to be shorter the other way round for both sides to be started again."""


@dataclass(frozen=True, slots=True)
class _Tried:
    """A cut that was measured: the task, its plan from measured stages, and what was measured."""

    task: SplitTask
    plan: PipelinePlan
    found: Calibrated


def prepared_stages(bench: Bench, whole: SplitTask, task: SplitTask) -> Ready | None:
    """Measure and plan a pipeline; None where something could not be measured.

    Args:
        bench: with both sides open; they change places where the second should have the first stage.
        whole: the same model undivided.
        task: in `pipeline`; its cut and micro-batches are chosen here.

    Raises:
        SideLost: a side ended or failed.
        Cancelled: stopped meanwhile.
    """
    batch = task.batch
    stretches, counts = stretches_of(bench.workload, pieces_of(task)), micro_batch_counts(batch)
    bench.tell("measuring the whole model on both sides")
    small, windows = batch // counts[-1], 3 + 3 * CUTS
    sizes = traded_bytes(replace(task, cut=stretches[0].stop))
    found = bench.measure(whole, [(small, small)], ((batch,), (batch,)), windows, 1, sizes)
    alone = {name: single_s(found, side, batch) for side, name in enumerate(bench.names)}
    either, in_order = (_guess(found, bench.names, stretches, batch, {}, in_order=kept) for kept in (False, True))
    if either is None:
        return None
    if in_order is None or in_order.seconds > either.seconds * (1.0 + WORTH_SWAPPING):
        bench.swap()
        found = replace(found, costs=(found.costs[1], found.costs[0]))
    best = _best(bench, task, stretches, found, windows)
    if best is None:
        return None
    part = sum(one.work for one in stretches if one.stop <= best.task.cut)
    singles = (alone[bench.names[0]], alone[bench.names[1]])
    evidence = f"two stages, {_counted(best.task.micro_batches)}, each measured while the other works"
    return Ready(
        best.task, best.plan.seconds, best.plan.timeline, (part, 1.0 - part), singles, link_of(best.found.sends), evidence
    )


def _best(bench: Bench, task: SplitTask, stretches: tuple[Stretch, ...], found: Calibrated, windows: int) -> _Tried | None:
    """Return the quickest of the cuts that were measured, in the order in which what was measured led to them."""
    tried: dict[tuple[int, int], _Tried] = {}
    scales = dict.fromkeys(bench.names, 1.0)
    while len(tried) < CUTS and not (tried and bench.late):
        guess = _guess(found, bench.names, stretches, task.batch, scales, in_order=True)
        if guess is None:
            break
        key = (stretches[guess.stages[0].stop - 1].stop, guess.micro_batches)
        if key in tried:
            break
        bench.tell(f"measuring both stages, cut behind {key[0]} of {stretches[-1].stop} layers, {_counted(key[1])}")
        here = replace(task, cut=key[0], micro_batches=key[1])
        rows = task.batch // key[1]
        taken = bench.measure(here, [(rows, rows)], ((rows,), (rows,)), windows)
        plan = plan_stages(taken, bench.names, task.batch, key[1])
        if plan is None:
            break
        tried[key] = _Tried(here, plan, taken)
        for stage, real in zip(guess.stages, plan.stages, strict=True):
            told_s = stage.forward_s + stage.backward_s
            scales[stage.pool] *= (real.forward_s + real.backward_s) / told_s if told_s > 0 else 1.0
    return min(tried.values(), key=lambda one: one.plan.seconds) if tried else None


def _counted(micro_batches: int) -> str:
    return f"{micro_batches} micro-batch{'es' if micro_batches > 1 else ''}"


def _guess(
    found: Calibrated, names: tuple[str, str], stretches: tuple[Stretch, ...], batch: int, scales: Mapping[str, float], *,
    in_order: bool,
) -> PipelinePlan | None:
    problem = guessed(found, names, stretches, batch, scales, in_order=in_order)
    return None if problem is None else plan_pipeline(problem)
