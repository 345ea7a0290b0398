"""Keras's files are read as data: against what Keras and torch counted of the same models when the samples were made."""

import json
from io import BytesIO
from math import prod
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from core.errors import BadInput
from core.graph import Graph
from core.graph_json import graph_from_json
from core.ops import Op
from core.symbols import value_of
from intake.readers import hdf5, keras
from intake.source import BytesSource, PathSource

MODELS = Path(__file__).resolve().parents[3] / "samples" / "models"
EXPECTED = json.loads((MODELS / "keras" / "expected.json").read_text(encoding="utf-8"))
COUNTED = ("matmul", "conv", "attention", "rnn")
FILES = [*((name, MODELS / "keras" / f"{name}.keras") for name in EXPECTED if name != "custom"),
         *((name, MODELS / "hdf5" / f"{name}.h5") for name in ("convolutions", "shared"))]  # fmt: skip


def _read(path: Path, **options: int) -> Graph:
    graph = graph_from_json((keras if path.suffix == ".keras" else hdf5).read(PathSource(path), options))
    assert isinstance(graph, Graph)
    return graph


def _count(graph: Graph, role: str) -> int:
    return sum(
        prod(value_of(one, dict(graph.symbols)) for one in tensor.shape) for tensor in graph.tensors if tensor.role == role
    )


def _flop(graph: Graph, **values: int) -> int:
    held = dict(graph.symbols) | values
    kept = (node for node in graph.nodes if node.kind in COUNTED)
    return sum(Op(node.kind, tuple(value_of(one, held) for one in node.dims), "fp32").flop for node in kept)


def _of(layers: list[dict[str, object]]) -> Graph:
    text = json.dumps({"class_name": "Sequential", "config": {"name": "made", "layers": layers}}).encode()
    graph = graph_from_json(keras.read(BytesSource("made.json", text), {}))
    assert isinstance(graph, Graph)
    return graph


def _layer(kind: str, **config: object) -> dict[str, object]:
    return {"class_name": kind, "module": "keras.layers", "config": {"name": kind.lower(), **config}}


def _input(*shape: int | None) -> dict[str, object]:
    return _layer("InputLayer", batch_shape=[None, *shape])


@pytest.mark.parametrize(("name", "path"), FILES, ids=lambda one: one.name if isinstance(one, Path) else None)
def test_parameters_equal_those_that_keras_counts(name: str, path: Path) -> None:
    graph = _read(path)
    assert (_count(graph, "parameter"), _count(graph, "constant")) == (EXPECTED[name]["trained"], EXPECTED[name]["stored"])


@pytest.mark.parametrize(("name", "path"), FILES, ids=lambda one: one.name if isinstance(one, Path) else None)
def test_products_and_convolutions_have_the_flops_that_torch_counts(name: str, path: Path) -> None:
    assert _flop(_read(path, length=16)) == EXPECTED[name]["flop"]


@pytest.mark.parametrize(("name", "path"), FILES, ids=lambda one: one.name if isinstance(one, Path) else None)
def test_outputs_have_the_shapes_that_keras_gives(name: str, path: Path) -> None:
    graph = _read(path, length=16)
    shapes = [[value_of(one, dict(graph.symbols)) for one in graph.tensors[at].shape] for at in graph.outputs]
    assert shapes == EXPECTED[name]["outputs"]


def test_an_open_length_stays_a_symbol_that_attention_follows_squared() -> None:
    graph = _read(MODELS / "keras" / "attention.keras")
    assert dict(graph.symbols) == {"batch": 1, "length": 128}
    # 107520 at 16; the two products of the scores, 2 x 2 x 2 heads x 8 x 16^2 = 16384 of it, grow with its square
    assert _flop(graph, length=32) == 2 * (107520 - 16384) + 4 * 16384
    assert _flop(graph, length=16, batch=3) == 3 * 107520


def test_a_mixed_policy_computes_in_bf16_over_weights_in_fp32_and_frozen_ones_are_not_trained() -> None:
    graph = _read(MODELS / "keras" / "halves.keras")
    assert {node.dtype for node in graph.nodes if node.kind == "matmul"} == {"bf16"}
    assert {tensor.dtype for tensor in graph.tensors if tensor.role in ("parameter", "constant")} == {"fp32"}
    assert _count(graph, "constant") == 72


