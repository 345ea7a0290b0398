"""Rules about a workload in a runtime on a chip of the catalog: each fires where it should and is silent where it should be."""

import pytest

from advisor.rules.case import Case
from tests.unit.advisor.rules.subjects import CASE_RULES, LLAMA, MLP, RESNET, WRITES, case, said

HEADS_64 = {"model": {"preset": "gpt2-small"}, "batch": 64, "length": 1024, "dtype": "bf16", "task": "train"}
CROOKED = {"model": {"blocks": [{"kind": "dense_tower", "widths": [1001, 1001, 1001]}]}, "batch": 1024, "dtype": "bf16",
    "task": "train"}
TABLES = {
    "model": {"blocks": [{"kind": "embedding_bag", "tables": 64, "rows": 1_000_000, "width": 64, "per_bag": 4}]}, "batch": 1024,
        "dtype": "fp32",
    "task": "train",
}
WIDE = {**LLAMA, "model": {"preset": "llama-3-8b", "hidden": 28672}}
TINY = {"model": {"preset": "mlp", "inputs": 4, "hidden": [8, 8], "classes": 1}, "batch": 32, "dtype": "fp32", "task": "train"}


def pools(*named: tuple[str, int]) -> list[dict[str, object]]:
    return [{"accelerator": key, "count": count} for key, count in named]


def deep(**more: object) -> dict[str, object]:
    return {"existing": more}


