"""Steps that wait for their input: one error for all, no faster step is of use, and what would change the choice is the input."""

import random
from dataclasses import replace

import pytest

import intake
from advisor import advise
from advisor.beliefs import BELIEFS
from advisor.confidence import confidence_of
from advisor.feeding import step_of
from advisor.flips import flips_of
from advisor.question import Question
from advisor.ranking import Contender, difference_sigma, ranked
from core.advice import Candidate, Estimate, Fed, Plan
from core.device import Device, Pool
from core.quantity import Quantity, exact, log_normal, longer
from core.workload import Workload
from services.pools import pools_for
from tests.unit.advisor.cases import block_measurements, question, tower


def contender(name: str, chips_s: float, input_s: float, usd: float = 1.0, chip: str = "h100-sxm") -> Contender:
    chips = log_normal(chips_s, 0.3, "published", "chips")
    fed = Fed(chips, log_normal(input_s, 0.3, "published", "input"))
    step = step_of(chips, fed)
    place = (Pool(chip, 8, "gpu", usd),)
    found = Estimate(Candidate(name, place, Plan()), step, None, None, None, step.scaled(usd), None, fed=fed)
    return Contender(found, step.scaled(usd))


@pytest.mark.parametrize(("first", "second"), [
    (log_normal(1.0, 0.3, "published"), log_normal(1.0, 0.3, "published")),
    (log_normal(1.0, 0.1, "published"), log_normal(1.3, 0.4, "published")),
    (log_normal(5.0, 0.5, "datasheet"), log_normal(1.0, 0.2, "published")),
])  # fmt: skip
def test_the_band_of_the_longer_of_two_holds_eighty_of_a_hundred_draws(first: Quantity, second: Quantity) -> None:
    draw, found = random.Random(7), longer(first, second)
    worlds = [
        max(first.mid * draw.lognormvariate(0, first.sigma), second.mid * draw.lognormvariate(0, second.sigma))
        for _ in range(20_000)
    ]
    assert sum(world <= found.high for world in worlds) / 20_000 == pytest.approx(0.9, abs=0.01)
    below = sum(world < found.low for world in worlds) / 20_000
    assert below == pytest.approx(0.1, abs=0.01) or found.low == found.mid  # the middle stays that of the longer
    assert found.mid == max(first.mid, second.mid)
    assert found == replace(longer(second, first), tier=found.tier, evidence=found.evidence)


def test_what_is_nothing_or_known_is_no_hindrance() -> None:
    known, band = exact(2.0, "datasheet"), log_normal(1.0, 0.2, "published")
    assert longer(known, exact(0.0, "datasheet")) == known
    assert longer(known, band).low == pytest.approx(2.0)
    assert longer(band, known).mid == 2.0


def test_runtimes_that_wait_for_one_input_are_equal_and_the_choice_among_them_is_sure() -> None:
    order, equal = ranked([contender(f"runtime-{at}", 0.010 + at / 10_000, 0.0417) for at in range(9)])
    assert len(equal) == 8
    sure = confidence_of(order, 1)
    assert sure is not None
    assert sure.p_best > 0.9
    assert sure.expected_regret < 0.01


def test_inputs_of_two_pools_are_wrong_together_and_chips_that_do_not_wait_are_wrong_alone() -> None:
    waits, dearer = contender("jax", 0.001, 1.0), contender("jax", 0.001, 1.0, 1.2, "a100-80")
    assert difference_sigma(waits, dearer) < 0.01
    busy, other = contender("jax", 1.0, 0.001), contender("jax", 1.0, 0.001, 1.2, "a100-80")
    common = BELIEFS.common("published")
    assert difference_sigma(busy, other) == pytest.approx((2 * 0.09 * (1 - common)) ** 0.5, rel=0.01)
    assert difference_sigma(waits, other) == pytest.approx((2 * 0.09) ** 0.5, rel=0.01)


def test_a_step_that_waits_is_not_changed_by_a_faster_step_but_by_its_input() -> None:
    best, slower = contender("jax", 0.010, 0.040), contender("jax", 0.005, 0.060, chip="a100-80")
    order, _ = ranked([best, slower])
    assert order[0] is best
    flips = flips_of(order, "time", tower())
    assert not any("step time" in flip.what for flip in flips)
    (flip,) = (flip for flip in flips if flip.what == "input of a step on 8 x h100-sxm")
    assert flip.now == pytest.approx(0.040)
    assert flip.at == pytest.approx(0.040 * 0.010 / 0.060)  # then the other waits as long as the chips of the best take
    assert flip.winner == "jax on 8 x a100-80"


def test_what_is_slower_but_waits_less_leads_where_the_input_takes_longer() -> None:
    best, patient = contender("jax", 0.030, 0.020), contender("jax", 0.040, 0.005, chip="a100-80")
    order, _ = ranked([best, patient])
    assert order[0] is best
    (flip,) = (flip for flip in flips_of(order, "time", tower()) if flip.what.startswith("input"))
    assert flip.at == pytest.approx(0.020 * 2)  # then the best waits until 40 ms


def read(**data: object) -> Workload:
    return intake.read_document({"task": "train", "model": {"preset": "resnet-50"}, "batch": 64, "dtype": "fp32", "data": data})


def test_what_is_attached_waits_for_its_own_processors() -> None:
    device = Device("cpu:0", "cpu", "a CPU", "u", 2**34, cores=2)
    (pool,) = pools_for(read(decode="jpeg"), (device,), "attached")
    assert pool.vcpus == 2
    plain = question(tower(), block_measurements(tower(), "jax", {"first": 0.01, "middle": 0.02}))
    workload = replace(plain.workload, data=replace(plain.workload.data, source_bytes_per_s=1.0, bytes_per_sample=100.0))
    asked: Question = replace(plain, workload=workload)
    best, fed = advise(plain).best, advise(asked).best
    assert best is not None
    assert fed is not None
    assert best.fed is None
    assert fed.fed is not None
    assert fed.step_time_s is not None
    assert fed.step_time_s.mid == pytest.approx(100.0 * workload.batch)
    assert fed.fed.chips_s == best.step_time_s
