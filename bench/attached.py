"""Holds Tandem to its word on this machine: predicts whole models in every runtime, then runs them and compares.

For each workload Tandem is asked first, by its own services, as a user would ask; then the same model, written natively for
each framework (`bench/native`, which shares no code with the probes), is timed in a fresh process. A control kernel is timed
around both, so that drift of the machine is seen and not mistaken for an error of either.

Bounds, all of which must hold for exit 0: at least 10 workloads in every runtime that can run them, none without a prediction;
median absolute error of the step time at most 8 %, 90th percentile at most 20 %; bands contain the truth for 75 to 90 %;
the true time of the chosen runtime within 3 % of the truly fastest on at least 9 of 10 workloads.

It takes 60 minutes at most: a workload that would not end in time is left, and the table says so.

Run: `python -m bench.attached [--json] [--only CASE ...] [--runtime ID ...] [--keep-truth FILE] [--reuse-truth FILE]`.
"""

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from bench import truth
from bench.control import control_s
from bench.native.cases import CASES, RUNTIMES, Case, case
from bench.prediction import Prediction, predict
from bench.scoring import Choice, Row, Verdict, choose, judge
from core.errors import TandemError
from services import runs

TruthKey = tuple[str, str]
OTHERS_MATTER = 0.05
"""Share of the machine that other processes may use before a true time is doubted in its row."""


@dataclass(frozen=True, slots=True)
class CaseResult:
    """Everything about one workload: what was said, what was true, and how steady the machine was."""

    case: str
    prediction: Prediction
    rows: tuple[Row, ...]
    choice: Choice | None
    truths: tuple[truth.TruthRow, ...]
    reused: bool
    control_s: tuple[float, ...]


def measure_all(
    cases: Sequence[Case], asked: argparse.Namespace, known: dict[TruthKey, truth.TruthRow],
) -> tuple[list[CaseResult], list[str]]:
    """Measure workloads while there is time, and return what was found and the names of those that were left."""
    start = time.monotonic()
    results: list[CaseResult] = []
    longest = 0.0
    for index, one in enumerate(cases):
        begun = time.monotonic()
        if begun - start + longest > asked.minutes * 60:
            return results, [late.name for late in cases[index:]]
        results.append(measure_case(one, asked, known))
        longest = max(longest, time.monotonic() - begun)
        if asked.keep_truth:
            truth.keep(asked.keep_truth, known)
    return results, []


def measure_case(one: Case, asked: argparse.Namespace, known: dict[TruthKey, truth.TruthRow]) -> CaseResult:
    """Predict one workload, then find its truths; truths in `known` are not measured again."""
    controls = [control_s()]
    _say(f"{one.name}: predicting in {len(asked.runtime)} runtimes")
    prediction = predict(one, asked.runtime, asked.probe, asked.budget_s)
    controls.append(control_s())
    _say(f"{one.name}: predicted in {prediction.seconds:.0f} s")
    reused = all((one.name, runtime) in known for runtime in asked.runtime)
    truths = measure_truths(one, asked.runtime, known, controls)
    rows = tuple(_row(one, prediction, found) for found in truths)
    if not reused:
        _remember(prediction, truths)
    return CaseResult(one.name, prediction, rows, choose(one.name, prediction.ranked, rows), truths, reused, tuple(controls))


def measure_truths(
    one: Case, runtimes: Sequence[str], known: dict[TruthKey, truth.TruthRow], controls: list[float],
) -> tuple[truth.TruthRow, ...]:
    """Time the natives of one workload, each between two control kernels; adds to `known` and to `controls`."""
    found: list[truth.TruthRow] = []
    for runtime in runtimes:
        key = (one.name, runtime)
        if key not in known:
            before = controls[-1] if controls else control_s()
            measured = truth.take(one.name, runtime)
            controls.append(control_s())
            known[key] = replace(measured, control_s=(before, controls[-1]))
            told = f"{measured.median_s * 1e3:.1f} ms" if measured.median_s is not None else measured.error
            _say(f"{one.name}: {runtime} truly {told}")
        found.append(known[key])
    return tuple(found)


def _row(one: Case, prediction: Prediction, found: truth.TruthRow) -> Row:
    said = dict(prediction.step_time_s).get(found.runtime)
    notes = [found.error, dict(prediction.notes).get(found.runtime, "")]
    if found.others is not None and found.others > OTHERS_MATTER:
        notes.append(f"others used {found.others:.0%} of the machine")
    counted = dict(prediction.parameter_count).get(found.runtime)
    if found.parameter_count is not None and counted != found.parameter_count:
        notes.append(f"native has {found.parameter_count:,} parameters, the workload {counted or 0:,}")
    band = (said.low, said.mid, said.high) if said else (None, None, None)
    return Row(one.name, found.runtime, *band, found.median_s, "; ".join(note for note in notes if note))


def _remember(prediction: Prediction, truths: Sequence[truth.TruthRow]) -> None:
    """Keep the truths with the runs that predicted them, where Tandem can be held to them later."""
    for run_id in prediction.run_ids:
        run = runs.open_run(run_id)
        device = run.devices[0].id if run.devices else None
        for found in truths:
            if device and found.median_s is not None and found.runtime in run.options.runtimes:
                runs.record_actual(run_id, found.median_s, found.runtime, device, "bench.attached")


