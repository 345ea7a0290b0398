"""StableHLO: what is read of text, bytecode and exports, against counts by hand (`tests/samples/models/make_stablehlo.py`)."""

import json
import re
from math import prod
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import BadInput
from core.graph import DTYPE_BITS, Graph
from core.graph_json import graph_from_json
from core.ops import Op
from core.picture import greatest
from core.symbols import value_of
from intake.picture.timeline import forward_spans, peaks
from intake.readers import stablehlo, stablehlo_build
from intake.readers.stablehlo import module_graph
from intake.source import BytesSource, PathSource

SAMPLES = Path(__file__).parents[3] / "samples" / "models" / "stablehlo"
GRADIENTS = ("gradients.mlir", "gradients_plain.mlir", "gradients.mlirbc", "gradients.jax_export")
WEIGHTS = 16 * 32 + 32 + 5 * 32 * 32 + 32 * 4


def graph(name: str) -> Graph:
    found = graph_from_json(stablehlo.read(PathSource(SAMPLES / name), {}))
    assert isinstance(found, Graph)
    return found


def text_graph(body: str) -> Graph:
    return module_graph(f"module {{ {body} }}".encode(), "text")


def operation(line: str) -> Graph:
    """A module of one operation on arguments %a, %b, ... of the types behind it; `_.` in it stands for `stablehlo.`."""
    said = line.replace("_.", "stablehlo.")
    types = said.rpartition(" : ")[2]
    taken, _, made = types.partition(" -> ") if " -> " in types else (types, "", types)
    names = sorted(set(re.findall(r"%([a-f])\b", said)))
    operands = re.findall(r"tensor<.*?>(?=, tensor|\)?$)", taken.strip("()"))
    operands *= 1 if taken.startswith("(") else len(names)
    arguments = ", ".join(f"%{name}: {type_}" for name, type_ in zip(names, operands, strict=True))
    return text_graph(f"func.func @main({arguments}) -> {made} {{ %0 = {said}\n return %0 : {made} }}")


def flop(found: Graph, phase: str = "", kinds: tuple[str, ...] = ("matmul", "conv"), **values: int) -> int:
    at = {**dict(found.symbols), **values}
    nodes = (node for node in found.nodes if node.kind in kinds and phase in {"", node.phase})
    return sum(Op(node.kind, tuple(value_of(one, at) for one in node.dims), "fp32").flop for node in nodes)


def only(found: Graph, kind: str):
    (node,) = [node for node in found.nodes if node.kind == kind]
    return node


def parameters(found: Graph) -> int:
    total = 0
    for one in found.tensors:
        if one.role == "parameter":
            count = 1
            for extent in one.shape:
                count *= value_of(extent, dict(found.symbols))
            total += count
    return total


FORWARD = 2 * 8 * (16 * 32 + 5 * 32 * 32 + 32 * 4)
"""Of `stack` in make_stablehlo.py, by hand."""


@pytest.mark.parametrize("name", GRADIENTS)
def test_a_training_step_has_the_flops_of_its_products_in_each_phase(name):
    found = graph(name)
    assert found.has_backward
    assert flop(found, "forward") == FORWARD
    assert flop(found, "backward") == 2 * FORWARD - 2 * 8 * 16 * 32  # no gradient of the input


@pytest.mark.parametrize("name", [*GRADIENTS, "stack.mlir", "stack_plain.mlir"])
def test_parameters_are_told_from_inputs_by_name_or_by_use(name):
    found = graph(name)
    assert parameters(found) == WEIGHTS
    assert [one.shape for one in found.tensors if one.role == "input"] == [(8, 16)]
    assert any("guessed" in note for note in found.notes) == (name.endswith("plain.mlir"))


def test_layers_under_a_scan_keep_their_own_places_and_are_no_recurrence():
    found = graph("stack.mlir")
    products = [node for node in found.nodes if node.kind == "matmul"]
    assert [node.scope for node in products] == ["stem", *(f"layers.{layer}" for layer in range(5)), ""]
    assert not any("serial_scan" in node.marks for node in found.nodes)


def test_a_long_recurrence_is_multiplied_and_marked():
    found = graph("counted.mlir")
    assert flop(found) == 500 * 3 * 2 * 2 * 8 * 8
    assert len(found.nodes) < 100
    assert all("serial_scan" in node.marks for node in found.nodes if node.kind == "matmul")


