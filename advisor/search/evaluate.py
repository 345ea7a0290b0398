"""Every plan of every pool priced at once, and the best of each pool for each runtime.

Plans of all pools lie side by side in arrays; the roofline is computed once for each way a host starts operations, and each
runtime's correction is one product with it. What does not fit in memory is kept apart, not dropped: where nothing fits, the
most frugal plan says by how much.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import exp, hypot

import numpy as np

from advisor.beliefs import CHIP_HABITS
from advisor.cost.columns import Flags, Numbers
from advisor.cost.features import Labels, labels_of
from advisor.cost.known import known_predictor
from advisor.cost.silicon import Silicon, silicon_of, unknown_link
from advisor.memory import ModelBytes, model_bytes
from advisor.search.found import Found, Glance, PassTime
from advisor.search.grid import Chips, Divisible, Grid, grid_of, joined, undivided
from advisor.search.passes import YEAR, Pass, Priced, passes_of, priced, scaled
from advisor.search.room import Apart, Parts, fit_chances, parts_of
from advisor.search.stacks import BORROWED_SHIFT, BORROWED_SIGMA, Stack, chosen_of, stack_for
from core.advice import Plan
from core.device import Accelerator
from core.sketch import TRAINING, Setup, Sketch
from core.sketching import prompt_of, routed_experts, sketch_of
from core.transformer import key_heads_of
from core.workload import Workload

_SIMPLER = 0.01
_LAST_RESORT = 1e6
"""A further way of dividing is taken only when it gains this much."""
_OTHERS = 3


@dataclass(frozen=True, slots=True)
class _Pool:
    """Where a pool's plans lie among all."""

    key: str
    count: int
    start: int
    stop: int
    silicon: Silicon


@dataclass(frozen=True, slots=True)
class _Prepared:
    """All plans of all pools: what they are, what they need, which fit and how surely; `handicap` is what a plan asks for."""

    pools: tuple[_Pool, ...]
    grid: Grid
    passes: tuple[Pass, ...]
    memory: dict[str, Numbers]
    need: Numbers
    fits: Flags
    handicap: Numbers
    frame_s: Numbers


@dataclass(frozen=True, slots=True)
class _Timed:
    """Seconds of every plan in one runtime, what it is chosen by (infinite where it does not fit), and the best row by pool."""

    seconds: Numbers
    weighed: Numbers
    best: dict[tuple[str, int], int]


