"""Configurations of transformers' own architectures, small ones: sizes, symbols, experts, caches, and what is refused."""

import json
from typing import Any

import pytest

from core.errors import BadInput
from core.graph import Graph
from core.graph_json import graph_from_json
from core.ops import Op
from core.symbols import BATCH, LENGTH, value_of
from intake.readers import hugging_face_config as reader
from intake.readers.hugging_face_values import checked_config
from intake.source import BytesSource

pytest.importorskip("transformers")

TINY: dict[str, Any] = {"num_hidden_layers": 2, "hidden_size": 32, "num_attention_heads": 4, "num_key_value_heads": 2,
                        "intermediate_size": 64, "vocab_size": 100}  # fmt: skip


def read(config: dict[str, Any], **options: object) -> Graph:
    found = graph_from_json(reader.read(BytesSource("config.json", json.dumps(config).encode()), options))
    assert isinstance(found, Graph)
    return found


def flop(found: Graph, phase: str, **values: int) -> int:
    sizes = {**dict(found.symbols), **values}
    return sum(Op(one.kind, tuple(value_of(extent, sizes) for extent in one.dims), "fp32").flop
               for one in found.nodes if one.phase == phase and one.kind in ("matmul", "conv", "attention"))


@pytest.fixture(scope="module")
def llama() -> Graph:
    config = {"model_type": "llama", "architectures": ["LlamaForCausalLM"], **TINY, "num_hidden_layers": 6,
              "auto_map": {"AutoModel": "evil.Model"}, "quantization_config": {"bits": 4}, "dtype": "bfloat16"}  # fmt: skip
    return read(config, length=24)


def test_a_decoder_has_the_work_of_its_layers_and_head(llama: Graph) -> None:
    tokens, pairs = 3 * 40, 3 * 40 * 40
    layer = tokens * 2 * (2 * 32 * 32 + 2 * 32 * 16 + 3 * 32 * 64) + pairs * 4 * 32
    expected = 6 * layer + tokens * 2 * 32 * 100
    assert flop(llama, "forward", batch=3, length=40) == expected
    assert flop(llama, "backward", batch=3, length=40) == 2 * expected
    assert llama.symbols == ((BATCH, 1), (LENGTH, 24))


def test_its_parameters_are_those_of_the_class_and_its_cache_grows_by_keys_and_values(llama: Graph) -> None:
    own = sum(value_of(one.shape[0], {}) * (value_of(one.shape[1], {}) if len(one.shape) > 1 else 1)
              for one in llama.tensors if one.role == "parameter")
    assert own == 2 * 100 * 32 + 6 * (2 * 32 * 32 + 2 * 32 * 16 + 3 * 32 * 64 + 2 * 32) + 32
    assert dict(llama.facts) == {"parameters": own, "kv_cache_bytes_per_token": 6 * 2 * 2 * 8 * 2}
    assert {one.dtype for one in llama.tensors if one.role == "parameter"} == {"bf16"}


def test_what_a_config_names_beside_its_sizes_is_left_out_and_said(llama: Graph) -> None:
    assert llama.title == "LlamaForCausalLM"
    assert [note.split(":")[0] for note in llama.notes[:2]] == ["code of its own (auto_map) is not run",
                                                                "quantisation of the checkpoint is not counted"]


def test_every_operation_of_a_layer_knows_its_layer(llama: Graph) -> None:
    scopes = {node.scope for node in llama.nodes if node.kind == "matmul" and node.phase == "backward"}
    assert {f"model.layers.{layer}.mlp.down_proj" for layer in range(6)} <= scopes


def test_the_memory_that_the_backward_pass_needs_outlives_the_forward_pass(llama: Graph) -> None:
    last = max(at for at, node in enumerate(llama.nodes) if node.phase == "forward")
    saved = [one for at, one in enumerate(llama.tensors) if one.role == "value" and one.storage == at and one.dies is not None
             and one.dies > last and any(at in node.outputs for node in llama.nodes[:last])]  # fmt: skip
    assert len(saved) > 6 * 8


def test_decoding_multiplies_one_token_and_attends_to_all_that_the_cache_holds() -> None:
    found = read({"model_type": "llama", **TINY}, phase="decode", context=40)
    attention = [node for node in found.nodes if node.kind == "attention"]
    assert [tuple(value_of(one, {BATCH: 3, LENGTH: 50}) for one in node.dims) for node in attention] == [(3, 4, 2, 1, 51, 8)] * 2
    assert {node.dims[1] for node in found.nodes if node.kind == "matmul"} == {found.tensors[0].shape and attention[0].dims[0]}
    assert not found.has_backward


