"""Which reader a file is for, what a folder is, and what is refused; the reading itself goes through the sandbox."""

import json
import os
from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import Self

import pytest

import intake.files
from core.errors import BadInput
from core.graph_json import graph_to_json
from core.ops import Op
from core.picture import greatest
from core.symbols import value_of
from intake.files import (
    CONFIG_CHECK,
    CONFIG_READER,
    bytes_look_like_model,
    known_types,
    looks_like_model,
    read_config_values,
    read_model_file,
    readers,
    sandbox_level,
    suffixes,
    titles,
)
from intake.sandbox import SandboxLevel
from intake.source import PathSource
from intake.understand import read_file
from tests.unit.intake.picture.sketch import Sketch

SAMPLES = Path(__file__).parents[2] / "samples" / "models"
WEAK = SandboxLevel(1, (), (), ("L2 is missing: files are not confined (Landlock)",))
CONFIG = b'{"model_type": "llama", "hidden_size": 64}'
enough = pytest.mark.skipif(sandbox_level().level < 2, reason="this kernel gives no sandbox in which uploads may be read")


@pytest.mark.parametrize(("path", "reader"), [
    ("gguf/llama.gguf", "gguf"), ("hdf5/latest.h5", "hdf5"), ("jaxpr/images.jaxpr", "jaxpr"), ("keras/shared.keras", "keras"),
    ("onnx/dense.onnx", "onnx"), ("pt2/older.pt2", "pt2"), ("safetensors/llama.safetensors", "safetensors"),
    ("saved_model/frozen.pb", "saved_model"), ("stablehlo/images.mlir", "stablehlo"), ("stablehlo/gradients.mlirbc", "stablehlo"),
    ("safetensors/sharded/config.json", "hugging_face_config"),
    ("safetensors/sharded/model.safetensors.index.json", "safetensors"),
])  # fmt: skip
def test_a_file_is_read_by_the_reader_of_its_format(path, reader):
    found = SAMPLES / path
    assert intake.files._reader_of(found.name, found.read_bytes()[:4096]) == reader
    assert looks_like_model(found)


@pytest.mark.parametrize(("path", "reader"), [
    ("gguf/llama.gguf", "gguf"), ("hdf5/latest.h5", "hdf5"), ("jaxpr/images.jaxpr", "jaxpr"), ("keras/shared.keras", "keras"),
    ("onnx/bert.onnx", "onnx"), ("safetensors/llama.safetensors", "safetensors"),
    ("saved_model/images/saved_model.pb", "saved_model"), ("stablehlo/images.mlir", "stablehlo"),
    ("stablehlo/gradients.mlirbc", "stablehlo"),
])  # fmt: skip
def test_a_file_whose_name_says_nothing_is_known_by_its_content(path, reader):
    head = (SAMPLES / path).read_bytes()[:4096]
    assert intake.files._reader_of("upload", head) == reader
    assert bytes_look_like_model("upload", head)


@pytest.mark.parametrize(("name", "data"), [
    ("train.py", b"import torch\n"), ("workload.json", b'{"schema": 1, "model": {"preset": "gpt2-small"}}'), ("a.txt", b"words"),
    ("empty", b""), ("a.zip", b"PK\x03\x04\x14\x00train.py"), ("model.bin", b"\x80\x02}q\x00."), ("a.yaml", b"model_type: llama"),
    ("picture.png", b"\x89PNG\r\n\x1a\n"), ("weights.pt", b"PK\x03\x04" + b"\0" * 26 + b"archive/data.pkl"),
])  # fmt: skip
def test_what_is_no_model_is_not_taken_for_one(name, data):
    assert not bytes_look_like_model(name, data)


@enough
@pytest.mark.parametrize(("name", "data"), [("weights.pt", b"\x80\x02}q\x00."), ("notes", b"words"), ("", b"")])
def test_bytes_in_no_format_are_refused_with_the_formats_that_are_read(name, data):
    with pytest.raises(BadInput, match=r"in no format that is read; expected one of .*ONNX.*; export the model") as caught:
        read_model_file(data, name)
    assert "\n" not in str(caught.value)


