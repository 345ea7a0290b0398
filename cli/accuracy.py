"""`./tandem accuracy`: how far predictions may be trusted, by predicting published measurements without their own source."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from cli.main import DONE, FINDING
from cli.output import document, table, write
from cli.parts import json_flag
from core import format as fmt
from services.accuracy import MOST_OF_A_SOURCE, Accuracy, Judged, Refused, Score
from services.accuracy import accuracy as measured_accuracy

_MOST_ROWS, _WIDEST, _MOST_REFUSED = 40, 60, 10


@click.command()
@click.option("--rows", "path", type=click.Path(path_type=Path), metavar="FILE.csv",
              help="Published runs in the format of catalog/data/measurements.csv; without it those of the catalog.")  # fmt: skip
@click.option("--unseen-chips", is_flag=True,
              help="Leave out all runs on an accelerator instead of a source: a chip of which nothing is published.")  # fmt: skip
@click.option("--each", is_flag=True, help="Also list every run with what was predicted.")
@json_flag
def accuracy(path: Path | None, *, unseen_chips: bool, each: bool, as_json: bool) -> int:
    """Every run is predicted by coefficients that were fitted without its source, or without its accelerator."""
    found = measured_accuracy(path, unseen_chips=unseen_chips)
    if as_json:
        document(_document(found, each))
    else:
        _show(found, each)
    return DONE if found.judged else FINDING


def _document(found: Accuracy, each: bool) -> dict[str, Any]:
    by_group = {score.name: _score(score) for score in found.scores}
    content: dict[str, Any] = {
        **by_group,
        "capped": {score.name: _score(score) for score in found.capped},
        "by_source": [_score(score) for score in found.by_source],
        "by_accelerator": [_score(score) for score in found.by_accelerator],
        "by_framework": [_score(score) for score in found.by_framework],
        "by_task": [_score(score) for score in found.by_task],
        "by_tier": [_score(score) for score in found.by_tier],
        "worst": [_run(one) for one in found.worst],
        "refused": [_refusal(one) for one in found.refused],
        "method": found.method,
        "left_out": found.left_out,
    }
    if each:
        content["runs"] = [_run(one) for one in found.judged]
    return content


def _score(score: Score) -> dict[str, Any]:
    return {
        "name": score.name,
        "rows": score.rows,
        "refused": score.refused,
        "median_ape": score.median_ape,
        "mean_ape": score.mean_ape,
        "p90_ape": score.p90_ape,
        "bias": score.bias,
        "coverage_80": score.coverage_80,
        "pair_order": score.pair_order,
        "faster_chip": score.faster_chip,
        "cheaper_chip": score.cheaper_chip,
        "pairs": score.pairs,
        "chip_pairs": score.chip_pairs,
    }


def _run(one: Judged) -> dict[str, Any]:
    return {
        "id": one.id,
        "task": one.task,
        "model": one.model,
        "accelerator": one.accelerator,
        "framework": one.framework,
        "precision": one.precision,
        "metric": one.metric,
        "measured": one.measured,
        "predicted": one.predicted,
        "ape": one.absolute_error,
        "covered": one.covered,
        "sigma": one.sigma,
        "tier": one.tier,
        "source": one.source,
        "assumed": list(one.assumed),
    }


def _refusal(one: Refused) -> dict[str, Any]:
    return {
        "id": one.id, "line": one.line, "group": one.group, "task": one.task, "model": one.model, "source": one.source,
        "reason": one.reason,
    }  # fmt: skip


def _show(found: Accuracy, each: bool) -> None:
    write(found.method)
    few = f"At most {MOST_OF_A_SOURCE} runs of each {found.left_out}"
    for title, scores in (("All runs", found.scores), (few, found.capped), ("By task", found.by_task), ("By tier", found.by_tier),
                          ("By accelerator", found.by_accelerator), ("By framework", found.by_framework),
                          ("By source", found.by_source)):  # fmt: skip
        write()
        _table(title, scores)
    write()
    write("Furthest off")
    _runs(found.worst)
    _refusals(found.refused)
    if each:
        write()
        write("Every run")
        _runs(found.judged)


def _table(title: str, scores: Sequence[Score]) -> None:
    table((title, "runs", "refused", "median", "mean", "90 %", "bias", "in band", "pairs", "faster", "cheaper"), [
        (_short(score.name), str(score.rows), str(score.refused), *(_percent(value) for value in (
            score.median_ape, score.mean_ape, score.p90_ape, score.bias, score.coverage_80, score.pair_order,
            score.faster_chip, score.cheaper_chip,
        ))) for score in scores[:_MOST_ROWS]
    ], right=tuple(range(1, 11)))  # fmt: skip
    if len(scores) > _MOST_ROWS:
        write(f"... and {len(scores) - _MOST_ROWS} more: see --json")


def _short(name: str) -> str:
    """Return a name, cut in front where it is too wide: sources differ by their end."""
    return name if len(name) <= _WIDEST else f"...{name[3 - _WIDEST:]}"


def _percent(value: float | None) -> str:
    return fmt.MISSING if value is None else f"{100 * value:.1f} %"


def _runs(runs: Sequence[Judged]) -> None:
    table(("run", "metric", "measured", "predicted", "off", "band", "assumed"), [
        (one.id, one.metric, f"{one.measured:.4g}", f"{one.predicted:.4g}", _percent(one.predicted / one.measured - 1),
         "in" if one.covered else "out", "; ".join(one.assumed)) for one in runs
    ], right=(2, 3, 4))  # fmt: skip


def _refusals(refused: Sequence[Refused]) -> None:
    """Write what was refused: how many runs for each reason, most first, and which by line and id, the first of many."""
    reasons: dict[str, list[Refused]] = {}
    for one in refused:
        reasons.setdefault(one.reason, []).append(one)
    if not reasons:
        return
    write()
    write("Refused, not guessed")
    for reason, runs in sorted(reasons.items(), key=lambda pair: -len(pair[1])):
        more = f" and {len(runs) - _MOST_REFUSED} more: see --json" if len(runs) > _MOST_REFUSED else ""
        which = ", ".join(f"line {one.line} ({_short(one.id)})" for one in runs[:_MOST_REFUSED])
        write(f"- {len(runs)} run{'s' * (len(runs) > 1)}: {reason}")
        write(f"  {which}{more}")
