"""Pieces that several commands share: flags, and the text form of a recommendation, a probe's answer and progress."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from cli.output import progress, table, write
from core import format as fmt
from core.advice import Estimate, Recommendation
from core.probe import RUNTIME_IDS, Measurement, Outcome
from core.run import Progress
from core.statistics import iqr

Function = TypeVar("Function", bound=Callable[..., Any])
SHOWN_ROWS = 12


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
    place = f"waiting for the device, place {state.place}; " if state.place else ""
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
            samples = one.samples_s
            doubts = "; ".join(one.warnings) or ("ok" if one.trusted else "quarantined")
            rows.append((*asked, fmt.seconds(one.median_s), fmt.seconds(iqr(samples)), str(len(samples)), doubts))
        else:
            rows.append((*asked, fmt.MISSING, fmt.MISSING, "0", f"failed at {one.stage}: {one.error}"))
    table(("runtime", "device", "probe", "median", "spread (IQR)", "samples", "remarks"), rows, right=(3, 4, 5))


def tell_recommendation(answer: Recommendation, run_id: str | None) -> None:
    """Write a recommendation on stdout: the three sentences, the candidates, what is out, what is not known."""
    for sentence in (answer.sentence, answer.why, answer.rests_on):
        write(sentence)
    _tell_candidates(answer)
    _tell_rules(answer)
    _tell_unknown(answer)
    if run_id is not None:
        write(f"\nKept as run {run_id}: ./tandem show {run_id}, ./tandem report {run_id} --format html -o report.html")


def _tell_candidates(answer: Recommendation) -> None:
    if answer.ranked:
        write(f"\nCandidates, best {answer.objective} first (80 % bands):")
        rows = [(str(place), *_candidate_row(one)) for place, one in enumerate(answer.ranked[:SHOWN_ROWS], 1)]
        table(("", "candidate", "step", "per second", "memory a chip", "cost", "from"), rows, right=(0,))
        _tell_rest(len(answer.ranked) - SHOWN_ROWS)
    if answer.unranked:
        write("\nFeasible, but not ranked, because something is not known:")
        table(("candidate", "missing"), [(one.candidate.label, "; ".join(one.missing)) for one in answer.unranked[:SHOWN_ROWS]])
        _tell_rest(len(answer.unranked) - SHOWN_ROWS)
    if answer.confidence is not None:
        write(f"\nProbability that the best is best: {fmt.percent(answer.confidence.p_best)}; "
              f"expected loss against the true best: {100 * answer.confidence.expected_regret:.1f} %.")


def _candidate_row(value: Estimate) -> tuple[str, ...]:
    memory = "" if value.memory_bytes_per_chip is None else fmt.memory(value.memory_bytes_per_chip.mid)
    rate = "" if value.throughput is None else fmt.count(value.throughput.mid)
    cost = "" if value.cost_usd is None else fmt.band(value.cost_usd, fmt.usd)
    tier = "" if value.step_time_s is None else value.step_time_s.tier
    return value.candidate.label, fmt.band(value.step_time_s), rate, memory, cost, tier


def _tell_rules(answer: Recommendation) -> None:
    notes = [verdict for verdict in answer.verdicts if verdict.effect != "exclude"]
    if notes:
        write("\nMind:")
        table(("", "of", "why"), [
            (one.effect, " on ".join(filter(None, (one.runtime, one.accelerator))) or "all", one.reason)
            for one in notes[:SHOWN_ROWS]
        ])
        _tell_rest(len(notes) - SHOWN_ROWS)
    if answer.excluded:
        write("\nLeft out:")
        table(("runtime", "accelerator", "why"), [
            (one.runtime or "all", one.accelerator or "all", one.reason) for one in answer.excluded[:SHOWN_ROWS]
        ])
        _tell_rest(len(answer.excluded) - SHOWN_ROWS)


def _tell_unknown(answer: Recommendation) -> None:
    if answer.flips:
        write("\nWhat would change the choice:")
        table(("what", "now", "from", "then"), [
            (one.what, f"{fmt.three_digits(one.now)} {one.unit}", f"{fmt.three_digits(one.at)} {one.unit}", one.winner)
            for one in answer.flips
        ])
    if answer.gaps:
        write("\nWhat is not known:")
        table(("what", "remedy", "takes"), [(one.what, one.remedy, fmt.seconds(one.seconds)) for one in answer.gaps[:SHOWN_ROWS]])
        _tell_rest(len(answer.gaps) - SHOWN_ROWS)


def _tell_rest(count: int) -> None:
    if count > 0:
        write(f"(+{count} more; --json has them all)")
