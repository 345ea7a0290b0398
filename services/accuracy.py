"""How far the cost model may be trusted: published runs predicted without anything of their own source."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import exp, isclose, log
from pathlib import Path

import catalog
from advisor.accuracy import Judged, Refused, Score, by, capped, score
from advisor.cost import (
    Observation,
    Predictor,
    between_chips,
    columns_of,
    known_predictor,
    labels_of,
    learn,
    leave_out,
    leave_out_chips,
    silicon_of,
)
from advisor.cost.features import Labels
from advisor.cost.fitting import LeftOut
from advisor.cost.tuning import START
from advisor.cost.unseen import ChipsLeftOut
from advisor.search.sketched import divided_to_fit, impossible
from catalog.coefficients import fitted
from catalog.measurements import measurements_text
from core.errors import BadInput
from core.sketch import TRAINING, Setup
from core.workload import Where
from intake.published import PublishedRun, read_runs, source_of

GROUPS = ("training", "inference", "other")
MOST_OF_A_SOURCE = 25
MOST_BYTES = 64 * 2**20
TO_TARGET = "time_to_train_min"
"""The metric of runs that are predicted but not learned from."""


@dataclass(frozen=True, slots=True)
class Accuracy:
    """What a check of the cost model found.

    Args:
        scores: one for each group, over all runs. capped: the same with at most 25 runs of a source, or of an accelerator.
        by_source, by_accelerator, by_framework, by_task, by_tier: the same runs cut differently.
        worst: the runs that were off most, worst first.
        judged, refused: every run.
        method: one sentence: what was left out. left_out: `source` or `accelerator`.
    """

    scores: tuple[Score, ...]
    capped: tuple[Score, ...]
    by_source: tuple[Score, ...]
    by_accelerator: tuple[Score, ...]
    by_framework: tuple[Score, ...]
    by_task: tuple[Score, ...]
    by_tier: tuple[Score, ...]
    worst: tuple[Judged, ...]
    judged: tuple[Judged, ...]
    refused: tuple[Refused, ...]
    method: str
    left_out: str


@dataclass(frozen=True, slots=True)
class _Usable:
    """A run that can be predicted, as the fit takes it."""

    run: PublishedRun
    observation: Observation


def accuracy(path: Path | None, *, unseen_chips: bool = False) -> Accuracy:
    """Predict every run of a file, or of the catalog's published measurements, and compare.

    A run that the catalog holds too, and a run of a source that it holds, is predicted by coefficients that were fitted
    without that source.

    Args:
        path: of a CSV file in the format of `catalog/data/measurements.csv`; None for that file itself.
        unseen_chips: whether to leave out all runs on the accelerator of a run instead of its source: how right Tandem is on
            a chip of which nothing is published. What is then added to the bands is found on the other accelerators.

    Raises:
        BadInput: the file cannot be read or is no such table.
    """
    known = _known_runs()
    runs = known if path is None else read_runs(_text(path))
    usable, refused = _sorted(runs)
    judged: list[Judged] = []
    for group in GROUPS[:2]:
        asked = [one for one in usable if one.run.group == group]
        judged.extend(_judged_unseen(group, asked) if unseen_chips else _judged_group(group, asked, known))
    order = {run.id: position for position, run in reversed(tuple(enumerate(runs)))}
    judged.sort(key=lambda one: order[one.id])
    return _told(tuple(judged), tuple(refused), "accelerator" if unseen_chips else "source")


def observations_of(group: str) -> tuple[Observation, ...]:
    """Return the catalog's runs of a group as the fit takes them."""
    return tuple(one.observation for one in _fitting(_known_runs(), group))


def _fitting(runs: Sequence[PublishedRun], group: str) -> list[_Usable]:
    """Return the runs that coefficients are fitted on: a time to a target says too little of a step to learn from."""
    return _learned(_sorted([run for run in runs if run.group == group])[0])


