"""Whole ONNX files: torch's exports against torch's own counts, control flow, symbols, and files that are damaged."""

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
from core.symbols import BATCH, LENGTH, symbol, value_of
from intake.readers import draft, onnx
from intake.source import BytesSource, PathSource
from tests.samples.models.onnx_writer import BOOL, INT64, field, function, graph, model, node, tensor, value

SAMPLES = Path(__file__).resolve().parents[3] / "samples" / "models" / "onnx"
B, L = symbol(BATCH), symbol(LENGTH)
COUNTED = ("matmul", "conv", "attention", "rnn")


def read_sample(name: str) -> Graph:
    found = graph_from_json(onnx.read(PathSource(SAMPLES / f"{name}.onnx"), {}))
    assert isinstance(found, Graph)
    return found


def read(body: bytes, **options: object) -> Graph:
    functions = options.pop("functions", ())
    found = graph_from_json(onnx.read(BytesSource("made.onnx", model(body, functions=functions)), options))  # type: ignore[arg-type]
    assert isinstance(found, Graph)
    return found


def flop(found: Graph, **values: int) -> int:
    sizes = {**dict(found.symbols), **values}
    dims = [(one.kind, tuple(value_of(extent, sizes) for extent in one.dims)) for one in found.nodes if one.kind in COUNTED]
    return sum(Op(kind, extents, "fp32").flop for kind, extents in dims)


def parameters(found: Graph) -> int:
    return sum(prod(value_of(extent, {}) for extent in one.shape) for one in found.tensors if one.role == "parameter")


@pytest.mark.parametrize(("name", "count", "counted", "sizes"), [
    ("dense", 9866, 56832, {"batch": 3}), ("convolutions", 7762, 10977600, {"batch": 2}),
    ("bert", 84499, 3354624, {"batch": 2, "length": 16}), ("gpt2", 121792, 7417856, {"batch": 2, "length": 16}),
    ("llama", 70208, 3747840, {"batch": 2, "length": 16}),
])  # fmt: skip
def test_parameters_and_flops_are_those_that_torch_counts(name: str, count: int, counted: int, sizes: dict[str, int]) -> None:
    found = read_sample(name)
    assert (parameters(found), flop(found, **sizes)) == (count, counted)
    assert set(sizes) == {one for one, _ in found.symbols}


def test_recurrent_layers_count_as_their_products() -> None:
    lstm, gru, head = 2 * 2 * 4 * 64 * (32 + 64), 2 * 3 * 24 * (128 + 24), 2 * 24 * 100
    found = read_sample("recurrent")
    assert (parameters(found), flop(found, batch=2, length=17)) == (66964, 2 * 17 * (lstm + gru + head))
    assert sum("serial_scan" in one.marks for one in found.nodes) == 3


def test_module_paths_come_from_either_exporter() -> None:
    old, new = read_sample("bert"), read_sample("gpt2")
    assert any(one.scope == "model.bert.encoder.layer.0.attention.self.query" for one in old.nodes)
    assert {"model.transformer.h.0.mlp.c_fc", "model.transformer.h.1.mlp.c_fc"} <= {one.scope for one in new.nodes}


def test_buffers_are_constants_and_tied_weights_one_tensor() -> None:
    found = read_sample("gpt2")
    tables = [one for one in found.tensors if one.shape == (211, 64) and one.storage == found.tensors.index(one)]
    assert [one.role for one in tables] == ["parameter"]
    moving = [one for one in read_sample("convolutions").tensors if "running_" in one.name]
    assert [one.role for one in moving] == ["constant", "constant"]


def test_what_an_exporter_computed_beforehand_is_no_parameter_and_a_weight_that_it_turned_round_is() -> None:
    body = graph(
        [node("MatMul", ["x", "val_7"], ["y"]), node("Mul", ["y", "unsqueeze_14"], ["z"]), node("Add", ["z", "scale"], ["w"])],
        [value("x", (2, 4))], [value("w", (2, 8))],
        [tensor("val_7", (4, 8)), tensor("unsqueeze_14", (2, 8)), tensor("scale", (8,))],
    )  # fmt: skip
    roles = {one.name: one.role for one in read(body).tensors}
    assert (roles["val_7"], roles["unsqueeze_14"], roles["scale"]) == ("parameter", "constant", "parameter")