@enough
def test_a_path_that_is_not_there_or_cannot_be_one_is_refused_in_one_line(tmp_path):
    for path, why in ((tmp_path / "gone.onnx", "No such file"), (Path("a\0b.onnx"), "null byte")):
        assert not looks_like_model(path)
        with pytest.raises(BadInput, match=why):
            read_model_file(path)


def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "model")
    assert not looks_like_model(tmp_path / "model")


def folder(at: Path, **files: bytes) -> Path:
    for name, data in files.items():
        (at / name.replace("__", ".")).write_bytes(data)
    return at


@pytest.mark.parametrize(("files", "chosen"), [
    ({"saved_model__pb": b"\x08\x01\x12"}, ("folder", "saved_model")),
    ({"config__json": CONFIG, "model__safetensors": b"\x10\0\0\0\0\0\0\0{"}, ("config.json", "hugging_face_config")),
    ({"model__safetensors": b"\x10\0\0\0\0\0\0\0{", "readme__md": b"x"}, ("folder", "safetensors")),
    # a configuration of something else does not stand before the weights
    ({"config__json": b'{"optimizer": "adamw"}', "model__safetensors": b"\x10\0\0\0\0\0\0\0{"}, ("folder", "safetensors")),
])  # fmt: skip
def test_a_folder_is_known_by_its_files(tmp_path, files, chosen):
    inside = folder(tmp_path, **files)
    assert looks_like_model(inside)
    source, _, reader = intake.files._chosen(inside, inside.name)
    assert isinstance(source, Path)
    assert ("folder" if source == inside else source.name, reader) == chosen


@pytest.mark.parametrize("files", [{}, {"train__py": b"import torch"}, {"config__json": b'{"optimizer": {"type": "AdamW"}}'}])
def test_a_folder_of_code_is_no_model_even_with_a_configuration(tmp_path, files):
    inside = folder(tmp_path, **files)
    assert not looks_like_model(inside)
    with pytest.raises(BadInput, match=r"got the folder .*; expected a folder with a model's saved_model.pb"):
        intake.files._chosen(inside, "code")


def test_a_weak_sandbox_refuses_before_anything_is_opened_unless_it_is_accepted(monkeypatch):
    monkeypatch.setattr(intake.files, "sandbox_level", lambda: WEAK)
    with pytest.raises(BadInput) as caught:
        read_model_file(Path("/nowhere/at/all.onnx"))
    assert "sandbox" in str(caught.value)
    assert str(caught.value).startswith("got ")
    assert str(caught.value).count("; expected ") == 1
    with pytest.raises(BadInput, match="No such file"):
        read_model_file(Path("/nowhere/at/all.onnx"), weak_sandbox=True)