def test_convolutions_count_groups_and_the_places_that_hold_data():
    found = graph("images.mlir")
    grouped, transposed = [node for node in found.nodes if node.kind == "conv"]
    assert grouped.dims == (2, 16, 16, 4, 8, 8, 8, 3, 3, 2)
    assert flop(found) == 2 * 2 * 8 * 8 * 8 * (4 // 2) * 9 + 2 * 2 * 4 * 4 * 8 * 3 * 16
    assert transposed.dims == (2, 8, 8, 3, 4, 4, 8, 4, 4, 1)


def test_operations_that_decide_portability_are_marked():
    found = graph("mixed.mlir")
    marks = {mark for node in found.nodes for mark in node.marks}
    assert {"gather", "sort", "fft", "complex", "linalg", "scatter", "data_loop"} <= marks
    assert only(found, "linalg").dims == (1, 4)
    assert only(found, "fft").dims == (4, 4)
    assert only(found, "scatter").dims == (2, 4)


def test_the_costliest_side_of_a_branch_is_counted():
    found = graph("mixed.mlir")
    assert flop(found) == 2 * (2 * 4 * 4 * 4)  # x @ x.T, and a @ a of the branch
    assert any("branch" in note for note in found.notes)


def test_symbols_follow_through_shapes_that_the_program_computes():
    found = graph("symbols.mlirbc")
    assert dict(found.symbols) == {"batch": 1, "length": 128}
    for batch, length in ((1, 128), (3, 7)):
        tokens = batch * length
        expected = 3 * 2 * tokens * 16 * 16 + 2 * 2 * tokens * length * 16
        assert flop(found, batch=batch, length=length) == expected
    rows = only(found, "embedding")
    assert [str(one) for one in rows.dims] == ["batch*length", "16", "50"]


def test_open_axes_without_names_are_the_batch_and_the_length():
    found = operation(
        "_.dot_general %a, %b, contracting_dims = [2] x [0] : (tensor<?x?x16xf32>, tensor<16x4xf32>) -> tensor<?x?x4xf32>"
    )
    assert [str(one) for one in only(found, "matmul").dims] == ["1", "batch*length", "4", "16"]
    assert str(found.tensors[found.outputs[0]].shape[1]) == "length"


def test_a_bounded_axis_has_its_bound_as_the_value():
    found = operation("_.tanh %a : tensor<?x4xf32, #stablehlo.bounds<10, ?>>")
    assert dict(found.symbols) == {"batch": 10}


DOT = "_.dot_general %a, %b, batching_dims = [0] x [0], contracting_dims = [2] x [1]"
CALLBACK = "xla_ffi_python_cpu_callback"


@pytest.mark.parametrize(
    ("line", "kind", "dims"),
    [
        (f"{DOT} : (tensor<3x4x5xbf16>, tensor<3x5x6xbf16>) -> tensor<3x4x6xbf16>", "matmul", (3, 4, 6, 5)),
        ("_.dot %a, %b : (tensor<5xf32>, tensor<5x6xf32>) -> tensor<6xf32>", "matmul", (1, 1, 6, 5)),
        ("_.exponential %a : tensor<2x3xf32>", "elementwise", (6, 1, 4)),
        ("_.concatenate %a, %b, dim = 0 : (tensor<2xf32>, tensor<3xf32>) -> tensor<5xf32>", "elementwise", (5, 2, 0)),
        ("_.cholesky %a, lower = true : tensor<7x5x5xf32>", "linalg", (7, 5)),
        ("chlo.erf %a : tensor<4xf32> -> tensor<4xf32>", "elementwise", (4, 1, 8)),
        ("_.custom_call @Qr(%a) : (tensor<6x4xf32>) -> tensor<6x4xf32>", "linalg", (1, 4)),
        ("_.custom_call @lapack_sgetrf_ffi(%a) : (tensor<4x4xf32>) -> tensor<4x4xf32>", "linalg", (1, 4)),
        ("_.custom_call @TopK(%a) : (tensor<6x9xf32>) -> tensor<6x2xf32>", "sort", (6, 9)),
        (f"_.custom_call @{CALLBACK}(%a) : (tensor<8xf32>) -> tensor<8xf32>", "host_sync", (16,)),
        ("_.custom_call @my_kernel(%a) : (tensor<8xf32>) -> tensor<2xf32>", "custom", (0, 8, 2)),
    ],
)
def test_an_operation_costs_what_its_shapes_say(line, kind, dims):
    assert only(operation(line), kind).dims == dims


KERNEL = '{backend_config = "{\\"name\\": \\"flash\\"}"}'


@pytest.mark.parametrize(
    ("line", "mark"),
    [
        ("_.add %a, %a : tensor<4xf64>", "fp64"),
        ("_.add %a, %a : tensor<4xcomplex<f32>>", "complex"),
        ("_.custom_call @my_kernel(%a) : (tensor<4xf32>) -> tensor<4xf32>", "custom:my_kernel"),
        (f"_.custom_call @tpu_custom_call(%a) {KERNEL} : (tensor<4xf32>) -> tensor<4xf32>", "custom:flash"),
    ],
)
def test_marks_say_what_an_operation_needs(line, mark):
    assert mark in operation(line).nodes[0].marks


@pytest.mark.parametrize(
    ("written", "dtype"),
    [
        ("f8E4M3FN", "fp8"), ("f8E5M2", "fp8"), ("f4E2M1FN", "fp4"), ("i4", "int4"), ("ui8", "uint8"), ("i1", "bool"),
        ("bf16", "bf16"), ("!quant.uniform<i8:f32, 0.1:5>", "int8"), ("complex<f64>", "complex128"), ("ui32", "uint32"),
    ],
)  # fmt: skip
def test_element_types_keep_their_width(written, dtype):
    found = operation(f"_.reshape %a : (tensor<4x{written}>) -> tensor<2x2x{written}>")
    assert found.tensors[0].dtype == dtype


def test_views_share_the_memory_of_what_they_look_at():
    found = operation("_.reshape %a : (tensor<4xf32>) -> tensor<2x2xf32>")
    assert found.tensors[found.outputs[0]].storage == 0


def test_a_three_dimensional_convolution_is_marked_and_folded():
    found = operation(
        "_.convolution(%a, %b) dim_numbers = [b, 0, 1, 2, f]x[0, 1, 2, i, o]->[b, 0, 1, 2, f], window = {}"
        " {batch_group_count = 1 : i64, feature_group_count = 1 : i64}"
        " : (tensor<1x4x5x6x2xf32>, tensor<2x3x3x2x8xf32>) -> tensor<1x3x3x4x8xf32>"
    )
    node = only(found, "conv")
    assert (node.dims, node.marks) == ((1, 20, 6, 2, 9, 4, 8, 6, 3, 1), ("conv3d",))


def test_collectives_are_noted_and_not_custom():
    found = operation(
        '"_.all_gather"(%a) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}>'
        " : (tensor<2xf32>) -> tensor<4xf32>"
    )
    assert found.nodes[0].dims == (4, 1, 0)
    assert any("collective" in note for note in found.notes)


def test_a_function_that_is_called_twice_counts_twice():
    square = "tensor<4x4xf32>"
    product = f"stablehlo.dot_general %x, %x, contracting_dims = [1] x [0] : ({square}, {square}) -> {square}"
    found = text_graph(
        f"func.func @main(%a: {square}) -> {square} {{ %0 = func.call @square(%a) : ({square}) -> {square}\n"
        f" %1 = func.call @square(%0) : ({square}) -> {square}\n return %1 : {square} }}"
        f" func.func private @square(%x: {square}) -> {square} {{ %0 = {product}\n return %0 : {square} }}"
    )
    assert flop(found) == 2 * 2 * 4 * 4 * 4


def test_torch_xla_says_which_arguments_are_weights():
    module = (
        b"module { func.func @main(%a: tensor<4x8xf32>, %b: tensor<2x8xf32>) -> tensor<2x4xf32> {"
        b" %0 = stablehlo.dot_general %b, %a, contracting_dims = [1] x [1]"
        b" : (tensor<2x8xf32>, tensor<4x8xf32>) -> tensor<2x4xf32>"
        b" return %0 : tensor<2x4xf32> } }"
    )
    meta = (
        b'{"input_locations": [{"type_": "parameter", "name": "fc.weight"}, {"type_": "input_arg", "position": 0, "name": ""}]}'
    )
    folder = BytesSource("model", {"functions/forward.mlir": module, "functions/forward.meta": meta, "METADATA": b""})
    found = graph_from_json(stablehlo.read(folder, {}))
    assert isinstance(found, Graph)
    assert [(one.name, one.role) for one in found.tensors[:2]] == [("fc.weight", "parameter"), ("input_arg 1", "input")]


def test_tables_and_counters_that_torch_xla_calls_parameters_are_not_trained():
    module = (
        b"module { func.func @main(%a: tensor<4x8xf32>, %b: tensor<8xf32>, %c: tensor<1x16xi64>, %d: tensor<i64>,"
        b" %e: tensor<2x8xf32>) -> tensor<2x4xf32> { %0 = stablehlo.dot_general %e, %a, contracting_dims = [1] x [1]"
        b" : (tensor<2x8xf32>, tensor<4x8xf32>) -> tensor<2x4xf32> return %0 : tensor<2x4xf32> } }"
    )
    names = ("fc.weight", "rotary_emb.inv_freq", "embeddings.ids", "norm.num_batches_tracked")
    rows = [{"type_": "parameter", "name": name} for name in names] + [{"type_": "input_arg", "position": 0, "name": ""}]
    meta = json.dumps({"input_locations": rows}).encode()
    found = graph_from_json(stablehlo.read(BytesSource("model", {"functions/f.mlir": module, "functions/f.meta": meta}), {}))
    assert isinstance(found, Graph)
    assert [one.role for one in found.tensors[:5]] == ["parameter", "constant", "constant", "constant", "input"]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"module { func.func @main() { %0 = tosa.const", "MLIR"),
        (b"\x00\x01\x02", "neither text nor MLIR"),
        (b"\xff\xfe\xfa", "neither text nor MLIR"),
        (b"module {}", "without functions"),
        (b"module { func.func @main(%a: tensor<2xf32>) { %0 = mhlo.abs %a : tensor<2xf32>\n return } }", "mhlo"),
        (b"module { func.func @main(%a: tensor<*xf32>) -> tensor<*xf32> { return %a : tensor<*xf32> } }", "tensor<*xf32>"),
        (b"module { func.func @main(%a: tensor<9999999999x9999999999x9xf32>) { return } }", "2**62"),
        (b"module { func.func @main() { func.call @main() : () -> ()\n return } }", "deep"),
        (b"module " + b"{ module " * 300, "deep"),
    ],
)  # fmt: skip
def test_what_cannot_be_used_is_refused_in_one_line(data, words):
    with pytest.raises(BadInput, match="expected") as caught:
        stablehlo.read(BytesSource("m.mlir", data), {})
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_calls_that_unfold_without_end_are_refused(monkeypatch):
    monkeypatch.setattr(stablehlo_build, "MOST_STEPS", 20_000)
    functions = "".join(
        f"func.func private @f{at}() {{ func.call @f{at + 1}() : () -> ()\n func.call @f{at + 1}() : () -> ()\n return }} "
        for at in range(40)
    )
    with pytest.raises(BadInput, match="unfolded"):
        text_graph(
            f"func.func @main() {{ func.call @f0() : () -> ()\n return }} {functions} func.func private @f40() {{ return }}"
        )