@pytest.mark.parametrize(("like", "dtype", "rows"), [((3, 5), INT64, 6), ((3, 5), BOOL, 1), ((), INT64, 6), ((7,), INT64, 6)])
def test_what_is_cast_like_another_takes_its_dtype_and_no_more_of_it(like: tuple[int, ...], dtype: int, rows: int) -> None:
    body = graph(
        [node("CastLike", ["n", "like"], ["m"]), node("Cast", ["m"], ["k"], to=INT64),
         node("Reshape", ["k", "one"], ["shape"]), node("Expand", ["x", "shape"], ["y"])],
        [value("x", (1,)), value("like", like, dtype)], [value("y", None)],
        [tensor("n", (), whole=(6,), dtype=INT64), tensor("one", (1,), INT64, whole=(1,))],
    )  # fmt: skip
    found = read(body)
    assert [found.tensors[at].shape for at in found.outputs] == [(rows,)]


def test_external_data_are_counted_and_not_opened() -> None:
    found = read_sample("dense")
    assert any("were not opened" in note for note in found.notes)


def test_a_folder_with_one_model_is_read_as_that_model() -> None:
    data = (SAMPLES / "dense.onnx").read_bytes()
    found = graph_from_json(onnx.read(BytesSource("model", {"a/m.onnx": data, "a/m.onnx.data": b"0"}), {}))
    assert isinstance(found, Graph)
    assert parameters(found) == 9866
    with pytest.raises(BadInput, match=r"2 \.onnx files"):
        onnx.read(BytesSource("model", {"a.onnx": data, "b.onnx": data}), {})


def test_it_is_told_by_its_suffix_or_its_head() -> None:
    head = (SAMPLES / "gpt2.onnx").read_bytes()[:4096]
    assert onnx.fits("M.ONNX", b"")
    assert onnx.fits("model", head)
    assert not onnx.fits("model.pb", b"\x08\x01\x12\x10")


def test_symbols_follow_the_batch_the_length_and_their_own_names() -> None:
    inputs = [value("tokens", ("b", "sequence_length"), INT64), value("past", ("b", 4, "past_length", 8)),
              value("mask", ("b", "past_length + sequence_length"), INT64)]  # fmt: skip
    nodes = [node("Gather", ["table.weight", "tokens"], ["y"]), node("Relu", ["past"], ["z"]), node("Neg", ["mask"], ["m"])]
    found = read(graph(nodes, inputs, [value(name, None) for name in "yzm"], [tensor("table.weight", (50, 8))]), length=64)
    assert dict(found.symbols) == {"batch": 1, "length": 64, "past_length": 64}
    past = symbol("past_length")
    assert [found.tensors[at].shape for at in found.outputs] == [(B, L, 8), (B, 4, past, 8), (B, past + L)]


def test_open_axes_without_names_are_the_batch_and_the_input_s_own() -> None:
    found = read(graph([node("Relu", ["x"], ["y"])], [value("x", (None, 3, None))], [value("y", None)]))
    assert [found.tensors[at].shape for at in found.outputs] == [(B, 3, symbol("x_2"))]


def test_shape_arithmetic_keeps_symbols() -> None:
    """`x.view(batch, length, 4, -1).transpose(1, 2)` as exporters write it."""
    stored = [tensor(name, shape, INT64, data) for name, shape, data in (
        ("zero", (), [0]), ("one", (), [1]), ("axis", (1,), [0]), ("four", (1,), [4]), ("rest", (1,), [-1]))]  # fmt: skip
    nodes = [
        node("Shape", ["x"], ["s"]), node("Gather", ["s", "zero"], ["b"]), node("Gather", ["s", "one"], ["l"]),
        node("Unsqueeze", ["b", "axis"], ["b1"]), node("Unsqueeze", ["l", "axis"], ["l1"]),
        node("Concat", ["b1", "l1", "four", "rest"], ["shape"], axis=0), node("Reshape", ["x", "shape"], ["r"]),
        node("Transpose", ["r"], ["y"], perm=[0, 2, 1, 3]),
    ]  # fmt: skip
    found = read(graph(nodes, [value("x", ("b", "seq", 32))], [value("y", None)], stored))
    assert [found.tensors[at].shape for at in found.outputs] == [(B, 4, L, 8)]
    assert [one.kind for one in found.nodes] == ["view", "view"]


