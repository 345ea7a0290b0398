"""A configuration that nobody could trace is refused with the standard library alone, and what a model may have is not."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from core.errors import BadInput
from core.ops import COMPUTE_DTYPES
from intake.readers.hugging_face_values import DTYPES, read
from intake.source import BytesSource

ROOT = Path(__file__).parents[4]
LLAMA = {"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 100}


def checked(changes: dict[str, object], **options: object) -> dict[str, object]:
    return read(BytesSource("config.json", json.dumps({**LLAMA, **changes}).encode()), options)


@pytest.mark.parametrize("changes", [
    {"hidden_size": 0}, {"hidden_size": -64}, {"hidden_size": "64"}, {"hidden_size": 64.5}, {"hidden_size": True},
    {"num_attention_heads": 0}, {"vocab_size": -1}, {"num_hidden_layers": -1}, {"num_hidden_layers": "two"},
    {"hidden_size": 10**9, "vocab_size": 10**9}, {"hidden_size": 10**8, "num_hidden_layers": 100}, {"num_hidden_layers": 10**6},
    {"intermediate_size": 10**12}, {"text_config": {"hidden_size": 0}}, {"vision_config": {"patch_size": -1}},
    {"hidden_size": [64, 0]}, {"model_type": 7}, {"model_type": None},
])
def test_a_size_that_no_model_has_is_refused(changes: dict[str, object]) -> None:
    with pytest.raises(BadInput) as refused:
        checked(changes)
    assert len(str(refused.value)) < 400


@pytest.mark.parametrize("changes", [
    {}, {"head_dim": None}, {"num_hidden_layers": 0}, {"intermediate_size": [128, 256]}, {"max_position_embeddings": -1},
    {"hidden_size": 7168, "num_hidden_layers": 61, "vocab_size": 163_840, "intermediate_size": 18_432},
    {"text_config": {"hidden_size": 64}}, {"initializer_range": 0.02}, {"rope_scaling": {"factor": 8.0}}, {"eos_token_id": -1},
])
def test_what_a_model_may_have_is_let_through(changes: dict[str, object]) -> None:
    assert checked(changes) == {}


def test_a_whole_number_of_any_length_is_told_in_a_few_characters() -> None:
    with pytest.raises(BadInput, match="num_hidden_layers of 997 bits"):
        read(BytesSource("config.json", b'{"model_type": "llama", "num_hidden_layers": 1' + b"0" * 300 + b"}"), {})


def test_an_unknown_model_is_told_with_those_that_are_near() -> None:
    with pytest.raises(BadInput, match="got model_type 'lama'; expected one that transformers contains, such as llama"):
        checked({"model_type": "lama"}, known=["llama", "bert"])


@pytest.mark.parametrize("known", [["llama"], []])
def test_a_known_model_or_an_unknown_list_is_let_through(known: list[str]) -> None:
    assert checked({}, known=known) == {}


@pytest.mark.parametrize("options", [{"dtype": "int3"}, {"dtype": 4}, {"phase": "dream"}])
def test_an_option_that_cannot_be_used_is_refused(options: dict[str, object]) -> None:
    with pytest.raises(BadInput, match=next(iter(options))):
        checked({}, **options)


def test_every_dtype_of_a_workload_can_be_asked_for() -> None:
    assert {*DTYPES} == {*COMPUTE_DTYPES}


def test_refusing_loads_no_framework() -> None:
    code = ("import sys; from intake.source import BytesSource; from intake.readers.hugging_face_values import read\n"
            "try: read(BytesSource('config.json', b'{'), {})\nexcept Exception as error: print(type(error).__name__)\n"
            "print(sorted({'torch', 'transformers', 'jax', 'numpy'} & {*sys.modules}))")  # fmt: skip
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.split("\n")[:2] == ["BadInput", "[]"]
