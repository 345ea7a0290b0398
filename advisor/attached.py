"""Estimates for attached devices: the sum of the workload's own blocks as they were measured, with what is missing named."""

from dataclasses import dataclass

from advisor.answered import Answered
from advisor.beliefs import BELIEFS, CHIP_HABITS, EAGER_RUNTIMES, UNCOMPILED_RUNTIMES
from advisor.blocks import BlockTime, frozen_time, probe_of, time_of_block
from advisor.charges import cost_of, energy_of, job_of, throughput_of
from advisor.communication import all_reduce_s, exposed_s, fabric_of
from advisor.feeding import fed_of, step_of, waiting
from advisor.kernels import Peaks, Split, peaks_of, roofline_split
from advisor.memory import Layout, memory_of, memory_parts, model_bytes
from advisor.reduced import Reduced, Timed, prevails, reduced_of, spoilt, terms_of, whole_times
from advisor.work import BlockWork, work_of
from core.advice import Candidate, Estimate, Gap, Plan, Share
from core.device import Accelerator, Device, Pool
from core.probe import Runtime
from core.quantity import Quantity, exact, log_normal, total
from core.workload import Block, Workload

FRAME = "step frame"
FRAME_MATTERS = 0.02
"""Share of a step above which a frame that was not measured may not be left out."""
FRAME_SIGMA = 1.0
"""Error of the usual frame of a kind of chip: runtimes differ by a factor of ten and more (prior)."""


@dataclass(frozen=True, slots=True)
class Reading:
    """An estimate with the probes that would fill or sharpen it."""

    estimate: Estimate
    gaps: tuple[Gap, ...]


@dataclass(frozen=True, slots=True)
class Place:
    """One runtime on one attached pool.

    Args:
        workload: the job.
        runtime, pool, device: where it would run.
        chip: catalog entry of the device; None when it is not a catalog chip.
        answered: outcomes of that runtime on that device.
        best: best rates that any runtime reached there, for bounds; None when no kernel was measured.
    """

    workload: Workload
    runtime: Runtime
    pool: Pool
    device: Device
    chip: Accelerator | None
    answered: Answered
    best: Peaks | None

    @property
    def eager(self) -> bool:
        """Whether the runtime starts operations one by one."""
        return self.runtime.id in EAGER_RUNTIMES

    @property
    def local_batch(self) -> int:
        """Samples of one step on one chip."""
        return self.workload.batch // self.pool.count


def best_peaks(answered: dict[tuple[str, str], Answered], device: Device, dtype: str) -> Peaks | None:
    """Return the best rates that any runtime reached on a device: what the device can do, whatever runs on it."""
    here = (known for (_, place), known in answered.items() if place == device.id)
    found = [peaks for known in here if (peaks := peaks_of(known, dtype, device.kind)) is not None]
    if not found:
        return None
    fastest = max(found, key=lambda p: (p.matmul.best, p.evidence))
    memories = [p.memory for p in found if p.memory is not None]
    memory = max(memories, key=lambda curve: curve.best, default=None)
    return Peaks(fastest.matmul, fastest.skinny, memory, fastest.launch_s, fastest.habits, fastest.evidence)


def read_place(place: Place) -> Reading:
    """Return the estimate of one runtime on one attached pool."""
    workload, device = place.workload, place.device
    peaks = peaks_of(place.answered, workload.dtype, device.kind)
    whole = place.answered.latest_failure()
    divides = workload.batch % place.pool.count == 0
    times = tuple((block, _time(place, block, peaks)) for block in workload.blocks)
    found = reduced_of(workload, place.runtime.id, device.id, place.local_batch, place.answered, place.best)
    found = found if workload.lora is None else None  # a reduced model is measured with all its weights trained
    reduced = found if found and prevails(found, times) else None
    told = [found.time] if found and found.asked else []
    told += [time for block, time in times if reduced is None or block.repeats > 1]
    missing = [phrase for time in told for phrase in time.missing]
    gaps = tuple(time.gap for time in told if time.gap is not None)
    if whole is not None and not place.answered.exact:
        missing = [f"{place.runtime.id} failed at {whole.stage}: {whole.error}"]
    if not divides:
        missing.append(f"a batch of {workload.batch} does not divide over {place.pool.count} chips")
    slices = _slices(place, times, reduced, peaks, missing) if divides and not spoilt(found, times) else None
    return Reading(_estimate(place, times, reduced, slices, tuple(dict.fromkeys(missing))), gaps)


