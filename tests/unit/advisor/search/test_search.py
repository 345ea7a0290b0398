"""The search over plans: every plan legal, the best the least of all, and nothing that ought not to matter matters."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import catalog
import intake
from advisor.beliefs import CHIP_HABITS
from advisor.charges import cost_of
from advisor.cost.columns import Numbers
from advisor.memory import Layout, memory_of, memory_parts, model_bytes
from advisor.search import Found, Search
from advisor.search.evaluate import divisions
from advisor.search.grid import Chips, Divisible, grid_of
from advisor.search.room import Apart, parts_of
from advisor.search.stacks import stack_for
from core.advice import SURE
from core.device import Accelerator, Pool
from core.quantity import log_normal
from core.workload import Total, Workload
from tests.unit.advisor.cases import tower, transformer

QUICK = settings(max_examples=40, deadline=None, derandomize=True, database=None)
FEW = settings(max_examples=12, deadline=None, derandomize=True, database=None)
RUNTIME = "torch-compile"
KEYS = ("h100-sxm", "a100-80", "tpu-v5p", "tpu-v6e", "l40s")


def found(workload: Workload, chip: Accelerator, count: int, runtime: str = RUNTIME) -> Found:
    search = Search(workload)
    search.prepare([(chip, count)])
    best = search.best(runtime, chip, count)
    assert isinstance(best, Found), best
    return best


WORK = st.builds(
    Divisible, batch=st.sampled_from([1, 6, 8, 24, 64, 96, 512]), heads=st.sampled_from([1, 6, 8, 12, 32, 40]),
    layers=st.sampled_from([1, 7, 12, 32, 80]), experts=st.sampled_from([1, 6, 8, 64]),
    length=st.sampled_from([1, 512, 8192, 65536]),
    trains=st.booleans(),
)  # fmt: skip
POOL = st.builds(
    Chips, count=st.sampled_from([1, 2, 5, 6, 7, 8, 16, 48, 64, 256]), domain=st.sampled_from([1, 4, 8, 72, 256]),
    stages=st.booleans(),
)


@QUICK
@given(WORK, POOL, st.booleans())
def test_every_plan_is_legal(work: Divisible, chips: Chips, each: bool) -> None:
    work = replace(work, each=each and not work.trains)
    grid = grid_of(work, chips)
    rows = zip(*(getattr(grid, name).astype(int).tolist() for name in (
        "data", "tensor", "pipeline", "context", "expert", "sharded", "micro", "virtual",
    )), strict=True)  # fmt: skip
    for data, tensor, pipeline, context, expert, sharded, micro, virtual in rows:
        ways = prod((data, tensor, pipeline, context))
        if work.trains:
            assert ways == chips.count
            assert work.batch % data == 0
            assert (work.batch // data) % micro == 0
        elif work.each:
            assert micro == work.batch
            assert chips.count - ways < tensor * context
        else:
            assert ways <= chips.count
            assert data * micro >= work.batch > (data - 1) * micro
        assert tensor == 1 or (work.heads % tensor == 0 and tensor <= chips.domain)
        assert pipeline <= work.layers
        assert pipeline * virtual <= max(work.layers, 1)
        assert context == 1 or work.length // context >= 4096
        assert expert == 1 or (work.experts % expert == 0 and data % expert == 0)
        assert sharded in (1, data)


@QUICK
@given(WORK, POOL)
def test_no_plan_is_listed_twice(work: Divisible, chips: Chips) -> None:
    grid = grid_of(work, chips)
    names = ("data", "tensor", "pipeline", "context", "expert", "sharded", "micro", "recompute")
    rows = list(zip(*(getattr(grid, name).tolist() for name in names), strict=True))
    assert len(set(rows)) == len(rows)


def test_plans_on_eight_chips_are_those_counted_by_hand() -> None:
    grid = grid_of(Divisible(batch=8, heads=2, layers=8, experts=1, length=512, trains=False), Chips(8, 8, stages=True))
    # forward passes: tensor 1 with data 8, whole or sharded; tensor 2 with data 4, whole or sharded
    assert sorted(zip(grid.data, grid.tensor, grid.sharded, strict=True)) == [(4, 2, 1), (4, 2, 4), (8, 1, 1), (8, 1, 8)]


def test_a_batch_that_does_not_divide_says_so() -> None:
    chip = catalog.accelerator("h100-sxm")
    search = Search(tower(batch=7))
    search.prepare([(chip, 8)])
    assert search.best(RUNTIME, chip, 8) == "a batch of 7 does not divide over 8 chips: a batch of 8 would, or 7 chips"
    assert search.best(RUNTIME, chip, 4) == "4 x h100-sxm was not looked at"


def test_replicas_that_answer_need_not_divide_anything() -> None:
    chip = catalog.accelerator("h100-sxm")
    work = tower(batch=32, task="infer")
    five = found(work, chip, 5)
    assert (five.plan.data * five.plan.fsdp, five.share) == (5, 7)
    assert five.seconds == pytest.approx(found(tower(batch=7, task="infer"), chip, 1).seconds, rel=0.02)


def test_replicas_that_save_no_time_stay_idle() -> None:
    grid = grid_of(Divisible(batch=6, heads=1, layers=8, experts=1, length=1, trains=False), Chips(5, 8, stages=False))
    assert {(data, micro) for data, micro in zip(grid.data, grid.micro, strict=True)} == {(3.0, 2.0)}


def test_replicas_stay_within_a_link_that_is_known() -> None:
    chip = catalog.accelerator("rtx4090")
    search = Search(transformer(batch=24, task="infer"))
    search.prepare([(chip, 24)])
    best = search.best(RUNTIME, chip, 24)
    assert isinstance(best, Found)
    assert (best.plan.fsdp, best.plan.expert) == (1, 1)
    training = Search(transformer(batch=24))
    training.prepare([(chip, 24)])
    assert training.best(RUNTIME, chip, 24) == "the rate of rtx4090 beyond 8 chips is not known"


def test_weights_that_replicas_share_are_gathered_in_every_pass() -> None:
    chip = catalog.accelerator("h100-sxm")
    search = Search(transformer(batch=8, task="infer"))
    search.prepare([(chip, 8)])
    prepared, seconds = search._prepared, search.timed(RUNTIME).seconds
    assert prepared is not None
    alike = (prepared.grid.tensor == 1) & (prepared.grid.context == 1) & (prepared.grid.data == 8)
    assert seconds[alike & (prepared.grid.sharded == 8)].min() > seconds[alike & (prepared.grid.sharded == 1)].max()


@FEW
@given(
    st.lists(st.tuples(st.sampled_from(KEYS), st.sampled_from([1, 8, 16])), min_size=1, max_size=4, unique=True), st.booleans()
)
def test_the_best_plan_is_the_least_of_those_that_fit(pools: list[tuple[str, int]], trains: bool) -> None:
    search = Search(transformer(task="train" if trains else "infer"))
    search.prepare([(catalog.accelerator(key), count) for key, count in pools])
    timed, prepared = search.timed(RUNTIME), search._prepared
    assert prepared is not None
    asked = 1 + 0.01 * divisions(prepared.grid, trains)
    for pool in prepared.pools:
        memory = catalog.accelerator(pool.key).memory_bytes
        weighed = {
            row: timed.seconds[row] * asked[row] / memory_of(parts).chance_within(memory)
            for row, parts in _parts_by_row(prepared.memory, pool.start, pool.stop)
            if prepared.fits[row]
        }
        fitting = [row for row in range(pool.start, pool.stop) if prepared.fits[row]]
        least = (
            min(fitting, key=lambda row: weighed[row])
            if fitting
            else min(range(pool.start, pool.stop), key=lambda row: prepared.need[row])
        )
        best = search.best(RUNTIME, catalog.accelerator(pool.key), pool.count)
        assert isinstance(best, Found)
        assert best.seconds == pytest.approx(float(timed.seconds[least]))
        assert best.fits == bool(fitting)
        assert (best.considered, best.fitting) == (pool.stop - pool.start, len(fitting))


def _parts_by_row(memory: Mapping[str, Numbers], start: int, stop: int) -> Iterator[tuple[int, tuple[tuple[str, float], ...]]]:
    for row in range(start, stop):
        yield row, tuple((name, float(part[row])) for name, part in memory.items())


def test_a_plan_that_may_not_fit_is_left_for_one_that_surely_does_and_takes_little_longer() -> None:
    chip = catalog.accelerator("h100-sxm")
    search = Search(intake.read_text("llama-3-8b:train").workload)
    search.prepare([(chip, 8)])
    timed, prepared = search.timed(RUNTIME), search._prepared
    assert prepared is not None
    best = search.best(RUNTIME, chip, 8)
    assert isinstance(best, Found)
    assert memory_of(best.memory).chance_within(chip.memory_bytes) > SURE
    fastest = int(np.where(prepared.fits, timed.seconds, np.inf).argmin())
    parts = tuple((name, float(part[fastest])) for name, part in prepared.memory.items())
    assert memory_of(parts).chance_within(chip.memory_bytes) < 0.75
    assert best.seconds < 1.1 * timed.seconds[fastest]


@pytest.mark.parametrize("runtime", ["jax", "torch-eager", "torch-compile", "tf-xla", "keras-jax", "mxnet"])
def test_terms_of_a_plan_add_up_to_its_step_and_its_bounds_hold_its_roofline(runtime: str) -> None:
    best = found(transformer(), catalog.accelerator("h100-sxm"), 8, runtime)
    assert sum(seconds for _, seconds in best.terms) == pytest.approx(best.seconds)
    assert 0 < best.lower_s <= best.upper_s
    assert best.sigma > 0.05
    assert [seconds for _, seconds in best.others] == sorted(seconds for _, seconds in best.others)


@FEW
@given(st.sampled_from([256, 512, 1024]), st.sampled_from(["h100-sxm", "tpu-v5p", "a100-80"]))
def test_more_chips_never_raise_the_lower_bound_of_arithmetic(batch: int, key: str) -> None:
    chip, workload = catalog.accelerator(key), transformer(batch=batch)
    counts = (1, 2, 4, 8, 16, 32, 64)
    search = Search(workload)
    search.prepare([(chip, count) for count in counts])
    prepared = search._prepared
    assert prepared is not None
    lower = [
        min(one.bounds(row)[0] for one in prepared.passes for row in range(pool.start, pool.stop)) for pool in prepared.pools
    ]
    assert lower == sorted(lower, reverse=True)
    assert lower[0] / lower[-1] == pytest.approx(64)


@FEW
@given(
    st.sampled_from(["h100-sxm", "a100-80", "tpu-v6e", "mi300x"]), st.sampled_from([8, 32]), st.floats(1.1, 10.0), st.booleans()
)
def test_faster_links_never_slow_a_plan(key: str, count: int, factor: float, trains: bool) -> None:
    chip = catalog.accelerator(key)
    assert chip.link_bytes_per_s is not None
    assert chip.internode_bytes_per_s is not None
    faster = replace(
        chip, link_bytes_per_s=chip.link_bytes_per_s * factor, internode_bytes_per_s=chip.internode_bytes_per_s * factor
    )
    workload = transformer(task="train" if trains else "infer", width=4096)
    times = []
    for one in (chip, faster):
        search = Search(workload)
        search.prepare([(one, count)])
        times.append(search.timed(RUNTIME).seconds)
    assert np.all(times[1] <= times[0] * (1 + 1e-9))


@QUICK
@given(st.floats(0.01, 100.0), st.floats(0.1, 1000.0))
def test_a_price_scales_the_cost_of_a_job(price: float, factor: float) -> None:
    step = log_normal(1.5, 0.2, "published", "a test")
    workload = transformer(total=Total(steps=1000.0))
    once, scaled = (cost_of(workload, Pool("h100-sxm", 8, "gpu", each), step) for each in (price, price * factor))
    assert once is not None
    assert scaled is not None
    assert once.mid == pytest.approx(1.5 * 1000 * price / 3600, rel=0.01)
    assert scaled.mid == pytest.approx(once.mid * factor)


def test_the_order_of_pools_changes_nothing() -> None:
    pools = [(catalog.accelerator(key), count) for key in KEYS for count in (1, 8)]
    one, other = Search(transformer()), Search(transformer())
    one.prepare(pools)
    other.prepare([*reversed(pools), pools[0]])
    assert one.plans == other.plans
    for chip, count in pools:
        assert one.best(RUNTIME, chip, count) == other.best(RUNTIME, chip, count)


def test_a_pool_is_priced_alike_alone_and_among_others() -> None:
    chip = catalog.accelerator("tpu-v5p")
    search = Search(transformer())
    search.prepare([(catalog.accelerator(key), count) for key in KEYS for count in (1, 8)])
    among, alone = search.best(RUNTIME, chip, 8), found(transformer(), chip, 8)
    assert isinstance(among, Found)
    assert among.plan == alone.plan
    assert among.seconds == pytest.approx(alone.seconds, rel=1e-12)


@pytest.mark.parametrize("task", ["train", "infer"])
def test_memory_of_the_plain_plan_is_that_of_one_chip(task: str) -> None:
    workload, chip = transformer(batch=1, task=task), catalog.accelerator("h100-sxm")
    search = Search(workload)
    search.prepare([(chip, 1)])
    prepared = search._prepared
    assert prepared is not None
    (row,) = np.flatnonzero(prepared.grid.recompute == 0)[:1]
    told = {name: float(part[row]) for name, part in prepared.memory.items() if part[row] > 0}
    assert told == pytest.approx(dict(memory_parts(model_bytes(workload), Layout(), "gpu")))
    assert float(prepared.need[row]) == pytest.approx(sum(told.values()))
    assert told["runtime reserve"] == CHIP_HABITS["gpu"].reserve_bytes


def test_states_are_divided_by_what_divides_them() -> None:
    workload, chip = transformer(batch=64), catalog.accelerator("h100-sxm")
    search = Search(workload)
    search.prepare([(chip, 8)])
    prepared = search._prepared
    assert prepared is not None
    grid, parameters = prepared.grid, workload.parameter_count
    row = int(np.flatnonzero((grid.sharded == 8) & (grid.tensor == 1) & (grid.micro == 8) & (grid.recompute == 0))[0])
    assert prepared.memory["weights"][row] == pytest.approx(2 * parameters / 8)
    assert prepared.memory["optimizer states"][row] == pytest.approx(8 * parameters / 8)
    half = int(np.flatnonzero((grid.tensor == 2) & (grid.pipeline == 1) & (grid.sharded == 1) & (grid.recompute == 0))[0])
    assert prepared.memory["weights"][half] == pytest.approx(2 * parameters / 2)


@QUICK
@given(
    WORK.filter(lambda work: work.trains), POOL, st.sampled_from([0.0, 0.3, 0.9]), st.sampled_from([0.0, 0.1]),
)  # fmt: skip
def test_all_chips_together_hold_no_less_than_the_model(work: Divisible, chips: Chips, experts: float, tables: float) -> None:
    grid, model = grid_of(work, chips), model_bytes(transformer())
    parts = parts_of(model, grid, float(work.batch), Apart(experts if work.experts > 1 else 0.0, tables), np.zeros(len(grid)))
    whole = {"weights": model.weights, "gradients": model.gradients, "optimizer states": model.states}
    count = grid.data * grid.tensor * grid.pipeline * grid.context
    for name, size in (whole | {"fp32 master weights": model.master}).items():
        assert np.all(parts[name] * count >= size * (1 - 1e-9)), name


def test_where_nothing_fits_the_most_frugal_plan_says_by_how_much() -> None:
    chip = replace(catalog.accelerator("l40s"), key="small", memory_bytes=2.0**30)
    best = found(transformer(width=8192, repeats=64), chip, 8)
    assert not best.fits
    assert best.fitting == 0
    assert sum(size for _, size in best.memory) > 2.0**30


def test_parameters_that_fit_only_when_they_are_divided_are_divided() -> None:
    best = found(transformer(batch=64, width=8192, repeats=32), catalog.accelerator("h100-sxm"), 8)
    assert best.fits
    assert max(best.plan.fsdp, best.plan.tensor, best.plan.pipeline) > 1


@pytest.mark.parametrize(("runtime", "model", "regime", "label", "borrowed"), [
    ("jax", "decoder", "training", "jax/maxtext", False), ("torch-compile", "decoder", "training", "torch/nemo", False),
    ("jax", "decoder", "forward", "jax", False), ("mxnet", "vision", "training", "mxnet", False),
    ("tf-xla", "mixture", "training", "jax/maxtext", True), ("torch-tpu", "other", "training", "jax/maxtext", True),
])  # fmt: skip
def test_a_runtime_takes_the_figures_of_its_own_stack_or_borrows_them(
    runtime: str, model: str, regime: str, label: str, borrowed: bool
) -> None:
    seen = {
        "stack|model_class": frozenset(
            {"jax/maxtext|decoder", "jax/maxtext|mixture", "torch/nemo|decoder", "jax|decoder", "mxnet|vision"}
        )
    }
    told = stack_for(runtime, model, regime, seen)
    assert (told.label, told.borrowed) == (label, borrowed)


def test_a_borrowed_figure_is_slower_and_less_sure() -> None:
    chip = catalog.accelerator("h100-sxm")
    own, borrowed = found(transformer(), chip, 8, "torch-compile"), found(transformer(), chip, 8, "mxnet")
    assert borrowed.tier == "datasheet"
    assert borrowed.sigma > own.sigma


def test_recurrent_layers_are_not_spread_as_experts() -> None:
    assert found(intake.read_text("lstm-lm:train").workload, catalog.accelerator("h100-sxm"), 4).plan.expert == 1


@pytest.mark.parametrize("key", ["l4", "h100-sxm", "tpu-v5p"])
def test_a_head_of_its_own_reads_no_more_for_a_token_than_one_that_shares_the_input_table(key: str) -> None:
    untied = intake.read_text("llama-3-8b:infer").workload
    shared = tuple(
        replace(block, parameter_count=block.parameter_count - 128256 * 4096) if "first token" in block.name else block
        for block in untied.blocks
    )
    one, other = (found(job, catalog.accelerator(key), 1) for job in (untied, replace(untied, blocks=shared)))
    assert one.seconds == pytest.approx(other.seconds, rel=1e-9)
    assert one.lower_s == pytest.approx(other.lower_s, rel=1e-9)
    assert dict(one.memory)["weights"] - dict(other.memory)["weights"] == 2 * 128256 * 4096


def test_twice_the_steps_of_a_recurrent_model_are_twice_the_work() -> None:
    short, long = (
        found(intake.read_text(f"schema: 1\nname: x\ntask: train\nbatch: 256\nlength: {length}\nmodel: {{preset: lstm-lm}}\n")
              .workload, catalog.accelerator("v100-16"), 1)
        for length in (512, 1024)
    )  # fmt: skip
    assert 1.9 < long.arithmetic_s / short.arithmetic_s < 2.1
    assert 1.7 < dict(long.terms)["compute"] / dict(short.terms)["compute"] < 2.3
    assert dict(long.terms)["compute"] > 2 * long.arithmetic_s
