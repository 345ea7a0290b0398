"""The order, what cannot be told apart, how sure the choice is, what would flip it, and the sentences that say so."""

from dataclasses import replace

import pytest

from advisor import advise
from advisor.confidence import RARE, confidence_of
from advisor.flips import flips_of
from advisor.ranking import Contender, chance_faster, ranked
from core.advice import Candidate, Estimate, Plan, Recommendation, Served
from core.codec import from_json, to_json
from core.device import Ownership, Pool
from core.errors import BadInput, NotFound
from core.quantity import Quantity, log_normal
from core.workload import Targets, Total
from tests.unit.advisor.cases import (
    CPU,
    HERE,
    TODAY,
    block_measurements,
    block_probe,
    failure,
    kernel,
    pool,
    question,
    runtime,
    tower,
    transformer,
)

SLOW, FAST = {"first": 0.02, "middle": 0.04}, {"first": 0.01, "middle": 0.02}


def contender(name: str, seconds: float, sigma: float = 0.06, tier: str = "measured", penalty: float = 1.0, late: bool = False,
              key: str = "cpu:0", price: float | None = None) -> Contender:
    step = log_normal(seconds, sigma, tier, "test")
    place = Pool(key, 1, "cpu", price, attached=key == "cpu:0")
    estimate = Estimate(Candidate(name, (place,), Plan()), step, None, None, None, None, None, penalty=penalty)
    return Contender(estimate, step, 2.0 if late else 1.0)


def names(order: tuple[Contender, ...]) -> list[str]:
    return [found.estimate.candidate.runtime for found in order]


def test_the_lowest_value_leads_and_the_others_follow_in_order() -> None:
    order, equal = ranked([contender("c", 3.0), contender("a", 1.0), contender("b", 2.0)])
    assert names(order) == ["a", "b", "c"]
    assert equal == ()


def test_a_measured_candidate_leads_one_from_a_datasheet_that_it_cannot_be_told_apart_from() -> None:
    order, equal = ranked([contender("sheet", 0.9, 0.5, "datasheet", key="h100"), contender("here", 1.0)])
    assert names(order) == ["here", "sheet"]
    assert names(equal) == ["sheet"]


def test_a_datasheet_candidate_that_is_clearly_better_leads() -> None:
    order, _ = ranked([contender("sheet", 0.1, 0.5, "datasheet", key="h100"), contender("here", 1.0)])
    assert names(order) == ["sheet", "here"]


def test_a_penalty_moves_a_candidate_back_by_its_factor() -> None:
    order, _ = ranked([contender("held", 1.0, penalty=0.5), contender("free", 1.5)])
    assert names(order) == ["free", "held"]


def test_a_candidate_that_misses_a_target_comes_after_those_that_meet_it() -> None:
    order, _ = ranked([contender("late", 1.0, late=True), contender("slow", 2.0)])
    assert names(order) == ["slow", "late"]


def test_errors_of_one_chip_partly_cancel_in_a_comparison() -> None:
    same = chance_faster(contender("b", 1.1, 0.2), contender("a", 1.0, 0.2))
    other = chance_faster(contender("b", 1.1, 0.2, key="cpu:1"), contender("a", 1.0, 0.2))
    assert same < other < 0.5


def test_equal_figures_give_even_chances() -> None:
    assert chance_faster(contender("b", 1.0), contender("a", 1.0)) == pytest.approx(0.5)


def test_the_confidence_agrees_with_the_closed_form_for_two() -> None:
    order, _ = ranked([contender("a", 1.0, 0.1), contender("b", 1.1, 0.1)])
    sure = confidence_of(order, 1)
    assert sure is not None
    assert sure.p_best == pytest.approx(1 - chance_faster(order[1], order[0]), abs=0.04)
    assert 0 < sure.expected_regret < 0.05


def test_a_clear_lead_is_certain_and_without_regret() -> None:
    order, _ = ranked([contender("a", 1.0), contender("b", 5.0)])
    sure = confidence_of(order, 0)
    assert sure is not None
    assert (sure.p_best, sure.expected_regret) == (1.0 - RARE, 0.0)