def test_a_layer_of_somebodys_own_is_not_run_and_its_weights_come_from_the_file() -> None:
    graph = _read(MODELS / "keras" / "custom.keras")
    custom = [node for node in graph.nodes if node.kind == "custom"]
    assert [node.marks for node in custom] == [("custom:Doubled",)]
    assert _count(graph, "parameter") == EXPECTED["custom"]["trained"]
    assert any("not run" in note for note in graph.notes)


def test_a_recurrence_is_marked_as_serial_and_a_lookup_as_a_gather() -> None:
    marks = {
        mark
        for name in ("recurrent", "attention")
        for node in _read(MODELS / "keras" / f"{name}.keras").nodes
        for mark in node.marks
    }
    assert {"serial_scan", "gather"} <= marks


@pytest.mark.parametrize(("layers", "parameters", "shape"), [
    ([_input(10, 10, 3), _layer("Conv2D", filters=4, kernel_size=[3, 3], strides=[2, 2], padding="same")], 3 * 3 * 3 * 4 + 4,
    (5, 5, 4)),
    ([_input(10, 10, 3), _layer("Conv2D", filters=4, kernel_size=[3, 3], strides=[2, 2], dilation_rate=[2, 2])], 112, (3, 3, 4)),
    ([_input(3, 10, 10), _layer("Conv2D", filters=4, kernel_size=3, data_format="channels_first")], 112, (4, 8, 8)),
    ([_input(8), _layer("Reshape", target_shape=[2, -1]), _layer("Permute", dims=[2, 1])], 0, (4, 2)),
    ([_input(8), _layer("RepeatVector", n=3), _layer("Cropping1D", cropping=[1, 0])], 0, (2, 8)),
    ([_input(7, 7, 6), _layer("GroupNormalization", groups=3), _layer("Flatten")], 12, (294,)),
    ([_input(7, 7, 6), _layer("PReLU", shared_axes=[1, 2]), _layer("GlobalMaxPooling2D", keepdims=True)], 6, (1, 1, 6)),
    ([_input(5, 6), _layer("GRU", units=4, reset_after=True)], 6 * 12 + 4 * 12 + 2 * 12, (4,)),
    ([_input(5, 6), _layer("GRU", units=4, reset_after=False)], 6 * 12 + 4 * 12 + 12, (4,)),
    ([_input(5, 6), _layer("SimpleRNN", units=4, return_sequences=True)], 24 + 16 + 4, (5, 4)),
    ([_input(3, 8, 8, 2), _layer("ConvLSTM2D", filters=5, kernel_size=3, padding="same")], 9 * 2 * 20 + 9 * 5 * 20 + 20,
    (8, 8, 5)),
    ([_input(6), _layer("CategoryEncoding", num_tokens=9, output_mode="multi_hot")], 0, (9,)),
    ([_input(40, 40, 3), _layer("Resizing", height=20, width=10), _layer("RandomFlip"), _layer("Rescaling", scale=0.5)], 0,
    (20, 10, 3)),
    ([_input(4, 6), _layer("Dense", units=8, lora_rank=2)], 6 * 8 + 6 * 2 + 2 * 8 + 8, (4, 8)),
    ([_input(9), _layer("Discretization", bin_boundaries=[1.0, 2.0], output_mode="one_hot")], 0, (9, 3)),
    ([_input(5, 8), _layer("GroupQueryAttention", head_dim=4, num_query_heads=2, num_key_value_heads=1)], 0, None),
], ids=lambda one: one[1]["class_name"] if isinstance(one, list) and len(one) > 1 else None)  # fmt: skip
def test_a_layer_has_the_weights_and_the_shape_that_its_settings_give(layers: list[dict[str, object]], parameters: int,
                                                                      shape: tuple[int, ...] | None) -> None:  # fmt: skip
    if shape is None:
        with pytest.raises(BadInput, match="query and value"):
            _of(layers)
        return
    graph = _of(layers)
    assert _count(graph, "parameter") + _count(graph, "constant") == parameters
    assert graph.tensors[graph.outputs[0]].shape[1:] == shape


def test_a_length_that_a_stride_halves_is_fixed_with_a_note() -> None:
    graph = _of([_input(None, 4), _layer("Conv1D", filters=2, kernel_size=3, strides=2, padding="same")])
    assert graph.tensors[graph.outputs[0]].shape[1:] == (64, 2)
    assert any(note.startswith("length is fixed at 128") for note in graph.notes)