def table(results: Sequence[CaseResult]) -> list[str]:
    """Return the two tables as lines: every row, then every choice."""
    lines = [f"{'workload':18} {'runtime':17} {'low':>8} {'predicted':>9} {'high':>8} {'true ms':>8} {'error':>7}  band  note"]
    for result in results:
        for row in result.rows:
            numbers = " ".join(f"{_ms(value):>{width}}" for value, width in
                               ((row.low_s, 8), (row.mid_s, 9), (row.high_s, 8), (row.truth_s, 8)))
            error = "-" if row.error is None else f"{row.error:+.1%}"
            inside = {True: "in", False: "OUT", None: "-"}[row.inside]
            note = "; ".join(part for part in (row.note, "truth reused" if result.reused else "") if part)
            lines.append(f"{row.case:18} {row.runtime:17} {numbers} {error:>7}  {inside:4}  {note}")
    heads = f"{'workload':18} {'chosen':17} {'truly fastest':17} {'regret':>7} {'drift':>6} {'others':>6}"
    lines += ["", f"{heads}  predicted in"]
    for result in results:
        drift = max(result.control_s) / min(result.control_s) - 1
        others = max((found.others or 0.0 for found in result.truths), default=0.0)
        if result.choice is None:
            lines.append(f"{result.case:18} nothing was ranked")
            continue
        regret = "-" if result.choice.regret is None else f"{result.choice.regret:+.1%}"
        named = f"{result.case:18} {result.choice.chosen:17} {result.choice.fastest:17}"
        lines.append(f"{named} {regret:>7} {drift:6.1%} {others:6.1%}  {result.prediction.seconds:.0f} s")
    return lines


def verdict_line(verdict: Verdict) -> str:
    """Return the one line that ends the bench."""
    if verdict.median_ape is None or verdict.p90_ape is None or verdict.coverage is None:
        return "FALLS SHORT: nothing was compared"
    figures = (f"median error {verdict.median_ape:.1%}, 90th percentile {verdict.p90_ape:.1%}, coverage {verdict.coverage:.1%}, "
               f"choice within 3 % on {verdict.good_choices} of {verdict.workloads} workloads, {verdict.rows} rows")
    return f"FALLS SHORT: {figures}; {'; '.join(verdict.shortfalls)}" if verdict.shortfalls else f"HOLDS: {figures}"


def truth_table(rows: Sequence[truth.TruthRow]) -> list[str]:
    """Return the true times alone as lines."""
    heads = f"{'workload':18} {'runtime':17} {'true ms':>8} {'spread':>7} {'others':>6} {'first s':>8}"
    lines = [f"{heads} {'parameters':>12} {'MiB':>6}"]
    for row in rows:
        if row.median_s is None or row.spread is None:
            lines.append(f"{row.case:18} {row.runtime:17} {'-':>8}  {row.error}")
            continue
        lines.append(f"{row.case:18} {row.runtime:17} {_ms(row.median_s):>8} {row.spread:7.1%} {row.others or 0:6.1%} "
                     f"{row.first_s or 0:8.1f} {row.parameter_count or 0:12,} {(row.peak_rss_bytes or 0) / 2**20:6.0f}")
    return lines


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; exit 0 when every bound holds, 1 when one does not, 2 for bad input."""
    asked = _parse(arguments)
    try:
        known = truth.read(asked.reuse_truth) if asked.reuse_truth else {}
        cases = [case(name) for name in asked.only]
        if asked.truth_only:
            rows = [row for one in cases for row in measure_truths(one, asked.runtime, known, [])]
            if asked.keep_truth:
                truth.keep(asked.keep_truth, known)
            _print("\n".join(truth_table(rows)))
            return 0 if all(row.median_s is not None for row in rows) else 1
        results, left = measure_all(cases, asked, known)
    except TandemError as error:
        _say(str(error))
        return 2
    verdict = judge([row for result in results for row in result.rows],
                    [result.choice for result in results if result.choice is not None])
    if asked.json:
        _print(json.dumps({"schema_version": 1, "results": [asdict(result) for result in results],
                           "left": left, "verdict": asdict(verdict) | {"shortfalls": verdict.shortfalls}}))
    else:
        late = [f"left for want of time: {', '.join(left)}"] if left else []
        _print("\n".join([*table(results), *late, "", verdict_line(verdict)]))
    return 1 if verdict.shortfalls else 0


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.attached", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", action="store_true", help="one JSON document in place of the table")
    parser.add_argument("--only", action="append", choices=[one.name for one in CASES], metavar="CASE", help="this one alone")
    parser.add_argument("--runtime", action="append", choices=RUNTIMES, metavar="ID", help="this one alone")
    parser.add_argument("--probe", default="quick", choices=("quick", "settle", "none"))
    parser.add_argument("--budget-s", type=float, default=420.0, help="seconds of probing for each run")
    parser.add_argument("--minutes", type=float, default=60.0, help="leave workloads that would end later")
    parser.add_argument("--truth-only", action="store_true", help="time the natives and predict nothing")
    parser.add_argument("--keep-truth", type=Path, metavar="FILE", help="write the true times there")
    parser.add_argument("--reuse-truth", type=Path, metavar="FILE", help="true times measured before; the table says so")
    asked = parser.parse_args(arguments)
    asked.only = asked.only or [one.name for one in CASES]
    asked.runtime = asked.runtime or list(RUNTIMES)
    return asked


def _ms(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds * 1e3:.1f}"


def _say(text: str) -> None:
    sys.stderr.write(f"{time.strftime('%H:%M:%S')} {text}\n")
    sys.stderr.flush()


def _print(text: str) -> None:
    sys.stdout.write(text + "\n")


if __name__ == "__main__":
    sys.exit(main())
