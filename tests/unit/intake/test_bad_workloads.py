"""Every malformed workload gives one clear line that names what is wrong."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from core.errors import BadInput
from core.workload import Workload
from intake import read_document, read_file, read_text
from tests.calls import calls_of

FOLDER = Path(__file__).parents[2] / "samples" / "workloads_bad"
NAMED = {
    "activation_misspelt.yaml": "did you mean 'gelu_tanh'?",
    "anchor.yaml": "anchor or alias in line 1",
    "batch_absurd.yaml": "batch: 123456789012",
    "batch_as_text.yaml": "batch: 'eight'",
    "batch_fraction.yaml": "batch: 2.5",
    "batch_infinite.yaml": "batch: inf",
    "batch_missing.yaml": "no key 'batch'",
    "batch_negative.yaml": "batch: -4",
    "batch_not_a_number.json": "NaN",
    "batch_true.yaml": "batch: True",
    "batch_zero.yaml": "batch: 0",
    "block_of_unknown_kind.yaml": "did you mean 'lstm_layer'?",
    "block_without_size.yaml": "'hidden'",
    "blocks_empty.yaml": "model.blocks: []",
    "blocks_not_mappings.yaml": "model.blocks[0]: 'lstm_layer'",
    "config_not_found.yaml": "nowhere.json",
    "config_of_unknown_type.yaml": "such as llama",
    "config_without_sizes.yaml": "num_hidden_layers",
    "deep.json": "nested deeper than 20",
    "deep.yaml": "more than 20 levels",
    "dtype_cannot_train.yaml": "'int4'",
    "dtype_misspelt.yaml": "did you mean 'bf16'?",
    "empty.yaml": "empty text",
    "framework_misspelt.yaml": "did you mean 'pytorch'?",
    "heads_do_not_group.yaml": "kv_heads: 5",
    "huge_number.json": "5,001 digits",
    "huge_number.yaml": "5,001 digits",
    "image_cannot_be_halved.yaml": "image: 250",
    "image_not_in_patches.yaml": "image: 225",
    "key_twice.json": "key 'batch' twice",
    "key_twice.yaml": 'duplicate key "batch"',
    "length_for_images.yaml": "length: 128",
    "length_negative.yaml": "length: -1",
    "length_over_positions.yaml": "length: 4096",
    "list_at_top.yaml": "['a', 'b']",
    "model_as_text.yaml": "model: 'gpt2-small'",
    "model_empty.yaml": "model: {}",
    "model_file.yaml": "a model file that can be read",
    "model_missing.yaml": "no key 'model'",
    "model_twice.yaml": "preset and params",
    "name_is_a_date.yaml": "name: '2026-11-30'",
    "name_too_long.yaml": "name: 'xxx",
    "name_with_lines.json": "name: 'two\\nlines'",
    "not_json.json": "line 1 column 46",
    "not_text.yaml": "not UTF-8",
    "not_yaml.yaml": "in line 2",
    "number_as_key.yaml": "document: 8",
    "number_at_top.json": "[42]",
    "objective_misspelt.yaml": "did you mean 'cost'?",
    "only_a_comment.yaml": "document: None",
    "optimizer_misspelt.yaml": "'adamv'",
    "optimizer_none_when_training.yaml": "optimizer: 'none'",
    "own_tag.yaml": "the tag !preset",
    "params_absurd.yaml": "model.params: 1e+30",
    "params_negative.yaml": "model.params: -8",
    "pool_count_negative.yaml": "pools[0].count: -16",
    "pool_misspelt.yaml": "did you mean 'tpu-v6e'?",
    "pool_without_accelerator.yaml": "pools[0]",
    "pools_not_a_list.yaml": "pools: 'tpu-v6e=16'",
    "preset_wrong_type.yaml": "model.preset: 7",
    "price_negative.yaml": "price_usd_per_h: -1",
    "prompt_and_output_over_positions.yaml": "prompt + output: 1100",
    "prompt_when_training.yaml": "prompt: 128",
    "schema_of_the_future.yaml": "schema: 9",
    "sizes_absurd.yaml": "4000000000",
    "spot_as_text.yaml": "where.spot: 'yes please'",
    "stages_do_not_match.yaml": "model.channels",
    "tabs.yaml": "line 2, column 1",
    "tag.yaml": "the tag tag:yaml.org",
    "task_misspelt.yaml": "did you mean 'train'?",
    "tokens_of_images.yaml": "total.tokens",
    "total_negative.yaml": "total.steps: -1",
    "total_twice.yaml": "tokens and steps",
    "two_documents.yaml": "second document",
    "unknown_key.yaml": "did you mean 'batch'?",
    "unknown_model_key.yaml": "did you mean 'layers'?",
    "unknown_preset.yaml": "did you mean 'gpt2-small'?",
    "unknown_section_key.yaml": "did you mean 'deadline_h'?",
    "version_without_quotes.yaml": "existing.versions.cuda: 12.4",
}


def _refused(text: str, calls: int) -> BadInput:
    """Return the refusal of a text, which must cost no more than so many calls."""
    caught: list[BadInput] = []

    def read() -> None:
        try:
            read_text(text)
        except BadInput as error:
            caught.append(error)

    assert calls_of(read) < calls
    return caught[0]


def _line(error: BadInput) -> str:
    line = str(error)
    assert line.startswith("got ")
    assert "; expected " in line
    assert line.isprintable()
    assert len(line) < 500
    return line


@pytest.mark.parametrize("name", sorted(path.name for path in FOLDER.iterdir()))
def test_a_malformed_file_gives_one_line_that_names_the_fault(name: str) -> None:
    with pytest.raises(BadInput) as caught:
        read_file(FOLDER / name)
    assert NAMED[name] in _line(caught.value)


def test_a_bomb_of_aliases_is_refused_at_once() -> None:
    lines = ["a: &a [x, x, x, x, x, x, x, x, x]"] + [
        f"{b}: &{b} [{', '.join(['*' + a] * 9)}]" for a, b in zip("abcdefghi", "bcdefghij", strict=True)
    ]
    assert "anchor or alias" in _line(_refused("\n".join(lines), 20_000))


def test_fifty_megabytes_of_text_are_refused_at_once() -> None:
    text = "model: {preset: gpt2-small}\n" * (50_000_000 // 28)
    assert "characters of text" in _line(_refused(text, 400))


def test_a_file_of_fifty_megabytes_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "large.yaml"
    with path.open("wb") as file:
        file.truncate(50_000_000)
    with pytest.raises(BadInput) as caught:
        read_file(path)
    assert "large.yaml: 50,000,000 bytes" in _line(caught.value)


def test_thousands_of_small_values_are_refused_before_most_of_them_are_looked_at() -> None:
    assert "more than 5,000 values" in _line(_refused("model: [" + "1, " * 80_000 + "1]", 2_000_000))


def test_brackets_without_end_are_refused() -> None:
    for text in ("[" * 200_000, "{" * 200_000, '{"a":' * 40_000, "- " * 100_000, "a: " * 80_000):
        with pytest.raises(BadInput) as caught:
            read_text(text)
        _line(caught.value)


def test_a_missing_file_and_a_folder_are_named(tmp_path: Path) -> None:
    for path in (tmp_path / "nowhere.yaml", tmp_path):
        with pytest.raises(BadInput) as caught:
            read_file(path)
        assert path.name in _line(caught.value)


def test_a_pasted_text_opens_no_file(tmp_path: Path) -> None:
    secret = tmp_path / "secret.json"
    secret.write_text('{"model_type": "gpt2"}')
    with pytest.raises(BadInput) as caught:
        read_text(f"model: {{config: {secret}}}\nbatch: 1\nlength: 8")
    assert "paste it as a mapping" in _line(caught.value)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("gpt2-smal", "did you mean 'gpt2-small'?"),
        ("gpt2-small:trian", "did you mean 'train'?"),
        ("batch:8", "preset 'batch'"),
        ("   ", "empty text"),
        ("\x00\x01", "not YAML"),
        ("gpt2-small:train:now", "gpt2-small:train:now"),
    ],
)
def test_a_word_that_is_no_preset_is_named(text: str, named: str) -> None:
    with pytest.raises(BadInput) as caught:
        read_text(text)
    assert named in _line(caught.value)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"model": {"preset": "gpt2-small", "layers": 0}}, "model.layers: 0"),
        ({"model": {"params": True}}, "model.params: True"),
        ({"model": {"preset": "mlp", "hidden": []}}, "model.hidden: []"),
        ({"model": {"preset": "mlp", "hidden": [1] * 2000}}, "model.hidden"),
        ({"model": {"preset": "gpt2-small", "tied": 2}}, "model.tied: 2"),
        ({"model": {"preset": "gpt2-small", "activation": 3}}, "model.activation: 3"),
        ({"model": {"preset": "gpt2-small"}, "length": 8, "prompt": 8, "task": "infer"}, "either length, or prompt and output"),
        ({"model": {"preset": "mlp"}, "image": 8}, "image: 8"),
        ({"model": {"preset": "bert-base"}, "task": "infer", "output": 8}, "output: 8"),
        ({"model": {"layers": 3}}, "one of preset"),
        ({"model": {"presett": "mlp"}}, "did you mean 'preset'?"),
        ({"model": {"preset": "mlp"}, "name": 3}, "name: 3"),
        ({"model": {"preset": "mlp"}, "name": "   "}, "name: ' '"),
        ({"model": {"preset": "mlp"}, "dtype": 16}, "dtype: 16"),
        ({"model": {"preset": "mlp"}, "schema": True}, "schema: True"),
        ({"model": {"preset": "mlp"}, "existing": {"libraries": ["x"] * 300}}, "300 items"),
        ({"model": {"preset": "mlp"}, "existing": {"versions": ["12.4"]}}, "existing.versions"),
        ({"model": {"preset": "mlp"}, "existing": []}, "existing: []"),
        ({"model": {"preset": "mlp"}, "targets": {"deadline_h": "soon"}}, "'soon'"),
        ({"model": {"preset": "mlp"}, "targets": {"deadline_h": float("inf")}}, "deadline_h: inf"),
        ({"model": {"preset": "mlp"}, "targets": {"latency_ms": 5}}, "targets.latency_ms with task train"),
        ({"model": {"preset": "mlp"}, "task": "rl", "targets": {"latency_ms": 5}}, "remove targets.latency_ms, or correct task"),
        ({"model": {"preset": "mlp"}, "targets": {"requests_per_s": 5}}, "expected requests_per_s with task serve alone"),
        ({"model": {"preset": "mlp"}, "task": "infer", "targets": {"requests_per_s": 5}}, "requests_per_s with task infer"),
        ({"model": {"blocks": [{"kind": "class_head", "inputs": 8, "classes": 2, "repeats": 0}]}, "batch": 1}, "repeats: 0"),
        ({"model": {"blocks": [{"inputs": 8}]}, "batch": 1}, "model.blocks[0].kind"),
        (
            {"model": {"blocks": [{"kind": "class_head", "name": "a", "inputs": 8, "classes": 2}] * 2}, "batch": 1},
            "no other block has",
        ),
        ({"model": {"blocks": [{"kind": "class_head", "name": "", "inputs": 8, "classes": 2}]}, "batch": 1}, "name: ''"),
        (
            {"model": {"blocks": [{"kind": "class_head", "inputs": 8, "classes": 2}], "layers": 3}, "batch": 1},
            "unknown key 'layers'",
        ),
        ({"model": {"blocks": "all"}, "batch": 1}, "model.blocks: 'all'"),
        ({"model": {"blocks": [{"kind": "class_head"}]}, "image": 8}, "image: 8"),
        (
            {"model": {"blocks": [{"kind": "class_head", "inputs": 10**9, "classes": 10**9, "repeats": 10**7}]}, "batch": 1},
            "parameters",
        ),
        ({"model": {"preset": "gpt2-small", "positions": 0}, "batch": 10**6, "length": 10**7}, "FLOP"),
        ({"model": {"config": 3}, "batch": 1}, "model.config: 3"),
        ({"model": {"config": {"hidden_size": 3}}, "batch": 1}, "model_type"),
        ({"model": {"config": {"model_type": "resnet", "layer_type": "basic"}}, "batch": 1}, "layer_type"),
        (
            {"model": {"config": {"model_type": "resnet", "downsample_in_first_stage": True}}, "batch": 1},
            "downsample_in_first_stage",
        ),
        ({"model": {"config": {"model_type": "resnet", "depths": 3}}, "batch": 1}, "model.config.depths: 3"),
        ({"model": {"config": {"model_type": "gpt2", "n_embd": -1}}, "batch": 1}, "n_embd: -1"),
        (
            {
                "model": {
                    "config": {
                        "model_type": "gpt2",
                        "n_embd": 8,
                        "n_layer": 1,
                        "n_head": 1,
                        "vocab_size": 8,
                        "activation_function": "mish",
                    }
                },
                "batch": 1,
            },
            "'mish'",
        ),
        (
            {
                "model": {
                    "config": {
                        "model_type": "gpt2",
                        "n_embd": 8,
                        "n_layer": 1,
                        "n_head": 1,
                        "vocab_size": 8,
                        "tie_word_embeddings": 3,
                    }
                },
                "batch": 1,
            },
            "tie_word_embeddings: 3",
        ),
    ],
)
def test_a_fault_of_a_form_is_named(change: dict[str, object], named: str) -> None:
    with pytest.raises(BadInput) as caught:
        read_document(change)
    assert named in _line(caught.value)


@pytest.mark.parametrize("content", ["[1]", "{", "\udcff", '{"model_type": "gpt2"' + " " * (1024 * 1024) + "}"])
def test_a_configuration_file_that_cannot_be_used_is_named(content: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_bytes(content.encode("utf-8", "surrogateescape"))
    with pytest.raises(BadInput) as caught:
        read_text('{"model": {"config": "config.json"}, "batch": 1, "length": 8}', tmp_path)
    _line(caught.value)


SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8), st.sampled_from(["gpt2-small", "mlp", "train"])
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=6), inner, max_size=3)),
    max_leaves=6,
)
KEYS = st.sampled_from(
    [
        "schema",
        "name",
        "task",
        "batch",
        "length",
        "image",
        "prompt",
        "output",
        "dtype",
        "optimizer",
        "total",
        "existing",
        "data",
        "targets",
        "pools",
        "where",
        "objective",
    ]
)


def _understood_or_refused(read: Callable[[], Workload]) -> None:
    """Whatever was drawn, a preset's own name included: a workload with parameters, or one line."""
    try:
        workload = read()
    except BadInput as error:
        _line(error)
    else:
        assert workload.parameter_count > 0


@settings(max_examples=300, deadline=None)
@given(
    st.dictionaries(KEYS, VALUES, max_size=4),
    st.sampled_from(["gpt2-small", "resnet-50", "mlp"]),
    st.dictionaries(st.sampled_from(["layers", "width", "hidden", "depths", "heads", "tied"]), VALUES, max_size=2),
)
def test_any_document_is_either_understood_or_refused_in_one_line(
    document: dict[str, object], name: str, changes: dict[str, object]
) -> None:
    _understood_or_refused(lambda: read_document({**document, "model": {"preset": name, **changes}}))


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=60))
@example("gpt2-demo:train")
def test_any_text_is_either_understood_or_refused_in_one_line(text: str) -> None:
    _understood_or_refused(lambda: read_text(text).workload)


@settings(max_examples=100, deadline=None)
@given(VALUES)
@example("mlp")
def test_any_json_is_either_understood_or_refused_in_one_line(value: object) -> None:
    _understood_or_refused(lambda: read_text(json.dumps({"model": value})).workload)