def _time(place: Place, block: Block, peaks: Peaks | None) -> BlockTime:
    probe = probe_of(block, place.workload, place.runtime.id, place.device.id, place.local_batch)
    time = time_of_block(block, place.workload, probe, place.answered, peaks, place.best, not place.eager)
    return time if place.workload.lora is None else frozen_time(time, block, place.workload)


@dataclass(frozen=True, slots=True)
class Slices:
    """A step in parts.

    Args:
        shown: by term and block; they add up to the step.
        terms: what was measured or computed as one, of which the step is the sum.
    """

    shown: tuple[Share, ...]
    terms: tuple[Quantity, ...]


def _slices(
    place: Place, times: tuple[Timed, ...], reduced: Reduced | None, peaks: Peaks | None, missing: list[str]
) -> Slices | None:
    """Return the parts of the step, or None when a block is not known; what is left out is added to `missing`."""
    workload = place.workload
    work = {found.name: found for found in work_of(workload, 1 / place.pool.count)}
    known = peaks or place.best
    if reduced is not None:
        parts = whole_times(reduced, times, work, known, not place.eager)
        terms = list(terms_of(reduced, times))
    elif all(time.seconds is not None for _, time in times):
        parts = tuple(_repeated(block, time) for block, time in times)
        terms = [whole for wholes in parts for whole in wholes]
    else:
        return None
    shown = [
        share
        for (block, _), wholes in zip(times, parts, strict=True)
        for whole in wholes
        for share in _split_block(block.name, whole, work[block.name], known, not place.eager)
    ]
    if workload.ops:
        rest = _other_operations(work["other operations"], peaks, not place.eager)
        if rest is None:
            missing.append("operations that no block covers: no kernel of this runtime was measured")
            return None
        shown.append(rest)
        terms.append(rest.seconds)
    frame = _frame(place, sum(term.mid for term in terms), missing)
    communication = _communication(place, [*shown, *frame])
    if isinstance(communication, str):
        missing.append(communication)
        return None
    further = (*frame, *communication)
    return Slices((*shown, *further), (*terms, *(share.seconds for share in further)))


def _repeated(block: Block, time: BlockTime) -> tuple[Quantity, ...]:
    """Return the time of all repeats of a block."""
    assert time.seconds is not None
    note = (f"{block.repeats} x {block.name}",) if block.repeats > 1 else ()
    return (time.seconds.scaled(float(block.repeats), *note),)


def _split_block(name: str, whole: Quantity, work: BlockWork, peaks: Peaks | None, fused: bool) -> tuple[Share, ...]:
    """Return the measured time of a block split by the proportions of its roofline; all compute when no peak is known."""
    if peaks is None:
        note = "not split: no kernel was measured here, all of it is shown as compute"
        return (Share("compute", name, whole.scaled(1.0, note)),)
    split: Split = roofline_split(work.works, peaks, fused)
    if split.total_s <= 0:
        return (Share("compute", name, whole),)
    terms = (("compute", split.compute_s), ("memory traffic", split.memory_s), ("launch", split.launch_s))
    note = "split by the roofline of measured kernels"
    return tuple(Share(term, name, whole.scaled(seconds / split.total_s, note)) for term, seconds in terms if seconds > 0)


def _other_operations(work: BlockWork, peaks: Peaks | None, fused: bool) -> Share | None:
    if peaks is None:
        return None
    seconds = roofline_split(work.works, peaks, fused).total_s
    return Share("compute", work.name, log_normal(seconds, BELIEFS.sigma("transferred"), "transferred", *peaks.evidence))


def _frame(place: Place, busy_s: float, missing: list[str]) -> tuple[Share, ...]:
    """Return the bare cost of a step as measured; else that of the kind of chip where it matters, else nothing, which is said."""
    where = f"step frame of {place.runtime.id} on {place.device.id}: not measured"
    mode = "train" if place.workload.trains else "forward"
    frames = [a for a in place.answered.kernels.get("step_frame", ()) if a.measurement.probe.mode == mode]
    newest = max(frames, key=lambda a: (a.measurement.taken_at, a.seconds), default=None)
    if newest is not None:
        return (Share("launch", FRAME, log_normal(newest.seconds, BELIEFS.sigma("measured"), "measured", newest.evidence)),)
    usual = CHIP_HABITS[place.device.kind].frame_s
    if usual < FRAME_MATTERS * busy_s:
        missing.append(f"{where}, left out of the step time")
        return ()
    missing.append(f"{where}, taken as what is usual")
    return (Share("launch", FRAME, log_normal(usual, FRAME_SIGMA, "datasheet", f"{where}; usual for a {place.device.kind}")),)


