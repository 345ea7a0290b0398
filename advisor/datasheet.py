"""Estimates for chips that are not attached: the best plan that the search found, with bands, cost, energy and bounds."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import exp

from advisor.charges import cost_of, energy_of, job_of, service_cost_of, service_energy_of, throughput_of
from advisor.compiling import compile_time, programs_of
from advisor.feeding import fed_of, input_seconds, step_of, waiting
from advisor.interruptions import saved_bytes
from advisor.memory import memory_of
from advisor.search import Found, Search
from advisor.served import limited, load_of, served_of, with_ends
from advisor.spare import chips_used, copies
from advisor.words import plan_words
from advisor.work import work_of
from core.advice import ALL_BLOCKS, Candidate, Estimate, Fed, Plan, Share
from core.device import Accelerator, Pool
from core.probe import Runtime
from core.quantity import Z_80, Quantity, log_normal
from core.workload import Block, Workload

_EVIDENCE = {
    "published": "roofline of {key}, {source} ({date}), corrected by published measurements of it and of {library}",
    "datasheet": "roofline of {key}, {source} ({date}); nothing published of it and of this, so corrected as its class",
}

SPARSE_UPDATE = "embedding tables: gradients and updates of the rows that a step looks up, optimizer states of all"


class Datasheets:
    """Estimates for one workload over many pools; the plans of all of them are priced together."""

    def __init__(
        self, workload: Workload, pools: Iterable[tuple[Pool, Accelerator]], compiled_here: Mapping[str, Quantity] | None = None,
        *, each: bool = False,
    ) -> None:
        """Prepare for one workload and its pools.

        Args:
            workload: the job.
            pools: of catalog chips, each with its accelerator.
            compiled_here: by runtime, seconds that its compilation of this workload takes on a CPU that is attached.
            each: whether its batch is what every replica takes; what is told is then of all replicas together.
        """
        self._workload = workload
        self._each = each
        self._search = Search(workload, each=each)
        every = list(pools)
        self._chips = {chip.key: chip for _, chip in every}
        self._search.prepare((chip, pool.count) for pool, chip in every)
        self._found: dict[tuple[str, str, int, int], Found | str] = {}
        self._of_plan: dict[tuple[str, str, int, Plan], Found] = {}
        self._parts = _parts_of(workload)
        self._looks_up = workload.updated_parameter_count < workload.trained_parameter_count and workload.trains
        self._trained_flop = workload.flop_per_step if workload.trains else 0
        self._programs, self._saved = programs_of(workload), saved_bytes(workload)
        self._compiled_here = compiled_here or {}

    @property
    def plans(self) -> int:
        """Plans that were priced for each runtime."""
        return self._search.plans

    def in_blocks(self, estimate: Estimate) -> Estimate:
        """Return an estimate whose arithmetic and traffic are told by block, in parts of what each asks for.

        Args:
            estimate: one of these; one that was measured, or is told by block already, stays as it is.
        """
        if any(share.block != ALL_BLOCKS for share in estimate.breakdown):
            return estimate
        slices: list[Share] = []
        for share in estimate.breakdown:
            for block, part in self._cut(share.term):
                slices.append(Share(share.term, block, share.seconds.scaled(part)))
        return replace(estimate, breakdown=tuple(slices))

    def pace(self, candidate: Candidate) -> tuple[int, float] | None:
        """Return (requests in flight, seconds of the last pass) of one replica as a candidate has it; None where none fits.

        Args:
            candidate: of this workload, or of the same with more requests at once.
        """
        pool, ways = candidate.pools[0], chips_used(candidate.plan) // copies(candidate.plan)
        key = (candidate.runtime, pool.accelerator, pool.count)
        seen = self._search.glance(*key, ways)
        if isinstance(seen, str):
            return None
        passes = self._search.passes(*key, seen.row)
        input_s = input_seconds(self._workload, pool) * seen.samples / self._workload.batch
        host_s = seen.seconds - sum(one.times * one.seconds for one in passes)
        return self._workload.batch, with_ends(passes, host_s, max(0.0, input_s - seen.seconds))[-1].seconds

    def served(self, estimate: Estimate, *, fully: bool, fewer: Sequence[tuple[int, float]] = ()) -> Estimate:
        """Return an estimate with what requests meet at the rate that the workload asks for, and what that time costs.

        Args:
            estimate: one of these; any other, and all of a workload without a rate, stays as it is.
            fully: with the percentiles of latency where they are not told yet; else only with the rate that can be served.
            fewer: (requests in flight, seconds of the last pass) of the same replicas with fewer, ascending, where it is known.
        """
        pool, known, step = estimate.candidate.pools[0], estimate.served, estimate.step_time_s
        key = (estimate.candidate.runtime, pool.accelerator, pool.count)
        found = self._of_plan.get((*key, estimate.candidate.plan))
        if found is None or step is None or (known is not None and (known.total_s or not fully)):
            return estimate
        workload = self._taken(found)
        passes, waits_s = self._search.passes(*key, found.row), self._waits_s(found, pool)
        host_s = step.mid - waits_s - sum(one.times * one.seconds for one in passes)
        load = load_of(workload, with_ends(passes, host_s, waits_s), found.share, estimate.memory_parts, step, fewer)
        if load is None or (known is not None and known.utilisation >= 1):
            return estimate
        served = served_of(load) if fully else limited(load)
        if served.utilisation >= 1:  # its queue never empties: the requests take as long as it takes to serve them
            return replace(estimate, served=served, cost_usd=cost_of(workload, pool, step), job_s=None)
        energy = service_energy_of(workload, self._chips[pool.accelerator], pool.count, served.utilisation, step)
        return replace(estimate, served=served, cost_usd=service_cost_of(workload, pool, step), energy_j=energy, job_s=None)

    def _utilisation(self, chip: Accelerator, chips: int, step: Quantity) -> Quantity | None:
        """Return the model FLOPs utilisation of a training step; None where nothing is trained or the peak is not known.

        Source: Chowdhery et al., arXiv:2204.02311, appendix B; attention is counted in full, as there.
        """
        dtype = self._workload.dtype
        peak = chip.peak(dtype)
        if not self._trained_flop or not peak or step.low <= 0:
            return None
        least_s = self._trained_flop / (chips * peak)
        evidence = (f"{dtype} peak of {chip.key}", *step.evidence)
        return Quantity(least_s / step.high, least_s / step.mid, least_s / step.low, step.tier, evidence)

    def _waits_s(self, found: Found, pool: Pool) -> float:
        """Return the seconds of a step in which it waits for its input."""
        return max(0.0, input_seconds(self._taken(found), pool) - found.seconds)

    def _taken(self, found: Found) -> Workload:
        """Return the job with as many requests a step as all replicas of a plan take."""
        workload = self._workload
        replicas = copies(found.plan) if self._each else 1
        return replace(workload, batch=workload.batch * replicas, units_per_step=workload.units_per_step * replicas)

    def _cut(self, term: str) -> list[tuple[str, float]]:
        """Return (block, part) of a term of the breakdown; parts of nothing are left out."""
        if term == "compute":
            parts = [(part.block, part.arithmetic) for part in self._parts]
        elif term == "memory traffic":
            parts = [(part.block, part.traffic) for part in self._parts]
        else:
            parts = [(ALL_BLOCKS, 1.0)]
        return [(block, part) for block, part in parts if part > 0]

    def glance(self, runtime: Runtime, pool: Pool, chip: Accelerator, ways: int = 0) -> tuple[float, float] | str:
        """Return how likely the best plan fits and how many requests a second it answers, without the rest of its estimate.

        Args:
            runtime, pool, chip, ways: as for `estimate`.
        """
        seen = self._search.glance(runtime.id, chip.key, pool.count, ways)
        if isinstance(seen, str):
            return seen
        chance = memory_of(seen.memory).chance_within(chip.memory_bytes) if seen.fits else 0.0
        waits_s = input_seconds(self._workload, pool) * seen.samples / self._workload.batch
        return chance, seen.samples / max(seen.seconds, waits_s)

    def estimate(self, runtime: Runtime, pool: Pool, chip: Accelerator, ways: int = 0) -> Estimate | str:
        """Return the estimate of one runtime on one pool, or in one phrase why there is no legal plan or no rate.

        Args:
            runtime: any known runtime.
            pool: one of those prepared.
            chip: the pool's accelerator.
            ways: chips of a replica; 0 for any.
        """
        key = (runtime.id, chip.key, pool.count, ways)
        if key not in self._found:
            self._found[key] = self._search.best(runtime.id, chip, pool.count, ways)
        found = self._found[key]
        if isinstance(found, str):
            return found
        self._of_plan[runtime.id, chip.key, pool.count, found.plan] = found
        workload = self._taken(found)
        told = _EVIDENCE[found.tier].format(
            key=chip.key, source=chip.source, date=chip.source_date, library=found.library or "the framework"
        )
        evidence = (told, words_of(found, pool.count), *((SPARSE_UPDATE,) if self._looks_up else ()))
        chips_s = log_normal(found.seconds, found.sigma, found.tier, *evidence).at_least(found.least_s)
        fed = fed_of(workload, pool, chips_s)
        step = step_of(chips_s, fed)
        compile_s = compile_time(self._programs, runtime.id, chip.kind, pool.count, self._compiled_here)
        job = job_of(workload, pool, step, compile_s, self._saved)
        return Estimate(
            Candidate(runtime.id, (pool,), found.plan), step, throughput_of(workload, step), memory_of(found.memory), compile_s,
            cost_of(workload, pool, step, job), energy_of(workload, chip, pool.count, step), found.memory, chip.memory_bytes,
            _shares(found, chip.key, fed), found.lower_s, found.upper_s, found.fits, job_s=job,
            published_of=found.library, utilisation=self._utilisation(chip, pool.count, step),
            missing=() if pool.price_usd_per_h is not None else (pool.where or f"no price of {pool.label} known",), fed=fed,
        )


def words_of(found: Found, chips: int) -> str:
    """Return in one phrase why this plan: how many there were, how many fit, what the next best would take."""
    counted = f"best of {found.considered} plans, {found.fitting} of which fit"
    if not found.others:
        return counted
    plan, seconds = found.others[0]
    return f"{counted}; next: {plan_words(plan, chips) or 'one replica'}, {seconds / found.seconds - 1:+.0%}"


@dataclass(frozen=True, slots=True)
class _Part:
    """What part of a model's arithmetic and of its traffic is one block's."""

    block: str
    arithmetic: float
    traffic: float


def _parts_of(workload: Workload) -> tuple[_Part, ...]:
    works = work_of(replace(workload, blocks=tuple(_by_row(block) for block in workload.blocks)), 1.0)
    flop = sum(block.flop for block in works) or 1.0
    traffic = sum(work.traffic_bytes for block in works for work in block.works) or 1.0
    return tuple(
        _Part(block.name, block.flop / flop, sum(work.traffic_bytes for work in block.works) / traffic) for block in works
    )


def _by_row(block: Block) -> Block:
    """Return a block without the gradient of a whole table, which nobody writes where rows are updated."""
    if not block.is_table:
        return block
    return replace(block, ops_backward=tuple(op for op in block.ops_backward if op.kind != "custom"))


def _shares(found: Found, key: str, fed: Fed | None) -> tuple[Share, ...]:
    """Return the slices of the step by term, waiting for input among them; their mid values add up to it."""
    spread = exp(Z_80 * found.sigma)
    evidence = (f"cost model on {key}",)
    shares: list[Share] = []
    for term, seconds in found.terms:
        told = Quantity(seconds / spread, seconds, seconds * spread, found.tier, evidence)
        shares.append(Share(term, ALL_BLOCKS, told.at_least(found.arithmetic_s) if term == "compute" else told))
    return (*shares, *waiting(fed))
