"""Rules about one workload over two unlike pools: each fires where it should and is silent where it should be."""

import re

import pytest

from advisor.rules.case import code_of
from advisor.rules.split_case import SplitCase, asked_split
from advisor.screening import overall, split_verdicts
from tests.unit.advisor.rules.subjects import LLAMA, MLP, RESNET, SPLIT_RULES, WRITES, code, said, side, split

TPU, GPU, AMD, CPU = side("tpu-v6e"), side("h100-sxm"), side("mi300x"), side("cpu-spr-56c")
V5P = side("tpu-v5p")
RL = {**LLAMA, "task": "rl"}
FIRES: dict[str, SplitCase] = {
    "R104": split(TPU, GPU, synchronous=True),
    "R105": split(TPU, GPU, one_program=True),
    "R106": split(CPU, TPU, asked={"existing": {"framework": "jax"}}),
    "R107": split(TPU, GPU),
    "R108": split(GPU, TPU, transfer_bytes=16e9, link_bytes_per_s=25e9, stage_s=2.0),
    "R109": split(TPU, GPU, synchronous=True, link_bytes_per_s=25e9),
    "R110": split(TPU, GPU, synchronous=True),
    "R111": split(GPU, side("h100-sxm", site="elsewhere"), link_bytes_per_s=0.3e9),
    "R112": split(TPU, V5P),
    "R113": split(TPU, GPU, synchronous=False),
    "R114": split(TPU, V5P, link_latency_s=0.04),
    "R119": split(TPU, GPU, RL),
    "R122": split(TPU, GPU, serves_second=True),
    "R123": split(GPU, TPU, serves_second=True),
    "R124": split(TPU, GPU, {**WRITES, "dtype": "int8"}),
    "R125": split(TPU, GPU),
    "R126": split(side("tpu-v6e", runtime="jax"), side("h100-sxm", runtime="torch-compile")),
    "R127": split(TPU, GPU),
    "R128": split(GPU, TPU, WRITES),
    "R129": split(GPU, TPU, {**WRITES, "task": "serve"}),
    "R131": split(TPU, GPU, meets_alone=True, saving=0.1),
    "R132": split(TPU, GPU, reproducible=True),
}
SILENT: dict[str, tuple[SplitCase, ...]] = {
    "R104": (
        split(TPU, GPU, synchronous=False), split(TPU, V5P, synchronous=True), split(GPU, TPU, WRITES, synchronous=True),
        split(TPU, GPU),
    ),
    "R105": (split(TPU, GPU), split(TPU, V5P, one_program=True)),
    "R106": (split(CPU, TPU), split(GPU, TPU, asked={"existing": {"framework": "jax"}})),
    "R107": (split(TPU, V5P), split(GPU, AMD)),
    "R108": (split(GPU, TPU, transfer_bytes=1e9, link_bytes_per_s=25e9, stage_s=2.0), split(GPU, TPU, transfer_bytes=16e9)),
    "R109": (split(TPU, GPU, synchronous=False, link_bytes_per_s=25e9), split(TPU, GPU, synchronous=True)),
    "R110": (split(TPU, GPU, synchronous=False), split(CPU, GPU), split(TPU, GPU, RL)),
    "R111": (split(GPU, AMD, link_bytes_per_s=25e9), split(GPU, AMD), split(GPU, AMD, WRITES, link_bytes_per_s=0.3e9)),
    "R112": (split(TPU, TPU), split(TPU, GPU)),
    "R113": (split(TPU, GPU), split(TPU, V5P, synchronous=False)),
    "R114": (split(TPU, V5P, link_latency_s=1e-4), split(TPU, V5P)),
    "R119": (split(TPU, GPU), split(CPU, GPU, RL), split(TPU, GPU, {**MLP, "task": "rl"})),
    "R122": (split(TPU, GPU), split(GPU, TPU, serves_second=True)),
    "R123": (split(GPU, TPU), split(TPU, GPU, serves_second=True)),
    "R124": (split(TPU, GPU, WRITES), split(TPU, V5P, {**WRITES, "dtype": "int8"})),
    "R125": (split(TPU, V5P), split(CPU, GPU, {**RESNET, "task": "preprocess"})),
    "R126": (split(TPU, GPU), split(side("tpu-v6e", runtime="jax"), side("h100-sxm", runtime="jax"))),
    "R127": (split(CPU, GPU), split(TPU, V5P)),
    "R128": (split(GPU, GPU, WRITES), split(GPU, TPU)),
    "R129": (split(GPU, TPU), split(GPU, AMD, {**WRITES, "task": "serve"})),
    "R131": (
        split(TPU, GPU, meets_alone=True, saving=0.2), split(TPU, GPU, meets_alone=False, saving=0.1),
        split(TPU, GPU, meets_alone=True),
    ),
    "R132": (split(TPU, V5P, reproducible=True), split(TPU, GPU)),
}
COMPARED = [{"accelerator": "tpu-v6e", "count": 8}, {"accelerator": "h100-sxm", "count": 8}]