class Search:
    """Best plans of one workload over many pools; `prepare` prices all pools together, `best` looks one up."""

    def __init__(self, workload: Workload, *, each: bool = False) -> None:
        """Prepare for one workload.

        Args:
            workload: the job.
            each: whether its batch is what every replica takes; plans are then held against each other by the request.
        """
        self.workload = workload
        self._each = each
        self.sketch: Sketch = sketch_of(workload)
        self.model: ModelBytes = model_bytes(workload)
        self._divisible = replace(_divisible(workload, self.sketch), each=each)
        self._prepared: _Prepared | None = None
        self._index: dict[tuple[str, int], _Pool] = {}
        self._priced: dict[tuple[float, float, float], tuple[Priced, ...]] = {}
        self._timed: dict[str, _Timed] = {}
        self._refused: dict[tuple[str, int], str] = {}

    @property
    def plans(self) -> int:
        """Plans of all prepared pools."""
        return 0 if self._prepared is None else len(self._prepared.grid)

    def prepare(self, pools: Iterable[tuple[Accelerator, int]]) -> None:
        """Enumerate and price the plans of pools; pools that were prepared before are forgotten.

        Args:
            pools: (accelerator, chips), each once or more.
        """
        self._index, self._priced, self._timed, self._refused, self._prepared = {}, {}, {}, {}, None
        grids: list[Grid] = []
        made: dict[Chips, Grid] = {}
        kept: list[_Pool] = []
        start = 0
        for chip, count in sorted(dict.fromkeys(pools), key=lambda pool: (pool[0].key, pool[1])):
            silicon = silicon_of(chip, self.workload.dtype, not self.workload.trains)
            if isinstance(silicon, str):
                self._refused[chip.key, count] = silicon
                continue
            unknown = unknown_link(chip, count)
            if unknown and self.workload.trains:
                self._refused[chip.key, count] = unknown
                continue
            domain = silicon.domain if not unknown or not unknown_link(chip, min(count, silicon.domain)) else 1
            chips = Chips(count, domain, silicon.kind == "gpu" and silicon.domain > 1, apart=bool(unknown))
            if chips not in made:
                made[chips] = grid_of(self._divisible, chips)
            grid = made[chips]
            if not len(grid):
                self._refused[chip.key, count] = undivided(self.workload.batch, count)
                continue
            kept.append(_Pool(chip.key, count, start, start + len(grid), silicon))
            start += len(grid)
            grids.append(grid)
        if kept:
            self._index = {(pool.key, pool.count): pool for pool in kept}
            self._prepared = self._all(tuple(kept), joined(grids))

    def best(self, runtime: str, chip: Accelerator, count: int, ways: int = 0) -> Found | str:
        """Return the best plan of a runtime on a prepared pool, or in one phrase why there is none.

        Args:
            runtime: one of `RUNTIME_IDS`.
            chip: of the catalog.
            count: chips.
            ways: chips of a replica; 0 for any.
        """
        row = self._row(runtime, chip.key, count, ways)
        if isinstance(row, str):
            return row
        assert self._prepared is not None
        return self._found(self._prepared, runtime, self._index[chip.key, count], row, self.timed(runtime).seconds)

    def _row(self, runtime: str, key: str, count: int, ways: int) -> int | str:
        """Return the row of the plan that `best` finds, or why there is none.

        Args:
            runtime, key, count, ways: as for `best`, the chip by its key.
        """
        pool, prepared = self._index.get((key, count)), self._prepared
        if pool is None or prepared is None:
            return self._refused.get((key, count), f"{count} x {key} was not looked at")
        timed = self.timed(runtime)
        if not ways:
            return timed.best[pool.key, pool.count]
        rows, grid = slice(pool.start, pool.stop), prepared.grid
        alike = prepared.fits[rows] & (grid.tensor[rows] * grid.pipeline[rows] * grid.context[rows] == ways)
        if not alike.any():
            return f"no plan of replicas of {ways} chips fits on {count} x {key}"
        return pool.start + int(np.where(alike, timed.weighed[rows], np.inf).argmin())

    def glance(self, runtime: str, key: str, count: int, ways: int = 0) -> Glance | str:
        """Return what `best` finds, without what is only shown of it.

        Args:
            runtime, key, count, ways: as for `best`, the chip by its key.
        """
        row = self._row(runtime, key, count, ways)
        if isinstance(row, str):
            return row
        assert self._prepared is not None
        timed, grid = self.timed(runtime), self._prepared.grid
        replicas = float(grid.data[row]) if self._each else 1.0
        memory = tuple((name, float(part[row])) for name, part in self._prepared.memory.items())
        return Glance(row, float(timed.seconds[row]), self.workload.batch * replicas, memory, bool(self._prepared.fits[row]))

    def passes(self, runtime: str, key: str, count: int, row: int) -> tuple[PassTime, ...]:
        """Return the passes of a plan of a runtime on a pool.

        Args:
            runtime: one of `RUNTIME_IDS`.
            key, count: of a pool for which `best` found a plan. row: of that plan.
        """
        prepared, pool = self._prepared, self._index[key, count]
        assert prepared is not None
        found: list[PassTime] = []
        for one, told in zip(prepared.passes, self._told(prepared, runtime), strict=True):
            labels = self._labels(runtime, pool, one.regime)
            table = told.table.rows(slice(row, row + 1))
            shift = float(known_predictor(one.regime == TRAINING).shift_at_latest(table, labels, YEAR)[0])
            slower = self._slower(runtime, one.regime)
            seconds = max(float(told.seconds[row]) * exp(shift + slower), float(one.least_s[row]))
            terms = scaled(told.breakdown(row), seconds, float(one.arithmetic_s[row]))
            found.append(PassTime(one.regime, one.times, seconds, tuple(terms.items())))
        return tuple(found)

    def timed(self, runtime: str) -> _Timed:
        """Return seconds of every plan in one runtime, and the best row of each pool: among those that fit, else the smallest."""
        if runtime not in self._timed:
            assert self._prepared is not None
            self._timed[runtime] = self._time(self._prepared, runtime)
        return self._timed[runtime]

    def _all(self, pools: tuple[_Pool, ...], grid: Grid) -> _Prepared:
        owner = np.repeat(np.arange(len(pools)), [pool.stop - pool.start for pool in pools])
        reserve = np.array([CHIP_HABITS[pool.silicon.kind].reserve_bytes for pool in pools])[owner]
        whole = max(1.0, self.sketch.parameters)
        apart = Apart(self.sketch.expert_parameters / whole, self.sketch.table_parameters / whole)
        memory = parts_of(self.model, grid, float(self.workload.batch), apart, reserve)
        need: Numbers = np.zeros(len(grid))
        for part in memory.values():
            need = need + part
        capacity = np.array([pool.silicon.memory_bytes for pool in pools])[owner]
        chips = [(pool.silicon, pool.count) for pool in pools]
        return _Prepared(
            pools,
            grid,
            passes_of(self.workload, self.sketch, chips, owner, grid),
            memory,
            need,
            need <= capacity,
            handicaps(grid, memory, capacity, trains=self.workload.trains),
            np.array([CHIP_HABITS[pool.silicon.kind].frame_s for pool in pools])[owner],
        )

    def _told(self, prepared: _Prepared, runtime: str) -> tuple[Priced, ...]:
        """Return every pass priced for the way in which a runtime's host starts operations."""
        key = Pass.manner(self._stack(runtime, prepared.passes[0].regime).own)
        if key not in self._priced:
            self._priced[key] = tuple(priced(one, key) for one in prepared.passes)
        return self._priced[key]

    def _time(self, prepared: _Prepared, runtime: str) -> _Timed:
        seconds = prepared.frame_s.copy()
        for one, told in zip(prepared.passes, self._told(prepared, runtime), strict=True):
            predictor = known_predictor(one.regime == TRAINING)
            shift = np.empty_like(seconds)
            for first, last in _by_chip(prepared.pools):
                rows = slice(first.start, last.stop)
                shift[rows] = predictor.shift_at_latest(told.table.rows(rows), self._labels(runtime, first, one.regime), YEAR)
            slower = self._slower(runtime, one.regime)
            seconds = seconds + one.times * np.maximum(told.seconds * np.exp(shift + slower), one.least_s)
        taken = prepared.grid.data if self._each else 1.0
        weighed = np.where(prepared.fits, seconds * prepared.handicap / taken, np.inf)
        best: dict[tuple[str, int], int] = {}
        for pool in prepared.pools:
            row = pool.start + int(weighed[pool.start : pool.stop].argmin())
            if not prepared.fits[row]:
                row = pool.start + int(prepared.need[pool.start : pool.stop].argmin())
            best[pool.key, pool.count] = row
        return _Timed(seconds, weighed, best)

    def _stack(self, runtime: str, regime: str) -> Stack:
        return stack_for(runtime, self.sketch.kind, regime, known_predictor(regime == TRAINING).seen)

    def _slower(self, runtime: str, regime: str) -> float:
        """Return by how much a plan is told slower, in ln(time), than what is known says of it."""
        borrowed = BORROWED_SHIFT if self._stack(runtime, regime).borrowed else 0.0
        return borrowed + chosen_of(self.sketch.kind, regime)[0]

    def _labels(self, runtime: str, pool: _Pool, regime: str) -> Labels:
        setup = Setup(
            self.sketch, regime, pool.key, pool.count, self._stack(runtime, regime).label, self.workload.dtype, 1.0, 1.0,
            low_rank=self.workload.lora is not None,
        )
        return labels_of(setup, pool.silicon)

    def _found(self, prepared: _Prepared, runtime: str, pool: _Pool, row: int, seconds: Numbers) -> Found:
        sigma, tier = 0.0, "published"
        terms: dict[str, float] = {}
        frame_s = float(prepared.frame_s[row])
        arithmetic_s, traffic_s, least_s = 0.0, 0.0, 0.0
        for one, told in zip(prepared.passes, self._told(prepared, runtime), strict=True):
            predictor = known_predictor(one.regime == TRAINING)
            labels = self._labels(runtime, pool, one.regime)
            borrowed = self._stack(runtime, one.regime).borrowed
            own = float(predictor.sigma(told.table.rows(slice(row, row + 1)), labels)[0])
            sigma = max(sigma, hypot(own, BORROWED_SIGMA if borrowed else 0.0, chosen_of(self.sketch.kind, one.regime)[1]))
            tier = "datasheet" if borrowed or predictor.tier(labels) != "published" else tier
            for name, value in told.breakdown(row).items():
                terms[name] = terms.get(name, 0.0) + one.times * value
            least = one.bounds(row)
            arithmetic_s, traffic_s = arithmetic_s + least[0], traffic_s + least[1]
            least_s += one.times * float(one.least_s[row])
        terms = scaled(terms, float(seconds[row]) - frame_s, arithmetic_s)
        bounds = (arithmetic_s, traffic_s, terms.get("communication", 0.0))
        return Found(
            row,
            self._plan(prepared.grid, row),
            self._stack(runtime, prepared.passes[-1].regime).library if tier == "published" else "",
            int(prepared.grid.micro[row]) if not self.workload.trains else self.workload.batch // int(prepared.grid.data[row]),
            float(seconds[row]),
            sigma,
            tier,
            (*terms.items(), ("host", frame_s)),
            arithmetic_s,
            least_s,
            max(bounds),
            sum(bounds),
            tuple((name, float(part[row])) for name, part in prepared.memory.items() if part[row] > 0),
            bool(prepared.fits[row]),
            pool.stop - pool.start,
            int(prepared.fits[pool.start : pool.stop].sum()),
            self._others(prepared, pool, row, seconds),
        )

    def _others(self, prepared: _Prepared, pool: _Pool, chosen: int, seconds: Numbers) -> tuple[tuple[Plan, float], ...]:
        if self._each:  # for as many samples as the chosen plan takes
            seconds = seconds * (prepared.grid.data[chosen] / prepared.grid.data)
        rows = np.flatnonzero(prepared.fits[pool.start : pool.stop]) + pool.start
        rows = rows[rows != chosen]
        if len(rows) > _OTHERS:
            rows = rows[np.argpartition(seconds[rows], _OTHERS)[:_OTHERS]]
        nearest = sorted(rows.tolist(), key=lambda row: float(seconds[row]))
        return tuple((self._plan(prepared.grid, row), float(seconds[row])) for row in nearest)

    def _plan(self, grid: Grid, row: int) -> Plan:
        sharded, data, micro = int(grid.sharded[row]), int(grid.data[row]), int(grid.micro[row])
        in_parts = self.workload.trains and micro < self.workload.batch // data
        return Plan(
            1 if sharded > 1 else data,
            sharded,
            int(grid.tensor[row]),
            int(grid.pipeline[row]),
            int(grid.expert[row]),
            int(grid.context[row]),
            micro if in_parts else None,
            bool(grid.recompute[row] > 0),
        )