@pytest.mark.parametrize(
    ("name", "head", "own"),
    [("m.mlir", b"", True), ("m.bin", b"ML\xefR\r", True), ("m.txt", b"module @jit_f attributes {a = 1} {", True),
     ("m.py", b"import torch", False), ("m.onnx", b"\x08\x07\x12", False), ("m.txt", b"{ lambda ; a:f32[8]. let", False)],
)  # fmt: skip
def test_files_are_known_by_name_or_content(name, head, own):
    assert stablehlo.fits(name, head) == own


def test_an_elementwise_result_that_is_computed_where_it_is_read_has_no_memory_of_its_own():
    found = graph("gradients.mlir")
    made = {out: node for node in found.nodes for out in node.outputs}
    squashed = [at for at, node in made.items() if node.op == "stablehlo.tanh" and node.scope == "stem"]
    scaled = [at for at, node in made.items() if node.op == "stablehlo.add" and node.scope == "stem" and node.phase == "forward"]
    assert all(found.tensors[at].storage == at for at in squashed)  # a product reads it
    assert scaled
    assert all(found.tensors[at].storage != at for at in scaled)  # only tanh reads it


def test_what_a_loop_hands_on_stays_in_memory_between_its_passes():
    found = graph("gradients.mlir")
    backward = [node for node in found.nodes if node.phase == "backward" and node.kind == "matmul" and "layers" in node.scope]
    assert len(backward) == 10
    assert all(found.tensors[at].storage == at for node in backward for at in node.outputs)


