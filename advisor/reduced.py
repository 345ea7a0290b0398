"""Times of blocks from the reduced model: what it was measured to take is divided over its blocks, further layers are added.

The whole is measured; how it is divided is not, and says so: blocks that were measured themselves keep their proportions, the
others share the rest by the roofline of measured kernels, or by their FLOPs where no kernel was measured.
"""

from dataclasses import dataclass
from math import hypot

from advisor.answered import Answered, key_of
from advisor.beliefs import BELIEFS
from advisor.blocks import BlockTime, probe_of, time_of_block
from advisor.kernels import Peaks, roofline_split
from advisor.work import BlockWork
from core.quantity import Quantity, log_normal, worst_tier
from core.reduced import reduced_block
from core.workload import Block, Workload

LEAST_REST = 0.02
"""Share of the reduced model under which what is left for blocks without a time is taken for noise."""
DIVIDED_BY_TIME = "its part of the model with each block once, by its own measurement"
DIVIDED_BY_ROOF = "its part of the model with each block once, by the roofline of measured kernels"
DIVIDED_BY_FLOP = "its part of the model with each block once, by its FLOPs: no kernel was measured here"
Timed = tuple[Block, BlockTime]


@dataclass(frozen=True, slots=True)
class Reduced:
    """What is known of the reduced model of a workload in one runtime on one device.

    Args:
        time: of each block once in one step, without the frame.
        asked: whether anything came of its probe, a failure or a distrusted measurement included.
    """

    time: BlockTime
    asked: bool

    @property
    def exact(self) -> bool:
        """Whether it was measured as the workload runs it."""
        return self.time.seconds is not None and self.time.seconds.tier == "measured"


def reduced_of(
    workload: Workload, runtime: str, device: str, batch: int, answered: Answered, best: Peaks | None
) -> Reduced | None:
    """Return what is known of the reduced model; None where the blocks make no model.

    Args:
        workload: the job.
        runtime, device: ids.
        batch: samples of one step on one chip.
        answered: outcomes of that runtime on that device.
        best: the best kernels of any runtime there, or None.
    """
    block = reduced_block(workload.blocks)
    if block is None:
        return None
    probe = probe_of(block, workload, runtime, device, batch, "model")
    time = time_of_block(block, workload, probe, answered, None, best, fused=True)
    key = key_of(probe)
    return Reduced(time, time.seconds is not None or key in answered.failures or key in answered.quarantined)


def prevails(reduced: Reduced, times: tuple[Timed, ...]) -> bool:
    """Return whether the reduced model tells more than the sum of blocks, every layer that repeats being known."""
    repeated = [time for block, time in times if block.repeats > 1]
    if reduced.time.seconds is None or any(time.seconds is None for time in repeated):
        return False
    return reduced.exact or not all(time.seconds is not None and time.seconds.tier == "measured" for _, time in times)


def spoilt(reduced: Reduced | None, times: tuple[Timed, ...]) -> bool:
    """Return whether the model itself was tried and gave nothing to trust, and its blocks were not all measured either.

    What could not run the model once gets no figure that is put together from kernels.
    """
    failed = reduced is not None and reduced.asked and reduced.time.seconds is None
    return failed and not all(time.seconds is not None and time.seconds.tier == "measured" for _, time in times)


def terms_of(reduced: Reduced, times: tuple[Timed, ...]) -> tuple[Quantity, ...]:
    """Return what was measured as one: the reduced model, then the further layers of each block that repeats."""
    assert reduced.time.seconds is not None
    return (reduced.time.seconds, *(further for one in times for further in _further(one)))


def _further(timed: Timed) -> tuple[Quantity, ...]:
    block, time = timed
    if block.repeats == 1 or time.seconds is None:
        return ()
    return (time.seconds.scaled(block.repeats - 1.0, f"{block.repeats - 1} further x {block.name}"),)


def whole_times(
    reduced: Reduced, times: tuple[Timed, ...], works: dict[str, BlockWork], peaks: Peaks | None, fused: bool
) -> tuple[tuple[Quantity, ...], ...]:
    """Return, for each block, its part of the reduced model and, where it repeats, its further layers.

    Args:
        reduced: with seconds.
        times: blocks of the workload with what is known of one repeat.
        works: by the name of the block; of all its repeats.
        peaks: measured kernels, or None.
        fused: whether the runtime fuses element-wise operations.
    """
    whole = reduced.time.seconds
    assert whole is not None
    shares = _shares(whole.mid, times, works, peaks, fused)
    return tuple(
        (_part(whole, share, note), *_further(timed)) for timed, (share, note) in zip(times, shares, strict=True)
    )


def _part(whole: Quantity, share: float, note: str) -> Quantity:
    """Return a part of the whole; how it was divided makes its tier and its band, unless it is all of it."""
    if note == DIVIDED_BY_TIME or share == 1:
        return whole.scaled(share, note)
    tier = worst_tier((whole.tier, "transferred"))
    sigma = hypot(whole.sigma, BELIEFS.sigma("transferred"))
    return log_normal(whole.mid * share, sigma, tier, *whole.evidence, note)


def _shares(
    whole_s: float, times: tuple[Timed, ...], works: dict[str, BlockWork], peaks: Peaks | None, fused: bool
) -> list[tuple[float, str]]:
    """Return the share of the reduced model and how it was found, for each block; shares sum to one."""
    known = [_known_s(time) for _, time in times]
    guesses = [
        0.0 if seconds is not None else _guess_s(works[block.name], peaks, fused) / block.repeats
        for (block, _), seconds in zip(times, known, strict=True)
    ]
    spoken, guessed = sum(seconds or 0.0 for seconds in known), sum(guesses)
    rest = max(whole_s - spoken, LEAST_REST * whole_s) if guessed else 0.0
    guess_note = DIVIDED_BY_FLOP if peaks is None else DIVIDED_BY_ROOF
    weights = [
        (seconds, DIVIDED_BY_TIME) if seconds is not None else (rest * guess / guessed if guessed else 0.0, guess_note)
        for seconds, guess in zip(known, guesses, strict=True)
    ]
    summed = sum(weight for weight, _ in weights)
    if not summed:
        return [(1 / len(weights), guess_note) for _ in weights]
    return [(weight / summed, note) for weight, note in weights]


def _known_s(time: BlockTime) -> float | None:
    seconds = time.seconds
    return seconds.mid if seconds is not None and seconds.tier in ("measured", "interpolated") else None


def _guess_s(work: BlockWork, peaks: Peaks | None, fused: bool) -> float:
    if peaks is not None:
        return roofline_split(work.works, peaks, fused).total_s
    return float(sum(one.flop for one in work.works))
