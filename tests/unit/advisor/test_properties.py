"""What must hold whatever is asked: order does not matter, prices scale, chips divide work, bands contain their middle."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

import catalog
from advisor import Question, advise
from advisor.datasheet import Datasheets
from core.advice import Estimate, Recommendation
from core.device import Pool
from core.quantity import Quantity
from core.workload import Workload
from tests.unit.advisor.cases import (
    CPU,
    HERE,
    TODAY,
    SmallFacts,
    block_measurements,
    existing,
    kernels,
    pool,
    question,
    runtime,
    tower,
    transformer,
)

KEYS = ("h100-sxm", "tpu-v6e", "v100-32")
seconds = st.floats(1e-5, 10.0)
pools = st.lists(st.tuples(st.sampled_from(KEYS), st.sampled_from((1, 2, 4, 8)), st.floats(0.1, 50.0)), min_size=1, max_size=4)
DTYPES = ("fp32", "bf16", "fp16", "int8", "fp8", "fp64")
QUICK = settings(max_examples=40, deadline=None, derandomize=True, database=None)


def asked(
    workload: Workload, wanted: list[tuple[str, int, float]], first: float, middle: float, objective: str = "time"
) -> Question:
    outcomes = [
        *block_measurements(workload, "jax", {"first": first, "middle": middle}),
        *block_measurements(workload, "torch-eager", {"first": middle, "middle": first}), *kernels("jax"),
    ]
    return question(workload, outcomes, pools=(HERE, *(pool(*item) for item in wanted)), objective=objective)


def quantities(answer: Recommendation) -> list[Quantity]:
    found: list[Quantity | None] = []
    for estimate in (*answer.ranked, *answer.unranked):
        found += [estimate.step_time_s, estimate.throughput, estimate.memory_bytes_per_chip, estimate.compile_s]
        found += [estimate.cost_usd, estimate.energy_j, *(share.seconds for share in estimate.breakdown)]
    return [number for number in found if number is not None]


@QUICK
@given(pools, seconds, seconds, st.sampled_from(("time", "cost", "energy")), st.randoms())
def test_the_order_of_pools_outcomes_and_runtimes_changes_nothing(wanted, first, middle, objective, shuffler) -> None:
    plain = asked(tower(), wanted, first, middle, objective)
    mixed = []
    for items in (plain.pools, plain.outcomes, plain.runtimes):
        listed = list(items)
        shuffler.shuffle(listed)
        mixed.append(tuple(listed))
    assert advise(replace(plain, pools=mixed[0], outcomes=mixed[1], runtimes=mixed[2])) == advise(plain)


@QUICK
@given(pools, seconds, seconds)
def test_bands_contain_their_middle_and_evidence_is_never_empty(wanted, first, middle) -> None:
    for number in quantities(advise(asked(tower(), wanted, first, middle))):
        assert 0 <= number.low <= number.mid <= number.high
        assert number.evidence


@QUICK
@given(pools, seconds, seconds)
def test_slices_add_up_to_the_step_and_memory_parts_to_the_memory(wanted, first, middle) -> None:
    answer = advise(asked(tower(), wanted, first, middle))
    for estimate in answer.ranked:
        assert estimate.step_time_s is not None
        assert abs(sum(share.seconds.mid for share in estimate.breakdown) / estimate.step_time_s.mid - 1) < 1e-6
        assert estimate.memory_bytes_per_chip is not None
        assert abs(sum(size for _, size in estimate.memory_parts) / estimate.memory_bytes_per_chip.mid - 1) < 1e-9


@QUICK
@given(st.sampled_from(KEYS), st.sampled_from((1, 2, 4, 8)), st.floats(0.1, 50.0), st.floats(0.1, 10.0))
def test_cost_grows_with_the_price_and_nothing_else_changes(key, count, price, factor) -> None:
    cheap, dear = (advise(question(transformer(), pools=(pool(key, count, p),))) for p in (price, price * factor))
    for before, after in zip(cheap.ranked, dear.ranked, strict=True):
        assert before.cost_usd is not None
        assert after.cost_usd is not None
        assert abs(after.cost_usd.mid / before.cost_usd.mid / factor - 1) < 1e-9
        assert before.step_time_s == after.step_time_s


@QUICK
@given(st.sampled_from(KEYS), st.sampled_from((64, 256, 1024)), st.sampled_from((128, 512)))
def test_more_chips_never_raise_the_lower_bound_of_computing(key, batch, length) -> None:
    workload = transformer(batch=batch, length=length, repeats=4, task="infer")
    bounds = []
    for count in (1, 2, 4, 8):
        asked, accelerator = pool(key, count), SmallFacts().accelerator(key)
        found = Datasheets(workload, [(asked, accelerator)]).estimate(runtime("jax"), asked, accelerator)
        assert isinstance(found, Estimate)
        bounds.append(found.lower_s)
    assert bounds == sorted(bounds, reverse=True)
    assert bounds[-1] < bounds[0]


@QUICK
@given(seconds, seconds, st.integers(0, 5), st.integers(0, 100))
def test_penalties_never_change_a_shown_number(first, middle, reads, shapes) -> None:
    wanted = [("tpu-v6e", 1, 1.0), ("h100-sxm", 2, 3.0)]
    plain = asked(tower(), wanted, first, middle)
    tied = existing(host_reads_per_step=reads, distinct_shapes=shapes)
    held = replace(plain, workload=replace(plain.workload, existing=tied))
    # what is compiled anew for each shape is no penalty but time
    shown, same = (
        {one.candidate: replace(one, penalty=1.0, compile_s=None) for one in advise(each).ranked} for each in (plain, held)
    )
    assert same == shown


@QUICK
@given(st.sampled_from(sorted(catalog.accelerators())), st.sampled_from((1, 8, 16)), st.sampled_from(DTYPES))
def test_every_chip_of_the_catalog_is_answered_for_every_dtype(key, count, dtype) -> None:
    chip = catalog.accelerator(key)
    runtimes = (runtime("jax"), runtime("torch-eager"), runtime("tf-xla"))
    answer = advise(Question(
        tower(dtype=dtype), (Pool(key, count, chip.kind, 1.0),), (CPU,), runtimes, (), "time", TODAY,
    ))
    assert answer.sentence
    assert len(answer.ranked) + len(answer.unranked) + len(answer.excluded) > 0
    assert all(estimate.step_time_s is not None for estimate in answer.ranked)


@QUICK
@given(pools, seconds, seconds)
def test_confidence_is_a_probability_and_regret_is_not_negative(wanted, first, middle) -> None:
    answer = advise(asked(tower(), wanted, first, middle))
    assert answer.confidence is not None
    assert 0 <= answer.confidence.p_best <= 1
    assert answer.confidence.expected_regret >= 0
