"""Time of one block on an attached device: the measured one, else between measured batches, else from kernels, else None.

The ladder is walked in that order and the rung is written into the tier. Efficiency is interpolated, never time: measured
points stay exact, and what is blended is samples per second, which at equal sizes is efficiency up to a constant.
"""

from dataclasses import dataclass, replace
from itertools import pairwise
from math import exp, hypot, log

from advisor.answered import Answer, Answered, batch_of, family_of, key_of
from advisor.beliefs import BELIEFS
from advisor.kernels import Peaks, roofline_split
from advisor.work import block_work, update_of
from core.advice import Gap
from core.probe import NOT_BEGUN, Probe
from core.quantity import Quantity, log_normal
from core.workload import Block, Workload


@dataclass(frozen=True, slots=True)
class BlockTime:
    """What is known of one block in one runtime on one device.

    Args:
        seconds: of one repeat; None when nothing tells.
        compile_s: of one repeat; None when it was not seen.
        compiled: whether a compile time was looked for in a measurement of this very block.
        missing: what is not known, one phrase each.
        gap: the probe that would fill or sharpen it; None when it is measured.
    """

    seconds: Quantity | None
    compile_s: float | None
    compiled: bool
    missing: tuple[str, ...] = ()
    gap: Gap | None = None


def probe_of(block: Block, workload: Workload, runtime: str, device: str, batch: int, family: str = "block") -> Probe:
    """Return the probe that measures a block as this workload runs it, with a batch of its own."""
    trains = workload.trains
    sizes = tuple((name, batch if name == "batch" else size) for name, size in block.sizes)
    return Probe(
        block.kind,
        family,
        sizes,
        workload.dtype,
        runtime,
        device,
        mode="train" if trains else "forward",
        optimizer=workload.optimizer if trains else "none",
    )


def time_of_block(
    block: Block, workload: Workload, probe: Probe, answered: Answered, peaks: Peaks | None, best: Peaks | None, fused: bool
) -> BlockTime:
    """Return the time of one repeat of a block, with the best tier that the outcomes allow.

    Args:
        block: the layer.
        workload: the job it belongs to.
        probe: what would measure it, from `probe_of`.
        answered: outcomes of the probe's runtime on its device.
        peaks: measured kernels of the same place, or None.
        best: the best kernels of any runtime there, or None; tells how long an optimizer update takes at least.
        fused: whether the runtime fuses element-wise operations.
    """
    distrusted = answered.quarantined.get(key_of(probe))
    doubts = (_quarantine_phrase(block, distrusted.warnings),) if distrusted else ()
    answer = answered.exact.get(key_of(probe))
    if answer is not None:
        compile_s = answer.measurement.compile_s
        later = answered.since_failed.get(key_of(probe))
        if later is not None:
            then = answer.measurement.taken_at[:10]
            doubts += (f"{block.name}: its last probe failed at {later.stage}: {later.error}; the figure is of {then}",)
        return BlockTime(_measured(block, answer), compile_s, True, doubts, _version_gap(block, answer, probe))
    failure = answered.failures.get(key_of(probe))
    if failure is not None:
        late = failure.error.startswith(NOT_BEGUN)
        phrase = (
            f"{block.name}: {failure.error}" if late else f"{block.name}: its probe failed at {failure.stage}: {failure.error}"
        )
        remedy = failure.error if late else f"its probe failed at {failure.stage}; mend it and probe again"
        gap = Gap(f"{block.name} in {probe.runtime} on {probe.device}", probe, None, remedy)
        return BlockTime(None, None, False, (phrase, *doubts), gap)
    near = answered.families.get(family_of(probe), ())
    wanted = batch_of(probe.sizes)
    if near and wanted is not None:
        seconds = _between_batches(block, near, wanted, _update_s(block, workload, best))
        compile_s = near[0].measurement.compile_s
        gap = _gap(block, probe, seconds.mid, "it is interpolated from other batches")
        return BlockTime(seconds, compile_s, True, doubts, gap)
    if peaks is not None:
        seconds = _from_kernels(block, workload, probe, peaks, fused)
        return BlockTime(seconds, None, False, doubts, _gap(block, probe, seconds.mid, "it is put together from kernels"))
    phrase = f"{block.name}: not measured in {probe.runtime} on {probe.device}"
    return BlockTime(None, None, False, (phrase, *doubts), _gap(block, probe, None, "nothing was measured there"))


def frozen_time(time: BlockTime, block: Block, workload: Workload) -> BlockTime:
    """Return the time of a block whose weights are frozen, from that of one which is trained: by the FLOPs that are left.

    Args:
        time: of the block with all its weights trained.
        block: the layer.
        workload: of which adapters alone are trained.
    """
    if time.seconds is None:
        return time
    whole = block.flop_forward + block.flop_backward
    left = sum(op.flop for op in workload.ops_of(block)) / whole if whole else 1.0
    sigma = hypot(time.seconds.sigma, BELIEFS.sigma("transferred"))
    how = f"{block.name}: {left:.0%} of its time with all weights trained, by FLOP without gradients of frozen weights"
    return replace(time, seconds=log_normal(time.seconds.mid * left, sigma, "transferred", *time.seconds.evidence, how))