def _divisible(workload: Workload, sketch: Sketch) -> Divisible:
    heads = max((key_heads_of(block.ops_forward, workload.batch) for block in workload.blocks), default=1)
    length = int(prompt_of(workload)) if workload.unit == "tokens" else 1
    experts = int(sketch.experts) or routed_experts(workload) or 1
    return Divisible(workload.batch, int(heads), max(1, int(sketch.layers)), experts, length, workload.trains)


def handicaps(grid: Grid, memory: Parts, capacity: Numbers, *, trains: bool) -> Numbers:
    """Return times as long as it takes that each plan counts for when one is chosen: for what it asks for, and may not fit.

    Args:
        grid: plans. memory: of one chip, by part. capacity: bytes of each plan's chip.
        trains: whether there is a backward pass.
    """
    return (1 + _SIMPLER * divisions(grid, trains)) / fit_chances(memory, capacity)


def divisions(grid: Grid, trains: bool) -> Numbers:
    """Return how many things a plan asks for beyond plain replicas; weights gathered to answer are the last resort."""
    ways = sum((degree > 1) * 1.0 for degree in (grid.tensor, grid.pipeline, grid.context, grid.expert))
    return ways + (grid.sharded > 1) * (0.5 if trains else _LAST_RESORT) + (grid.recompute > 0) * 0.2


def _by_chip(pools: tuple[_Pool, ...]) -> list[tuple[_Pool, _Pool]]:
    """Return (first, last) pool of each chip; pools are sorted by chip."""
    runs: list[tuple[_Pool, _Pool]] = []
    for pool in pools:
        if runs and runs[-1][0].key == pool.key:
            runs[-1] = (runs[-1][0], pool)
        else:
            runs.append((pool, pool))
    return runs
