"""Exported programs: sizes with symbols, control flow, both layouts, and files that are damaged or claim too much."""

import io
import json
import zipfile
from collections.abc import Callable
from math import prod
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import BadInput
from core.graph import Graph
from core.graph_json import graph_from_json
from core.ops import Op
from core.symbols import BATCH, LENGTH, symbol, value_of
from intake.readers import pt2
from intake.readers.pt2_graph import scope_of
from intake.readers.pt2_sizes import Fixed, Sizes
from intake.source import BytesSource, PathSource

SAMPLES = Path(__file__).resolve().parents[3] / "samples" / "models" / "pt2"
B, L = symbol(BATCH), symbol(LENGTH)


def sample(name: str) -> Graph:
    found = graph_from_json(pt2.read(PathSource(SAMPLES / f"{name}.pt2"), {}))
    assert isinstance(found, Graph)
    return found


def changed(name: str, change: Callable[[dict[str, Any]], None]) -> bytes:
    """A sample's bytes with its program changed."""
    kept = io.BytesIO()
    with zipfile.ZipFile(SAMPLES / f"{name}.pt2") as archive, zipfile.ZipFile(kept, "w", zipfile.ZIP_DEFLATED) as made:
        for entry in archive.infolist():
            content = archive.read(entry)
            if entry.filename.endswith(("model.json", "program.json")):
                program = json.loads(content)
                change(program)
                content = json.dumps(program).encode()
            made.writestr(entry.filename, content)
    return kept.getvalue()


def flop(found: Graph, **values: int) -> int:
    return sum(Op(one.kind, tuple(value_of(extent, {**dict(found.symbols), **values}) for extent in one.dims), "fp32").flop
               for one in found.nodes if one.kind in ("matmul", "conv", "attention", "rnn"))


def parameters(found: Graph) -> int:
    return sum(prod(value_of(extent, {}) for extent in one.shape) for one in found.tensors if one.role == "parameter")


def test_a_decoder_follows_batch_and_length() -> None:
    found = sample("decoder")
    assert found.symbols == ((BATCH, 2), (LENGTH, 16))
    # two layers of width 32 with 4 heads of 8, half of them for keys; a head of 100 words that is tied to the table
    layer = 2 * (32 * 32 * 2 + 32 * 16 * 2 + 3 * 32 * 64)
    tokens, pairs = 3 * 40, 3 * 40 * 40
    assert flop(found, batch=3, length=40) == tokens * (2 * layer + 2 * 32 * 100) + 2 * pairs * 4 * 32
    attending = {node.scope for node in found.nodes if node.kind == "attention"}
    assert attending == {"model.layers.0.self_attn", "model.layers.1.self_attn"}


def test_tied_weights_are_one_tensor() -> None:
    found = sample("decoder")
    assert parameters(found) == 100 * 32 + 2 * (2 * 32 * 32 + 2 * 16 * 32 + 3 * 32 * 64 + 2 * 32) + 32
    assert dict(found.facts) == {"parameters": parameters(found)}


def test_the_older_layout_holds_the_same_operations() -> None:
    newer, older = sample("decoder"), sample("older")
    assert [(one.op, one.dims, one.scope) for one in newer.nodes] == [(one.op, one.dims, one.scope) for one in older.nodes]
    assert older.notes == ("this layout does not tell which weights are tied: each counts for itself",)


def test_convolutions_of_all_kinds_have_their_work_and_marks() -> None:
    found = sample("images")
    volume = 2 * 4 * 8 * 8 * 8 * 3 * 27
    deep = 2 * 4 * 4 * 8 * 9
    up = 2 * 4 * 4 * 8 * 4 * 4
    assert flop(found, batch=5) == 5 * (volume + deep + up + 2 * 4 * 5)
    assert [node.marks for node in found.nodes if node.kind == "conv"] == [("conv3d",), (), ()]
    assert [(node.op, node.dims) for node in found.nodes if node.kind == "norm"] \
        == [("aten.batch_norm", (8, 16 * B)), ("aten.group_norm", (2 * B, 128))]
    assert {one.name for one in found.tensors if one.role == "constant"} \
        == {"norm.running_mean", "norm.running_var", "norm.num_batches_tracked"}