def _measured(block: Block, answer: Answer) -> Quantity:
    evidence = f"{block.name}: {answer.evidence}"
    probe = answer.measurement.probe
    alone = BELIEFS.alone_sigma if answer.measurement.method == "difference" and probe.family == "block" else 0.0
    contended = BELIEFS.contended_sigma if answer.measurement.contended else 0.0
    sigma = hypot(BELIEFS.sigma("measured"), alone, contended, answer.error)
    if answer.old_version is None:
        return log_normal(answer.seconds, sigma, "measured", evidence)
    name, then, now = answer.old_version
    note = f"measured with {name} {then}; {now} is installed"
    return log_normal(answer.seconds, hypot(BELIEFS.sigma("transferred"), answer.error), "transferred", evidence, note)


def _update_s(block: Block, workload: Workload, best: Peaks | None) -> float:
    """Return seconds of the optimizer update of a block, which no batch changes; 0 when no memory rate was measured."""
    if not workload.trains or best is None or best.memory is None or not block.parameter_count:
        return 0.0
    update = update_of(block.parameter_count, workload.optimizer, 1)
    return update.traffic_bytes / best.memory.at(update.traffic_bytes)


def _between_batches(block: Block, near: tuple[Answer, ...], wanted: int, update_s: float) -> Quantity:
    """Return time at a batch from other batches by log-log interpolation of samples per second, the update set aside."""
    by_batch: dict[int, Answer] = {}
    for answer in sorted(near, key=lambda a: (a.measurement.taken_at, a.seconds)):
        batch = batch_of(answer.measurement.probe.sizes)
        if batch is not None:
            by_batch[batch] = answer
    fixed = min(update_s, BELIEFS.fixed_share * min(answer.seconds for answer in by_batch.values()))
    points = sorted((log(batch), log(batch / (answer.seconds - fixed))) for batch, answer in by_batch.items())
    at = log(wanted)
    nearest = min(points, key=lambda point: abs(point[0] - at))
    if len(points) == 1:
        rate, further = nearest[1], BELIEFS.extrapolation_sigma * abs(at - nearest[0])
    else:
        rate, inside = _line(points, at)
        per_step = BELIEFS.interpolation_sigma if inside else BELIEFS.extrapolation_sigma
        further = per_step * abs(at - nearest[0])
    error = max(answer.error for answer in by_batch.values())
    sigma = hypot(BELIEFS.sigma("interpolated"), further, error)
    old = any(answer.old_version for answer in by_batch.values())
    sigma = hypot(sigma, BELIEFS.version_sigma) if old else sigma
    batches = ", ".join(str(batch) for batch in sorted(by_batch))
    how = f"{block.name}: efficiency at batch {wanted} read from batch {batches}"
    used = sorted(answer.evidence for answer in by_batch.values())
    return log_normal(fixed + wanted / exp(rate), sigma, "interpolated", how, *used)


def _line(points: list[tuple[float, float]], at: float) -> tuple[float, bool]:
    """Return the value of a piecewise line at a place, and whether the place lies inside; the ends go on with bounded slope."""
    for (low, low_value), (high, high_value) in pairwise(points):
        if low <= at <= high:
            return low_value + (at - low) / (high - low) * (high_value - low_value), True
    pair = points[:2] if at < points[0][0] else points[-2:]
    start, end = pair
    least, greatest = BELIEFS.slope_limits
    slope = min(greatest, max(least, (end[1] - start[1]) / (end[0] - start[0])))
    base = points[0] if at < points[0][0] else points[-1]
    return base[1] + slope * (at - base[0]), False


def _from_kernels(block: Block, workload: Workload, probe: Probe, peaks: Peaks, fused: bool) -> Quantity:
    share = (batch_of(probe.sizes) or workload.batch) / (batch_of(block.sizes) or workload.batch)
    whole = block_work(block, workload.trains)
    works = tuple(replace(work, flop=work.flop * share, traffic_bytes=work.traffic_bytes * share) for work in whole)
    if workload.trains and block.parameter_count:
        works = (*works, update_of(block.parameter_count, workload.optimizer, 1))
    seconds = roofline_split(works, peaks, fused).total_s
    how = f"{block.name}: roofline of its operations over measured kernels"
    return log_normal(seconds, BELIEFS.sigma("transferred"), "transferred", how, *peaks.evidence)


def _quarantine_phrase(block: Block, warnings: tuple[str, ...]) -> str:
    return f"{block.name}: a measurement was set aside ({'; '.join(warnings) or 'not trusted'})"


def _version_gap(block: Block, answer: Answer, probe: Probe) -> Gap | None:
    if answer.old_version is None:
        return None
    return _gap(block, probe, answer.seconds, "it was measured with another version")


def _gap(block: Block, probe: Probe, seconds: float | None, why: str) -> Gap:
    """Return the gap of one block; a probe takes warm-up, about 40 repeats at two depths and the start of a worker."""
    cost = None if seconds is None else 5.0 + 60.0 * seconds
    remedy = f"probe {block.name} in {probe.runtime}: {why}"
    return Gap(f"{block.name} in {probe.runtime} on {probe.device}", probe, cost, remedy)