FIRES: dict[str, Case] = {
    "R033": case("torch-xla", "tpu-v4", existing={"framework": "torch"}),
    "R034": case("torch-tpu", "tpu-v6e"),
    "R035": case("jax", "tpu-v5p", TABLES),
    "R036": case("jax", "tpu-v4", CROOKED),
    "R037": case("jax", "tpu-v5e", {**CROOKED, "batch": 9}),
    "R038": case("jax", "tpu-v5e", {**CROOKED, "batch": 64}),
    "R039": case("jax", "tpu-v6e", HEADS_64),
    "R040": case("jax", "h100-sxm", CROOKED),
    "R042": case("jax", "h100-sxm", {**CROOKED, "batch": 128}),
    "R043": case("jax", "tpu-v5p", existing={"custom_kernels": ["Pallas"]}),
    "R045": case("jax", "tpu-v5e", MLP, total={"steps": 100}),
    "R046": case("torch-xla", "tpu-v4", {**HEADS_64, "model": {"preset": "gpt2-small", "layers": 300}}),
    "R047": case("keras-jax", "tpu-v4"),
    "R048": case("jax", "tpu-v2", TINY),
    "R051": case("jax", "tpu-v5p", TABLES),
    "R052": case("jax", "h100-sxm", {**CROOKED, "batch": 64}),
    "R057": case("jax", "tpu-v7", {**WRITES, "dtype": "int8"}),
    "R060": case("jax", "tpu-v6e", WRITES),
    "R063": case("jax", "h100-sxm", {**WRITES, "dtype": "fp4"}),
    "R067": case("torch-compile", "mi300x"),
    "R070": case("jax", "tpu-v6e"),
    "R074": case("torch-compile", "l40s", optimizer="adamw"),
    "R075": case("jax", "h100-sxm", RESNET, pools=pools(("h100-sxm", 8))),
    "R076": case("jax", "tpu-v6e", pools=pools(("tpu-v6e", 256))),
    "R077": case("jax", "tpu-v5p", WIDE, pools=pools(("tpu-v5p", 512))),
    "R078": case("jax", "tpu-v6e", pools=pools(("tpu-v6e", 16))),
    "R079": case("jax", "h100-sxm", pools=pools(("h100-sxm", 16))),
    "R080": case("jax", "mi300x", pools=pools(("mi300x", 2))),
    "R081": case("jax", "l40s", pools=pools(("l40s", 4))),
    "R082": case("jax", "tpu-v5e", pools=pools(("tpu-v5e", 512))),
    "R083": case("jax", "tpu-v6e", pools=pools(("tpu-v6e", 64))),
    "R084": case("jax", "tpu-v6e", pools=pools(("tpu-v6e", 512))),
    "R085": case("jax", "tpu-v5e", WRITES, pools=pools(("tpu-v5e", 8))),
    "R086": case("jax", "tpu-v6e", existing={"ops": ["host offload"]}),
    "R087": case("torch-tpu", "tpu-v6e", existing={"ops": ["pipeline-parallel"]}),
    "R088": case("jax", "tpu-v5p", {**LLAMA, "batch": 8192}, pools=pools(("tpu-v5p", 8192))),
    "R089": case("jax", "tpu-v6e", RESNET, data={"bytes_per_sample": 110000, "source_bytes_per_s": 1e7}),
    "R090": case("jax", "tpu-v6e", RESNET, data={"decode": "JPEG"}),
    "R091": case("jax", "tpu-v6e", existing={"libraries": ["s3fs"]}),
    "R092": case("jax", "tpu-v7"),
    "R093": case("jax", "tpu-v6e", objective="cost", where={"spot": True}),
    "R094": case("jax", "h100-sxm", where={"spot": True}),
    "R095": case("jax", "h100-sxm", objective="cost"),
    "R096": case("jax", "h100-sxm", where={"clouds": ["runpod"]}, pools=pools(("h100-sxm", 16))),
    "R097": case("jax", "tpu-v7"),
    "R098": case("jax", "tpu-v6e", targets={"budget_usd": 500, "deadline_h": 100}),
    "R099": case("jax", "tpu-v3"),
    "R100": case("jax", "tpu-v5e", existing={"libraries": ["google-cloud-tpu"]}),
    "R103": case("jax", "tpu-v6e", where={"clouds": ["aws"]}),
}
SILENT: dict[str, tuple[Case, ...]] = {
    "R033": (case("torch-xla", "tpu-v4", existing={"framework": "torch-xla"}), case("torch-xla", "tpu-v4"),
        case("jax", "tpu-v4")),
    "R034": (case("torch-compile", "h100-sxm"),),
    "R035": (case("jax", "tpu-v5p"), case("jax", "h100-sxm", TABLES)),
    "R036": (case("jax", "tpu-v4"), case("jax", "h100-sxm", CROOKED)),
    "R037": (case("jax", "tpu-v5e"), case("jax", "h100-sxm", {**CROOKED, "batch": 9})),
    "R038": (case("jax", "tpu-v5e"), case("jax", "tpu-v5e", WRITES)),
    "R039": (case("jax", "tpu-v5p"), case("jax", "h100-sxm", HEADS_64), case("jax", "tpu-v6e", RESNET)),
    "R040": (case("jax", "h100-sxm"), case("jax", "mi300x", CROOKED), case("jax", "h100-sxm", {**CROOKED, "dtype": "fp32"})),
    "R042": (case("jax", "h100-sxm"), case("jax", "tpu-v4", {**CROOKED, "batch": 128})),
    "R043": (case("jax", "tpu-v5p"), case("jax", "h100-sxm", existing={"custom_kernels": ["pallas"]})),
    "R045": (case("jax", "tpu-v5e"), case("jax", "tpu-v5e", total={"steps": 100000}),
        case("jax", "l4", MLP, total={"steps": 100})),
    "R046": (case("torch-xla", "tpu-v4", HEADS_64), case("torch-tpu", "tpu-v4", {**HEADS_64, "model": {"preset": "gpt2-small",
                                                                                                       "layers": 300}})),
    "R047": (case("jax", "tpu-v4"), case("keras-jax", "h100-sxm"), case("keras-jax", "tpu-v4", WRITES)),
    "R048": (case("jax", "tpu-v2"), case("jax", "cpu-spr-56c", TINY), case("jax", "tpu-v4", WRITES)),
    "R051": (case("jax", "tpu-v5p"), case("jax", "cpu-spr-56c", TABLES)),
    "R052": (case("jax", "h100-sxm"), case("jax", "h100-sxm", WRITES), case("jax", "h100-sxm", {**CROOKED, "batch": 512})),
    "R057": (case("jax", "tpu-v6e", {**WRITES, "dtype": "int8"}), case("jax", "tpu-v7", {**WRITES, "dtype": "fp8"})),
    "R060": (case("jax", "tpu-v6e"), case("jax", "tpu-v4", WRITES), case("jax", "tpu-v6e", {**WRITES, "dtype": "int8"})),
    "R063": (case("jax", "b200", {**WRITES, "dtype": "fp4"}), case("jax", "h100-sxm", {**WRITES, "dtype": "fp8"})),
    "R067": (case("torch-compile", "h200"), case("torch-compile", "mi300x", WRITES)),
    "R070": (case("jax", "tpu-v5p"), case("jax", "tpu-v6e", WRITES), case("torch-tpu", "tpu-v6e"),
        case("jax", "tpu-v6e", HEADS_64)),
    "R074": (case("jax", "h100-sxm", RESNET), case("jax", "h100-sxm", WRITES), case("jax", "h100-sxm", optimizer="sgd")),
    "R075": (case("jax", "h100-sxm", RESNET), case("jax", "h100-sxm", pools=pools(("h100-sxm", 8)))),
    "R076": (
        case("jax", "tpu-v6e"), case("jax", "tpu-v6e", pools=pools(("tpu-v6e", 64))),
        case("jax", "h100-sxm", pools=pools(("h100-sxm", 256))),
    ),
    "R077": (case("jax", "tpu-v5p", pools=pools(("tpu-v5p", 64))), case("jax", "tpu-v6e", pools=pools(("tpu-v6e", 512)))),
    "R078": (case("jax", "tpu-v6e"), case("jax", "tpu-v5p", pools=pools(("tpu-v5p", 8))),
             case("jax", "tpu-v6e", RESNET, pools=pools(("tpu-v6e", 16)))),
    "R079": (case("jax", "h100-sxm", pools=pools(("h100-sxm", 8))), case("jax", "gb200", pools=pools(("gb200", 16)))),
    "R080": (case("jax", "mi300x", pools=pools(("mi300x", 8))), case("jax", "mi300x"),
        case("jax", "h100-sxm", pools=pools(("h100-sxm", 2)))),
    "R081": (case("jax", "l40s"), case("jax", "h100-sxm", pools=pools(("h100-sxm", 4)))),
    "R082": (case("jax", "tpu-v5e", pools=pools(("tpu-v5e", 256))), case("jax", "h100-sxm", pools=pools(("h100-sxm", 512)))),
    "R083": (
        case("jax", "tpu-v6e", {**LLAMA, "batch": 256}, pools=pools(("tpu-v6e", 256))),
            case("jax", "tpu-v6e", pools=pools(("tpu-v6e", 8))),
        case("jax", "tpu-v5p", pools=pools(("tpu-v5p", 16))),
    ),
    "R084": (case("jax", "tpu-v6e", pools=pools(("tpu-v6e", 256))), case("jax", "tpu-v5p", pools=pools(("tpu-v5p", 512)))),
    "R085": (case("jax", "tpu-v5e", WRITES), case("jax", "tpu-v5e", pools=pools(("tpu-v5e", 8)))),
    "R086": (case("jax", "tpu-v6e"), case("jax", "h100-sxm", existing={"ops": ["host-offload"]})),
    "R087": (
        case("torch-tpu", "tpu-v6e"), case("torch-xla", "tpu-v4", existing={"ops": ["pipeline-parallel"]}),
        case("torch-tpu", "tpu-v6e", existing={"ops": ["p2p"], "versions": {"torch_tpu": "0.3"}}),
    ),
    "R088": (case("jax", "tpu-v5p", pools=pools(("tpu-v5p", 4096))), case("jax", "tpu-v5p")),
    "R089": (
        case("jax", "tpu-v6e", RESNET, data={"bytes_per_sample": 110000, "source_bytes_per_s": 1e12}),
            case("jax", "tpu-v6e", RESNET),
        case("jax", "tpu-v6e", RESNET, data={"bytes_per_sample": 110000}),
    ),
    "R090": (case("jax", "h100-sxm", RESNET, data={"decode": "jpeg"}), case("jax", "tpu-v6e", data={"decode": "tokenise"})),
    "R091": (case("jax", "h100-sxm", existing={"libraries": ["s3fs"]}), case("jax", "tpu-v6e", existing={"libraries": ["gcsfs"]}),
             case("jax", "tpu:0", existing={"libraries": ["s3fs"]})),
    "R092": (case("jax", "tpu-v6e"),),
    "R093": (case("jax", "tpu-v6e", objective="cost"), case("jax", "tpu-v6e", where={"spot": True}),
             case("jax", "tpu-v6e", objective="cost", where={"spot": True, "clouds": ["aws"]})),
    "R094": (case("jax", "h100-sxm"), case("jax", "h100-sxm", where={"spot": True, "clouds": ["aws"]}),
        case("jax", "l4", where={"spot": True})),
    "R095": (case("jax", "h100-sxm"), case("jax", "h100-sxm", objective="cost", where={"clouds": ["lambda"]})),
    "R096": (
        case("jax", "h100-sxm", where={"clouds": ["runpod"]}, pools=pools(("h100-sxm", 8))),
        case("jax", "h100-sxm", where={"clouds": ["aws"]}, pools=pools(("h100-sxm", 16))),
    ),
    "R097": (case("jax", "tpu-v6e"),),
    "R098": (case("jax", "tpu-v6e"), case("jax", "tpu-v6e", objective="cost", targets={"deadline_h": 10}),
        case("jax", "tpu-v5p", objective="cost")),
    "R099": (case("jax", "tpu-v5e"), case("jax", "tpu:0")),
    "R100": (case("jax", "tpu-v5e"), case("jax", "h100-sxm", existing={"libraries": ["google-cloud-tpu"]})),
    "R103": (case("jax", "tpu-v6e"), case("jax", "tpu-v6e", where={"clouds": ["aws", "gcp"]}),
        case("jax", "h100-sxm", where={"own_only": True}), case("jax", "tpu-v6e", where={"regions": ["us-east-1", "us-east5"]}),
        case("jax", "tpu-v6e", where={"regions": ["a-region-of-a-list-of-my-own"]}),
             case("jax", "tpu:0", where={"own_only": True})),
}


@pytest.mark.parametrize("identity", sorted(FIRES))
def test_a_rule_fires_on_what_it_is_about(identity: str) -> None:
    found = said(identity, FIRES[identity])
    assert found is not None
    assert found.effect in CASE_RULES[identity].facts.effects


@pytest.mark.parametrize(("identity", "silent"), [(key, one) for key, found in SILENT.items() for one in found])
def test_a_rule_is_silent_on_everything_else(identity: str, silent: Case) -> None:
    assert said(identity, silent) is None


def test_each_of_these_rules_fires_somewhere_and_is_silent_somewhere() -> None:
    assert set(FIRES) == set(SILENT)
