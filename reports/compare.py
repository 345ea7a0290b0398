"""Runs side by side as rows of text: one column a run, the first the base that the others are held against.

Nothing is computed beyond differences of what the runs already say. Two step times part when their bands do not overlap.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from core import format as write
from core.advice import Estimate
from core.quantity import Quantity
from core.run import Run
from reports.facts import device_facts, workload_facts
from reports.view import UNKNOWN, figure, throughput_writer

Writer: TypeAlias = Callable[[float], str]
LEAST_RUNS, MOST_RUNS = 2, 6
LARGE = 100.0
FACTOR = 2.0
"""From this ratio on, and under its inverse, a change reads as a factor: nobody pictures +1600 %."""


@dataclass(frozen=True, slots=True)
class Cell:
    """What one run says.

    Args:
        text: the value in words; a dash when unknown.
        change: against the base, `+12.0 %`, from twice or half on `2.5 x`; empty for the base, for texts and for what is unknown.
        verdict: `bands part` or `bands overlap` for numbers with bands; empty otherwise.
    """

    text: str
    change: str = ""
    verdict: str = ""


@dataclass(frozen=True, slots=True)
class CompareRow:
    """One fact of all runs.

    Args:
        section: `answer`, `step time`, `workload`, `machine` or `versions`.
        name: of the fact.
        cells: one for each run, in their order.
    """

    section: str
    name: str
    cells: tuple[Cell, ...]

    @property
    def differs(self) -> bool:
        """Whether the runs do not all say the same."""
        return len({cell.text for cell in self.cells}) > 1


def compare(runs: Sequence[Run]) -> tuple[CompareRow, ...]:
    """Return every fact that at least one of the runs has.

    Args:
        runs: at least one; the first is the base.
    """
    return (*_answers(runs), *_step_times(runs), *_facts(runs))


def unlike(runs: Sequence[Run]) -> str:
    """Return one line when steps of these runs do not hold the same work, so that their times are not of the same; else empty."""
    flops = [run.workload.flop_per_step for run in runs]
    tasks = dict.fromkeys(run.workload.task for run in runs)
    best = [run.recommendation.best if run.recommendation else None for run in runs]
    at_once = {None if one is None else one.candidate.requests for one in best}
    if len(set(flops)) == 1 and len(tasks) == 1 and len(at_once) == 1:
        return ""
    said = f"from {write.count(min(flops), 'FLOP')} to {write.count(max(flops), 'FLOP')}" if len(set(flops)) > 1 else ""
    other = f"tasks {' and '.join(tasks)}" if len(tasks) > 1 else ""
    counts = " and ".join("as in the workload" if count is None else str(count) for count in sorted(at_once, key=str))
    served = f"requests at once: {counts}" if len(at_once) > 1 else ""
    return (
        f"A step is not the same work in all of these runs ({', '.join(filter(None, (said, other, served)))}): "
        "a longer step time need not mean a slower choice."
    )


def _change(ratio: float) -> str:
    """Return `+12.0 %` for a ratio of 1.12, `2.5 x` or `0.4 x` for one that is far from 1."""
    if ratio >= FACTOR or ratio <= 1 / FACTOR:
        return f"{ratio:,.0f} x" if ratio >= LARGE else f"{ratio:.3g} x"
    return f"{round(100 * (ratio - 1), 1) + 0.0:+.1f} %"


def _answers(runs: Sequence[Run]) -> list[CompareRow]:
    best = [run.recommendation.best if run.recommendation else None for run in runs]
    a_step, units, amounts = [""] * len(runs), [run.workload.unit for run in runs], [run.workload.amount for run in runs]
    seconds, energy = [write.seconds] * len(runs), [write.energy] * len(runs)
    figures: tuple[tuple[str, Callable[[Estimate], Quantity | None], Sequence[Writer], list[str]], ...] = (
        ("step time", lambda e: e.step_time_s, seconds, a_step),
        ("throughput", lambda e: e.throughput, [throughput_writer(run.workload) for run in runs], units),
        ("cost", lambda e: e.cost_usd, [write.usd] * len(runs), amounts),
        ("energy", lambda e: e.energy_j, energy, amounts),
        ("memory of a chip", lambda e: e.memory_bytes_per_chip, [write.memory] * len(runs), a_step),
        ("compile time", lambda e: e.compile_s, seconds, a_step),
    )
    rows = [
        _texts("answer", "state", [run.state for run in runs]),
        _texts("answer", "chosen", [estimate.candidate.label if estimate else UNKNOWN for estimate in best]),
        _texts("answer", "likely to be the best", [_sure(run) for run in runs]),
    ]
    for name, read, written, per in figures:
        found = [read(estimate) if estimate else None for estimate in best]
        rows.append(CompareRow("answer", f"{name} of the chosen", _cells(found, written, per)))
    return [row for row in rows if any(cell.text != UNKNOWN for cell in row.cells)]


def _step_times(runs: Sequence[Run]) -> list[CompareRow]:
    """Return the step time of every candidate that at least two runs know."""
    known = [_times(run) for run in runs]
    labels = dict.fromkeys(label for times in known for label in times)
    seconds = [write.seconds] * len(runs)
    shared = [label for label in labels if sum(label in times for times in known) > 1]
    return [
        CompareRow("step time", label, _cells([times.get(label) for times in known], seconds, [""] * len(runs)))
        for label in shared
    ]


def _times(run: Run) -> dict[str, Quantity]:
    """Return the step time of each candidate by its label; of equal labels (pools that differ in price) the best stands."""
    found: dict[str, Quantity] = {}
    for estimate in run.recommendation.ranked if run.recommendation else ():
        if estimate.step_time_s is not None:
            found.setdefault(estimate.candidate.label, estimate.step_time_s)
    return found


def _facts(runs: Sequence[Run]) -> list[CompareRow]:
    tables: tuple[tuple[str, list[dict[str, str]]], ...] = (
        ("workload", [dict(workload_facts(run)) for run in runs]),
        ("machine", [dict((("host", run.host or UNKNOWN), *device_facts(run))) for run in runs]),
        ("versions", [dict(run.versions) for run in runs]),
    )
    return [
        _texts(section, name, [table.get(name, UNKNOWN) for table in found])
        for section, found in tables
        for name in dict.fromkeys(name for table in found for name in table)
    ]


def _sure(run: Run) -> str:
    sure = run.recommendation.confidence if run.recommendation else None
    return write.chance(sure.p_best if sure else None)


def _texts(section: str, name: str, texts: Sequence[str]) -> CompareRow:
    return CompareRow(section, name, tuple(Cell(text) for text in texts))


def _cells(found: Sequence[Quantity | None], writers: Sequence[Writer], per: Sequence[str]) -> tuple[Cell, ...]:
    """Return figures with their change against the first; figures of another amount than the first are not held against it."""
    base = found[0]
    cells: list[Cell] = []
    for index, (quantity, written) in enumerate(zip(found, writers, strict=True)):
        text = figure(quantity, written).full
        if index == 0 or quantity is None or base is None or base.mid <= 0 or per[index] != per[0]:
            cells.append(Cell(text))
            continue
        parts = quantity.high < base.low or quantity.low > base.high
        banded = base.low < base.high or quantity.low < quantity.high
        verdict = ("bands part" if parts else "bands overlap") if banded else ""
        cells.append(Cell(text, _change(quantity.mid / base.mid), verdict))
    return tuple(cells)