def test_a_program_says_what_the_compiler_would_set_aside_or_why_that_is_not_known():
    followed, silent = graph("gradients.mlir").compiled, graph("symbols.mlirbc").compiled
    assert followed is not None
    assert followed.memory is not None
    assert followed.memory.arguments_bytes == sum(
        size_of_argument(graph("gradients.mlir"), at) for at in range(followed.arguments)
    )  # fmt: skip
    assert silent is not None
    assert (silent.memory, silent.silent) == (None, "sizes are open")


def size_of_argument(found: Graph, at: int) -> int:
    return prod(value_of(extent, {}) for extent in found.tensors[at].shape) * DTYPE_BITS[found.tensors[at].dtype] // 8


def test_memory_of_a_traced_step_dies_with_its_last_use():
    found = graph("gradients.mlir")
    values = [one for at, one in enumerate(found.tensors) if one.role == "value" and one.storage == at]
    answered = {found.tensors[at].storage for at in found.outputs}
    assert all(one.dies is not None for one in values if one.storage not in answered)
    assert max(one.dies for one in values if one.dies is not None) < len(found.nodes)


TEXTS = tuple((SAMPLES / name).read_bytes() for name in ("stack_plain.mlir", "images.mlir", "counted.mlir"))


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.sampled_from(TEXTS), st.integers(0, 10_000), st.integers(0, 12), st.binary(max_size=12))
def test_changed_text_is_read_or_refused(text, at, cut, put):
    """Bytecode is changed in the sandbox's own drills: jaxlib's reader of it can end the process."""
    at %= len(text)
    changed = text[:at] + put + text[at + cut :]
    try:
        found = stablehlo.read(BytesSource("m.mlir", changed), {})
    except BadInput:
        return
    assert isinstance(graph_from_json(found), Graph)


