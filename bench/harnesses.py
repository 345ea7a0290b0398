"""Tandem's times against the field's own harnesses, in one interleaved run on this machine.

PyTorch is timed by `torch.utils.benchmark.Timer`, JAX by a hand-written `block_until_ready` loop, memory by STREAM, compiled here
from `bench/native/stream.c`. Tandem's side is its real worker, asked over its pipe as a session asks it. Each foreign harness
runs hand-written code in a process of its own, with the worker's environment and thus its threads. Both stay up; only one works
at a time; the order is A B, B A, A B, so that a drift of the machine falls on both.

A pair compares what a person would compare: the time that Tandem tells for one copy of a subject (the slope over depth) with the
same of the foreign harness: its median call of a deep stack less that of a shallow one, over the copies between them, every copy
with its own weights. A call of a single layer would count what a call costs once for each layer, which no model pays. Beside it,
not judged: the raw calls of the deep stacks (`call`) and the least of them (`least call`).

A pass over memory is held twice: against the same operation timed by the runtime's own harness, as all others, which says
whether Tandem times it right; and against STREAM, which says what the operation reaches of the machine: best pass with best pass
(STREAM's rule), both storing into a result that is there, with ordinary stores of 256 bits, as the kernels of PyTorch and of XLA
for CPUs make them. STREAM with stores of 512 bits (`wide`) and with non-temporal ones (`stream`) is told beside it. Vectors are
four last-level caches long, as STREAM asks.

Two processes with the same program differ by where their memory and threads came to lie, so all pairs of a row are taken in
rounds, with new processes on both sides in each.

Bounds, all of which must hold for exit 0: for every row the median of the pairs' ratios (Tandem over foreign) of the told time
is within 3 % of 1.

Run: `python -m bench.harnesses [--json] [--runtime ID ...] [--only CASE ...] [--pairs N] [--rounds N] [--seconds S]
[--show-pairs]`. The
machine must be quiet: what others used of it is told.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain, pairwise
from pathlib import Path

import psutil

from bench.compiled import build
from bench.control import Usage, share_of_others, usage
from bench.foreign.cases import CASES, MEMORY, Case, memory_cases
from bench.foreign.serve import HARNESSES
from bench.sides import ForeignSide, OwnSide, Stream, cut, environment_for, probe_of
from bench.truth import lease
from core.errors import TandemError
from core.statistics import iqr, median
from probes.inventory import cpu

BOUND = 0.03
PASSES = 10
"""Over memory, in one turn of each side: STREAM tells its best of ten."""
STREAM_PASSES = PASSES + 1
"""Of which the first is not counted."""
WAYS = ("plain", "wide", "stream")
"""To store; the first is judged."""
FEWEST_PAIRS = 5
MEMORY_SHARE = 2
"""One pair with STREAM for so many others: each takes some three seconds."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Both sides within a second or two: seconds that Tandem tells, seconds of the foreign harness."""

    own_s: float
    foreign_s: float

    @property
    def ratio(self) -> float:
        """Tandem over the foreign harness."""
        return self.own_s / self.foreign_s


@dataclass(frozen=True, slots=True)
class Row:
    """All pairs of one case.

    Args:
        case, runtime, harness: what was timed by whom.
        pairs: of the time that Tandem tells.
        beside: (name, pairs) of what is told and not judged.
        others: share of the machine that others used meanwhile.
    """

    case: str
    runtime: str
    harness: str
    pairs: tuple[Pair, ...]
    beside: tuple[tuple[str, tuple[Pair, ...]], ...]
    others: float

    @property
    def ratio(self) -> float:
        """Median of the pairs' ratios."""
        return median([pair.ratio for pair in self.pairs])

    @property
    def spread(self) -> float:
        """Interquartile range of the pairs' ratios."""
        return iqr([pair.ratio for pair in self.pairs])

    @property
    def uncertainty(self) -> float:
        """Standard error of the median ratio, normal theory: 1.2533 sigma / sqrt(n) with sigma = IQR / 1.349."""
        return 1.2533 * self.spread / 1.349 / len(self.pairs) ** 0.5

    @property
    def holds(self) -> bool:
        """Whether the median ratio is within the bound."""
        return abs(self.ratio - 1) <= BOUND


def in_turn(count: int, own: Callable[[], None], foreign: Callable[[], None]) -> None:
    """Call both sides `count` times each, in the order A B B A A B."""
    for index in range(count):
        for side in (own, foreign) if index % 2 == 0 else (foreign, own):
            side()


def seen(pids: Sequence[int]) -> Usage:
    """Return the processor seconds used so far; those of both sides, which are not waited for yet, count as our own."""
    told = usage()
    times = [psutil.Process(pid).cpu_times() for pid in pids]
    return replace(told, own_s=told.own_s + sum(one.user + one.system for one in times))