@pytest.mark.parametrize("identity", sorted(FIRES))
def test_a_rule_fires_on_what_it_is_about(identity: str) -> None:
    found = said(identity, FIRES[identity])
    assert found is not None
    assert found.effect in SPLIT_RULES[identity].facts.effects


@pytest.mark.parametrize(("identity", "silent"), [(key, one) for key, found in SILENT.items() for one in found])
def test_a_rule_is_silent_on_everything_else(identity: str, silent: SplitCase) -> None:
    assert said(identity, silent) is None


def test_every_rule_of_splits_fires_somewhere_and_is_silent_somewhere() -> None:
    assert set(FIRES) == set(SILENT) == set(SPLIT_RULES)


@pytest.mark.parametrize(("rate", "effect"), [(5e9, "exclude"), (9.99e9, "exclude"), (10e9, "warn"), (50e9, "warn")])
def test_a_synchronous_sum_is_refused_below_ten_gigabytes_a_second(rate: float, effect: str) -> None:
    found = said("R109", split(TPU, GPU, synchronous=True, link_bytes_per_s=rate))
    assert found is not None
    assert found.effect == effect


def test_a_sum_that_is_staged_through_hosts_and_priced_is_warned_of_and_not_refused() -> None:
    slow = split(TPU, GPU, synchronous=True, staged=True, link_bytes_per_s=1e9)
    for rule in ("R104", "R109"):
        found = said(rule, slow)
        assert found is not None
        assert found.effect == "warn"


def test_gradients_of_70b_take_5_6_seconds_at_25_gigabytes_a_second() -> None:
    found = said("R109", split(TPU, GPU, {**LLAMA, "model": {"params": 7e10}}, synchronous=True, link_bytes_per_s=25e9))
    assert found is not None
    seconds = re.search(r"in every step: ([\d.]+) s", found.reason)
    assert seconds is not None
    assert float(seconds[1]) == pytest.approx(5.6, rel=0.01)


def test_pools_that_are_only_compared_are_no_split() -> None:
    assert [one.rule for one in overall(code(pools=COMPARED)) if one.rule in SPLIT_RULES] == []


def test_two_kinds_of_pools_under_one_collective_library_are_warned_of_and_not_refused() -> None:
    told = overall(code(RESNET, pools=COMPARED, existing={"libraries": ["horovod"]}))
    assert [(one.effect, one.accelerator) for one in told if one.rule == "R104"] == [("warn", "tpu-v6e + h100-sxm")]
    assert "exclude" not in {one.effect for one in told}


def test_checkpoints_that_move_between_kinds_of_chips_are_told_how() -> None:
    told = {one.rule: one for one in overall(code(pools=COMPARED, existing={"libraries": ["orbax-checkpoint"]}))}
    assert told["R125"].flag == "export_portability"
    assert "R107" in told


def test_no_split_is_asked_for_with_one_kind_of_pool_or_none() -> None:
    assert asked_split(code()) is None
    assert asked_split(code(pools=[{"accelerator": "tpu-v6e", "count": 8}, {"accelerator": "tpu-v5p", "count": 8}])) is None


def test_an_attached_device_is_a_side_by_its_kind() -> None:
    asked = asked_split(code(pools=[{"accelerator": "gpu:0"}, {"accelerator": "tpu-v6e", "count": 8}]))
    assert asked is not None
    assert asked.gpu_and_tpu
    assert asked.names == "1 x gpu:0 and 8 x tpu-v6e"


def test_the_order_of_the_sides_changes_no_refusal() -> None:
    def refused(case: SplitCase) -> set[str]:
        return {one.rule for one in split_verdicts(case) if one.effect == "exclude"}

    there = split(TPU, GPU, synchronous=True, one_program=True, reproducible=True, link_bytes_per_s=1e9)
    back = split(GPU, TPU, synchronous=True, one_program=True, reproducible=True, link_bytes_per_s=1e9)
    assert refused(there) == refused(back) == {"R104", "R105", "R109", "R132"}


def test_verdicts_of_a_split_age_as_others_do() -> None:
    known = split(TPU, GPU, synchronous=True)
    aged = SplitCase(code_of(known.code.workload, "2030-01-01"), known.sides, synchronous=True)
    told = next(one for one in split_verdicts(aged) if one.rule == "R104")
    assert told.reason.endswith("(last checked 2026-11-30, to be checked again since 2027-05-31)")
