"""A correction that is learned from runs with a known truth: it finds it, and says how sure it is."""

from dataclasses import replace

import numpy as np
import pytest

from advisor.cost import fitting
from advisor.cost.columns import columns_of
from advisor.cost.features import labels_of
from advisor.cost.fitting import Observation, design_of, learn, leave_out
from advisor.cost.predictor import Predictor
from advisor.cost.tuning import choose_scales, log_density
from core.quantity import Z_80
from tests.unit.advisor.cost.made import baseline_s, published, run, silicon

SCALES = {"source": 0.05, "noise": 0.05}
TRUTH = {"a100-80": 0.15, "tpu-v5p": -0.1, "jax/maxtext": 0.12}


def shift(predictor: Predictor, key: str, stack: str) -> float:
    setup = run(key, stack, 16, 128)
    told = predictor.predict(columns_of([(setup, silicon(key))]), labels_of(setup, silicon(key)))
    return float(np.log(told.seconds[0] / told.baseline.seconds[0]))


@pytest.fixture(scope="module")
def learned() -> Predictor:
    return Predictor(learn(published(20, 8, 1, truth=TRUTH), SCALES), SCALES, training=True)


@pytest.mark.parametrize(("key", "stack", "expected"), [
    ("h100-sxm", "torch/nemo", 0.30), ("a100-80", "torch/nemo", 0.45), ("tpu-v5p", "jax/maxtext", 0.32),
    ("h100-sxm", "jax/maxtext", 0.42),
])  # fmt: skip
def test_a_known_truth_is_recovered_from_noisy_runs(learned: Predictor, key: str, stack: str, expected: float) -> None:
    assert shift(learned, key, stack) == pytest.approx(expected, abs=0.04)


def test_leaving_out_a_source_is_learning_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fitting, "_ROUNDS", 1)  # weights of Student errors look at all rows: without them both ways are exact
    rows = published(6, 5, 2, truth=TRUTH)
    found = leave_out(rows, SCALES)
    for source in {row.source for row in rows}:
        design = design_of(rows, SCALES)
        inside = np.array([row.source == source for row in rows])
        scaled = design.values * design.prior
        same = np.array([[one.source == other.source for other in rows] for one in rows])
        whole = scaled @ scaled.T + same * SCALES["source"] ** 2 + np.eye(len(rows)) * SCALES["noise"] ** 2
        weights = np.linalg.solve(whole[np.ix_(~inside, ~inside)], whole[np.ix_(~inside, inside)])
        errors = design.targets[inside] - weights.T @ design.targets[~inside]
        spread = whole[np.ix_(inside, inside)] - weights.T @ whole[np.ix_(~inside, inside)]
        assert found.errors[inside] == pytest.approx(errors, abs=1e-6)
        assert found.sigmas[inside] == pytest.approx(np.sqrt(np.diag(spread)), abs=1e-6)


def test_leaving_out_a_source_is_what_a_predictor_without_it_says() -> None:
    rows = published(12, 8, 3, truth=TRUTH)
    found = leave_out(rows, SCALES)
    without = [row for row in rows if row.source != "source 4"]
    predictor = Predictor(learn(without, SCALES), SCALES, training=True)
    for place, row in enumerate(rows):
        if row.source == "source 4":
            told = predictor.predict(columns_of([(row.setup, row.silicon)]), labels_of(row.setup, row.silicon))
            assert found.errors[place] == pytest.approx(np.log(row.seconds / told.seconds[0]), abs=0.02)


def test_two_hundred_copies_of_a_source_are_one_voice() -> None:
    rows = published(10, 4, 4, own=0.02)
    odd = Observation(run(), silicon(), baseline_s(run()) * float(np.exp(0.6)), "odd one")
    plain, once, often = (
        shift(Predictor(learn([*rows, *[odd] * copies], SCALES), SCALES, training=True), "h100-sxm", "torch/nemo")
        for copies in (0, 1, 200)
    )
    assert plain == pytest.approx(0.3, abs=0.05)
    assert once - plain < 0.05
    assert often - plain < 0.1  # a mean of all rows would move by 200 / 240 of 0.3


def test_a_gross_error_moves_the_fit_less_than_a_small_one_of_many() -> None:
    rows = published(10, 4, 5, own=0.02)
    wrong = [replace(rows[0], seconds=rows[0].seconds * 10), *rows[1:]]
    apart = [shift(Predictor(learn(some, SCALES), SCALES, training=True), "h100-sxm", "torch/nemo") for some in (rows, wrong)]
    assert abs(apart[1] - apart[0]) < 0.06  # ln(10) / 40 rows


def test_bands_of_left_out_runs_hold_four_of_five() -> None:
    inside = []
    for seed in range(3):
        rows = published(25, 4, 10 + seed, truth=TRUTH)
        left = leave_out(rows, {**SCALES, "widening": learn(rows, SCALES).widening})
        inside.extend(np.abs(left.errors) <= Z_80 * left.sigmas)
    assert np.mean(inside) == pytest.approx(0.80, abs=0.05)


def test_runs_of_a_lower_grade_are_believed_less() -> None:
    rows = published(8, 4, 6, own=0.02)
    odd = Observation(run(), silicon(), baseline_s(run()) * float(np.exp(0.6)), "odd one")
    moved = [
        shift(Predictor(learn([*rows, replace(odd, grade=grade)], SCALES), SCALES, training=True), "h100-sxm", "torch/nemo")
        for grade in ("A", "C")
    ]
    assert moved[0] > moved[1] > 0.25


def test_a_scale_of_nothing_drops_its_coefficients() -> None:
    rows = published(4, 3, 7)
    assert any(name[0] == "one" and name[1] == "stack" for name in design_of(rows, SCALES).names)
    assert not any(name[0] == "one" and name[1] == "stack" for name in design_of(rows, {"one:stack": 0.0}).names)


def test_scales_are_changed_only_when_left_out_runs_are_predicted_better() -> None:
    rows = published(5, 4, 8, truth=TRUTH)
    lines: list[str] = []
    first = log_density(rows, leave_out(rows, {"source": 0.1, "noise": 0.07}))
    chosen = choose_scales(rows, 1, lines.append)
    assert log_density(rows, leave_out(rows, chosen)) >= first
    assert len(lines) == 1