@dataclass(frozen=True, slots=True)
class Round:
    """The pairs of one case in one pair of processes, and what others used meanwhile."""

    told: tuple[Pair, ...]
    beside: tuple[tuple[str, tuple[Pair, ...]], ...]
    others: float


def compute_round(one: Case, runtime: str, own: OwnSide, foreign: ForeignSide, count: int, seconds: float) -> Round:
    """Compare one case in one runtime with its own harness."""
    foreign.build(one)
    own.prepare(probe_of(one, runtime))
    counts, theirs = [0], list[list[list[float]]]()
    pids = (own.worker.process.pid, foreign.process.pid)
    before = seen(pids)
    in_turn(count, lambda: counts.append(own.sample(seconds)), lambda: theirs.append(foreign.time(seconds)))
    others = share_of_others(before, seen(pids))
    timings = own.finish()
    parts = [cut(timings, start, end) for start, end in pairwise(counts)]
    both = [(call, copy, low, high) for (call, copy), (low, high) in zip(parts, theirs, strict=True)]
    between = one.depths[1] - one.depths[0]
    copies = tuple(Pair(median(copy), (median(high) - median(low)) / between) for _, copy, low, high in both)
    calls = tuple(Pair(median(call), median(high)) for call, _, _, high in both)
    least = tuple(Pair(min(call), min(high)) for call, _, _, high in both)
    return Round(copies, (("call", calls), ("least call", least)), others)


def memory_round(one: Case, runtime: str, own: OwnSide, stream: Stream, count: int) -> Round:
    """Compare one pass over memory with STREAM, best pass with best pass."""
    own.prepare(probe_of(one, runtime))
    counts, told = [0], list[dict[str, float]]()
    pids = (own.worker.process.pid, stream.process.pid)
    before = seen(pids)

    def foreign() -> None:
        ways = WAYS if len(told) % 2 == 0 else WAYS[::-1]  # what is judged is next to our own turn
        told.append({way: stream.best_s(way, one.kind) for way in ways})

    in_turn(count, lambda: counts.append(own.sample(0.0, PASSES)), foreign)
    others = share_of_others(before, seen(pids))
    timings = own.finish()
    best = [min(cut(timings, start, end)[0]) for start, end in pairwise(counts)]
    judged, *beside = (tuple(Pair(a, b[way]) for a, b in zip(best, told, strict=True)) for way in WAYS)
    return Round(judged, tuple((f"STREAM {way}", pairs) for way, pairs in zip(WAYS[1:], beside, strict=True)), others)


def spread_over(pairs: int, rounds: int) -> list[int]:
    """Return how many pairs each round takes."""
    return [len(range(index, pairs, rounds)) for index in range(rounds)]


def row_of(case: str, runtime: str, harness: str, rounds: Sequence[Round]) -> Row:
    """Return all rounds of one case as one row."""
    names = [name for name, _ in rounds[0].beside]
    beside = [(name, tuple(pair for one in rounds for pair in dict(one.beside)[name])) for name in names]
    told = tuple(pair for one in rounds for pair in one.told)
    return Row(case, runtime, harness, told, tuple(beside), max(one.others for one in rounds))


def measure(asked: argparse.Namespace) -> list[Row]:
    """Return all rows that were asked for."""
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="tandem-stream-") as folder, lease():
        program = build("stream.c", Path(folder), "-march=native", "-fopenmp")
        for row in chain.from_iterable(rows_of(runtime, program, asked) for runtime in asked.runtime):
            rows.append(row)
            _say(line(row))
    return rows