def test_what_decides_portability_is_marked() -> None:
    found = sample("control")
    marks = {mark for node in found.nodes for mark in node.marks}
    assert marks == {"serial_scan", "sort", "data_loop", "gather", "dynamic_shape", "fft", "complex", "fp64"}
    assert [node.dims for node in found.nodes if node.kind == "rnn"] == [(12, B, 16, 8, 4)] * 4
    assert [node.op for node in found.nodes if "data_loop" in node.marks] == ["aten.exp", "aten.mul"]
    assert found.notes == ("each side of a branch is counted (cond)",
                           "results as long as values say are taken as long as they can be")


def test_views_share_memory_and_copies_do_not() -> None:
    found = sample("decoder")
    by_op = {node.op: node for node in found.nodes}
    turned = by_op["aten.transpose"]
    assert found.tensors[turned.outputs[0]].storage == found.tensors[turned.inputs[0]].storage
    joined = by_op["aten.cat"]
    assert found.tensors[joined.outputs[0]].storage == joined.outputs[0]


@pytest.mark.parametrize(("text", "expected"), [
    ("Symbol('s0', positive=True, integer=True)", B), ("s0", B), ("2*s0 + 1", 2 * B + 1), ("Integer(7)", 7),
    ("s0*s1 - 3", B * L - 3),
    ("Add(Mul(Integer(2), Symbol('s0', integer=True)), Integer(-1))", 2 * B - 1), ("Pow(Symbol('s1'), Integer(2))", L * L),
    ("FloorDiv(Mul(Integer(4), Symbol('s0')), Integer(2))", 2 * B), ("FloorDiv(Integer(9), Integer(2))", 4), ("-s0", -B),
    ("Max(Integer(3), Integer(8))", 8), ("Mul(Symbol('s0', integer=True), Symbol('s1', integer=True))", B * L),
])  # fmt: skip
def test_a_size_is_read_in_both_spellings(text: str, expected: object) -> None:
    assert Sizes({"s0": B, "s1": L}, {BATCH: 2, LENGTH: 16}).parsed(text) == expected


@pytest.mark.parametrize("text", ["FloorDiv(Symbol('s1'), Integer(3))", "Max(Symbol('s1'), Integer(2))", "Mod(s1, 4)"])
def test_a_size_that_is_no_polynomial_asks_for_its_symbols_to_be_numbers(text: str) -> None:
    with pytest.raises(Fixed) as found:
        Sizes({"s0": B, "s1": L}, {BATCH: 2, LENGTH: 16}).parsed(text)
    assert found.value.names == {LENGTH}


@pytest.mark.parametrize("text", ["", "__import__('os')", "s9", "lambda: 1", "s0 if s1 else 2", "Pow(s0, 99)", "FloorDiv(1, 0)",
                                  "(" * 500, "'x'", "[s0]", "s0.real", "9" * 5000])  # fmt: skip
def test_whatever_is_no_size_is_refused(text: str) -> None:
    with pytest.raises((ValueError, Fixed)):
        Sizes({"s0": B, "s1": L}, {BATCH: 2, LENGTH: 16}).parsed(text)


def test_a_floor_division_fixes_its_symbol_at_the_value_of_the_trace() -> None:
    def halve(program: dict[str, Any]) -> None:
        values = program["graph_module"]["graph"]["tensor_values"]
        text = json.dumps(values["arange"]["sizes"][0]["as_expr"]["expr_str"])
        name = next(name for name in values if name == "embedding")
        values[name]["sizes"][1] = {"as_expr": {"expr_str": f"FloorDiv({json.loads(text)}, Integer(3))", "hint": {"as_int": 5}}}

    found = graph_from_json(pt2.read(BytesSource("halved.pt2", changed("decoder", halve)), {}))
    assert isinstance(found, Graph)
    assert found.symbols == ((BATCH, 2),)
    assert found.notes[-1].startswith("length is fixed at 16: FloorDiv(")


@pytest.mark.parametrize(("stack", "path"), [
    ("L__self__,,main.M;L__self__layers.3,layers.3,torch.nn.Linear", "layers.3"),
    ("L__self__,L['self'],M;L__self___layers_3_mlp,L['self'].layers[3].mlp,M", "layers.3.mlp"),
    ("", ""), (None, ""), ("strange", ""), (7, ""),
])  # fmt: skip
def test_the_path_of_a_module_is_that_of_the_innermost(stack: object, path: str) -> None:
    assert scope_of(stack) == path


def _refusal(data: bytes) -> str:
    """Read a file; return the line that refuses it, or nothing."""
    try:
        graph_from_json(pt2.read(BytesSource("broken.pt2", data), {}))
    except BadInput as error:
        return str(error)
    return ""