def test_a_three_dimensional_convolution_folds_its_depth_into_the_height_and_says_so() -> None:
    graph = _of([_input(6, 5, 4, 3), _layer("Conv3D", filters=2, kernel_size=[3, 2, 1])])
    node = next(node for node in graph.nodes if node.kind == "conv")
    assert node.marks == ("conv3d",)
    assert [value_of(one, {"batch": 1}) for one in node.dims] == [1, 30, 4, 3, 16, 4, 2, 6, 1, 1]


def test_a_config_of_keras_2_with_its_lists_of_inbound_nodes_is_read() -> None:
    dense = {"class_name": "Dense", "name": "d", "inbound_nodes": [[["a", 0, 0, {}]], [["d", 0, 0, {}]]],
             "config": {"name": "d", "units": 6, "use_bias": True, "activation": "relu"}}  # fmt: skip
    added = {"class_name": "TFOpLambda", "name": "plus", "inbound_nodes": [["d", 1, 0, {"y": ["a", 0, 0]}]],
             "config": {"name": "plus", "function": "math.add"}}  # fmt: skip
    first = {
        "class_name": "InputLayer",
        "name": "a",
        "inbound_nodes": [],
        "config": {"name": "a", "batch_input_shape": [None, 6]},
    }
    document = {"class_name": "Functional", "config": {"name": "old", "layers": [first, dense, added],
        "input_layers": [["a", 0, 0]],
                                                       "output_layers": [["plus", 0, 0]]}}  # fmt: skip
    graph = graph_from_json(keras.read(BytesSource("old.json", json.dumps(document).encode()), {}))
    assert isinstance(graph, Graph)
    assert _count(graph, "parameter") == 42
    assert _flop(graph) == 2 * 2 * 36
    assert graph.nodes[-1].kind == "elementwise"
    assert len(graph.nodes[-1].inputs) == 2


@pytest.mark.parametrize(("document", "message"), [
    ({"class_name": "Mine", "registered_name": "me>Mine", "config": {}}, "./tandem capture"),
    ({"class_name": "Sequential", "config": {"name": "s", "layers": [_layer("Dense", units=3)]}}, "never built"),
    ({"class_name": "Sequential", "config": {"layers": [_input(4), _layer("Dense", units="three")]}}, "a whole number"),
    ({"class_name": "Sequential", "config": {"layers": [_input(4), {"class_name": "system", "module": "os", "config": {}}]}},
    "system"),
    ({"class_name": "Sequential", "config": {"layers": [_input(4), _layer("Lambda", function={"config": {"code": "4w=="}})]}},
    "capture"),
    ({"class_name": "Sequential", "config": {"layers": [_input(2**31, 2**31, 4), _layer("Flatten")]}}, "2\\*\\*62"),
    ({"class_name": "Sequential", "config": {"layers": [_input(4, 4), _layer("Reshape", target_shape=[5, -1])]}}, "16 elements"),
], ids=["own class", "not built", "word for number", "foreign module", "lambda", "overflow", "reshape"])  # fmt: skip
def test_what_cannot_be_told_is_refused_with_what_to_do(document: dict[str, object], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        keras.read(BytesSource("x.json", json.dumps(document).encode()), {})


def test_sides_of_an_image_that_are_open_are_said_and_those_inside_are_no_disagreement() -> None:
    def tensor(name: str, channels: int) -> dict[str, object]:
        return {
            "class_name": "__keras_tensor__",
            "config": {"shape": [None, None, None, channels], "dtype": "float32", "keras_history": [name, 0, 0]},
        }

    def entry(
        kind: str, name: str, before: dict[str, object], module: str = "keras.layers", **config: object
    ) -> dict[str, object]:
        return {
            "class_name": kind,
            "module": module,
            "name": name,
            "config": {"name": name, **config},
            "inbound_nodes": [{"args": [before], "kwargs": {}}],
        }

    conv = {"filters": 8, "kernel_size": 3, "strides": 2, "padding": "same"}
    layers = [
        {**_input(None, None, 3), "name": "image", "inbound_nodes": []},
        entry("Conv2D", "c", tensor("image", 3), **conv),
        entry("Mine", "own", tensor("c", 8), "mine"),
        entry("GlobalAveragePooling2D", "g", tensor("own", 8)),
    ]
    layers[0]["config"] = {"name": "image", "batch_shape": [None, None, None, 3]}
    document = {
        "class_name": "Functional",
        "config": {"name": "open", "layers": layers, "input_layers": [["image", 0, 0]], "output_layers": [["g", 0, 0]]},
    }
    graph = graph_from_json(keras.read(BytesSource("x.json", json.dumps(document).encode()), {"image": 64}))
    own = next(node for node in graph.nodes if node.kind == "custom")
    assert graph.tensors[own.outputs[0]].shape[1:] == (32, 32, 8)
    assert "sides that the config leaves open are 64" in graph.notes
    assert not any("states" in note for note in graph.notes)


def test_layers_that_wait_for_each_other_are_refused() -> None:
    def entry(name: str, after: str) -> dict[str, object]:
        return {"class_name": "ReLU", "name": name, "config": {"name": name}, "inbound_nodes": [[[after, 0, 0, {}]]]}

    document = {
        "class_name": "Functional",
        "config": {"layers": [entry("a", "b"), entry("b", "a")], "input_layers": [], "output_layers": [["a", 0, 0]]},
    }
    with pytest.raises(BadInput, match="circle"):
        keras.read(BytesSource("x.json", json.dumps(document).encode()), {})


def test_weights_of_another_model_are_told() -> None:
    with ZipFile(MODELS / "keras" / "tabular.keras") as archive:
        config, weights = archive.read("config.json").replace(b'"units": 16', b'"units": 17'), archive.read("model.weights.h5")
    buffer = BytesIO()
    with ZipFile(buffer, "w", ZIP_DEFLATED) as archive:
        archive.writestr("config.json", config)
        archive.writestr("model.weights.h5", weights)
    graph = graph_from_json(keras.read(BytesSource("x.keras", buffer.getvalue()), {}))
    assert any("disagree" in note for note in graph.notes)


def test_a_config_that_unpacks_beyond_its_limit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keras, "MOST_CONFIG", 1000)
    buffer = BytesIO()
    with ZipFile(buffer, "w", ZIP_DEFLATED) as archive:
        archive.writestr("config.json", b" " * 100_000)
    with pytest.raises(BadInput, match="unpacks to more"):
        keras.read(BytesSource("x.keras", buffer.getvalue()), {})


