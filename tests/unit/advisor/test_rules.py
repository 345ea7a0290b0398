"""Rules about frameworks, libraries, formats and steps fire where they should and are silent where they should be."""

from dataclasses import replace

import pytest

from advisor import advise
from advisor.rules import Finding, all_rules
from advisor.rules.case import Case, case_of, code_of, not_older
from core.device import Accelerator
from core.ops import Op
from core.probe import Runtime
from core.workload import PoolRequest
from tests.unit.advisor.cases import GPU, OLD, TPU, chip, existing, pool, question, runtime, tower

TPU7 = chip("tpu-v7", "tpu", "Google", name="TPU7x")
TPU3 = chip("tpu-v3", "tpu", "Google", name="TPU v3")
AMD = chip("mi300x", "gpu", "AMD")
APPLE = chip("m4", "gpu", "Apple")
GRACE = chip("gh200")
B300 = chip("b300", flop_per_s=(("fp64", 1.2e12), ("bf16", 2.25e15), ("int8", 150e12)))
RUBIN = chip("rubin", name="Rubin")
SMALL = chip("l4", flop_per_s=(("fp64", 0.49e12), ("bf16", 121e12)))


def case(identity: str, accelerator: Accelerator, *versions: tuple[str, str], dtype: str = "fp32", **code: object) -> Case:
    named = code.pop("pools", ())
    ops = code.pop("workload_ops", ())
    workload = replace(tower(dtype=dtype), existing=existing(**code), pools=named, ops=ops)  # pyright: ignore[reportArgumentType]
    made: Runtime = runtime(identity, *versions)
    return case_of(workload, code_of(workload), made, accelerator.kind, accelerator)