def _learned(usable: Sequence[_Usable]) -> list[_Usable]:
    return [one for one in usable if one.run.metric is not None and one.run.metric.name != TO_TARGET]


@cache
def _known_runs() -> tuple[PublishedRun, ...]:
    return read_runs(measurements_text())


def _text(path: Path) -> str:
    try:
        if path.stat().st_size > MOST_BYTES:
            raise BadInput(f"{path.name} of {path.stat().st_size} bytes", f"at most {MOST_BYTES}", "split the file")
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise BadInput(f"{path}: {reason}", "a CSV file of published measurements", "check the path") from error


def _sorted(runs: Sequence[PublishedRun], *, as_stated: bool = False) -> tuple[list[_Usable], list[Refused]]:
    """Return runs that can be predicted, and the others with what is missing; divided as they were, or as their rows have it."""
    usable: list[_Usable] = []
    refused: list[Refused] = []
    for run in runs:
        reason = run.refusal
        if run.setup is not None and run.seconds is not None:
            chip = catalog.accelerator(run.setup.accelerator)
            silicon = silicon_of(chip, run.setup.dtype, run.group == "inference")
            if isinstance(silicon, str):
                reason = silicon
            else:
                setup = run.setup if as_stated or not run.setup.guessed else divided(run.setup)
                reason = impossible(setup, chip)
                if not reason:
                    observation = Observation(setup, silicon, run.seconds, source_of(run), run.grade)
                    usable.append(_Usable(replace(run, setup=setup), observation))
                    continue
        refused.append(Refused(run.id, run.group, run.task, run.model, source_of(run), reason, run.line))
    return usable, refused


@cache
def divided(setup: Setup) -> Setup:
    """Return a run as it was divided, or as it may well have been where nobody stated it.

    Args:
        setup: as its row has it.
    """
    return divided_to_fit(setup, catalog.accelerator(setup.accelerator), _of_stated())


@cache
def _of_stated() -> Predictor:
    """Return the predictor of training steps that is fitted on the runs whose division is stated: it divides the others.

    Its scales are those that every fit starts with, so that nothing that is fitted afterwards changes a division.
    """
    group, scales = GROUPS[0], dict(START)
    known = (run for run in _known_runs() if run.group == group)
    runs = [run for run in known if run.setup is not None and "division" not in run.setup.guessed]
    stated = _learned(_sorted(runs, as_stated=True)[0])
    return Predictor(learn([one.observation for one in stated], scales), scales, training=True)


def _judged_group(group: str, usable: Sequence[_Usable], known: Sequence[PublishedRun]) -> list[Judged]:
    if not usable:
        return []
    scales = dict(fitted(group).scales)
    reference = _fitting(known, group)
    rows = [one.observation for one in reference]
    places = {one.run.id: place for place, one in enumerate(reference)}
    sources = {one.observation.source for one in reference}
    found: list[Judged] = []
    others: dict[tuple[str, Labels], list[_Usable]] = {}
    left: LeftOut | None = None
    for one in usable:
        place = places.get(one.run.id)
        if place is not None and _same(reference[place].run, one.run):
            left = left or leave_out(rows, scales)
            found.append(_judged(one, float(left.errors[place]), float(left.sigmas[place]), known_predictor(group == "training")))
        else:
            labels = labels_of(one.observation.setup, one.observation.silicon, one.run.grade)
            others.setdefault((one.observation.source, labels), []).append(one)
    predictors: dict[str, Predictor] = {}
    for (source, labels), alike in others.items():
        if source not in predictors:
            without = [row for row in rows if row.source != source]
            whole = source not in sources
            predictors[source] = (
                known_predictor(group == "training") if whole else Predictor(learn(without, scales), scales, group == "training")
            )
        found.extend(_predicted(alike, labels, predictors[source]))
    return found