@pytest.mark.parametrize("name", ["tabular", "convolutions"])
@settings(max_examples=60, deadline=None, database=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    changes=st.lists(st.tuples(st.integers(0, 2**20), st.integers(0, 255)), min_size=1, max_size=20), cut=st.integers(0, 2**20)
)
def test_a_changed_file_is_read_or_refused(name: str, changes: list[tuple[int, int]], cut: int) -> None:
    data = bytearray((MODELS / "keras" / f"{name}.keras").read_bytes())
    for at, value in changes:
        data[at % len(data)] = value
    if cut % 4 == 0:
        del data[cut % len(data) :]
    try:
        graph_from_json(keras.read(BytesSource("x.keras", bytes(data)), {}))
    except BadInput as refused:
        if "\n" in str(refused):
            pytest.fail("more than one line")


_VALUES = st.one_of(st.none(), st.booleans(), st.integers(-(2**70), 2**70), st.floats(allow_nan=True), st.text(max_size=3),
                    st.lists(st.integers(-3, 9), max_size=4), st.dictionaries(st.text(max_size=3), st.integers(),
                    max_size=2))  # fmt: skip


def _places(value: object, path: tuple[object, ...] = ()) -> list[tuple[object, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, one in items for place in _places(one, (*path, key)))]


CONFIGS = {}
for _name in ("convolutions", "attention", "recurrent", "shared", "custom"):
    with ZipFile(MODELS / "keras" / f"{_name}.keras") as _archive:
        CONFIGS[_name] = json.loads(_archive.read("config.json"))
PLACES = {name: _places(document)[1:] for name, document in CONFIGS.items()}


@settings(max_examples=400, deadline=None, database=None)
@example("convolutions", 493_112, False)  # the padding of a layer
@given(name=st.sampled_from(sorted(CONFIGS)), at=st.integers(0, 2**20), value=_VALUES)
def test_a_config_with_any_value_at_any_place_is_read_or_refused(name: str, at: int, value: object) -> None:
    document = json.loads(json.dumps(CONFIGS[name]))
    path = PLACES[name][at % len(PLACES[name])]
    held = document
    for key in path[:-1]:
        held = held[key]
    held[path[-1]] = value
    try:
        graph_from_json(keras.read(BytesSource("x.json", json.dumps(document).encode()), {}))
    except BadInput as refused:
        if "\n" in str(refused):
            pytest.fail("more than one line")