def test_a_size_that_is_halved_takes_the_symbol_s_freedom_and_says_so() -> None:
    stored = [tensor("w", (4, 3, 3, 3))]
    nodes = [node("Conv", ["x", "w"], ["y"], strides=[2, 2], pads=[1, 1, 1, 1])]
    found = read(graph(nodes, [value("x", ("n", 3, "height", 64))], [value("y", None)], stored))
    assert [found.tensors[at].shape for at in found.outputs] == [(B, 4, 112, 32)]
    assert any(note.startswith("height is fixed at 224") for note in found.notes)


def test_an_extent_that_must_be_another_follows_it() -> None:
    inputs = [value("x", ("n", "one", 8)), value("y", ("n", "other", 8))]
    found = read(graph([node("Add", ["x", "y"], ["z"])], inputs, [value("z", None)]))
    assert len(found.symbols) == 2
    assert any("follows" in note for note in found.notes)


def test_a_branch_that_is_decided_by_shapes_is_followed_alone() -> None:
    then = graph([node("Relu", ["x"], ["t"])], [], [value("t", None)])
    other = graph([node("Exp", ["x"], ["e"])], [], [value("e", None)])
    stored = [tensor("two", (), INT64, [2])]
    nodes = [node("Shape", ["x"], ["s"]), node("Size", ["s"], ["n"]), node("Equal", ["n", "two"], ["c"]),
             node("If", ["c"], ["y"], then_branch=then, else_branch=other)]  # fmt: skip
    assert [one.op for one in read(graph(nodes, [value("x", ("n", 8))], [value("y", None)], stored)).nodes] == ["Relu"]


def test_of_a_branch_that_depends_on_values_the_longer_side_is_counted() -> None:
    then = graph([node("Relu", ["x"], ["t"])], [], [value("t", None)])
    other = graph([node("Exp", ["x"], ["u"]), node("Relu", ["u"], ["e"])], [], [value("e", None)])
    nodes = [node("If", ["c"], ["y"], then_branch=then, else_branch=other)]
    found = read(graph(nodes, [value("x", ("n", 8)), value("c", (), BOOL)], [value("y", None)]))
    assert [one.op for one in found.nodes] == ["Exp", "Relu", "If"]
    assert found.nodes[-1].marks == ("data_loop", "host_read")


def loop(body_condition: str, most: int) -> Graph:
    work = [node("Identity", ["go"], ["on"]), node("MatMul", ["v", "w.weight"], ["u"]), node("Identity", ["u"], ["row"])]
    body = graph(work, [value("i", (), INT64), value("go", (), BOOL), value("v", None)],
                 [value(name, None) for name in (body_condition, "u", "row")])
    nodes = [node("Loop", ["most", "", "x"], ["y", "rows"], body=body)]
    stored = [tensor("most", (), INT64, [most]), tensor("w.weight", (8, 8))]
    return read(graph(nodes, [value("x", ("n", 8))], [value("y", None), value("rows", None)], stored))


def test_a_loop_of_known_length_counts_its_body_as_often() -> None:
    found = loop("on", 5)
    work = next(one for one in found.nodes if one.kind == "matmul")
    assert (work.dims, work.marks) == ((5, B, 8, 8), ("serial_scan",))
    assert [found.tensors[at].shape for at in found.outputs] == [(B, 8), (5, B, 8)]


def test_a_loop_that_values_end_is_counted_once_and_marked() -> None:
    until = [node("ReduceSum", ["v"], ["s"], keepdims=0), node("Less", ["s", "s"], ["on"])]
    body = graph([*until, node("MatMul", ["v", "w.weight"], ["u"])],
                 [value("i", (), INT64), value("go", (), BOOL), value("v", None)], [value("on", None), value("u", None)])
    nodes = [node("Loop", ["", "c", "x"], ["y"], body=body)]
    found = read(graph(nodes, [value("x", ("n", 8)), value("c", (), BOOL)], [value("y", None)], [tensor("w.weight", (8, 8))]))
    assert [one.dims for one in found.nodes if one.kind == "matmul"] == [(1, B, 8, 8)]
    assert any("data_loop" in one.marks for one in found.nodes)


