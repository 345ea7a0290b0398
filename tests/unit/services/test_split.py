"""Splits of a workload over pools of the catalog: what holds for every way of dividing, and which questions are refused."""

from pathlib import Path
from typing import Any

import pytest

import intake
from core.errors import BadInput
from core.split import Split, SplitOptions
from services import split, workflows
from services.pools import pools_for

TRAIN: dict[str, Any] = {
    "schema": 1, "task": "train", "model": {"preset": "llama-3-8b"}, "batch": 64, "length": 2048, "dtype": "bf16",
}  # fmt: skip
LEARN = {**TRAIN, "task": "rl", "batch": 128, "length": 4096, "rollouts": {"prompt": 512, "output": 1024, "deviation": 500}}
TABLES = {"schema": 1, "task": "train", "model": {"preset": "dlrm-small"}, "batch": 8192, "dtype": "bf16"}
POOLS = ("h100-sxm=8", "tpu-v6e=16")
CASES = [("data", TRAIN), ("local", TRAIN), ("pipeline", TRAIN), ("operators", TABLES), ("rl", LEARN)]


def planned(document: dict[str, Any], pools: tuple[str, ...] = POOLS, gbps: float | None = 400.0, **options: Any) -> Split:
    link = {} if gbps is None else {"link_bytes_per_s": gbps * 0.125e9, "link_latency_s": 1e-4}
    return split.planned(document, SplitOptions(pools, **link, **options), None, (), (), ())[0]


def seconds(told: Split) -> float:
    assert told.seconds is not None
    return told.seconds.mid


@pytest.mark.parametrize(("mode", "document"), CASES)
def test_shares_sum_to_one_and_terms_to_the_step(mode: str, document: dict[str, Any]) -> None:
    told = planned(document, mode=mode)
    assert told.mode == mode
    assert sum(share.fraction for share in told.shares) == pytest.approx(1.0)
    assert sum(value for _, value in told.terms) == pytest.approx(seconds(told), rel=1e-6)
    assert told.seconds is not None
    assert told.seconds.low < told.seconds.mid < told.seconds.high
    assert told.timeline
    assert {bar.kind for bar in told.timeline} <= {"compute", "move", "wait", "update"}


@pytest.mark.parametrize(("mode", "document"), CASES)
def test_the_order_of_pools_changes_nothing_but_their_order(mode: str, document: dict[str, Any]) -> None:
    there, back = planned(document, mode=mode), planned(document, POOLS[::-1], mode=mode)
    assert seconds(there) == pytest.approx(seconds(back), rel=1e-9)
    assert there.verdict == back.verdict
    first, second = ({(one.pool, round(one.fraction, 9)) for one in told.shares} for told in (there, back))
    assert first == second


@pytest.mark.parametrize(("mode", "document"), CASES)
def test_a_faster_link_never_makes_a_plan_slower(mode: str, document: dict[str, Any]) -> None:
    steps = [seconds(planned(document, gbps=gbps, mode=mode)) for gbps in (1.0, 30.0, 1000.0)]
    assert steps == sorted(steps, reverse=True)


def test_with_a_free_link_the_batch_is_done_at_the_rate_of_both() -> None:
    told = planned({**TRAIN, "batch": 1024}, gbps=1e6, mode="data")
    alone = [one.seconds.mid for one in told.singles if one.seconds is not None]
    assert len(alone) == 2
    ideal = 1 / sum(1 / value for value in alone)
    assert ideal <= seconds(told) <= 1.06 * ideal  # shares come in whole rows of sixteen chips


def test_the_saving_is_that_of_the_figures_that_are_shown() -> None:
    told = planned(TRAIN, mode="data")
    assert told.best_single is not None
    assert told.best_single.seconds is not None
    assert told.saving == pytest.approx(1 - seconds(told) / told.best_single.seconds.mid)
    assert (told.verdict == "hybrid") == (told.saving >= told.least_saving)
    assert planned(TRAIN, mode="data", least_saving=0.99).verdict == "single"


def test_a_slow_link_turns_the_verdict_where_the_break_even_says() -> None:
    told = planned(TRAIN, mode="data")
    at = next(one.at for one in told.break_even if one.what == "bandwidth")
    assert at is not None
    assert told.best_single is not None
    assert told.best_single.seconds is not None
    alone = told.best_single.seconds.mid
    assert seconds(planned(TRAIN, gbps=at * 8e-9 * 1.05, mode="data")) < alone
    assert seconds(planned(TRAIN, gbps=at * 8e-9 * 0.95, mode="data")) > alone


def test_bits_that_must_be_equal_forbid_every_split_of_unlike_chips() -> None:
    told = planned({**TRAIN, "existing": {"framework": "jax", "ops": ["deterministic"]}})
    assert told.verdict == "single"
    assert "R132" in {verdict.rule for verdict in told.verdicts}


def test_a_model_that_fits_on_neither_pool_alone_is_divided() -> None:
    told = planned(TRAIN, ("h100-sxm=1", "tpu-v5e=8"))
    assert (told.verdict, told.mode, told.best_single) == ("hybrid", "pipeline", None)
    assert all(not one.feasible for one in told.singles)
    assert all(share.memory_bytes is not None for share in told.shares)


def test_without_a_given_link_that_of_the_hosts_is_taken_and_said() -> None:
    told = planned(TRAIN, gbps=None, mode="data")
    assert told.link is not None
    assert any(text.startswith("link between") and "R107" in text for text in told.missing)


