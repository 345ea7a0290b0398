"""Estimates for chips that are not attached: roofline of each operation over the datasheet, times the share usually reached.

Datasheets cannot tell two compilers apart, so runtimes that fuse share one figure and runtimes that do not share another.
"""

from dataclasses import dataclass
from math import exp, hypot

from advisor.beliefs import BELIEFS, CHIP_HABITS, EAGER_RUNTIMES, UNCOMPILED_RUNTIMES
from advisor.charges import cost_of, energy_of, throughput_of
from advisor.communication import Fabric, all_gather_s, all_reduce_s, exposed_s, fabric_of
from advisor.efficiency import Demand, Silicon, block_seconds, demands_of, silicon_of
from advisor.memory import ModelBytes, memory_of, model_bytes
from advisor.plans import Division, divisions_of
from advisor.rates import Rate, rate_of
from advisor.work import BlockWork, work_of
from core.advice import Candidate, Estimate, Share
from core.device import Accelerator, Pool
from core.probe import Runtime
from core.quantity import Z_80, Quantity, exact, log_normal, total
from core.workload import Workload

Demands = tuple[tuple[str, tuple[Demand, ...]], ...]
UPDATE = "optimizer update"


@dataclass(frozen=True, slots=True)
class Terms:
    """Seconds of one step of one plan, before any band.

    Args:
        blocks: (block, compute, memory traffic, launch).
        communication_s: all of it; `exposed` is what does not hide behind computation.
    """

    blocks: tuple[tuple[str, float, float, float], ...]
    communication_s: float
    exposed_s: float

    @property
    def step_s(self) -> float:
        """Seconds of the step."""
        return sum(c + m + launch for _, c, m, launch in self.blocks) + self.exposed_s


@dataclass(frozen=True, slots=True)
class Prediction:
    """Everything of an estimate that does not depend on which runtime of a class it is."""

    division: Division
    step: Quantity | None
    throughput: Quantity | None
    memory: Quantity
    cost: Quantity | None
    energy: Quantity | None
    breakdown: tuple[Share, ...]
    lower_s: float | None
    upper_s: float | None
    missing: tuple[str, ...]


