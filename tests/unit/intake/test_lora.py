"""Adapters in a document: how they are said, where they belong, and what of the job they change."""

import json
from pathlib import Path
from typing import Any

import pytest

import intake
from advisor.memory import model_bytes
from core.errors import BadInput
from core.low_rank import LowRank
from intake.picture.packed import unpacked
from services import models, workloads

BASE: dict[str, Any] = {"schema": 1, "task": "finetune", "model": {"preset": "llama-3-8b"}, "batch": 16, "length": 2048}
RANK_16 = LowRank(16, 41_943_040)


@pytest.mark.parametrize("said", [16, {"rank": 16}])
def test_a_rank_is_said_alone_or_by_name(said: object) -> None:
    found = intake.read_document({**BASE, "lora": said})
    assert found.lora == RANK_16
    assert found.trained_parameter_count == RANK_16.parameter_count < found.parameter_count
    assert "adapters of rank 16 on every linear layer are trained, 41.9 M parameters (0.0052 of the model's)" in " ".join(
        found.assumptions
    )
    assert "all weights are trained" not in found.assumptions


MIXTURE = {"model_type": "mixtral", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 1000,
           "num_key_value_heads": 2, "intermediate_size": 96, "num_local_experts": 4, "num_experts_per_tok": 2}  # fmt: skip


def test_a_model_that_was_read_has_the_adapters_that_its_inspection_tells(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(MIXTURE))
    text = "schema: 1\ntask: finetune\nmodel: {config: config.json}\nbatch: 2\nlength: 32\nlora: 8\n"
    found = intake.read_text(text, tmp_path)
    layer = (64 + 64) * 2 + (64 + 32) * 2  # q and o, k and v; the router and the experts are no linear layers
    assert found.workload.lora == LowRank(8, 2 * 8 * layer)
    picture = unpacked(json.loads(found.document)["model"]["picture"])
    assert models.adapter(picture, 8).parameter_count == 2 * 8 * layer
    assert any("every linear layer but the experts', which PEFT passes over" in one for one in found.workload.assumptions)


def test_experts_have_adapters_where_they_are_asked_for(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(MIXTURE))
    text = "schema: 1\ntask: finetune\nmodel: {config: config.json}\nbatch: 2\nlength: 32\nlora: {rank: 8, experts: true}\n"
    found = intake.read_text(text, tmp_path).workload
    layer = (64 + 64) * 2 + (64 + 32) * 2
    experts = 4 * ((64 + 2 * 96) + (96 + 64))  # gate and up in one array, down in another
    assert found.lora == LowRank(8, 2 * 8 * (layer + experts), experts=True)
    assert any("on every linear layer and on the experts are trained" in one for one in found.assumptions)


def test_without_it_all_weights_are_trained() -> None:
    found = intake.read_document(BASE)
    assert found.lora is None
    assert found.trained_parameter_count == found.parameter_count
    assert "all weights are trained" in found.assumptions


@pytest.mark.parametrize(("changes", "said"), [
    ({"lora": 0}, "lora.rank"),
    ({"lora": True}, "lora.rank"),
    ({"lora": {}}, "lora.rank"),
    ({"lora": "big"}, "lora.rank"),
    ({"lora": {"rank": 16, "alpha": 32}}, "alpha"),
    ({"lora": {"rank": 16, "experts": True}}, "a mixture of experts"),
    ({"lora": {"rank": 16, "experts": "all"}}, "lora.experts"),
    ({"lora": 16, "task": "train"}, "write task: finetune"),
    ({"lora": 16, "task": "infer", "length": None, "prompt": 8, "output": 8}, "write task: finetune"),
    ({"lora": 4, "model": {"preset": "resnet-50"}, "length": None, "image": 224}, "linear layers"),
])  # fmt: skip
def test_what_cannot_be_used_is_refused_in_one_line(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(BadInput) as caught:
        intake.read_document({**BASE, **changes})
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_memory_holds_gradients_states_and_master_weights_of_the_adapters_alone() -> None:
    full, adapted = (model_bytes(intake.read_document({**BASE, **more})) for more in ({}, {"lora": 16}))
    trained = RANK_16.parameter_count
    assert (adapted.gradients, adapted.states, adapted.master) == (2 * trained, 8 * trained, 4 * trained)
    assert adapted.weights == full.weights + 2 * trained
    assert adapted.activations == full.activations


def test_the_form_offers_a_rank_where_a_model_is_tuned_and_forgets_it_elsewhere() -> None:
    document = workloads.preset_document("llama-3-8b", "finetune")
    assert "lora.rank" not in {field.path for field in workloads.form_fields(workloads.preset_document("llama-3-8b", "train"))}
    asked = workloads.apply_fields(document, {"lora.rank": 16})
    assert intake.read_document(asked).lora == RANK_16
    (field,) = (field for field in workloads.form_fields({**asked, "lora": 16}) if field.path == "lora.rank")
    assert field.value == 16
    assert "lora" not in workloads.apply_fields({**asked, "lora": 16}, {"lora.rank": None})
    assert "lora" not in workloads.apply_fields(asked, {"task": "train"})
