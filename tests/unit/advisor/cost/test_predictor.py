"""The fitted correction at work: wider where nothing was seen, held at the edges of what was, the same for one run or many."""

from dataclasses import fields, replace

import numpy as np
import pytest

from advisor.cost import Predictor, known_predictor, learn, terms
from advisor.cost.columns import Columns, columns_of
from advisor.cost.features import labels_of
from advisor.cost.fitting import baseline_of
from core.sketch import DECODE, FORWARD, PREFILL, SERVING, TRAINING, Layout, Setup
from tests.unit.advisor.cost.made import PLAIN, published, run, silicon

SCALES = {"source": 0.05, "noise": 0.05}
RATES = ("linear_rate", "half_rate", "bytes_rate", "link", "axis_link", "network")
SECONDS = ("launch_s", "host_s", "hop_s")


def sigma(predictor: Predictor, setup: Setup, chip_key: str = "") -> float:
    chip = replace(silicon(setup.accelerator), key=chip_key, generation=chip_key) if chip_key else silicon(setup.accelerator)
    return float(predictor.predict(columns_of([(setup, chip)]), labels_of(setup, chip)).sigma[0])


@pytest.fixture(scope="module")
def learned() -> Predictor:
    return Predictor(learn(published(12, 6, 21), SCALES), SCALES, training=True)


def test_a_chip_that_was_never_seen_widens_the_band_and_lowers_the_tier(learned: Predictor) -> None:
    setup, chip = run(), replace(silicon(), key="newcomer", generation="newcomer")
    assert sigma(learned, setup, "newcomer") > sigma(learned, setup) > 0.05
    assert (learned.tier(labels_of(setup, silicon())), learned.tier(labels_of(setup, chip))) == ("published", "datasheet")


def test_a_chip_without_rows_adds_what_chips_were_found_to_differ_by() -> None:
    rows = published(12, 6, 21)
    none, some = (Predictor(learn(rows, {**SCALES, "between chips": spread}), SCALES, training=True) for spread in (0.0, 0.3))
    assert sigma(some, run(), "newcomer") ** 2 == pytest.approx(sigma(none, run(), "newcomer") ** 2 + 0.3**2)
    assert sigma(some, run()) == sigma(none, run())


def test_a_chip_of_a_known_generation_is_as_unseen_as_any(learned: Predictor) -> None:
    spread = Predictor(learn(published(12, 6, 21), {**SCALES, "between chips": 0.3}), SCALES, training=True)
    setup, chip = run("h200"), silicon("h200")
    apart = [
        float(one.predict(columns_of([(setup, chip)]), labels_of(setup, chip)).sigma[0]) for one in (learned, spread)
    ]  # fmt: skip
    assert apart[1] ** 2 == pytest.approx(apart[0] ** 2 + 0.3**2)


@pytest.mark.parametrize("change", [{"stack": "torch/newcomer"}, {"sketch": replace(PLAIN, kind="diffusion")}])
def test_a_stack_or_class_that_was_never_seen_widens_the_band(learned: Predictor, change: dict[str, object]) -> None:
    assert sigma(learned, run(**change)) > sigma(learned, run())  # pyright: ignore[reportArgumentType]


def test_a_run_beyond_all_that_was_seen_widens_the_band_up_to_a_limit(learned: Predictor) -> None:
    spreads = [sigma(learned, run(chips=chips, batch=float(8 * chips))) for chips in (8, 256, 4096, 65536)]
    assert spreads[0] < spreads[1] < spreads[2]
    assert spreads[3] == pytest.approx(spreads[2])
    assert sigma(learned, run(chips=8, batch=2.0**60)) < 1.5


def test_numbers_are_taken_at_the_edge_of_what_was_seen(learned: Predictor) -> None:
    near, far = (
        baseline_of(columns_of([(run(chips=chips, batch=8.0 * chips), silicon())]), training=True) for chips in (32, 8192)
    )
    place = learned.table(near).slots.index("chips")
    assert learned.table(far).numbers[0, place] == learned.table(near).numbers[0, place] == pytest.approx(2.0)
    assert learned.table(near).beyond[0] == pytest.approx(0.0, abs=0.3)
    assert learned.table(far).beyond[0] == pytest.approx(6.0)