def rows_of(runtime: str, stream: Path, asked: argparse.Namespace) -> Iterator[Row]:
    """Yield the rows of one runtime: products, layers and passes over memory by its own harness, then those by STREAM."""
    environment = environment_for(runtime)
    counts = spread_over(asked.pairs, asked.rounds)
    moving = [one for one in memory_cases(cpu().cache_bytes or 0) if not asked.only or one.name in asked.only]
    timed = [*(one for one in CASES if not asked.only or one.name in asked.only), *moving]
    found: dict[str, list[Round]] = {}
    for count in counts:
        with OwnSide(runtime, environment) as own, ForeignSide(runtime, environment) as foreign:
            for one in timed:
                found.setdefault(one.name, []).append(compute_round(one, runtime, own, foreign, count, asked.seconds))
    harness = "Timer" if runtime.startswith("torch") else "loop"
    yield from (row_of(name, runtime, harness, rounds) for name, rounds in found.items())
    for one in moving:
        rounds: list[Round] = []
        for count in spread_over(max(FEWEST_PAIRS, asked.pairs // MEMORY_SHARE), asked.rounds):
            with OwnSide(runtime, environment) as own, Stream(stream, one.side // 4, STREAM_PASSES, environment) as side:
                rounds.append(memory_round(one, runtime, own, side, count))
        yield row_of(one.name, runtime, "STREAM", rounds)


def line(row: Row) -> str:
    """Return one row of the table."""
    own, foreign = (median([getattr(pair, side) for pair in row.pairs]) for side in ("own_s", "foreign_s"))
    beside = ", ".join(f"{name} {median([pair.ratio for pair in pairs]):.3f}" for name, pairs in row.beside)
    told = "holds" if row.holds else "FALLS SHORT"
    return (
        f"{row.case:18} {row.runtime:12} {row.harness:13} {own * 1e3:9.3f} {foreign * 1e3:9.3f} {row.ratio:7.3f} "
        f"{row.spread:7.3f} {row.uncertainty:6.3f} {row.others:7.1%}  {told:11}  {beside}"
    )


def table(rows: Sequence[Row], *, show_pairs: bool) -> list[str]:
    """Return the table as lines, with every pair below its row when asked."""
    heads = f"{'case':18} {'runtime':12} {'harness':13} {'Tandem ms':>9} {'theirs ms':>9} {'ratio':>7} {'IQR':>7} {'+/-':>6}"
    lines = [f"{heads} {'others':>7}  {'':11}  beside (ratio)"]
    for row in rows:
        lines.append(line(row))
        if show_pairs:
            lines.append("  pairs, ms: " + " ".join(f"{p.own_s * 1e3:.3f}/{p.foreign_s * 1e3:.3f}" for p in row.pairs))
    return lines


def verdict_line(rows: Sequence[Row]) -> str:
    """Return the one line that ends the bench."""
    if not rows:
        return "FALLS SHORT: nothing was compared"
    worst = max(rows, key=lambda row: abs(row.ratio - 1))
    short = [f"{row.case} in {row.runtime} by {row.harness} {row.ratio:.3f}" for row in rows if not row.holds]
    figures = (
        f"{len(rows) - len(short)} of {len(rows)} rows within {BOUND:.0%} of the field's own harness, median of "
        f"{min(len(row.pairs) for row in rows)} pairs; furthest {worst.case} in {worst.runtime} by {worst.harness}, "
        f"ratio {worst.ratio:.3f}; "
        f"others used at most {max(row.others for row in rows):.0%} of the machine"
    )
    return f"FALLS SHORT: {figures}; {', '.join(short)}" if short else f"HOLDS: {figures}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; exit 0 when every bound holds, 1 when one does not, 2 for bad input."""
    asked = _parse(arguments)
    try:
        rows = measure(asked)
    except TandemError as error:
        _say(str(error))
        return 2
    held = bool(rows) and all(row.holds for row in rows)
    if asked.json:
        plain = [asdict(row) | {"ratio": row.ratio, "spread": row.spread, "holds": row.holds} for row in rows]
        print(json.dumps({"schema_version": 1, "holds": held, "rows": plain, "verdict": verdict_line(rows)}))
    else:
        print("\n".join([*table(rows, show_pairs=asked.show_pairs), "", verdict_line(rows)]))
    return 0 if held else 1


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.harnesses", description=(__doc__ or "").splitlines()[0])
    names = [*(one.name for one in CASES), *MEMORY]
    parser.add_argument("--json", action="store_true", help="one JSON document in place of the table")
    parser.add_argument("--runtime", action="append", choices=list(HARNESSES), metavar="ID", help="this one alone")
    parser.add_argument("--only", action="append", choices=names, metavar="CASE", help="this one alone")
    parser.add_argument("--pairs", type=int, default=40, help=f"pairs of each row, {FEWEST_PAIRS} at least")
    parser.add_argument("--rounds", type=int, default=4, help="of new processes, over which the pairs are spread")
    parser.add_argument("--seconds", type=float, default=0.4, help="of sampling for each side of a pair")
    parser.add_argument("--show-pairs", action="store_true", help="print every pair below its row")
    asked = parser.parse_args(arguments)
    if asked.pairs < FEWEST_PAIRS:
        parser.error(f"got {asked.pairs} pairs; expected {FEWEST_PAIRS} at least; a median of fewer says little")
    if not 1 <= asked.rounds <= FEWEST_PAIRS:
        parser.error(f"got {asked.rounds} rounds; expected 1 to {FEWEST_PAIRS}")
    asked.runtime = asked.runtime or list(HARNESSES)
    return asked


def _say(text: str) -> None:
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
