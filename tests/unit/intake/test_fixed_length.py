"""A model whose operations change with the length is read for one length, is told by it, and refuses another in one line."""

import json
from pathlib import Path

import pytest

import intake
from core.errors import BadInput

CHUNKED = {
    "model_type": "llama4_text", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
    "head_dim": 16, "intermediate_size": 96, "intermediate_size_mlp": 96, "vocab_size": 1000, "num_local_experts": 4,
    "attention_chunk_size": 32,
}  # fmt: skip
LENGTH = 16
"""Below the chunk, so that longer traces differ."""


@pytest.fixture(scope="module")
def understood(tmp_path_factory: pytest.TempPathFactory) -> intake.Understood:
    folder: Path = tmp_path_factory.mktemp("model")
    (folder / "config.json").write_text(json.dumps(CHUNKED))
    return intake.read_text(f"schema: 1\ntask: train\nmodel: {{config: config.json}}\nbatch: 2\nlength: {LENGTH}\n", folder)


def test_it_counts_tokens_and_keeps_the_cache_of_its_length(understood: intake.Understood) -> None:
    job = understood.workload
    assert f"length is fixed at {LENGTH}: the operations, or their sizes, change with it" in job.assumptions
    assert (job.length, job.unit, job.units_per_step) == (LENGTH, "tokens", 2 * LENGTH)
    assert job.peaks is not None
    assert job.peaks.cache_bytes == 2 * 2 * LENGTH * 2 * (2 * 16) * 2  # layers, samples, positions, keys and values, heads, bf16


def test_its_document_is_read_again_with_this_length_or_none_and_refuses_another(understood: intake.Understood) -> None:
    document = json.loads(understood.document)
    assert intake.read_document(document).length == LENGTH
    assert intake.read_document({**document, "length": None}).length == LENGTH
    with pytest.raises(BadInput, match=r"got length: 32; expected 16, for which the model was read.*with this length"):
        intake.read_document({**document, "length": 32})
