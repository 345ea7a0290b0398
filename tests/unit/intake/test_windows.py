"""Attention that looks back at a window: read out of configurations, and counted in time, FLOPs that are spared, and memory."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import intake
from advisor.memory import model_bytes
from core.sketching import sketch_of
from intake.windows import facts_of_windows, window_words, windows_from, windows_of

MISTRAL: dict[str, Any] = {
    "model_type": "mistral", "hidden_size": 256, "num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 2,
    "intermediate_size": 512, "vocab_size": 1000, "sliding_window": 1024,
}
ALTERNATING = ["sliding_attention", "full_attention"]


@pytest.mark.parametrize(("values", "expected"), [
    ({}, ()),
    ({"sliding_window": None}, ()),
    ({"sliding_window": 4096}, ((1.0, 4096),)),
    ({"sliding_window": 4096, "use_sliding_window": False}, ()),
    ({"model_type": "qwen2", "sliding_window": 4096}, ()),
    ({"model_type": "qwen2", "sliding_window": 4096, "use_sliding_window": True, "num_hidden_layers": 8, "max_window_layers": 6},
     ((0.25, 4096),)),
    ({"sliding_window": 128, "layer_types": ALTERNATING * 3}, ((0.5, 128),)),
    ({"attention_chunk_size": 8192, "layer_types": ["chunked_attention"] * 3 + ["full_attention"]}, ((0.75, 8192),)),
    ({"sliding_window": 512, "layer_types": ["linear_attention"] * 6 + ALTERNATING}, ((0.5, 512),)),
    ({"sliding_window": 512, "layer_types": ["full_attention"] * 4}, ()),
    ({"sliding_window": "wide"}, ()),
])  # fmt: skip
def test_a_configuration_says_which_layers_look_how_far_back(values: dict[str, Any], expected: tuple[Any, ...]) -> None:
    assert windows_of({"model_type": "mistral", "num_hidden_layers": 4, **values}) == expected


def test_facts_of_a_graph_say_the_same() -> None:
    windows = windows_of({"sliding_window": 512, "layer_types": ALTERNATING * 13})
    assert windows_from(dict(facts_of_windows(windows, 26))) == windows
    assert facts_of_windows((), 26) == ()
    assert windows_from({}) == ()
    assert window_words(windows).startswith("attention of 50% of the layers looks back at 512 positions at most")


def serving(**config: Any) -> Any:
    return intake.read_document(
        {"task": "infer", "model": {"config": {**MISTRAL, **config}}, "batch": 8, "prompt": 7000, "output": 1000}
    )


def test_a_cache_keeps_no_more_than_the_window() -> None:
    short, full = serving(), serving(sliding_window=None)
    assert model_bytes(short).cache == pytest.approx(model_bytes(full).cache * 1024 / 8000)
    assert sketch_of(short).windows == ((1.0, 1024),)
    assert any("sliding window" in one for one in short.assumptions)
    assert not any("window" in one for one in full.assumptions)
    assert model_bytes(replace(full, windows=((0.5, 1024),))).cache == pytest.approx(model_bytes(full).cache * (0.5 + 0.064))


def test_a_position_meets_the_keys_of_its_window_alone() -> None:
    short, full = sketch_of(serving()), sketch_of(serving(sliding_window=None))
    assert full.keys(8000) == 4000
    assert short.keys(8000) == pytest.approx((1024 * 512 + (8000 - 1024) * 1024) / 8000)


def test_a_model_that_is_traced_has_the_windows_of_its_class(tmp_path: Path) -> None:
    config = {"model_type": "gemma3_text", "hidden_size": 64, "intermediate_size": 96, "num_attention_heads": 2, "head_dim": 32,
              "num_key_value_heads": 1, "num_hidden_layers": 6, "vocab_size": 1000, "sliding_window": 512}  # fmt: skip
    (tmp_path / "config.json").write_text(json.dumps(config))
    text = "schema: 1\ntask: infer\nmodel: {config: config.json}\nbatch: 2\nlength: 4096\n"
    found = intake.read_text(text, tmp_path).workload
    assert found.windows == ((pytest.approx(5 / 6), 512),)
    full = replace(found, windows=())
    assert model_bytes(found).cache == pytest.approx(model_bytes(full).cache * (1 / 6 + 5 / 6 * 512 / 4096))