_PRODUCT = (b"%%%s = stablehlo.dot_general %%%s, %%w, contracting_dims = [1] x [0]"
            b" : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32> ")  # fmt: skip


def held_forward(body: bytes) -> int:
    module = b"module { func.func @main(%x: tensor<4x8xf32>, %w: tensor<8x8xf32>, %v: tensor<8x1xf32>) -> tensor<4x1xf32> {"
    module += b" %d = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<4x8xf32>, tensor<8x8xf32>)"
    module += b" -> tensor<4x8xf32> " + body + b" %o = stablehlo.dot_general %t, %v, contracting_dims = [1] x [0]"
    module += b" : (tensor<4x8xf32>, tensor<8x1xf32>) -> tensor<4x1xf32> return %o : tensor<4x1xf32> } }"
    return greatest(peaks(forward_spans(module_graph(module, "m"), "fp32"), {}), {"word": 4})


@pytest.mark.parametrize(("body", "held"), [
    (b"%t = stablehlo.tanh %d : tensor<4x8xf32>", 128 + 16),  # in the place of the product
    (b"%a = stablehlo.add %d, %d : tensor<4x8xf32> %t = stablehlo.tanh %a : tensor<4x8xf32>", 128 + 16),  # the sum is in tanh
    # the product is read once more afterwards, so it stays beside the first result
    (b"%a = stablehlo.tanh %d : tensor<4x8xf32> " + _PRODUCT % (b"b", b"a") + b"%t = stablehlo.add %b, %d : tensor<4x8xf32>",
     3 * 128),
    (_PRODUCT % (b"t", b"d"), 2 * 128),  # a product never lies where it reads
])
def test_an_elementwise_result_takes_the_place_of_an_operand_that_nothing_reads_any_more(body: bytes, held: int) -> None:
    assert held_forward(body) == held


def test_what_is_written_into_an_operand_takes_its_place() -> None:
    body = (b"%z = stablehlo.constant dense<0> : tensor<i32> %s = stablehlo.slice %x [0:1, 0:8] : (tensor<4x8xf32>)"
            b" -> tensor<1x8xf32> %t = stablehlo.dynamic_update_slice %d, %s, %z, %z : (tensor<4x8xf32>, tensor<1x8xf32>,"
            b" tensor<i32>, tensor<i32>) -> tensor<4x8xf32>")  # fmt: skip
    assert held_forward(body) == 128 + 16
