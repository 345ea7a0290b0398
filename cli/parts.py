"""Pieces that several commands share: flags, and the text form of an answer, of outcomes and of progress.

What is said of a run comes from `reports`, so that a terminal, a page and a report never differ in a figure or a word.
"""

import signal
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from math import isfinite
from typing import Any, TypeVar

import click

from cli.output import progress, table, write
from core import format as fmt
from core.errors import one_line
from core.probe import RUNTIME_IDS, Measurement, Outcome
from core.run import Progress, Run
from core.workload import Workload
from reports import facts, view
from reports.split_text import Section

Function = TypeVar("Function", bound=Callable[..., Any])
SHOWN_ROWS, SHOWN_CHARACTERS = 12, 400


class Number(click.FloatRange):
    """A number in a range; what is no number ("nan") is outside every range."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number, or fail with one line."""
        number = super().convert(value, param, ctx)
        return number if isfinite(number) else self.fail(f"{value!r} is not a finite number.", param, ctx)


def json_flag(function: Function) -> Function:
    """Add `--json`."""
    return click.option("--json", "as_json", is_flag=True, help="Write one JSON document on stdout.")(function)


def runtime_flag(function: Function) -> Function:
    """Add `--runtime`, which may be given more than once."""
    return click.option(
        "--runtime", "runtimes", multiple=True, type=click.Choice(RUNTIME_IDS), metavar="ID",
        help="Probe this runtime only; may be given more than once.",
    )(function)


def tell_progress(state: Progress, outcome: Outcome | None) -> None:
    """Write where a run is on stderr: what was just measured, what is next, what is left and how long it will take."""
    answered = "" if outcome is None else f"{outcome_line(outcome)}; "
    left = "" if state.remaining_s is None else f", about {fmt.seconds(state.remaining_s)} left"
    place = f"waiting for the device, place {state.place}; " if state.place and not state.stage.startswith("waiting") else ""
    current = f": {state.current}" if state.current else ""
    count = f"[{state.done}/{state.total}] " if state.total else ""
    progress(f"{count}{answered}{place}{state.stage}{current}{left}")


def outcome_line(outcome: Outcome) -> str:
    """Return one line with the figure of an outcome, or why there is none."""
    name = f"{outcome.probe.label} in {outcome.probe.runtime}"
    if not isinstance(outcome, Measurement):
        return f"{name} failed at {outcome.stage}: {outcome.error}"
    doubt = "" if outcome.trusted else " (not trusted)"
    return f"{name} took {fmt.seconds(outcome.median_s)}{doubt}"


def tell_outcomes(outcomes: tuple[Outcome, ...]) -> None:
    """Write a table of outcomes on stdout."""
    rows: list[tuple[str, ...]] = []
    for one in outcomes:
        asked = (one.probe.runtime, one.probe.device, one.probe.label)
        if isinstance(one, Measurement):
            figures = one.figures
            shown = (fmt.seconds(figures.median), fmt.seconds(figures.iqr), fmt.seconds(figures.minimum), str(figures.count))
            doubts = "; ".join(one.warnings) or ("ok" if one.trusted else "quarantined")
            rows.append((*asked, *shown, doubts))
        else:
            rows.append((*asked, *[fmt.MISSING] * 3, "0", f"failed at {one.stage}: {one.error}"))
    table(("runtime", "device", "probe", "median", "spread (IQR)", "minimum", "samples", "remarks"), rows, right=(3, 4, 5, 6))


def tell_sections(every: Iterable[Section]) -> None:
    """Write the parts of a split on stdout: title, what it says, table."""
    for section in every:
        write(("\n" if section.rows else "") + section.title)
        for line in section.text:
            write(line)
        if section.rows:
            table(section.heads, section.rows)


def titled(workload: Workload) -> str:
    """Return name and task of a workload; the names of presets end in their task already."""
    return workload.name if workload.name.endswith(f", {workload.task}") else f"{workload.name}, {workload.task}"


def tell_answer(run: Run) -> None:
    """Write the answer of a run on stdout: the three sentences, the candidates, what is out, what is not known."""
    said = view.headline(run)
    for sentence in filter(None, (said.sentence, said.why, said.rests_on, said.sure)):
        write(sentence)
    if said.best is not None and said.best.price:
        write(f"Price: {one_line(said.best.price, SHOWN_CHARACTERS)}.")
    if run.recommendation is not None:
        _tell_candidates(run)
        _tell_reasons("Mind:", facts.reason_rows(run))
        _tell_reasons("Left out:", facts.excluded_rows(run))
        _tell_unknown(run)
        if run.workload.assumptions:
            write("\nAssumed: " + "; ".join(one_line(phrase, SHOWN_CHARACTERS) for phrase in run.workload.assumptions) + ".")


def _tell_candidates(run: Run) -> None:
    rows = view.candidate_rows(run)
    if not rows:
        return
    sides = [(side.title, side.row) for side in view.side_by_side(run)]
    heads = (*_FIGURES, "targets") if any(row.targets for row in rows) else _FIGURES
    write("\nSide by side:")
    nothing = (fmt.MISSING,) * (1 + len(heads))
    beside = [(title, row.label, *_figures(row)[: len(heads)]) if row else (title, *nothing) for title, row in sides]
    table(("", "candidate", *heads), beside)
    shown = view.shortlisted_rows(run, SHOWN_ROWS)
    ranks = [row.rank for row in shown if row.rank]
    skips = ranks != list(range(1, len(ranks) + 1))
    further = "; numbers that are not here are further runtimes and counts of the pools that are" if skips else ""
    write(f"\nCandidates, best first; \u2714 chosen, \u2248 cannot be told apart from it{further}:")
    listed = [(row.mark, str(row.rank or ""), row.label, *_figures(row)[: len(heads)]) for row in shown]
    table(("", "", "candidate", *heads), listed, right=(1,))
    _tell_rest(len(rows) - len(shown))


_FIGURES = ("step (80 % band)", "rate", "memory of a chip", "cost", "from")


def _figures(row: view.CandidateRow) -> tuple[str, ...]:
    told = (row.step_time.full, row.throughput.text, row.memory_text, row.cost.text)
    held = f", rank {row.held_back} by rules" if row.held_back else ""
    tier = f"{row.tier}, {row.library}" if row.library else row.tier or fmt.MISSING
    return *told, tier + held, row.targets or fmt.MISSING


def _tell_reasons(title: str, rows: tuple[facts.ReasonRow, ...]) -> None:
    if rows:
        write(f"\n{title}")
        for row in rows[:SHOWN_ROWS]:
            write(one_line(f"- {row.reason} ({row.applies_to}; {row.source})", SHOWN_CHARACTERS))
        _tell_rest(len(rows) - SHOWN_ROWS)


def _tell_unknown(run: Run) -> None:
    flips = facts.flip_rows(run)
    if flips:
        write("\nWhat would change the choice:")
        table(("what", "now", "from", "then"), flips)
    gaps = facts.gap_rows(run)
    if gaps:
        write("\nWhat is not known:")
        for row in gaps[:SHOWN_ROWS]:
            write(one_line(f"- {row.what}: {row.remedy}", SHOWN_CHARACTERS))
        _tell_rest(len(gaps) - SHOWN_ROWS)


def _tell_rest(count: int) -> None:
    if count > 0:
        write(f"(+{count} more; --json has them all)")


@contextmanager
def stopped_by_signals() -> Generator[None]:
    """Let SIGTERM and SIGHUP stop what runs inside as Ctrl-C does, so that it tidies up."""

    def stop(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    before = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
