"""Scores of predictions, each counted by hand."""

from dataclasses import replace
from math import log

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.accuracy import Judged, Refused, by, capped, score
from core.quantity import Z_80

BASE = Judged(
    "a", "training", "train", "8B", "one", "h100-sxm", "torch", "bf16", "published", "step_time_s", 1.0, 1.0, 0.0, 0.1, 100.0,
    2.0,
    higher_is_better=False,
)  # fmt: skip


def run(identity: str, measured: float, predicted: float, **more: object) -> Judged:
    """A run whose published figure is its rate, in positions a second and chip."""
    found = replace(BASE, id=identity, measured=measured, predicted=predicted, rate=measured, error=log(predicted / measured))
    return replace(found, metric="tokens_per_s_per_device", higher_is_better=True, **more)  # pyright: ignore[reportArgumentType]


FIVE = (
    run("a", 100.0, 110.0),  # off by 10 %
    run("b", 200.0, 190.0),  # by 5 %
    run("c", 400.0, 500.0, accelerator="a100-80", price=1.0),  # by 25 %
    run("d", 105.0, 105.0, accelerator="a100-80", price=1.0),  # by nothing
    run("e", 300.0, 90.0, accelerator="tpu-v5p", price=None),  # by 70 %
)


def test_errors_of_five_runs_are_those_counted_by_hand() -> None:
    found = score("five", FIVE, 2)
    assert (found.rows, found.refused) == (5, 2)
    assert found.median_ape == pytest.approx(0.10)
    assert found.mean_ape == pytest.approx((0.10 + 0.05 + 0.25 + 0.0 + 0.70) / 5)
    assert found.p90_ape == pytest.approx(0.25 + 0.6 * (0.70 - 0.25))  # at 3.6 of the places 0 to 4
    assert found.bias == pytest.approx((1.1 * 0.95 * 1.25 * 1.0 * 0.3) ** (1 / 5) - 1)


def test_a_time_that_is_told_too_short_promises_too_much() -> None:
    told = replace(BASE, measured=2.0, predicted=1.0, error=log(2.0))
    assert score("one", (told,), 0).bias == pytest.approx(1.0)


def test_a_band_holds_what_lies_within_its_sigmas() -> None:
    assert score("five", FIVE, 0).coverage_80 == pytest.approx(3 / 5)  # ln 1.1 and ln 0.95 are within 0.128, ln 1.25 is not
    edge = replace(BASE, error=Z_80 * 0.1)
    assert edge.covered
    assert not replace(edge, error=Z_80 * 0.1001).covered


def test_pairs_that_differ_by_over_a_tenth_are_ordered_as_counted_by_hand() -> None:
    found = score("five", FIVE, 0)
    # a and d differ by 5 % and do not count; e is predicted slowest and loses to a, b and d
    assert (found.pairs, found.pair_order) == (9, pytest.approx(6 / 9))
    # unlike chips: a-c, b-c, b-d, a-e, b-e, c-e, d-e
    assert (found.chip_pairs, found.faster_chip) == (7, pytest.approx(4 / 7))
    # for a dollar: a 50, b 100, c 400, d 105; the price of e is not known: a-c, a-d, b-c; b and d differ by 5 %
    assert found.cheaper_chip == pytest.approx(3 / 3)


def test_runs_of_other_models_or_tasks_are_not_compared() -> None:
    apart = (run("a", 1.0, 9.0), run("b", 2.0, 1.0, model="70B"), run("c", 3.0, 1.0, task="finetune"))
    assert (score("x", apart, 0).pairs, score("x", apart, 0).pair_order) == (0, None)


def test_nothing_is_scored_where_nothing_was_predicted() -> None:
    found = score("none", (), 3)
    assert (found.rows, found.refused, found.median_ape, found.coverage_80, found.pairs) == (0, 3, None, None, 0)


def test_a_time_is_off_by_its_own_ratio() -> None:
    assert replace(BASE, measured=2.0, predicted=3.0).absolute_error == pytest.approx(0.5)


def test_scores_by_a_key_count_refusals_too_largest_group_first() -> None:
    runs = (*FIVE, run("f", 1.0, 1.0, source="two"))
    found = by(runs, (Refused("x", "training", "train", "8B", "three", "why"),), lambda one: one.source)
    assert [(one.name, one.rows, one.refused) for one in found] == [("one", 5, 0), ("two", 1, 0), ("three", 0, 1)]


def test_a_source_of_many_rows_is_capped_evenly() -> None:
    many = tuple(run(str(place), 1.0, 1.0) for place in range(200))
    few = capped((*many, run("z", 1.0, 1.0, source="two")), 25, lambda one: one.source)
    assert [one.id for one in few] == [*(str(8 * place) for place in range(25)), "z"]
    assert capped(many[:3], 25, lambda one: one.source) == many[:3]
    assert len(capped((*many, run("z", 1.0, 1.0, source="two")), 25, lambda one: one.accelerator)) == 25


@settings(max_examples=50, deadline=None, derandomize=True, database=None)
@given(st.lists(st.tuples(st.floats(1, 1e3), st.floats(1, 1e3), st.sampled_from("abc")), min_size=2, max_size=12))
def test_pairs_are_those_of_comparing_each_with_each(rows: list[tuple[float, float, str]]) -> None:
    found = score("x", [run(str(place), *row[:2], accelerator=row[2]) for place, row in enumerate(rows)], 0)
    expected = [(one, other) for one in rows for other in rows if one[0] > 1.1 * other[0]]
    unlike = [(one, other) for one, other in expected if one[2] != other[2]]
    assert (found.pairs, found.chip_pairs) == (len(expected), len(unlike))
    # a hair's difference of two equal predictions is not counted on
    clear = [pair for pair in expected if abs(pair[0][1] / pair[1][1] - 1) > 1e-9]
    if expected and len(clear) == len(expected):
        assert found.pair_order == pytest.approx(sum(one[1] > other[1] for one, other in expected) / len(expected))


def test_twenty_thousand_runs_of_one_model_are_compared_within_bounds() -> None:
    many = [replace(BASE, rate=float(1 + place % 5000), error=0.0) for place in range(20_000)]
    found = score("many", many, 0)
    assert found.pairs <= 1_000_000
    assert found.pair_order == 1.0