def _break(where: str, value: object) -> Callable[[dict[str, Any]], None]:
    def change(program: dict[str, Any]) -> None:
        inner: Any = program
        *steps, last = where.split("/")
        for step in steps:
            inner = inner[int(step)] if step.isdigit() else inner[step]
        inner[int(last) if last.isdigit() else last] = value

    return change


@pytest.mark.parametrize(("where", "value"), [
    ("graph_module", 7), ("graph_module/graph", []), ("graph_module/graph/nodes", {}), ("graph_module/graph/nodes/0", "x"),
    ("graph_module/graph/nodes/0/inputs", 3), ("graph_module/graph/nodes/1/inputs/0/arg", {"as_tensor": {"name": "nobody"}}),
    ("graph_module/graph/tensor_values/embedding/dtype", 99),
    ("graph_module/graph/tensor_values/embedding/sizes/0", {"as_int": 2**70}),
    ("graph_module/graph/tensor_values/embedding/sizes/0", {"as_int": -4}), ("graph_module/graph/tensor_values", {}),
    ("graph_module/graph/tensor_values/embedding/sizes", [{"as_int": 2**40}, {"as_int": 2**40}]),
    ("graph_module/signature", None), ("graph_module/signature/input_specs", "x"), ("graph_module/graph/inputs", [7]),
])  # fmt: skip
def test_a_program_that_is_broken_is_refused_in_one_line(where: str, value: object) -> None:
    line = _refusal(changed("decoder", _break(where, value)))
    assert "\n" not in line
    assert "export the model again" in line


def test_a_weight_that_is_shorter_than_its_shape_is_refused() -> None:
    data = changed("decoder", _break("graph_module/graph/tensor_values/p_model_norm_weight/sizes", [{"as_int": 2**30}]))
    with pytest.raises(BadInput, match="of which 128 are there"):
        pt2.read(BytesSource("short.pt2", data), {})


def test_a_program_that_unpacks_to_far_more_than_its_file_is_refused() -> None:
    kept = io.BytesIO()
    with zipfile.ZipFile(kept, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr("serialized_exported_program.json", b" " * 20_000_000)
    with pytest.raises(BadInput, match="a program of 20000000 bytes"):
        pt2.read(BytesSource("bomb.pt2", kept.getvalue()), {})


def test_a_pickle_is_never_opened() -> None:
    class Evil:
        def __reduce__(self) -> tuple[Any, ...]:
            return (pytest.fail, ("a pickle was opened",))

    import pickle

    kept = io.BytesIO(SAMPLES.joinpath("older.pt2").read_bytes())
    with zipfile.ZipFile(kept, "a") as made:
        made.writestr("serialized_state_dict.pt.2", pickle.dumps(Evil()))
    assert parameters_of(kept.getvalue()) == parameters(sample("older"))


def parameters_of(data: bytes) -> int:
    found = graph_from_json(pt2.read(BytesSource("a.pt2", data), {}))
    assert isinstance(found, Graph)
    return parameters(found)


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(["decoder", "older", "images", "control"]), st.integers(0, 2**32))
def test_mutated_bytes_are_read_or_refused(name: str, seed: int) -> None:
    random = Random(seed)
    data = bytearray((SAMPLES / f"{name}.pt2").read_bytes())
    for _ in range(random.randint(1, 8)):
        data[random.randrange(len(data))] = random.randrange(256)
    _read_or_refused(bytes(data[: random.choice([len(data), random.randrange(len(data))])]))


@settings(max_examples=30, deadline=None)
@given(st.sampled_from(["images", "control"]), st.integers(0, 2**32))
def test_mutated_programs_are_read_or_refused(name: str, seed: int) -> None:
    _read_or_refused(changed(name, lambda program: _mutate(program, Random(seed))))


def _mutate(value: Any, random: Random) -> None:
    """Change one thing somewhere below."""
    for _ in range(40):
        inside = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
        deeper = [one for one in inside if isinstance(one, dict | list) and one]
        if not deeper or random.random() < 0.15:
            break
        value = random.choice(deeper)
    key = random.choice(list(value)) if isinstance(value, dict) else random.randrange(len(value))
    if random.random() < 0.3:
        del value[key]
    else:
        value[key] = random.choice([None, -1, 2**63, "", "x" * 500, [], {}, [[]], {"as_int": 3}, {"name": "x"}, True, 0.5])


def _read_or_refused(data: bytes) -> None:
    assert "\n" not in _refusal(data)