def test_a_deadline_that_only_both_pools_meet_is_met_by_both() -> None:
    job = {**TRAIN, "total": {"steps": 10000}}
    free = planned(job, mode="data")
    assert free.best_single is not None
    assert free.best_single.seconds is not None
    deadline_h = (seconds(free) + free.best_single.seconds.mid) / 2 * 10000 / 3600
    told = planned({**job, "targets": {"deadline_h": deadline_h}}, mode="data")
    assert all(not one.feasible for one in told.singles)
    assert (told.verdict, told.best_single) == ("hybrid", None)
    assert "no pool alone will do" in told.sentence


def test_a_deadline_without_a_total_is_told_as_not_counted() -> None:
    told = planned({**TRAIN, "targets": {"deadline_h": 1}}, mode="data")
    assert any(why.startswith("whether the deadline of 1 h is kept: not counted, since no total was") for why in told.missing)


def test_a_deadline_that_even_both_pools_miss_is_told() -> None:
    told = planned({**TRAIN, "total": {"steps": 10000}, "targets": {"deadline_h": 0.5}}, mode="data")
    assert told.verdict == "single"
    assert any("misses the deadline of 0.5 h" in text for text in told.missing)


@pytest.mark.parametrize(("pools", "options", "said"), [
    (("h100-sxm=8",), {}, "1 pools"),
    (("h100-sxm=8", "tpu-v6e=3"), {}, "a count that a slice has"),
    (("h100-sxm=8", "no-such-chip=2"), {}, "no-such-chip"),
    (("h100-sxm=8@no-such", "tpu-v6e=16"), {}, "runtime 'no-such'"),
    (POOLS, {"mode": "serving"}, "mode serving for task train"),
    (POOLS, {"mode": "sideways"}, "mode 'sideways'"),
    (POOLS, {"least_saving": 1.5}, "least saving"),
])  # fmt: skip
def test_a_question_that_cannot_be_planned_is_one_line(pools: tuple[str, ...], options: dict[str, Any], said: str) -> None:
    with pytest.raises(BadInput) as caught:
        planned(TRAIN, pools, **options)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("task", "said"), [("rl", "rollouts"), ("serve", "requests_per_s")])
def test_what_a_task_needs_for_its_plan_is_asked_for(task: str, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        planned({**{key: value for key, value in TRAIN.items() if task == "rl" or key != "length"}, "task": task})


def test_a_model_that_generates_is_not_cut_into_layers() -> None:
    told = planned({**TRAIN, "task": "infer", "length": None, "prompt": 200, "output": 100}, mode="pipeline")
    assert told.verdict == "single"
    assert told.seconds is None


def test_a_price_that_the_workload_names_is_the_price() -> None:
    mine = [{"accelerator": "h100-sxm", "count": 8, "price_usd_per_h": 1.0}]
    told = planned({**TRAIN, "pools": mine, "objective": "cost"}, mode="data")
    assert told.best_single is not None
    assert told.best_single.pool.price_usd_per_h == pytest.approx(8.0)
    assert {share.pool.price_usd_per_h for share in told.shares if share.pool.accelerator == "h100-sxm"} == {8.0}


def test_each_pool_alone_is_priced_as_advice_prices_it() -> None:
    told = planned(TRAIN, mode="data")
    pools = pools_for(intake.read_document(TRAIN), (), ",".join(POOLS))
    assert [one.pool for one in told.singles] == list(pools)


def test_pools_of_the_workload_are_taken_where_none_is_given() -> None:
    named = [{"accelerator": "h100-sxm", "count": 8}, {"accelerator": "tpu-v6e", "count": 16}]
    assert planned({**TRAIN, "pools": named}, (), mode="data").sentence == planned(TRAIN, mode="data").sentence


WORKFLOW = """
schema: 1
workflow: two stages
objective: cost
pools:
  - {name: tpu, accelerator: tpu-v6e, count: 16, price_usd_per_h: 2.0}
  - {name: gpu, accelerator: h100-sxm, count: 8, price_usd_per_h: 5.0}
links: [{between: [tpu, gpu], gbps: 8}]
stages:
  - {name: train, seconds: {tpu: 3600, gpu: 7200}, bytes: 1.0e9}
  - {name: serve, after: [train], seconds: {tpu: 9000, gpu: 1800}}
"""


def test_a_workflow_is_placed_and_its_price_is_arithmetic(tmp_path: Path) -> None:
    path = tmp_path / "flow.yaml"
    path.write_text(WORKFLOW, encoding="utf-8")
    assert workflows.recognised(str(path))
    told = workflows.plan_file(str(path))
    assert {share.pool.accelerator: share.detail for share in told.shares} == {"tpu-v6e": "train", "h100-sxm": "serve"}
    assert told.cost_usd is not None
    assert told.cost_usd.mid == pytest.approx(32.0 + 20.0)
    assert seconds(told) == pytest.approx(3600 + 1.0 + 1800, rel=1e-3)
    # all on GPUs 2.5 h of 40 USD; all on TPUs 3.5 h of 32 USD
    assert told.best_single is not None
    assert told.best_single.cost_usd is not None
    assert told.best_single.cost_usd.mid == pytest.approx(100.0)
    assert told.verdict == "hybrid"


def test_a_workload_is_no_workflow(tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    path.write_text("schema: 1\ntask: train\nmodel: {preset: mlp}\n", encoding="utf-8")
    assert not workflows.recognised(str(path))
    assert not workflows.recognised("gpt2-small:train")