class Datasheets:
    """Estimates for one workload over many pools; keeps what candidates have in common, so that thousands stay fast."""

    def __init__(self, workload: Workload) -> None:
        """Prepare for one workload.

        Args:
            workload: the job.
        """
        self._workload = workload
        self._model: ModelBytes = model_bytes(workload)
        self._work: dict[float, tuple[BlockWork, ...]] = {}
        self._demands: dict[tuple[float, Silicon, bool], Demands] = {}
        self._ideal: dict[float, tuple[float, float]] = {}
        self._divisions: dict[tuple[int, str, float], tuple[Division, ...]] = {}
        self._predictions: dict[tuple[Pool, bool, Rate], Prediction | None] = {}

    def estimate(self, runtime: Runtime, pool: Pool, chip: Accelerator) -> Estimate | str:
        """Return the estimate of one runtime on one pool, or in one phrase why there is no legal plan or no rate.

        Args:
            runtime: any known runtime.
            pool: of catalog chips.
            chip: the pool's accelerator.
        """
        workload = self._workload
        rate = rate_of(chip, workload.dtype, runtime.id)
        if rate is None:
            return f"{chip.name} has no {workload.dtype} units and no documented stand-in"
        if chip.memory_bytes_per_s is None:
            return f"the memory rate of {chip.name} is not known"
        eager = runtime.id in EAGER_RUNTIMES
        key = (pool, eager, rate)
        if key not in self._predictions:
            self._predictions[key] = self._predict(pool, chip, rate, eager)
        found = self._predictions[key]
        if found is None:
            return f"a batch of {workload.batch} does not divide over {pool.count} chips"
        uncompiled = runtime.id in UNCOMPILED_RUNTIMES
        compile_s = exact(0.0, "datasheet", "nothing is compiled") if uncompiled else None
        missing = found.missing if uncompiled else (*found.missing, f"compile time of {runtime.id} on {chip.key}: not measured")
        return Estimate(
            Candidate(runtime.id, (pool,), found.division.plan), found.step, found.throughput, found.memory, compile_s,
            found.cost, found.energy, found.division.memory, chip.memory_bytes, found.breakdown,
            found.lower_s, found.upper_s, found.division.fits, missing,
        )

    def _predict(self, pool: Pool, chip: Accelerator, rate: Rate, eager: bool) -> Prediction | None:
        divisions = self._divisions_of(pool.count, chip)
        if not divisions:
            return None
        fabric = fabric_of(pool, chip) if pool.count > 1 else None
        if pool.count > 1 and fabric is None:
            best = next((d for d in divisions if d.fits), divisions[-1])
            return self._without_time(best, f"link rate between chips of {chip.key}")
        timed = [(division, self._terms(division, chip, rate, eager, fabric)) for division in divisions]
        division, terms = min(timed, key=lambda pair: (pair[0].fits is False, not pair[0].simple, pair[1].step_s))
        return self._with_time(division, terms, pool, chip, rate)

    def _without_time(self, division: Division, missing: str) -> Prediction:
        return Prediction(division, None, None, memory_of(division.memory), None, None, (), None, None, (missing,))

    def _with_time(self, division: Division, terms: Terms, pool: Pool, chip: Accelerator, rate: Rate) -> Prediction:
        sigma = hypot(BELIEFS.sigma("datasheet"), rate.sigma)
        evidence = (f"{rate.note}, {chip.source} ({chip.source_date})", "roofline of each operation x the share usually reached")
        if division.layout.remat:
            evidence = (*evidence, "activations are computed again in the backward pass")
        step = log_normal(terms.step_s, sigma, "datasheet", *evidence)
        lower_s, upper_s = self._bounds(division, terms, chip, rate)
        return Prediction(
            division, step, throughput_of(self._workload, step), memory_of(division.memory), cost_of(self._workload, pool, step),
            energy_of(self._workload, chip, pool.count, step), _shares(terms, sigma, chip.key), lower_s, upper_s, (),
        )

    def _terms(self, division: Division, chip: Accelerator, rate: Rate, eager: bool, fabric: Fabric | None) -> Terms:
        vector = _vector_rate(chip, rate)
        bytes_per_s = chip.memory_bytes_per_s or 1.0
        update_share = 1 / division.plan.fsdp
        again = 4 / 3 if division.layout.remat else 1.0
        rows: list[tuple[str, float, float, float]] = []
        for name, demands in self._demands_of(division.share, silicon_of(chip), eager):
            compute, memory, launch = block_seconds(demands, rate.flop_per_s, vector, bytes_per_s)
            times = update_share if name == UPDATE else division.parts * again
            rows.append((name, compute * times, memory * times, launch * (1.0 if name == UPDATE else times)))
        rows.append(("step frame", 0.0, 0.0, CHIP_HABITS[chip.kind].frame_s))
        communication = 0.0 if fabric is None else self._communication_s(division, fabric)
        busy = sum(compute + memory for _, compute, memory, _ in rows)
        return Terms(tuple(rows), communication, exposed_s(communication, busy))

    def _communication_s(self, division: Division, fabric: Fabric) -> float:
        weights, trains = self._model.weights, self._workload.trains
        layers = max(1, sum(block.repeats for block in self._workload.blocks))
        if division.plan.fsdp == 1:
            return all_reduce_s(weights, fabric) if trains else 0.0
        gathers = (2 if trains else 1) * division.parts
        scatter = division.parts if trains else 0
        return (gathers + scatter) * layers * all_gather_s(weights / layers, fabric)

    def _bounds(self, division: Division, terms: Terms, chip: Accelerator, rate: Rate) -> tuple[float, float]:
        """Return max and sum of the terms at full rates: arithmetic of matrix units, unavoidable traffic, communication."""
        flop, traffic = self._ideal_of(division.share)
        compute_s = flop * division.parts / rate.flop_per_s
        memory_s = traffic * division.parts / (chip.memory_bytes_per_s or 1.0)
        parts = (compute_s, memory_s, terms.communication_s)
        return max(parts), sum(parts)

    def _ideal_of(self, share: float) -> tuple[float, float]:
        if share not in self._ideal:
            works = [work for block in self._work_of(share) for work in block.works]
            kept = [work for work in works if work.family not in ("elementwise", "norm")]
            self._ideal[share] = (sum(work.flop for work in kept), sum(work.traffic_bytes for work in kept))
        return self._ideal[share]

    def _divisions_of(self, count: int, chip: Accelerator) -> tuple[Division, ...]:
        key = (count, chip.kind, chip.memory_bytes)
        if key not in self._divisions:
            self._divisions[key] = divisions_of(self._model, self._workload.batch, count, chip.kind, chip.memory_bytes)
        return self._divisions[key]

    def _work_of(self, share: float) -> tuple[BlockWork, ...]:
        if share not in self._work:
            self._work[share] = work_of(self._workload, share)
        return self._work[share]

    def _demands_of(self, share: float, silicon: Silicon, eager: bool) -> Demands:
        key = (share, silicon, eager)
        if key not in self._demands:
            self._demands[key] = demands_of(self._work_of(share), silicon, eager)
        return self._demands[key]


def _vector_rate(chip: Accelerator, rate: Rate) -> float:
    """Return the rate of element-wise arithmetic: fp32 units outside the matrix units, or a small share of the dense rate."""
    single = chip.peak("fp32")
    if chip.kind != "tpu" and single is not None:
        return single / 2
    half = chip.peak("bf16") or chip.peak("fp16") or rate.flop_per_s
    return half * CHIP_HABITS[chip.kind].vector_share


def by_term(breakdown: tuple[Share, ...]) -> tuple[Share, ...]:
    """Return the slices of a datasheet's step summed over blocks; all of them have one and the same error."""
    found: dict[str, list[Quantity]] = {}
    for share in breakdown:
        found.setdefault(share.term, []).append(share.seconds)
    return tuple(Share(term, "all blocks", total(tuple(parts), 1.0)) for term, parts in found.items())


def _shares(terms: Terms, sigma: float, key: str) -> tuple[Share, ...]:
    """Return the slices of the step; their mid values add up to it."""
    evidence = (f"datasheet of {key}",)
    spread = exp(Z_80 * sigma)
    found: list[Share] = []
    for name, compute, memory, launch in terms.blocks:
        for term, seconds in (("compute", compute), ("memory traffic", memory), ("launch", launch)):
            if seconds > 0:
                found.append(Share(term, name, Quantity(seconds / spread, seconds, seconds * spread, "datasheet", evidence)))
    if terms.exposed_s > 0:
        found.append(Share("communication", "all blocks", log_normal(terms.exposed_s, sigma, "datasheet", *evidence)))
    return tuple(found)