def test_the_seed_fixes_the_draws() -> None:
    order, _ = ranked([contender("a", 1.0, 0.1), contender("b", 1.05, 0.1), contender("c", 1.06, 0.1)])
    assert confidence_of(order, 7) == confidence_of(order, 7)
    assert confidence_of(order, 7) != confidence_of(order, 8)


def test_nothing_to_rank_has_no_confidence() -> None:
    assert ranked([]) == ((), ())
    assert confidence_of((), 0) is None


def test_an_answer_names_the_best_and_says_it_in_three_sentences() -> None:
    outcomes = [*block_measurements(tower(), "jax", FAST), *block_measurements(tower(), "torch-eager", SLOW)]
    answer = advise(question(tower(), outcomes))
    assert answer.best == answer.ranked[0]
    assert answer.sentence.startswith("Use jax on the attached cpu:0: 90.0 ms")
    assert "% sure that it is the fastest of 2 candidates" in answer.sentence
    assert "2.00 times the time" in answer.why
    assert "the block that takes most of it is middle (89 %)" in answer.why
    assert "4 measurements on cpu:0" in answer.rests_on
    assert TODAY in answer.rests_on
    for text in (answer.sentence, answer.why, answer.rests_on):
        assert text.endswith(".")
        assert "\n" not in text


def test_the_catalogs_titles_name_the_runtimes() -> None:
    outcomes = block_measurements(tower(), "torch-eager", FAST)
    answer = advise(replace(question(tower(), outcomes), facts=None))
    assert answer.sentence.startswith("Use PyTorch, eager on the attached cpu:0")


def test_nothing_feasible_is_said_with_the_commonest_reason() -> None:
    answer = advise(question(tower(), devices=(replace(CPU, memory_bytes=1024),)))
    assert answer.best is None
    assert answer.confidence is None
    assert answer.ranked == ()
    assert "Nothing here can run this workload" in answer.sentence
    assert "per chip memory" in answer.why


def test_no_pool_at_all_is_said_so() -> None:
    answer = advise(question(tower(), pools=()))
    assert "no pool was given" in answer.sentence


def test_for_cost_an_unknown_price_is_unranked_and_an_owned_machine_wins() -> None:
    outcomes = block_measurements(tower(), "jax", FAST)
    pools = (HERE, pool("h100-sxm", price=2.0), pool("v100-32"))
    answer = advise(question(tower(), outcomes, pools=pools, objective="cost", runtimes=(runtime("jax"),)))
    assert [e.candidate.label for e in answer.ranked] == ["jax on cpu:0", "jax on 1 x h100-sxm"]
    assert [e.candidate.label for e in answer.unranked] == ["jax on 1 x v100-32"]
    assert "costs nothing" in answer.why


def test_two_owned_candidates_of_no_cost_are_ordered_by_their_step_time() -> None:
    outcomes = [*block_measurements(tower(), "jax", SLOW), *block_measurements(tower(), "torch-eager", FAST)]
    answer = advise(question(tower(), outcomes, objective="cost"))
    assert [e.candidate.runtime for e in answer.ranked] == ["torch-eager", "jax"]
    assert answer.equal == ()
    assert "takes less time" in answer.why


def test_for_energy_a_device_of_unknown_power_is_unranked() -> None:
    outcomes = block_measurements(tower(), "jax", FAST)
    answer = advise(question(tower(), outcomes, pools=(HERE, pool("h100-sxm")), objective="energy", runtimes=(runtime("jax"),)))
    assert [e.candidate.label for e in answer.ranked] == ["jax on 1 x h100-sxm"]
    assert [e.candidate.label for e in answer.unranked] == ["jax on cpu:0"]


def test_the_flip_price_is_where_both_cost_the_same() -> None:
    pools = (pool("h100-sxm", price=2.0), pool("v100-32", price=2.0))
    before = advise(question(transformer(), pools=pools, objective="cost", runtimes=(runtime("jax"),)))
    flip = next(f for f in before.flips if f.what == "price of 1 x h100-sxm")
    assert flip.now == 2.0
    for factor, winner in ((0.99, "h100-sxm"), (1.01, "v100-32")):
        moved = (pool("h100-sxm", price=flip.at * factor), pools[1])
        after = advise(question(transformer(), pools=moved, objective="cost", runtimes=(runtime("jax"),)))
        assert after.best is not None
        assert after.best.candidate.pools[0].accelerator == winner