@enough
def test_a_file_becomes_a_picture_with_the_level_of_its_sandbox():
    found = read_model_file(SAMPLES / "jaxpr" / "images.jaxpr")
    values = found.picture.values()
    flop = sum(
        block.repeats * one.count * Op(one.kind, tuple(value_of(side, values) for side in one.dims), "fp32").flop
        for block in found.picture.blocks for one in block.operations if one.kind == "conv" and one.phase == "forward"
    )  # fmt: skip
    assert found.reader == "jaxpr text"
    assert found.weights is None
    assert dict(found.picture.facts)["sandbox_level"] == sandbox_level().level
    # a grouped convolution, and one turned round of which only the places that hold data count
    assert flop == 2 * prod((2, 8, 8, 8, 4 // 2, 9)) + 2 * prod((2, 4, 4, 8, 3, 16))


@enough
def test_weights_whose_names_fit_nothing_are_refused_with_what_would_do():
    header = json.dumps({"a.b": {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 16]}}).encode()
    data = len(header).to_bytes(8, "little") + header + b"\0" * 16
    with pytest.raises(BadInput, match=r"1 tensors whose names fit no architecture .*; give the config.json"):
        read_model_file(data, "mine.safetensors")


class Near:
    """Stands for the sandbox: the reader runs here, and what a library would trace of a configuration is a graph by hand."""

    def __init__(self, reader: str, *, preload: bool = False) -> None:
        self.reader, self.preload = reader, preload

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing is left to close."""

    def read(self, source: Path | bytes, options: Mapping[str, object], name: str) -> object:
        """Return what the reader makes of it."""
        if self.reader == CONFIG_CHECK:
            return {}
        if self.reader != CONFIG_READER:
            assert isinstance(source, Path)
            return readers()[self.reader].read(PathSource(source), {})
        assert isinstance(source, bytes)
        config, training = json.loads(source), options.get("phase") != "infer"
        sketch = Sketch(dtype=str(options["dtype"]))
        x = sketch.product(sketch.given(4, config["hidden_size"]), sketch.weight(config["hidden_size"], config["vocab_size"]))
        if training:
            sketch.each("aten.relu", x)
        return graph_to_json(sketch.graph(x, has_backward=training, notes=(f"traced as {name}",)))


def test_weights_alone_become_the_architecture_that_they_speak_for_and_that_is_said(monkeypatch):
    monkeypatch.setattr(intake.files, "Sandbox", Near)
    found = read_model_file(SAMPLES / "safetensors" / "llama.safetensors", weak_sandbox=True)
    assert found.reader == "safetensors"
    assert found.weights is not None
    guess = found.weights.guess or {}
    assert guess["model_type"] == "llama"
    assert found.picture.parameter_count == guess["hidden_size"] * guess["vocab_size"]
    assert found.picture.notes[0].startswith("the architecture is a guess from names and shapes of parameters: ")
    assert found.picture.notes[-1] == "traced as config.json"


def test_the_forward_pass_of_a_configuration_is_that_of_inference(monkeypatch):
    monkeypatch.setattr(intake.files, "Sandbox", Near)
    config = {"model_type": "llama", "hidden_size": 8, "vocab_size": 16}
    picture = read_config_values(config, {"dtype": "fp32"}, weak_sandbox=True)
    assert [greatest((one,), {"word": 4}) for one in picture.peak_forward] == [4 * 16 * 4]  # the product alone, no loss
    assert not picture.derived
    assert [greatest((one,), {"word": 2}) for one in picture.peak_training] == [2 * 4 * 16 * 2]


def test_every_reader_has_a_title_and_suffixes_with_a_dot():
    assert len(titles()) == len(readers()) >= 11
    assert all(suffix.startswith(".") for suffix in suffixes())


class Shut:
    """Stands for the sandbox: nothing may be read in it but what needs no library."""

    def __init__(self, reader: str, *, preload: bool = False) -> None:
        raise AssertionError(f"{reader} was started")


@enough
@pytest.mark.parametrize(("data", "words"), [
    (b'{"model_type": "llama",', "no JSON"), (b'{"model_type": "lama-9"}', "such as "),
    (b'{"model_type": "llama", "hidden_size": -1}', "whole number from 1"),
])
def test_a_configuration_that_nobody_could_trace_is_refused_before_libraries_are_loaded(monkeypatch, data, words):
    real = intake.files.Sandbox
    monkeypatch.setattr(intake.files, "Sandbox", lambda reader, **_: real(reader) if reader == CONFIG_CHECK else Shut(reader))
    with pytest.raises(BadInput, match=words):
        read_model_file(data, "config.json")


def test_a_dtype_that_there_is_not_is_refused_before_anything_is_read(monkeypatch):
    monkeypatch.setattr(intake.files, "Sandbox", Shut)
    with pytest.raises(BadInput, match="got dtype 'int3'; expected one of fp64, fp32"):
        read_model_file(CONFIG, "config.json", options={"dtype": "int3"}, weak_sandbox=True)


@pytest.mark.parametrize("line", ["dtype: int3", "task: dream", "batch: 0", "length: many", "total: {epochs: 3}", "colour: red",
                                  "dtype: fp4", "optimizer: adamv", "objective: beauty"])  # fmt: skip
def test_a_document_with_another_fault_is_refused_before_its_model_is_read(monkeypatch, tmp_path, line):
    monkeypatch.setattr(intake.files, "Sandbox", Shut)
    (tmp_path / "config.json").write_bytes(CONFIG.replace(b"llama", b"qwen3"))
    (tmp_path / "job.yaml").write_text("model: {config: config.json}\n" + line + "\n")
    with pytest.raises(BadInput):
        read_file(tmp_path / "job.yaml", weak_sandbox=True)


def test_the_installed_transformers_is_asked_for_its_models_without_importing_it():
    assert {"llama", "bert", "gpt-sw3", "deepseek_v3", "vit"} <= {*known_types()}
