"""SavedModels and frozen graphs of small Keras models and of TensorFlow graphs, against what Keras says and hand counts."""

from math import prod
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import BadInput
from core.graph import Graph
from core.graph_json import graph_from_json
from core.ops import Op
from core.symbols import BATCH, symbol, value_of
from intake.readers import saved_model
from intake.source import BytesSource, PathSource
from tests.samples.models.onnx_writer import field

SAMPLES = Path(__file__).resolve().parents[3] / "samples" / "models" / "saved_model"
B = symbol(BATCH)


def read(name: str) -> Graph:
    found = graph_from_json(saved_model.read(PathSource(SAMPLES / name), {}))
    assert isinstance(found, Graph)
    return found


def flop(found: Graph, batch: int = 1) -> int:
    dims = [(one.kind, tuple(value_of(extent, {"batch": batch}) for extent in one.dims)) for one in found.nodes]
    return sum(Op(kind, extents, "fp32").flop for kind, extents in dims if kind in {"matmul", "conv", "rnn", "attention"})


def parameters(found: Graph, role: str = "parameter") -> int:
    kept = [one for one in found.tensors if one.role == role and one.dtype == "fp32"]
    return sum(prod(value_of(extent, {}) for extent in one.shape) for one in kept)


STRIDED, DEPTHWISE = 2 * 16 * 16 * 8 * 3 * 9, 2 * 16 * 16 * 8 * 9
TRANSPOSED, HEAD = 2 * 16 * 16 * 8 * 4 * 4, 2 * 4 * 10


def test_a_keras_network_has_the_parameters_that_keras_counts() -> None:
    found = read("images")
    assert parameters(found) == 494
    moving = [one for one in found.tensors if "moving_" in one.name]
    assert [(one.role, one.shape) for one in moving] == [("constant", (8,)), ("constant", (8,))]


def test_convolutions_of_every_kind_are_counted() -> None:
    found = read("images")
    assert flop(found, 5) == 5 * (STRIDED + DEPTHWISE + TRANSPOSED + HEAD)
    assert [found.tensors[at].shape for at in found.outputs] == [(B, 10)]


def test_a_frozen_graph_counts_as_the_model_that_it_was_made_of() -> None:
    assert flop(read("frozen.pb")) == flop(read("images"))


def test_a_loop_over_time_is_counted_as_often_as_it_runs() -> None:
    found = read("tokens")
    attention = 2 * 24 * (4 * 16 * 16 + 2 * 2 * 24 * 8)
    lstm, head = 24 * 2 * 48 * (16 + 12), 2 * 24 * 12 * 100
    assert (parameters(found), flop(found)) == (5380, attention + lstm + head)
    steps = [one for one in found.nodes if one.kind == "matmul" and "serial_scan" in one.marks]
    assert [one.dims for one in steps] == [(24, B, 48, 16), (24, B, 48, 12)]


def test_a_table_of_weights_is_an_embedding() -> None:
    assert [one.dims for one in read("tokens").nodes if one.kind == "embedding"] == [(24 * B, 16, 100)]


def test_module_paths_come_from_names() -> None:
    assert any(one.scope == "functional_1_1.dense_1_2.Tensordot" or "dense" in one.scope for one in read("tokens").nodes)
    assert any("conv2d" in one.scope for one in read("images").nodes if one.kind == "conv")


def test_what_depends_on_values_and_python_functions_are_marked() -> None:
    found = read("choices")
    marks = {mark for one in found.nodes for mark in one.marks}
    assert {"data_loop", "host_read", "dynamic_shape", "gather", "sort", "custom:EagerPyFunc"} <= marks
    assert any("loop" in note for note in found.notes)


def test_a_graph_of_tensorflow_1_without_a_signature_is_read_from_its_ends() -> None:
    found = read("earlier.pb")
    assert parameters(found) == 30
    assert [(one.kind, one.dims) for one in found.nodes] == [("matmul", (1, B, 5, 6)), ("elementwise", (5 * B, 1, 1))]


def test_the_file_alone_is_enough() -> None:
    data = (SAMPLES / "images" / "saved_model.pb").read_bytes()
    found = graph_from_json(saved_model.read(BytesSource("saved_model.pb", data), {}))
    assert isinstance(found, Graph)
    assert parameters(found) == 494


def test_it_is_told_by_its_suffix_or_its_head() -> None:
    assert saved_model.fits("saved_model.pb", b"")
    assert saved_model.fits("model", (SAMPLES / "images" / "saved_model.pb").read_bytes()[:16])
    assert not saved_model.fits("model.onnx", b"\x08\x0a\x12\x07pytorch")


@pytest.mark.parametrize(("data", "why"), [
    (b"", "without a TensorFlow graph"), (b"\x08\x01\x12", "damaged"), (field(2, field(1, b"")), "without a graph"),
    (field(1, field(1, "a") + field(2, "Relu") + field(3, "b")), "does not have"),
    (field(1, field(1, "a") + field(2, "Relu") + field(3, "c")) + field(1, field(1, "c") + field(2, "Relu") + field(3, "a"))
     + field(1, field(1, "d") + field(2, "Relu") + field(3, "a")), "in a circle"),
])  # fmt: skip
def test_files_that_cannot_be_true_are_refused_in_one_line(data: bytes, why: str) -> None:
    with pytest.raises(BadInput, match=why) as caught:
        saved_model.read(BytesSource("x.pb", data), {})
    assert "\n" not in str(caught.value)


def test_a_folder_without_a_model_and_an_unknown_signature_are_refused() -> None:
    with pytest.raises(BadInput, match="0 files"):
        saved_model.read(BytesSource("folder", {"a.txt": b""}), {})
    with pytest.raises(BadInput, match="one of serving_default"):
        saved_model.read(PathSource(SAMPLES / "images"), {"signature": "other"})


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(["images/saved_model.pb", "choices/saved_model.pb", "frozen.pb"]), st.integers(0, 1 << 32),
       st.integers(1, 6))
def test_a_damaged_file_is_read_or_refused(name: str, seed: int, times: int) -> None:
    data, random = bytearray((SAMPLES / name).read_bytes()), Random(seed)
    for _ in range(times):
        data[random.randrange(len(data))] = random.randrange(256)
    if seed % 5 == 0:
        del data[random.randrange(len(data)) :]
    try:
        said = graph_from_json(saved_model.read(BytesSource("m.pb", bytes(data)), {})).format
    except BadInput as error:
        said = str(error)
    assert said == "saved_model" or (said.startswith("got ") and "\n" not in said)