def test_the_flip_of_speed_is_the_runner_ups_time() -> None:
    outcomes = [*block_measurements(tower(), "jax", FAST), *block_measurements(tower(), "torch-eager", SLOW)]
    flip = advise(question(tower(), outcomes)).flips[0]
    assert flip.now == pytest.approx(0.09)
    assert flip.at == pytest.approx(0.18)
    assert flip.winner == "torch-eager on cpu:0"


def test_a_missed_deadline_and_budget_are_flagged_and_come_last() -> None:
    workload = tower(total=Total(steps=1e6), targets=Targets(deadline_h=30.0, budget_usd=1.0))
    outcomes = [*block_measurements(workload, "jax", FAST), *block_measurements(workload, "torch-eager", SLOW)]
    answer = advise(question(workload, outcomes, pools=(HERE, pool("h100-sxm", price=1e6))))
    assert answer.ranked[0].candidate.label == "jax on cpu:0"
    late = next(e for e in answer.ranked if e.candidate.label == "torch-eager on cpu:0")
    assert any(phrase.startswith("deadline of 30 h") for phrase in late.misses)
    dear = next(e for e in answer.ranked if e.candidate.label == "jax on 1 x h100-sxm")
    assert any(phrase.startswith("budget of 1 USD") for phrase in dear.misses)


def test_when_every_candidate_misses_a_target_the_sentence_says_so() -> None:
    workload = tower(task="infer", targets=Targets(latency_ms=1.0))
    answer = advise(question(workload, block_measurements(workload, "jax", FAST)))
    assert "it is the only candidate with a known figure and misses the latency of 1 ms (a step takes 90 ms)" in answer.sentence


def test_gaps_lead_with_what_could_decide_the_choice() -> None:
    workload = tower()
    outcomes = [
        *block_measurements(workload, "jax", FAST), kernel("step_frame", {"arrays": 4}, 0.001, "jax", mode="train"),
        *block_measurements(workload, "torch-eager", {"first": 0.01}),
    ]
    answer = advise(question(workload, outcomes))
    assert answer.gaps[0].probe == block_probe(workload, workload.blocks[1], "torch-eager")
    assert all(gap.remedy for gap in answer.gaps)


def test_a_gap_that_needs_another_machine_has_no_probe_and_says_what_to_do() -> None:
    answer = advise(question(tower(), pools=(pool("h100-sxm"),)))
    assert [(gap.probe, gap.seconds) for gap in answer.gaps] == [(None, None)]
    assert "on one machine with h100-sxm" in answer.gaps[0].remedy


def test_failures_leave_the_other_runtimes_their_answer() -> None:
    workload = tower()
    broken = failure(block_probe(workload, workload.blocks[0], "torch-eager"), "lost", "killed by signal 9")
    answer = advise(question(workload, [*block_measurements(workload, "jax", FAST), broken]))
    assert answer.best is not None
    assert answer.best.candidate.runtime == "jax"
    assert [e.candidate.runtime for e in answer.unranked] == ["torch-eager"]
    assert any("killed by signal 9" in phrase for phrase in answer.unranked[0].missing)


