"""Ties: candidates that cannot be told apart are called equal, and one is chosen for a reason that is said."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor import advise
from advisor.beliefs import BELIEFS
from advisor.confidence import confidence_of
from advisor.flips import flips_of
from advisor.ranking import NEARLY, Contender, chance_faster, chosen_by, indistinguishable, ranked
from core.advice import SURE, Candidate, Estimate, Plan
from core.device import Pool
from core.quantity import exact, log_normal
from reports.describe import describe
from tests.unit.advisor.cases import block_measurements, existing, question, tower

PATIENT = settings(deadline=None)


def contender(name: str, seconds: float, compile_s: float | None = None, sigma: float = 0.1, tier: str = "measured",
              penalty: float = 1.0, familiar: bool = False) -> Contender:
    step = log_normal(seconds, sigma, tier, "test")
    built = None if compile_s is None else exact(compile_s, "measured", "test")
    place = (Pool("cpu:0", 1, "cpu", attached=True),)
    return Contender(Estimate(Candidate(name, place, Plan()), step, None, None, built, None, None, penalty=penalty), step,
                     familiar=familiar)


def chosen(*contenders: Contender) -> tuple[str, tuple[str, ...], str]:
    order, equal = ranked(list(contenders))
    names = tuple(c.estimate.candidate.runtime for c in equal)
    return order[0].estimate.candidate.runtime, names, chosen_by(order[0], equal)


@PATIENT
@given(st.floats(0.01, 10), st.floats(0.01, 10), st.floats(0.01, 0.5), st.floats(0.01, 0.5))
def test_the_test_is_symmetric_and_calls_equal_what_has_a_fair_chance(first: float, second: float, a: float, b: float) -> None:
    one, other = contender("a", first, sigma=a), contender("b", second, sigma=b)
    assert chance_faster(one, other) + chance_faster(other, one) == pytest.approx(1.0)
    fair = BELIEFS.tie < chance_faster(one, other) < 1 - BELIEFS.tie
    assert fair == (indistinguishable(one, other) and indistinguishable(other, one))


@PATIENT
@given(st.floats(0.01, 10), st.floats(0.01, 0.5), st.floats(1.0, 3.0), st.floats(1.0, 3.0))
def test_what_is_further_away_is_never_more_equal(first: float, sigma: float, near: float, further: float) -> None:
    best = contender("best", first, sigma=sigma)
    at = contender("near", first * near, sigma=sigma)
    beyond = contender("far", first * near * further, sigma=sigma)
    assert chance_faster(beyond, best) <= chance_faster(at, best) + 1e-12


def test_among_nearly_equal_figures_the_one_that_compiles_sooner_is_chosen() -> None:
    slow, quick = contender("slow", 1.0, 30.0), contender("quick", 1.01, 4.0)
    assert chosen(slow, quick) == ("quick", ("slow",), "it compiles sooner (4.00 s)")
    assert chosen(contender("eager", 1.01, 0.0), contender("slow", 1.0, 30.0)) == ("eager", ("slow",), "it compiles nothing")


def test_the_framework_of_the_code_goes_before_the_compile_time() -> None:
    own = contender("own", 1.01, 30.0, familiar=True)
    assert chosen(own, contender("quick", 1.0, 4.0)) == ("own", ("quick",), "the code is written in its framework")


def test_where_figures_are_equal_but_not_near_the_lowest_is_chosen() -> None:
    assert chosen(contender("low", 1.0, 30.0), contender("quick", 1.05, 4.0)) == ("low", ("quick",), "its figure is the lowest")


def test_a_better_founded_figure_is_chosen_and_says_so() -> None:
    sheet = contender("sheet", 0.9, sigma=0.5, tier="datasheet")
    assert chosen(sheet, contender("here", 1.0)) == ("here", ("sheet",), "its figure is better founded")


def test_rules_that_hold_back_what_may_need_less_are_named() -> None:
    held, free = contender("held", 1.0, penalty=0.5), contender("free", 1.05)
    assert chosen(held, free) == ("free", ("held",), "rules hold back held on cpu:0, which may need less")
    assert chosen(contender("held", 1.06, penalty=0.5), free) == ("free", ("held",), "rules hold back held on cpu:0")


def test_figures_that_differ_in_nothing_say_so_and_a_clear_lead_has_no_tie() -> None:
    assert chosen(contender("a", 1.0), contender("b", 1.0)) == ("a", ("b",), "nothing but name and price parts them")
    assert chosen(contender("a", 1.0), contender("b", 5.0)) == ("a", (), "")


@PATIENT
@given(st.lists(st.tuples(st.floats(0.5, 2.0), st.none() | st.floats(0, 60), st.booleans()), min_size=1, max_size=8))
def test_a_choice_among_ties_costs_at_most_what_is_not_worth_a_choice(drawn: list[tuple[float, float | None, bool]]) -> None:
    contenders = [contender(f"r{i}", s, compile_s=c, familiar=f) for i, (s, c, f) in enumerate(drawn)]
    order, equal = ranked(contenders)
    assert order[0].value.mid <= min(seconds for seconds, _, _ in drawn) * (1 + NEARLY) * (1 + 1e-9)
    assert sorted(c.estimate.candidate.runtime for c in order) == sorted(c.estimate.candidate.runtime for c in contenders)
    assert bool(chosen_by(order[0], equal)) == bool(equal)


def test_two_runtimes_whose_times_cannot_be_told_apart_are_called_equal_in_every_word() -> None:
    near = {"first": 0.0100, "middle": 0.0201}
    further = {**near, "middle": 0.0202}
    outcomes = [*block_measurements(tower(), "jax", near), *block_measurements(tower(), "torch-eager", further)]
    answer = advise(question(tower(), outcomes))
    assert answer.best is not None
    other = next(e for e in answer.ranked if e != answer.best)
    assert answer.equal == (other.candidate.label,)
    assert f"equal to {other.candidate.label} as far as can be told, chosen because " in answer.sentence
    assert "is equal as far as can be told" in answer.why
    assert f"Equal to the chosen one as far as can be told: {other.candidate.label}." in describe("candidates", answer)
    own = advise(replace(question(tower(existing=existing(framework="torch")), outcomes)))
    assert "Use torch-eager" in own.sentence
    assert "the code is written in its framework" in own.sentence


def test_runtimes_that_are_apart_are_not_called_equal() -> None:
    outcomes = [*block_measurements(tower(), "jax", {"first": 0.01, "middle": 0.02}),
                *block_measurements(tower(), "torch-eager", {"first": 0.02, "middle": 0.04})]
    answer = advise(question(tower(), outcomes))
    assert answer.equal == ()
    assert "equal" not in answer.sentence + answer.why


def test_of_equal_figures_that_nobody_measured_a_compiled_runtime_is_chosen() -> None:
    both = (("torch-eager", 0.0), ("jax", 9.0))
    best, _, why = chosen(*(contender(name, 1.0, compile_s, tier="published") for name, compile_s in both))
    assert (best, why) == ("jax", "it compiles, which the others' figures take for granted")
    assert chosen(*(contender(name, 1.0, compile_s) for name, compile_s in both))[0] == "torch-eager"


def test_what_may_not_fit_yields_to_what_is_as_good_and_fits() -> None:
    dear, cheap = contender("jax", 1.01), contender("torch-eager", 1.0)
    full = replace(cheap.estimate, memory_bytes_per_chip=log_normal(80.0, 0.1, "datasheet"), capacity_bytes=80.0)
    tight = replace(cheap, estimate=full)
    best, _, why = chosen(dear, tight)
    assert (best, why) == ("jax", "what needs less may not fit")


@pytest.mark.parametrize(("dear", "cheap"), [(16.0, 8.0), (72.0, 8.0), (24.0, 80.0), (None, 8.0)])
def test_of_the_same_chips_from_two_sellers_the_cheaper_is_chosen(dear: float | None, cheap: float) -> None:
    dear, cheap = (cheap, dear) if dear is not None and dear < cheap else (dear, cheap)
    sold = [Pool("h100-sxm", 8, "gpu", price, where) for price, where in ((dear, "A"), (cheap, "B"))]
    lone = contender("jax", 2.0, tier="published")
    both = [
        replace(lone, estimate=replace(lone.estimate, candidate=Candidate("jax", (pool,), Plan()))) for pool in sold
    ]
    for listed in (both, both[::-1]):
        order, equal = ranked(list(listed))
        assert [c.estimate.candidate.pools[0].price_usd_per_h for c in order] == [cheap, dear]
        assert len(equal) == 1
        assert chosen_by(order[0], equal) == "it costs less an hour"
        sure = confidence_of(order, 1)
        assert sure is not None
        assert sure.p_best > SURE  # the same step on either: none is faster


def test_equal_figures_without_a_band_are_not_called_the_lowest() -> None:
    paid = exact(223.6, "published", "price while requests come")
    several = [replace(contender(n, step), value=paid) for n, step in (("jax", 2.6), ("torch-compile", 2.2), ("mxnet", 3.0))]
    assert chosen(*several) == ("torch-compile", ("jax", "mxnet"), "at the same figure its step is the shortest")


def test_nothing_is_said_to_lose_by_getting_faster() -> None:
    """Where the choice is not the lowest figure, no change of the lower one's step would change the choice."""
    order, equal = ranked([contender("jax", 1.0, tier="datasheet", sigma=0.4), contender("torch-eager", 1.1, tier="measured")])
    assert order[0].score > order[1].score
    assert equal
    assert flips_of(order, "time", tower()) == ()


def test_of_equal_figures_without_a_band_the_surer_of_a_pool_comes_first() -> None:
    paid = exact(9.94, "published", "price while requests come")
    unsure, sure = (
        replace(one, value=paid, estimate=replace(one.estimate, target_chance=chance))
        for one, chance in ((contender("jax", 1.0), 0.82), (contender("torch-compile", 2.0), 0.998))
    )
    lead = replace(contender("mxnet", 1.0), value=exact(5.0, "published", "price while requests come"))
    assert [c.estimate.candidate.runtime for c in ranked([unsure, lead, sure])[0]] == ["mxnet", "torch-compile", "jax"]
