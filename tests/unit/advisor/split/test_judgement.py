"""A split is advised when it saves enough, when the rules allow it, and when nothing simpler will do."""

from dataclasses import replace

import pytest

from advisor.split.judgement import Planned, best_single, judge, saving_of
from core.advice import Verdict
from core.device import Link, Pool
from core.quantity import exact
from core.split import Single

GPU, TPU = Pool("h100-sxm", 8, "gpu", 16.0), Pool("tpu-v6e", 16, "tpu", 43.2)
LINK = Link(1e-4, 25e9)


def single(pool: Pool, seconds: float, usd: float | None = None, *, feasible: bool = True) -> Single:
    cost = None if usd is None else exact(usd, "published")
    return Single(pool, "jax", exact(seconds, "published"), cost, None, feasible, "" if feasible else "does not fit")


def plan(seconds: float, mode: str = "data", usd: float | None = None) -> Planned:
    cost = None if usd is None else exact(usd, "published")
    return Planned(mode, exact(seconds, "published"), cost, terms=(("compute", seconds),), said="62 % of each batch on the first")


def forbidden(seconds: float) -> Planned:
    verdict = Verdict("R132", "hybrid_sync_dp", "exclude", "bit-equal results cannot be had", "policy", "2026-01-01")
    return replace(plan(seconds), verdicts=(verdict,))


SINGLES = (single(GPU, 10.0, 5.0), single(TPU, 12.0, 4.0))


@pytest.mark.parametrize(
    ("seconds", "verdict", "saving"), [(8.0, "hybrid", 0.2), (8.001, "single", 0.1999), (12.5, "single", -0.25)]
)
def test_two_stacks_must_save_a_fifth(seconds: float, verdict: str, saving: float) -> None:
    told = judge([plan(seconds)], SINGLES, "time", 0.2, LINK)
    assert told.verdict == verdict
    assert told.saving == pytest.approx(saving)
    assert told.best_single == SINGLES[0]


def test_what_has_to_be_saved_can_be_set() -> None:
    assert judge([plan(9.4)], SINGLES, "time", 0.05, LINK).verdict == "hybrid"


def test_the_objective_says_what_is_compared() -> None:
    told = judge([plan(6.0, usd=4.4)], SINGLES, "cost", 0.2, LINK)
    assert (told.verdict, told.best_single) == ("single", SINGLES[1])
    assert told.saving == pytest.approx(-0.1)
    assert "hybrid loses by 10 %" in told.sentence


def test_the_best_way_of_dividing_is_shown_and_the_others_are_named() -> None:
    told = judge([plan(9.0, "data"), plan(6.0, "local"), plan(7.0, "pipeline")], SINGLES, "time", 0.2, LINK)
    assert told.mode == "local"
    assert [(mode, seconds) for mode, seconds, _ in told.others] == [("data", 9.0), ("pipeline", 7.0)]


def test_what_changes_the_training_is_shown_first_only_when_it_is_clearly_better() -> None:
    near, far = (replace(plan(seconds, "local"), caution=0.1) for seconds in (6.5, 6.0))
    assert judge([plan(7.0), near], SINGLES, "time", 0.2, LINK).mode == "data"
    assert judge([plan(7.0), far], SINGLES, "time", 0.2, LINK).mode == "local"


def test_a_plan_that_a_rule_forbids_is_never_advised_but_told() -> None:
    told = judge([forbidden(1.0)], SINGLES, "time", 0.2, LINK)
    assert told.verdict == "single"
    assert "bit-equal results cannot be had" in told.sentence
    better = judge([forbidden(1.0), plan(7.0, "local")], SINGLES, "time", 0.2, LINK)
    assert (better.verdict, better.mode) == ("hybrid", "local")
    assert better.others[0][2].startswith("R132")


def test_where_no_pool_alone_will_do_a_split_that_does_is_advised() -> None:
    alone = (single(GPU, 10.0, feasible=False), single(TPU, 12.0, feasible=False))
    told = judge([plan(11.0, "pipeline")], alone, "time", 0.2, LINK)
    assert (told.verdict, told.saving, told.best_single) == ("hybrid", None, None)
    assert "no pool alone will do" in told.sentence


def test_where_nothing_will_do_the_reasons_are_told() -> None:
    alone = (single(GPU, 10.0, feasible=False),)
    told = judge([Planned("data", missing=("layer 3 fits on no pool",))], alone, "time", 0.2, LINK)
    assert told.seconds is None
    assert "layer 3 fits on no pool" in told.sentence
    assert "8 x h100-sxm: does not fit" in told.missing


def test_a_pool_alone_that_misses_its_target_is_not_the_best() -> None:
    assert best_single((single(GPU, 1.0, feasible=False), SINGLES[1]), "time") == SINGLES[1]


def test_a_saving_of_what_is_not_known_is_not_known() -> None:
    assert saving_of(None, 1.0) is None
    assert saving_of(1.0, None) is None
    told = judge([plan(6.0)], SINGLES, "cost", 0.2, LINK)
    assert (told.verdict, told.saving) == ("single", None)