def test_a_trend_ends_with_the_newest_run_of_the_stack() -> None:
    rows = [
        replace(row, setup=replace(row.setup, year=year), seconds=row.seconds * float(np.exp(-0.2 * (year - 2023))))
        for place, row in enumerate(published(12, 6, 22)) for year in [2022.5 + 0.25 * (place % 9)]
    ]  # fmt: skip
    learned = Predictor(learn(rows, {**SCALES, "year:stack": 4.0}), {**SCALES, "year:stack": 4.0}, training=True)
    told = {
        year: float(learned.predict(columns_of([(run(year=year), silicon())]), labels_of(run(), silicon())).seconds[0]
                    / baseline_of(columns_of([(run(year=year), silicon())]), training=True).seconds[0])
        for year in (2022.75, 2024.5, 2025.0, 2040.0)
    }  # fmt: skip
    assert told[2022.75] > told[2024.5] * 1.1
    assert told[2040.0] == pytest.approx(told[2024.5], rel=1e-9)
    assert told[2025.0] == pytest.approx(told[2024.5], rel=1e-9)


def test_a_band_is_no_narrower_than_the_errors_of_runs_that_were_left_out() -> None:
    told = learn(published(12, 6, 23), SCALES)
    wide = Predictor(
        replace(told, residuals={**told.residuals, "stack|generation:torch/nemo|hopper": 0.7}), SCALES, training=True
    )
    assert sigma(wide, run()) == 0.7
    assert sigma(wide, run(stack="jax/maxtext")) < 0.7
    chip = labels_of(run(), silicon()).chip
    for size in (0.9, 0.1):
        of_chip = replace(told, residuals={**told.residuals, "stack|generation:torch/nemo|hopper": 0.7, f"chip:{chip}": size})
        assert sigma(Predictor(of_chip, SCALES, training=True), run()) == max(0.7, size)


def test_the_order_of_published_rows_does_not_matter() -> None:
    rows = published(8, 5, 24)
    one, other = (Predictor(learn(some, SCALES), SCALES, training=True) for some in (rows, rows[::-1]))
    columns, labels = columns_of([(run(), silicon())]), labels_of(run(), silicon())
    first, second = one.predict(columns, labels), other.predict(columns, labels)
    assert first.seconds == pytest.approx(second.seconds, rel=1e-9)
    assert first.sigma == pytest.approx(second.sigma, rel=1e-6)


def test_runs_are_predicted_alike_alone_and_together() -> None:
    predictor = known_predictor(training=True)
    setups = [run(chips=chips, batch=float(batch)) for chips in (1, 8, 64) for batch in (64, 512)]
    together = predictor.predict(columns_of([(one, silicon()) for one in setups]), labels_of(setups[0], silicon()))
    for place, one in enumerate(setups):
        alone = predictor.predict(columns_of([(one, silicon())]), labels_of(one, silicon()))
        assert alone.seconds[0] == pytest.approx(together.seconds[place], rel=1e-12)
        assert alone.sigma[0] == pytest.approx(together.sigma[place], rel=1e-12)


REGIMES = (TRAINING, FORWARD, PREFILL, DECODE, SERVING)


@pytest.mark.parametrize("regime", REGIMES)
def test_a_step_takes_twice_as_long_where_all_rates_are_halved_and_all_waits_doubled(
    regime: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = 64.0 if regime in (DECODE, SERVING) else 0.0
    layouts = (Layout(data=8), Layout(data=2, tensor=4), Layout(data=2, pipeline=4, micro_batch=1.0), Layout(data=8, sharded=8))
    setups = [run(regime=regime, layout=layout, output=output) for layout in layouts]
    columns = columns_of([(one, silicon()) for one in setups])
    slow: dict[str, object] = {name: getattr(columns, name) / 2 for name in RATES}
    slow |= {name: getattr(columns, name) * 2 for name in SECONDS}
    assert {*RATES, *SECONDS} <= {one.name for one in fields(Columns)}
    first = baseline_of(columns, regime == TRAINING).seconds
    monkeypatch.setattr(terms, "_REPLAYED_S", 2 * terms._REPLAYED_S)
    second = baseline_of(columns.with_arrays(**slow), regime == TRAINING).seconds  # pyright: ignore[reportArgumentType]
    assert second / first == pytest.approx(2.0, rel=0.02)