def _judged_unseen(group: str, usable: Sequence[_Usable]) -> list[Judged]:
    """Return runs predicted by coefficients that were fitted without any run on their accelerator."""
    if not usable:
        return []
    predictors = _without_chips(group)
    others: dict[Labels, list[_Usable]] = {}
    for one in usable:
        others.setdefault(labels_of(one.observation.setup, one.observation.silicon, one.run.grade), []).append(one)
    found: list[Judged] = []
    for labels, alike in others.items():
        found.extend(_predicted(alike, labels, predictors.get(labels.chip) or known_predictor(group == "training")))
    return found


@cache
def _without_chips(group: str) -> Mapping[str, Predictor]:
    """Return the predictors of a group by the accelerator that was left out; nothing of it is in their bands either."""
    left = _chips_left_out(group)
    return {
        chip: Predictor(
            replace(coefficients, between_chips=between_chips(left, chip)),
            dict(fitted(group).scales),
            group == "training",
        )
        for chip, coefficients in left.coefficients.items()
    }


@cache
def _chips_left_out(group: str) -> ChipsLeftOut:
    return leave_out_chips(observations_of(group), dict(fitted(group).scales))


def _predicted(alike: Sequence[_Usable], labels: Labels, predictor: Predictor) -> list[Judged]:
    told = predictor.predict(columns_of([(one.observation.setup, one.observation.silicon) for one in alike]), labels)
    return [
        _judged(one, log(one.observation.seconds / seconds), sigma, predictor)
        for one, seconds, sigma in zip(alike, told.seconds.tolist(), told.sigma.tolist(), strict=True)
    ]


def _same(known: PublishedRun, run: PublishedRun) -> bool:
    return known.setup == run.setup and isclose(known.seconds or 0.0, run.seconds or 1.0)


def _judged(one: _Usable, error: float, sigma: float, predictor: Predictor) -> Judged:
    run, setup = one.run, one.observation.setup
    assert run.metric is not None
    time = run.metric.name in ("step_time_s", "latency_ms", TO_TARGET)
    predicted = run.metric.value * exp(-error if time else error)
    work = setup.batch * (setup.length if setup.regime == TRAINING and not setup.sketch.counts_samples else 1.0)
    price = catalog.cheapest(setup.accelerator, Where())
    return Judged(
        run.id,
        run.group,
        run.task,
        run.model,
        source_of(run),
        setup.accelerator,
        run.framework,
        run.precision,
        predictor.tier(labels_of(setup, one.observation.silicon)),
        run.metric.name,
        run.metric.value,
        predicted,
        error,
        sigma,
        work / one.observation.seconds / max(setup.chips, 0.5),
        None if price is None else price.usd_per_chip_h,
        not time,
        setup.assumed,
    )


_METHOD = {
    "source": "Each run is predicted by coefficients that were fitted without its source.",
    "accelerator": "Each run is predicted by coefficients that were fitted without any run on its accelerator.",
}


def _told(judged: tuple[Judged, ...], refused: tuple[Refused, ...], left_out: str) -> Accuracy:
    few = capped(judged, MOST_OF_A_SOURCE, lambda one: one.source if left_out == "source" else one.accelerator)

    def grouped(runs: Sequence[Judged]) -> tuple[Score, ...]:
        return tuple(
            score(group, [one for one in runs if one.group == group], sum(one.group == group for one in refused))
            for group in GROUPS
        )

    worst = tuple(sorted(judged, key=lambda one: -one.absolute_error)[:10])
    seen = tuple(one for one in refused if one.group != "other")
    return Accuracy(
        grouped(judged),
        grouped(few),
        by(judged, seen, lambda one: one.source),
        by(judged, (), lambda one: one.accelerator if isinstance(one, Judged) else ""),
        by(judged, (), lambda one: one.framework if isinstance(one, Judged) else ""),
        by(judged, seen, lambda one: one.task),
        by(judged, (), lambda one: one.tier if isinstance(one, Judged) else ""),
        worst,
        judged,
        refused,
        _METHOD[left_out],
        left_out,
    )
