"""Predictions: Tandem's own way from a document to a recommendation, as a user would go it, kept in its own history."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

from bench.native.cases import Case
from bench.native.documents import document
from core.probe import ProbeFailure
from core.quantity import Quantity
from core.run import Run, RunOptions
from services import runs

POLL_S = 1.0


@dataclass(frozen=True, slots=True)
class Prediction:
    """What Tandem said of one case before any native ran.

    Args:
        run_ids: the runs that said it; more than one where frameworks build the model differently.
        ranked: runtime ids, best first.
        step_time_s: by runtime, in the order of `ranked`.
        parameter_count: by runtime, of the workload that was predicted.
        notes: by runtime, why there is no number.
        seconds: that it took, probing included.
    """

    run_ids: tuple[str, ...]
    ranked: tuple[str, ...]
    step_time_s: tuple[tuple[str, Quantity], ...]
    parameter_count: tuple[tuple[str, int], ...]
    notes: tuple[tuple[str, str], ...]
    seconds: float


def predict(case: Case, runtimes: Sequence[str], probe: str, budget_s: float) -> Prediction:
    """Ask Tandem for the step time of a case in some runtimes on the attached devices, and wait for the answer.

    Args:
        case: the case.
        runtimes: runtime ids.
        probe: `quick`, `settle` or `none`.
        budget_s: seconds of probing at most for each run.
    """
    start = time.monotonic()
    done = [_run(group, probe, budget_s) for group in _groups(case, runtimes)]
    times = [(estimate.candidate.runtime, estimate.step_time_s) for run in done if run.recommendation
             for estimate in run.recommendation.ranked
             if estimate.step_time_s is not None and all(pool.attached for pool in estimate.candidate.pools)]
    first: dict[str, Quantity] = {}
    for runtime, quantity in times if len(done) == 1 else sorted(times, key=lambda item: item[1].mid):
        first.setdefault(runtime, quantity)
    asked = {runtime: run for run in done for runtime in run.options.runtimes}
    return Prediction(
        tuple(run.id for run in done), tuple(first), tuple(first.items()),
        tuple((runtime, run.workload.parameter_count) for runtime, run in asked.items()),
        tuple((runtime, _reason(run, runtime)) for runtime, run in asked.items() if runtime not in first),
        time.monotonic() - start,
    )


def _groups(case: Case, runtimes: Sequence[str]) -> list[tuple[dict[str, object], tuple[str, ...]]]:
    """Return each different document of a case with the runtimes that it is for."""
    groups: list[tuple[dict[str, object], tuple[str, ...]]] = []
    for runtime in runtimes:
        wanted = document(case, runtime)
        for index, (known, members) in enumerate(groups):
            if known == wanted:
                groups[index] = (known, (*members, runtime))
                break
        else:
            groups.append((wanted, (runtime,)))
    return groups


def _run(group: tuple[dict[str, object], tuple[str, ...]], probe: str, budget_s: float) -> Run:
    wanted, runtimes = group
    run_id = runs.start(wanted, RunOptions(probe=probe, budget_s=budget_s, runtimes=runtimes, pools="attached"))
    while not runs.watch(run_id, recent=0).over:
        time.sleep(POLL_S)
    return runs.open_run(run_id)


def _reason(run: Run, runtime: str) -> str:
    if run.recommendation is None:
        return run.error or f"the run ended {run.state} without a recommendation"
    for exclusion in run.recommendation.excluded:
        if exclusion.runtime == runtime:
            return exclusion.reason
    for estimate in run.recommendation.unranked:
        if estimate.candidate.runtime == runtime and estimate.missing:
            return estimate.missing[0]
    for outcome in run.outcomes:
        if isinstance(outcome, ProbeFailure) and outcome.probe.runtime == runtime:
            return f"{outcome.stage}: {outcome.error}"
    return "not among the candidates"