@pytest.mark.parametrize(("changes", "error", "words"), [
    ({"objective": "beauty"}, BadInput, "time, cost, energy"),
    ({"pools": (Pool("gpu:7", 1, "gpu", attached=True),)}, BadInput, "cpu:0"),
    ({"pools": (pool("h100-sxm", 0),)}, BadInput, "one chip or more"),
])
def test_a_question_that_cannot_be_answered_is_refused(changes: dict[str, object], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        question(tower(), **changes)


def test_an_unknown_accelerator_is_refused_by_the_catalog() -> None:
    with pytest.raises(NotFound):
        advise(question(tower(), pools=(pool("h900"),)))


def test_a_quantity_of_an_answer_is_never_without_evidence() -> None:
    outcomes = block_measurements(tower(), "jax", FAST, compile_s=1.0)
    answer = advise(question(tower(), outcomes, pools=(HERE, pool("h100-sxm", 4, 2.0), pool("tpu-v6e"))))
    for estimate in (*answer.ranked, *answer.unranked):
        shown = (estimate.step_time_s, estimate.throughput, estimate.memory_bytes_per_chip, estimate.compile_s, estimate.cost_usd,
                 estimate.energy_j, *(share.seconds for share in estimate.breakdown))
        assert all(number.evidence for number in shown if isinstance(number, Quantity))


def test_the_reason_compares_with_another_pool_where_figures_cannot_tell_compilers_apart() -> None:
    runtimes = (runtime("tf-xla"), runtime("keras-tensorflow"))
    answer = advise(question(transformer(), pools=(pool("h100-sxm"), pool("v100-32")), runtimes=runtimes))
    assert answer.why.startswith("The next, keras-tensorflow on 1 x v100-32, needs ")
    assert "other compilers on the chosen pool have its figure" in answer.why


def test_an_answer_survives_being_written_and_read() -> None:
    outcomes = block_measurements(tower(), "jax", FAST, compile_s=1.0)
    answer = advise(question(tower(), outcomes, pools=(HERE, pool("h100-sxm", 4, 2.0), pool("tpu-v6e"))))
    assert from_json(Recommendation, to_json(answer)) == answer


def test_beyond_the_leading_candidates_a_datasheets_step_is_told_by_term() -> None:
    pools = tuple(pool("h100-sxm", count, float(price)) for count in (1, 2, 4, 8) for price in range(1, 8))
    answer = advise(question(transformer(), pools=pools))
    first, last = answer.ranked[0], answer.ranked[-1]
    assert len(answer.ranked) > 40
    assert {share.block for share in first.breakdown} > {"layer"}
    assert {share.block for share in last.breakdown} == {"all blocks"}
    assert last.step_time_s is not None
    assert sum(share.seconds.mid for share in last.breakdown) == pytest.approx(last.step_time_s.mid)


def test_own_hardware_and_a_rented_pool_of_the_same_chips_flip_by_their_prices() -> None:
    rented, own = (replace(pool("h100-sxm", count=8, price=price), where=where, apart=where) for price, where in
                   ((20.0, "AWS, on-demand"), (30.0, "price given")))  # fmt: skip
    asked = transformer(total=Total(steps=1e5))
    before = advise(question(asked, pools=(rented, own), objective="cost", runtimes=(runtime("jax"),)))
    flip = next(one for one in before.flips if one.what == "price of 8 x h100-sxm (price given)")
    assert (flip.now, flip.at) == (30.0, pytest.approx(20.0, rel=0.02))
    assert flip.winner == "jax on 8 x h100-sxm (price given)"
    cheaper = replace(own, price_usd_per_h=flip.at * 0.95)
    after = advise(question(asked, pools=(rented, cheaper), objective="cost", runtimes=(runtime("jax"),)))
    assert after.best is not None
    assert after.best.candidate.pools[0].where == "price given"


def test_own_hardware_flips_by_the_share_of_its_hours_with_work() -> None:
    own = Ownership(0.5, 0.1, 1.0, "arithmetic")
    rented = replace(pool("h100-sxm", count=8, price=20.0), where="AWS, on-demand", apart="AWS")
    asked = transformer(total=Total(steps=1e5))

    def told(one: Ownership) -> Recommendation:
        owned = replace(rented, price_usd_per_h=8 * one.usd_per_chip_h, own=one, where="own hardware", apart="own hardware")
        return advise(question(asked, pools=(rented, owned), objective="cost", runtimes=(runtime("jax"),)))

    flip = next(one for one in told(own).flips if one.what == "use of 8 x h100-sxm (own hardware)")
    # 0.5 / 0.2083 + 0.1 is the 2.5 USD of a rented chip; what both lose to interruptions differs by nothing
    assert (flip.now, flip.at, flip.unit) == (100.0, pytest.approx(20.83, rel=0.03), "% of the time")
    for share, place in ((1.05, "own hardware"), (0.95, "AWS, on-demand")):
        best = told(replace(own, utilisation=flip.at / 100 * share)).best
        assert best is not None
        assert best.candidate.pools[0].where == place


def test_what_serves_at_a_rate_has_no_flip_by_its_step_time() -> None:
    order = (contender("a", 1.0, key="h100", price=2.0), contender("b", 1.2, key="l4", price=2.0))
    served = tuple(
        replace(one, estimate=replace(one.estimate, served=Served(1.0, 2.0), cost_usd=one.value)) for one in order
    )
    found = flips_of(tuple(replace(one, value=one.estimate.cost_usd or one.value) for one in served), "cost", tower())
    assert {flip.what for flip in found} == {"price of 1 x h100", "price of 1 x l4"}


def test_a_price_that_would_have_to_move_the_wrong_way_is_no_flip() -> None:
    led = (contender("a", 1.1, key="h100", price=2.0), contender("b", 1.0, 0.5, "datasheet", key="l4", price=2.0))
    assert [flip for flip in flips_of(led, "cost", tower()) if flip.what.startswith("price")] == []


def test_own_hardware_twice_flips_by_its_prices() -> None:
    busy, idle = (Ownership(0.5, 0.1, share, "arithmetic") for share in (0.9, 0.5))
    pools = tuple(
        replace(pool("h100-sxm", 8, 8 * own.usd_per_chip_h), own=own, where="own hardware", apart=str(own.utilisation))
        for own in (busy, idle)
    )
    told = advise(question(transformer(total=Total(steps=1e5)), pools=pools, objective="cost", runtimes=(runtime("jax"),)))
    assert any(flip.what == "use of 8 x h100-sxm (0.9)" for flip in told.flips)


def aiming(name: str, usd: float, chance: float, *, late: bool = False, key: str = "h100-sxm", sigma: float = 0.1) -> Contender:
    made = contender(name, usd, sigma, "datasheet", key=key, price=1.0, late=late)
    return replace(made, estimate=replace(made.estimate, target_chance=chance))


def confident(*contenders: Contender) -> float:
    sure = confidence_of(ranked(list(contenders))[0], 0)
    assert sure is not None
    return sure.p_best


def test_what_may_miss_its_targets_is_the_best_only_where_it_meets_them() -> None:
    assert confident(aiming("cheap", 1.0, 0.58), aiming("sure", 3.0, 1.0, key="b200")) == pytest.approx(0.58, abs=0.04)
    assert confident(aiming("cheap", 1.0, 1.0), aiming("sure", 3.0, 1.0, key="b200")) == 1.0 - RARE


def test_what_probably_misses_them_is_the_best_where_it_meets_them_for_less() -> None:
    assert confident(aiming("sure", 3.0, 1.0), aiming("cheap", 1.0, 0.3, late=True, key="b200")) == pytest.approx(0.7, abs=0.04)


def test_where_nothing_meets_them_the_nearest_is_the_best() -> None:
    together = confident(aiming("near", 1.0, 0.58), aiming("far", 3.0, 0.2, late=True))
    assert together > 0.95  # whatever lets the first miss lets the second miss by more
    assert confident(aiming("alone", 1.0, 0.58)) == 1.0


def test_a_price_counts_where_what_is_free_may_be_late() -> None:
    owned = aiming("owned", 1.0, 0.6, key="cpu:0")
    free = replace(owned, value=log_normal(0.0, 0.0, "datasheet", "test"))
    assert confident(free, aiming("rented", 3.0, 1.0)) == pytest.approx(0.6, abs=0.04)
    assert confident(replace(free, estimate=replace(free.estimate, target_chance=1.0)), aiming("rented", 3.0, 1.0)) == 1.0 - RARE
    late = replace(aiming("late", 1.0, 0.44, key="cpu:0", late=True), value=log_normal(0.0, 0.0, "datasheet", "test"))
    sure = confidence_of(ranked([aiming("rented", 3.0, 1.0), late])[0], 0)
    assert sure is not None
    assert sure.p_best == pytest.approx(0.56, abs=0.04)  # where it is in time, what is free is better
    assert sure.expected_regret == pytest.approx(1 - sure.p_best)  # all that was paid


def test_figures_without_a_band_are_drawn_too() -> None:
    known = [aiming(name, usd, 1.0, sigma=0.0) for name, usd in (("cheap", 1.0), ("dear", 3.0))]
    assert confident(*known) == 1.0 - RARE