def test_a_scan_runs_over_its_axis() -> None:
    body = graph([node("MatMul", ["row", "w.weight"], ["a"]), node("Add", ["a", "h"], ["g"]), node("Identity", ["g"], ["out"])],
                 [value("h", None), value("row", None)], [value("g", None), value("out", None)])
    nodes = [node("Scan", ["h0", "x"], ["h1", "rows"], body=body, num_scan_inputs=1, scan_input_axes=[1])]
    inputs = [value("h0", ("n", 8)), value("x", ("n", "seq", 8))]
    found = read(graph(nodes, inputs, [value("h1", None), value("rows", None)], [tensor("w.weight", (8, 8))]))
    assert [one.dims for one in found.nodes if one.kind == "matmul"] == [(L, B, 8, 8)]
    assert [found.tensors[at].shape for at in found.outputs] == [(B, 8), (L, B, 8)]


def test_functions_of_the_file_are_expanded_where_they_are_called() -> None:
    twice = function("mine", "Twice", ["a"], ["c"], [node("Relu", ["a"], ["b"]), node("Relu", ["b"], ["c"])])
    body = graph([node("Twice", ["x"], ["y"], domain="mine"), node("Twice", ["y"], ["z"], domain="mine")],
                 [value("x", ("n", 8))], [value("z", None)])  # fmt: skip
    assert [one.op for one in read(body, functions=[twice]).nodes] == ["Relu"] * 4


def test_a_function_that_calls_itself_is_refused() -> None:
    again = function("mine", "Again", ["a"], ["b"], [node("Again", ["a"], ["b"], domain="mine")])
    body = graph([node("Again", ["x"], ["y"], domain="mine")], [value("x", ("n", 8))], [value("y", None)])
    with pytest.raises(BadInput, match="nested over"):
        read(body, functions=[again])


def test_functions_that_unfold_without_end_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(draft, "MOST_NODES", 2000)
    functions = [function("mine", f"F{at}", ["a"], ["c"], [node(f"F{at + 1}", ["a"], ["b"], domain="mine"),
                 node(f"F{at + 1}", ["b"], ["c"], domain="mine")]) for at in range(20)]  # fmt: skip
    functions.append(function("mine", "F20", ["a"], ["b"], [node("Relu", ["a"], ["b"])]))
    body = graph([node("F0", ["x"], ["y"], domain="mine")], [value("x", ("n", 8))], [value("y", None)])
    with pytest.raises(BadInput, match="over 2000 operations"):
        read(body, functions=functions)


@pytest.mark.parametrize(("body", "why"), [
    (graph([node("Relu", ["nothing"], ["y"])], [value("x", (2,))], [value("y", None)]), "nothing makes before it"),
    (graph([], [value("x", (2,))], [value("y", None)]), "an output 'y' that nothing makes"),
    (graph([], [value("x", None)], []), "an input 'x' without a shape"),
    (graph([], [value("x", (1 << 40, 1 << 40))], []), r"over 2\*\*62 elements"),
    (graph([], [], [], [tensor("w", (1 << 40, 1 << 40))]), "of shape"),
    (graph([], [], [], [field(1, 4) + field(2, 1) + field(8, "w") + field(9, b"1234")]), "of 16 bytes has 4"),
    (graph([], [], [], [field(1, 4) + field(2, 99) + field(8, "w")]), "data type 99"),
    (graph([node("Loop", [], ["y"])], [], [value("y", None)]), "operator Loop"),
])  # fmt: skip
def test_files_that_cannot_be_true_are_refused_in_one_line(body: bytes, why: str) -> None:
    with pytest.raises(BadInput, match=why) as caught:
        read(body)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("data", [b"", b"\x00", b"PK\x03\x04", b"\x08\x0a", field(1, 10) + field(7, b"\xff"), b"\x80" * 64])
def test_other_files_are_refused(data: bytes) -> None:
    with pytest.raises(BadInput):
        onnx.read(BytesSource("m.onnx", data), {})


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(["dense", "convolutions", "recurrent"]), st.integers(0, 1 << 32), st.integers(1, 6))
def test_a_damaged_file_is_read_or_refused(name: str, seed: int, times: int) -> None:
    data, random = bytearray((SAMPLES / f"{name}.onnx").read_bytes()), Random(seed)
    for _ in range(times):
        data[random.randrange(len(data))] = random.randrange(256)
    if seed % 5 == 0:
        del data[random.randrange(len(data)) :]
    try:
        said = graph_from_json(onnx.read(BytesSource("m.onnx", bytes(data)), {})).format
    except BadInput as error:
        said = str(error)
    assert said == "onnx" or (said.startswith("got ") and "\n" not in said)