FIRES = {
    "R001": case("tf-xla", TPU7),
    "R002": case("tf-graph", TPU, ("tensorflow", "2.21.0")),
    "R003": case("keras-tensorflow", TPU, ("tensorflow", "2.19.1")),
    "R004": case("mxnet", AMD),
    "R005": case("mxnet", GPU),
    "R006": case("torch-xla", TPU),
    "R007": case("torch-xla", TPU, versions=(("torch", "2.10.0"),)),
    "R008": case("torch-tpu", TPU, ("torch", "2.10.1")),
    "R009": case("torch-tpu", TPU),
    "R010": case("torch-tpu", TPU3),
    "R011": case("torch-tpu", TPU, libraries=("torch_xla", "torch_tpu")),
    "R012": case("jax", TPU, libraries=("torch_tpu", "jax"), versions=(("jax", "0.12.0.1"),)),
    "R013": case("jax", TPU, libraries=("tpu-inference",), versions=(("jax", "0.12.0"),)),
    "R014": case("jax", TPU, libraries=("flash_attn",)),
    "R015": case("jax", TPU, custom_kernels=("ragged gather",)),
    "R016": case("jax", TPU, dtype="fp64"),
    "R017": case("jax", TPU, ops=("complex128",)),
    "R018": case("jax", TPU, ops=("schur",)),
    "R019": case("jax", B300, dtype="fp64"),
    "R020": case("jax", SMALL, dtype="fp64"),
    "R021": case("torch-tpu", TPU, libraries=("DeepSpeed",)),
    "R022": case("jax", TPU, libraries=("megatron-lm",)),
    "R023": case("torch-xla", TPU, libraries=("pytorch_lightning",)),
    "R024": case("jax", TPU, libraries=("onnxruntime",)),
    "R025": case("torch-eager", AMD, libraries=("onnxruntime-rocm",), versions=(("onnxruntime-rocm", "1.23.1"),)),
    "R026": case("jax", TPU, libraries=("jetstream",)),
    "R027": case("torch-eager", OLD, versions=(("cuda", "13.0"),)),
    "R028": case("jax", APPLE),
    "R029": case("torch-eager", GRACE, versions=(("machine", "x86_64"),)),
    "R030": case("jax", TPU, distinct_shapes=40),
    "R031": case("jax", TPU, ops=("nonzero",)),
    "R032": case("jax", TPU, host_reads_per_step=1),
    "R058": case("jax", B300, dtype="int8"),
    "R059": case("jax", TPU, dtype="fp8"),
    "R062": case("jax", OLD, dtype="fp8"),
    "R064": case("jax", OLD, dtype="bf16"),
    "R065": case("jax", TPU),
    "R102": case("jax", RUBIN),
}
SILENT = {
    "R001": (case("tf-xla", TPU), case("jax", TPU7)),
    "R002": (
        case("tf-graph", TPU, ("tensorflow", "2.20.0")), case("tf-graph", TPU), case("tf-graph", GPU, ("tensorflow", "2.21.0")),
    ),
    "R003": (
        case("tf-graph", TPU, ("tensorflow", "2.21.0")), case("tf-graph", TPU, ("tensorflow-cpu", "2.21.0")),
        case("jax", TPU, ("tensorflow", "2.19.0")),
    ),
    "R004": (case("mxnet", GPU), case("jax", AMD)),
    "R005": (case("mxnet", AMD), case("torch-eager", GPU)),
    "R006": (case("torch-xla", TPU, framework="torch-xla"), case("torch-xla", TPU, libraries=("torch-xla",)), case("jax", TPU)),
    "R007": (case("torch-xla", TPU, ("torch", "2.9.1")), case("torch-xla", TPU), case("torch-tpu", TPU, ("torch", "2.12"))),
    "R008": (
        case("torch-tpu", TPU, ("torch", "2.15.0"), ("python", "3.11")), case("torch-tpu", TPU),
        case("jax", TPU, ("torch", "2.1")),
    ),
    "R009": (case("torch-xla", TPU), case("jax", TPU)),
    "R010": (case("torch-tpu", TPU), case("jax", TPU3)),
    "R011": (case("torch-tpu", TPU, libraries=("torch_tpu",)), case("torch-xla", TPU, libraries=("torch_xla", "jax"))),
    "R012": (
        case("jax", TPU, libraries=("torch_tpu", "jax"), versions=(("jax", "0.10.2"),)), case("jax", TPU, ("jax", "0.12.0.1")),
    ),
    "R013": (
        case("jax", TPU, libraries=("tpu-inference",), versions=(("jax", "0.11.2"),)), case("jax", TPU, ("jax", "0.12.0")),
    ),
    "R014": (case("jax", GPU, libraries=("flash_attn",)), case("jax", TPU, custom_kernels=("pallas",))),
    "R015": (case("jax", GPU, custom_kernels=("ragged gather",)), case("jax", TPU, custom_kernels=("Pallas",))),
    "R016": (case("jax", GPU, dtype="fp64"), case("jax", TPU)),
    "R017": (case("jax", TPU, ops=("complex64",)), case("jax", GPU, ops=("complex128",))),
    "R018": (case("jax", TPU, ops=("eigh",)), case("jax", GPU, ops=("schur",))),
    "R019": (case("jax", GPU, dtype="fp64"), case("jax", B300)),
    "R020": (case("jax", GPU, dtype="fp64"), case("jax", SMALL)),
    "R021": (case("torch-eager", GPU, libraries=("deepspeed",)), case("jax", TPU)),
    "R022": (case("torch-eager", GPU, libraries=("nemo",)), case("jax", TPU)),
    "R023": (case("torch-eager", GPU, libraries=("lightning",)), case("torch-xla", TPU)),
    "R024": (case("torch-eager", GPU, libraries=("onnxruntime",)), case("jax", TPU)),
    "R025": (case("torch-eager", AMD, libraries=("onnxruntime-rocm",)), case("torch-eager", GPU, ("onnxruntime-rocm", "1.23"))),
    "R026": (case("jax", GPU, libraries=("jetstream",)), case("jax", TPU)),
    "R027": (case("torch-eager", OLD, versions=(("cuda", "12.4"),)), case("torch-eager", GPU, versions=(("cuda", "13.0"),))),
    "R028": (case("torch-eager", APPLE), case("jax", GPU)),
    "R029": (case("torch-eager", GRACE), case("torch-eager", GPU, versions=(("machine", "x86_64"),))),
    "R030": (case("jax", TPU, distinct_shapes=10), case("jax", GPU, distinct_shapes=40)),
    "R031": (case("jax", GPU, ops=("nonzero",)), case("jax", TPU, ops=("matmul",))),
    "R032": (case("jax", TPU, host_reads_per_step=0), case("jax", GPU, host_reads_per_step=3)),
    "R058": (case("jax", B300, dtype="bf16"), case("jax", GPU, dtype="int8")),
    "R059": (case("jax", TPU, dtype="bf16"), case("jax", TPU7, dtype="fp8")),
    "R062": (case("jax", GPU, dtype="bf16"), case("jax", TPU, dtype="int8")),
    "R064": (case("jax", GPU, dtype="bf16"), case("jax", OLD, dtype="fp16")),
    "R065": (case("jax", TPU, dtype="bf16"), case("jax", GPU)),
    "R102": (case("jax", GPU), case("jax", TPU)),
}
RULES = {found.id: found for found in all_rules()}


def said(identity: str, about: Case) -> Finding | None:
    """What a rule says of a case, silent outside of what it is about, as the screening takes it."""
    one = RULES[identity]
    return one.check(about) if one.speaks_of(about.runtime.id, about.kind) else None


@pytest.mark.parametrize("identity", sorted(FIRES))
def test_a_rule_fires_on_what_it_is_about(identity: str) -> None:
    found = said(identity, FIRES[identity])
    assert found is not None
    assert found.reason
    assert found.effect in RULES[identity].facts.effects


@pytest.mark.parametrize(("identity", "silent"), [(key, c) for key, found in SILENT.items() for c in found])
def test_a_rule_is_silent_on_everything_else_and_on_what_it_cannot_decide(identity: str, silent: Case) -> None:
    assert said(identity, silent) is None


