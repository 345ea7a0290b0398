"""Each chip left out in turn: errors are those of a fit without it, and what chips differ by is found and not invented."""

import numpy as np
import pytest

from advisor.cost import Observation, Predictor, columns_of, labels_of, learn
from advisor.cost.fitting import LeftOut
from advisor.cost.unseen import ChipsLeftOut, between_chips, leave_out_chips
from core.quantity import Z_80
from tests.unit.advisor.cost.made import CHIPS, published, run, silicon

SCALES = {"source": 0.05, "noise": 0.05}
APART = {"h100-sxm": -0.5, "a100-80": 0.0, "tpu-v5p": 0.5}


def left_out(errors: dict[str, list[float]], sigma: float = 0.1) -> ChipsLeftOut:
    rows = [Observation(run(key), silicon(key), 1.0, "a source") for key, some in errors.items() for _ in some]
    flat = np.array([error for some in errors.values() for error in some])
    return ChipsLeftOut(tuple(rows), LeftOut(flat, np.full(len(flat), sigma)), {})


def test_errors_are_those_of_a_fit_without_the_chip() -> None:
    rows = published(8, 6, 1, truth=APART)
    found = leave_out_chips(rows, SCALES)
    assert set(found.coefficients) == set(CHIPS)
    for key in CHIPS:
        predictor = Predictor(learn([one for one in rows if one.setup.accelerator != key], SCALES), SCALES, training=True)
        for place, one in enumerate(rows):
            if one.setup.accelerator == key:
                told = predictor.predict(columns_of([(one.setup, one.silicon)]), labels_of(one.setup, one.silicon))
                assert found.left.errors[place] == pytest.approx(np.log(one.seconds / told.seconds[0]))
                assert found.left.sigmas[place] == pytest.approx(told.sigma[0])


def test_what_is_known_between_chips_already_does_not_enter_what_is_found() -> None:
    rows = published(6, 5, 2, truth=APART)
    plain, again = (leave_out_chips(rows, {**SCALES, "between chips": spread}) for spread in (0.0, 0.7))
    assert again.left.sigmas == pytest.approx(plain.left.sigmas)
    assert between_chips(again) == between_chips(plain)


def test_chips_that_differ_widely_are_found_to_and_chips_that_do_not_are_not() -> None:
    same, apart = (between_chips(leave_out_chips(published(12, 6, 3, truth=truth), SCALES)) for truth in (None, APART))
    assert same == 0.0
    assert apart > 0.1


def test_four_of_five_rows_are_inside_with_what_was_found() -> None:
    random = np.random.default_rng(4)
    found = left_out({key: list(0.4 * random.standard_normal(20)) for key in CHIPS})
    wide = np.hypot(found.left.sigmas, between_chips(found))
    assert np.mean(np.abs(found.left.errors) <= Z_80 * wide * 1.000001) == pytest.approx(0.8, abs=0.02)
    assert np.mean(np.abs(found.left.errors) <= Z_80 * found.left.sigmas) < 0.5


def test_equal_errors_are_covered_by_just_what_is_missing() -> None:
    found = left_out({key: [0.5, -0.5] for key in CHIPS})
    assert np.hypot(0.1, between_chips(found)) * Z_80 == pytest.approx(0.5)


def test_a_chip_does_not_widen_its_own_band() -> None:
    found = left_out({"h100-sxm": [2.0] * 25, "a100-80": [0.05] * 25})
    assert between_chips(found, "h100-sxm") == 0.0
    assert between_chips(found, "a100-80") > 1.0
    assert between_chips(left_out({"h100-sxm": [2.0]}), "h100-sxm") == 0.0


def test_a_chip_of_many_rows_is_one_voice() -> None:
    few, many = ({"h100-sxm": [0.5] * 10, "a100-80": [0.01] * 25, "tpu-v5p": [0.01] * rows} for rows in (25, 2000))
    assert between_chips(left_out(few)) == between_chips(left_out(many)) == 0.0
    more = {"h100-sxm": [0.5] * 25, "a100-80": [0.01] * 2000}
    assert between_chips(left_out(more)) > 0.3  # of rows it is one of eighty, of voices one of two


def test_one_chip_cannot_be_left_out_of_itself() -> None:
    rows = [one for one in published(4, 6, 5) if one.setup.accelerator == "h100-sxm"]
    with pytest.raises(ValueError, match="h100-sxm only"):
        leave_out_chips(rows, SCALES)