def test_a_mixture_of_experts_does_the_work_of_those_that_a_token_uses() -> None:
    found = read({"model_type": "mixtral", **TINY, "num_local_experts": 8, "num_experts_per_tok": 2}, length=16)
    experts = [node for node in found.nodes if node.op == "aten._grouped_mm"]
    assert [tuple(value_of(one, {BATCH: 3, LENGTH: 16}) for one in node.dims) for node in experts] \
        == [(1, 2 * 48, 128, 32), (1, 2 * 48, 32, 64)] * 2
    facts = dict(found.facts)
    one = 3 * 32 * 64
    assert facts["parameters"] - facts["active_parameters"] == 2 * 6 * one
    assert (facts["experts"], facts["experts_per_token"]) == (8, 2)
    assert f"mixture of experts: active parameters {facts['active_parameters']}" in found.notes


def test_an_image_model_follows_the_batch_alone() -> None:
    labels = {str(at): str(at) for at in range(7)}
    config = {"model_type": "vit", **TINY, "image_size": 32, "patch_size": 8, "id2label": labels}
    del config["num_key_value_heads"]
    found = read(config)
    assert found.symbols == ((BATCH, 1),)
    tokens = 3 * 17
    layer = tokens * 2 * (4 * 32 * 32 + 2 * 32 * 64) + 3 * 17 * 17 * 4 * 32
    assert flop(found, "forward", batch=3) == 2 * layer + 3 * 2 * (16 * 32 * 3 * 64 + 32 * 7)


def test_a_state_space_model_scans_as_one_operation() -> None:
    sizes = {"num_hidden_layers": 2, "hidden_size": 32, "state_size": 4, "vocab_size": 100}
    found = read({"model_type": "mamba", **sizes}, length=16)
    scans = [node for node in found.nodes if node.op == "selective_scan"]
    assert {mark for node in scans for mark in node.marks} == {"serial_scan"}
    assert [value_of(node.dims[0], {BATCH: 3, LENGTH: 10}) for node in scans if node.kind == "matmul"] == [30, 30]
    assert found.symbols == ((BATCH, 1), (LENGTH, 16))


def test_for_the_processor_a_state_space_model_steps_from_token_to_token() -> None:
    sizes = {"num_hidden_layers": 1, "hidden_size": 16, "state_size": 4, "vocab_size": 100}
    found = read({"model_type": "mamba", **sizes}, length=6, phase="infer", kernels="processor")
    assert not any(node.op == "selective_scan" for node in found.nodes)


@pytest.mark.parametrize(("config", "message"), [
    ({"model_type": "lama"}, "llama"),
    ({"model_type": 7}, "model_type"),
    ({}, "model_type"),
    ({"model_type": "llama", **TINY, "num_attention_heads": 5}, "transformers refuses"),
    ({"model_type": "llama", **TINY, "num_hidden_layers": 10**7}, "at most 2000"),
    ({"model_type": "llama", **TINY, "vocab_size": 10**15}, "at most 1000000000"),
    ({"model_type": "llama", **TINY, "hidden_size": "wide"}, "whole number from 1"),
])  # fmt: skip
def test_a_config_that_cannot_be_used_is_refused_in_one_line(config: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput, match=message) as found:
        read(config)
    assert "\n" not in str(found.value)


@pytest.mark.parametrize("options", [{"phase": "dream"}, {"batch": 0}, {"length": True}, {"dtype": "int3"}])
def test_an_option_that_cannot_be_used_is_refused(options: dict[str, object]) -> None:
    with pytest.raises(BadInput, match=next(iter(options))):
        read({"model_type": "llama", **TINY}, **options)


@pytest.mark.parametrize("data", [b"", b"[]", b"7", b"{", b'{"model_type": "llama", "model_type": "bert"}', b"[" * 5000,
                                  b"\xff\xfe"])  # fmt: skip
def test_what_is_no_configuration_is_refused_in_one_line(data: bytes) -> None:
    with pytest.raises(BadInput):
        reader.read(BytesSource("config.json", data), {})


def test_keys_that_choose_code_are_dropped_at_every_depth() -> None:
    config = {"model_type": "clip", "trust_remote_code": True, "text_config": {"auto_map": {"a": "b"}, "x": 1}}
    kept, notes = checked_config(config)
    assert kept == {"model_type": "clip", "text_config": {"x": 1}}
    assert notes == []


@pytest.mark.parametrize(("head", "expected"), [
    (b'{"model_type": "bert"}', True), (b'{"architectures": []}', True), (b"PK", False), (b'{"config": 1}', False),
])  # fmt: skip
def test_a_configuration_is_told_by_its_content(head: bytes, expected: bool) -> None:
    assert reader.fits("config.json", head) is expected