def _communication(place: Place, slices: list[Share]) -> tuple[Share, ...] | str:
    """Return the exposed gradient exchange of a pool of several chips, or what is missing to tell it."""
    if place.pool.count == 1 or not place.workload.trains:
        return ()
    fabric = fabric_of(place.pool, place.chip)
    if fabric is None:
        return f"link rate between chips of {place.device.name}"
    busy = sum(share.seconds.mid for share in slices)
    seconds = exposed_s(all_reduce_s(model_bytes(place.workload, whole_tables=True).gradients, fabric), busy)
    return (Share("communication", "all blocks", log_normal(seconds, BELIEFS.sigma("datasheet"), "datasheet", fabric.evidence)),)


def _step(place: Place, slices: Slices) -> Quantity:
    """Return the sum of the terms, which share part of their errors."""
    summed = total(slices.terms, BELIEFS.block_correlation)
    further = BELIEFS.composition(place.runtime.mode)
    if further == 0:
        return summed
    return log_normal(summed.mid, (summed.sigma**2 + further**2) ** 0.5, summed.tier, *summed.evidence)


def _compile(place: Place, times: tuple[Timed, ...], reduced: Reduced | None) -> Quantity | None:
    """Return the compile time of the whole model: compilers here unroll, so each repeat is compiled again."""
    if place.runtime.id in UNCOMPILED_RUNTIMES:
        return exact(0.0, "measured", "nothing is compiled")
    parts = [(time, block.repeats**BELIEFS.compile_growth) for block, time in times]
    how = "compile time of each block x its repeats"
    if reduced is not None:
        parts = [(time, copies - 1) for time, copies in parts if copies > 1] + [(reduced.time, 1.0)]
        how = "compile time of each block once, and of each further layer"
    if any(time.compile_s is None for time, _ in parts) or not parts:
        return None
    seconds = sum((time.compile_s or 0.0) * copies for time, copies in parts)
    exactly = all(time.seconds is not None and time.seconds.tier == "measured" for time, _ in parts)
    return log_normal(seconds, BELIEFS.compile_sigma, "interpolated" if exactly else "transferred", how)


def _estimate(
    place: Place,
    times: tuple[Timed, ...],
    reduced: Reduced | None,
    slices: Slices | None,
    missing: tuple[str, ...],
) -> Estimate:
    workload, pool, device = place.workload, place.pool, place.device
    parts = memory_parts(model_bytes(workload, whole_tables=True), Layout(batch_share=1 / pool.count), device.kind)
    memory = memory_of(parts)
    chips_s = _step(place, slices) if slices and slices.terms else None
    fed = None if chips_s is None else fed_of(workload, pool, chips_s)
    step = None if chips_s is None else step_of(chips_s, fed)
    compile_s = _compile(place, times, reduced)
    if compile_s is None:
        missing = (*missing, f"compile time of {place.runtime.id} on {device.id}: not measured")
    lower_s, upper_s = _bounds(place)
    job = None if step is None else job_of(workload, pool, step, compile_s, 0.0)
    capacity = float(device.memory_bytes) or None
    return Estimate(
        Candidate(place.runtime.id, (pool,), Plan(data=pool.count)),
        step,
        None if step is None else throughput_of(workload, step),
        memory,
        compile_s,
        None if step is None else cost_of(workload, pool, step, job),
        None if step is None else energy_of(workload, place.chip, pool.count, step),
        parts, capacity, (*slices.shown, *waiting(fed)) if slices else (), lower_s, upper_s,
        None if capacity is None else memory.mid <= capacity, missing, job_s=job, fed=fed,
    )


def _bounds(place: Place) -> tuple[float | None, float | None]:
    """Return max and sum of arithmetic and unavoidable traffic at the best rates measured, else at the datasheet's."""
    if place.best is not None:
        rate, memory_rate = place.best.matmul.best, place.best.memory.best if place.best.memory else None
    elif place.chip is not None:
        rate, memory_rate = place.chip.peak(place.workload.dtype), place.chip.memory_bytes_per_s
    else:
        return None, None
    if rate is None or memory_rate is None:
        return None, None
    works = (work for block in work_of(place.workload, 1 / place.pool.count) for work in block.works)
    kept = [work for work in works if work.family not in ("elementwise", "norm")]
    terms = (sum(work.flop for work in kept) / rate, sum(work.traffic_bytes for work in kept) / memory_rate)
    return max(terms), sum(terms)