def test_each_of_these_rules_has_a_case_where_it_fires_and_one_where_it_is_silent() -> None:
    assert set(FIRES) == set(SILENT)


def test_an_fp64_transform_is_refused_on_tpu_even_in_an_fp32_workload() -> None:
    transform = Op("fft", (8, 1024), "fp64")
    found = said("R017", case("jax", TPU, workload_ops=(transform,)))
    assert found is not None
    assert found.effect == "exclude"


@pytest.mark.parametrize(("versions", "word"), [
    ((("torch", "2.16"),), "2.15"), ((("python", "3.10"),), "3.11"), ((("machine", "aarch64"),), "x86-64"),
    ((("os", "darwin"),), "Linux"),
])
def test_torchtpu_says_which_of_its_needs_is_not_met(versions: tuple[tuple[str, str], ...], word: str) -> None:
    found = said("R008", case("torch-tpu", TPU, versions=versions))
    assert found is not None
    assert word in found.reason


def test_a_chip_that_was_announced_is_shown_with_a_warning_when_the_user_names_it() -> None:
    found = said("R102", case("jax", RUBIN, pools=(PoolRequest("rubin", 8),)))
    assert found is not None
    assert found.effect == "warn"


@pytest.mark.parametrize(("known", "wanted", "answer"), [
    ("2.10.0", "2.9", True), ("2.9.1", "2.10", False), ("2.21", "2.21.0", True), ("2.21.0+cpu", "2.21", True),
    ("nightly", "2.0", None),
])
def test_versions_are_compared_as_numbers(known: str, wanted: str, answer: bool | None) -> None:
    assert not_older(known, wanted) is answer


@pytest.mark.parametrize(("effect", "factor"), [("forbid", 1.0), ("penalise", 1.0), ("warn", 0.5), ("penalise", 0.0)])
def test_a_finding_with_a_wrong_effect_or_factor_is_refused(effect: str, factor: float) -> None:
    with pytest.raises(ValueError, match="effect"):
        Finding(effect, "because", factor)


@pytest.mark.parametrize(("effect", "factor", "least"), [("penalise", 0.5, 0), ("warn", 1.0, 2)])
def test_a_size_of_pool_goes_with_a_factor(effect: str, factor: float, least: int) -> None:
    with pytest.raises(ValueError, match="chips at least"):
        Finding(effect, "because", factor, least)


def test_an_excluded_pair_is_listed_with_rule_flag_reason_and_source() -> None:
    workload = replace(tower(), existing=existing(libraries=("deepspeed",)))
    answer = advise(question(workload, pools=(pool("tpu-v6e"), pool("h100-sxm"))))
    out = {(item.runtime, item.accelerator): item for item in answer.excluded}
    assert out["jax", "tpu-v6e"].rule == "R021"
    assert out["jax", "tpu-v6e"].flag == "op_not_lowered"
    assert out["jax", "tpu-v6e"].source
    assert ("jax", "h100-sxm") not in out


def test_what_a_rule_says_of_every_runtime_of_a_chip_is_told_once() -> None:
    answer = advise(question(tower(), pools=(pool("tpu-v6e"), pool("h100-sxm"))))
    told = [verdict for verdict in answer.verdicts if verdict.rule == "R065"]
    assert [(verdict.runtime, verdict.accelerator) for verdict in told] == [("", "tpu-v6e")]


def test_a_penalty_changes_the_order_and_never_a_shown_number() -> None:
    workload = tower(dtype="bf16")
    pools = (pool("tpu-v6e", price=2.0), pool("h100-sxm", price=2.0))
    plain = advise(question(workload, pools=pools))
    reads = advise(question(replace(workload, existing=existing(host_reads_per_step=1, distinct_shapes=40)), pools=pools))
    shown = {e.candidate.label: (e.step_time_s, e.cost_usd) for e in plain.ranked}
    assert {e.candidate.label: (e.step_time_s, e.cost_usd) for e in reads.ranked} == shown
    assert [e.penalty for e in reads.ranked if e.candidate.pools[0].kind == "tpu"] == pytest.approx([0.7 * 0.8] * 2)


@pytest.mark.parametrize(("code", "factor"), [({}, 0.4), ({"framework": "mxnet"}, 0.5), ({"libraries": ("mxnet",)}, 0.5)])
def test_mxnet_is_nothing_for_new_work_and_to_be_left_by_old_work(code: dict[str, object], factor: float) -> None:
    found = said("R005", case("mxnet", GPU, **code))
    assert found is not None
    assert (found.effect, found.factor) == ("penalise", factor)


def test_the_cpu_build_of_tensorflow_tells_its_version_too() -> None:
    assert said("R002", case("tf-xla", TPU, ("tensorflow-cpu", "2.21.0"))) is not None


def test_tensorflow_on_tpu_is_frozen_also_when_no_version_is_known() -> None:
    assert said("R003", case("tf-graph", TPU)) is not None
