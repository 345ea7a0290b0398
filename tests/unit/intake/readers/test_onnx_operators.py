"""Shapes, kinds and dims of single ONNX operators, from files that are written byte by byte."""

import pytest

from core.graph import Graph
from core.graph_json import graph_from_json
from core.symbols import BATCH, symbol
from intake.readers import onnx
from intake.source import BytesSource
from tests.samples.models.onnx_writer import BOOL, FP64, INT32, INT64, graph, model, node, tensor, value

B = symbol(BATCH)


def read(op: str, shapes, outputs=1, dtypes=None, opset=21, domain="", stored=(), declared=(), **attributes) -> Graph:
    names = [f"x{at}" for at in range(len(shapes))]
    kinds = dtypes or [1] * len(shapes)
    inputs = [value(name, shape, kind) for name, shape, kind in zip(names, shapes, kinds, strict=True)]
    labels = [f"k{at}" if isinstance(one, list) else f"w{at}.weight" for at, one in enumerate(stored)]
    kept = [tensor(label, [len(one)], INT64, one) if isinstance(one, list) else tensor(label, one)
            for label, one in zip(labels, stored, strict=True)]  # fmt: skip
    given = names + labels
    made = [f"y{at}" for at in range(outputs)]
    nodes = [node(op, given, made, domain=domain, **attributes)]
    return whole(nodes, inputs, [value(name, None) for name in made], kept, declared, opset)


def whole(nodes, inputs, outputs, stored, declared=(), opset=21) -> Graph:
    data = model(graph(nodes, inputs, outputs, stored, declared), opset)
    found = graph_from_json(onnx.read(BytesSource("made.onnx", data), {}))
    assert isinstance(found, Graph)
    return found


def results(found: Graph) -> list:
    return [found.tensors[at].shape for at in found.outputs]


def works(found: Graph) -> list:
    return [(one.kind, one.dims) for one in found.nodes]


CASES = [
    ("Relu", [("n", 4)], {}, (B, 4), ("elementwise", (4 * B, 1, 1))),
    ("Erf", [("n", 4)], {}, (B, 4), ("elementwise", (4 * B, 1, 8))),
    ("Add", [("n", 3, 4), (3, 1)], {}, (B, 3, 4), ("elementwise", (12 * B, 2, 1))),
    ("MatMul", [("n", 5, 8), (8, 6)], {}, (B, 5, 6), ("matmul", (1, 5 * B, 6, 8))),
    ("MatMul", [("n", 2, 5, 8), ("n", 2, 8, 6)], {}, (B, 2, 5, 6), ("matmul", (2 * B, 5, 6, 8))),
    ("MatMul", [(8,), (8, 6)], {}, (6,), ("matmul", (1, 1, 6, 8))),
    ("MatMul", [(5, 8), (3, 8, 6)], {}, (3, 5, 6), ("matmul", (3, 5, 6, 8))),
    ("Gemm", [(8, "n"), (6, 8), (6,)], {"transA": 1, "transB": 1}, (symbol("n"), 6),
     ("matmul", (1, symbol("n"), 6, 8))),
    ("Einsum", [("n", 2, 5, 8), ("n", 2, 7, 8)], {"equation": "bhqd,bhkd->bhqk"}, (B, 2, 5, 7), ("matmul", (2 * B, 5, 7, 8))),
    ("Einsum", [("n", 5, 8), (8, 2, 3)], {"equation": "...d,dhk->...hk"}, (B, 5, 2, 3), ("matmul", (1, 5 * B, 6, 8))),
    ("Conv", [("n", 3, 32, 32), (8, 3, 3, 3)], {"pads": [1, 1, 1, 1], "strides": [2, 2]}, (B, 8, 16, 16),
     ("conv", (B, 32, 32, 3, 16, 16, 8, 3, 3, 1))),
    ("Conv", [("n", 6, 20), (12, 2, 5)], {"group": 3, "dilations": [2]}, (B, 12, 12),
     ("conv", (B, 1, 20, 6, 1, 12, 12, 1, 5, 3))),
    ("Conv", [("n", 3, 8, 9, 10), (4, 3, 2, 3, 3)], {"auto_pad": "VALID"}, (B, 4, 7, 7, 8),
     ("conv", (B, 72, 10, 3, 49, 8, 4, 6, 3, 1))),
    ("Conv", [("n", 3, 33, 33), (8, 3, 3, 3)], {"auto_pad": "SAME_UPPER", "strides": [2, 2]}, (B, 8, 17, 17),
     ("conv", (B, 33, 33, 3, 17, 17, 8, 3, 3, 1))),
    ("ConvTranspose", [("n", 6, 5, 5), (6, 4, 3, 3)], {"strides": [2, 2], "output_padding": [1, 1]}, (B, 4, 12, 12),
     ("conv", (B, 12, 12, 4, 5, 5, 6, 3, 3, 1))),
    ("MaxPool", [("n", 4, 9, 9)], {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1}, (B, 4, 4, 4),
     ("reduce", (576 * B, 64 * B))),
    ("GlobalAveragePool", [("n", 4, 9, 9)], {}, (B, 4, 1, 1), ("reduce", (324 * B, 4 * B))),
    ("LayerNormalization", [("n", 5, 8), (8,), (8,)], {}, (B, 5, 8), ("norm", (5 * B, 8))),
    ("RMSNormalization", [("n", 5, 8), (8,)], {}, (B, 5, 8), ("norm", (5 * B, 8))),
    ("GroupNormalization", [("n", 8, 5), (8,), (8,)], {"num_groups": 2}, (B, 8, 5), ("norm", (2 * B, 20))),
    ("InstanceNormalization", [("n", 8, 5), (8,), (8,)], {}, (B, 8, 5), ("norm", (8 * B, 5))),
    ("Softmax", [("n", 5, 8)], {"axis": 1}, (B, 5, 8), ("softmax", (8 * B, 5))),
    ("ReduceMean", [("n", 5, 8)], {"keepdims": 0}, (), ("reduce", (40 * B, 1))),
    ("ArgMax", [("n", 5)], {"axis": 1, "keepdims": 0}, (B,), ("reduce", (5 * B, B))),
    ("DepthToSpace", [("n", 8, 2, 3)], {"blocksize": 2}, (B, 2, 4, 6), ("elementwise", (48 * B, 1, 0))),
    ("Concat", [("n", 3), ("n", 4)], {"axis": 1}, (B, 7), ("elementwise", (7 * B, 1, 0))),
    ("GatherElements", [("n", 9), ("n", 2)], {"axis": 1}, (B, 2), ("gather", (2 * B, 1))),
    ("ScatterND", [("n", 9, 4), (3, 1), (3, 9, 4)], {}, (B, 9, 4), ("scatter", (3, 36))),
    ("GridSample", [("n", 3, 8, 8), ("n", 5, 6, 2)], {}, (B, 3, 5, 6), ("gather", (360 * B, 1))),
    ("Det", [("n", 4, 4)], {}, (B,), ("linalg", (B, 4))),
    ("Attention", [("n", 4, 10, 8), ("n", 2, 12, 8), ("n", 2, 12, 8)], {}, (B, 4, 10, 8), ("attention", (B, 4, 2, 10, 12, 8))),
    ("Attention", [("n", 10, 32), ("n", 12, 16), ("n", 12, 16)], {"q_num_heads": 4, "kv_num_heads": 2}, (B, 10, 32),
     ("attention", (B, 4, 2, 10, 12, 8))),
    ("RotaryEmbedding", [("n", 4, 10, 8), (50, 4), (50, 4)], {}, (B, 4, 10, 8), ("elementwise", (320 * B, 3, 3))),
    ("NonZero", [("n", 4)], {}, (2, 4 * B), ("elementwise", (4 * B, 1, 1))),
    ("DFT", [("n", 16, 1)], {"axis": 1, "onesided": 1}, (B, 9, 2), ("fft", (B, 16))),
]  # fmt: skip


@pytest.mark.parametrize(("op", "shapes", "attributes", "shape", "work"), CASES)
def test_an_operator_has_its_shape_and_its_work(op: str, shapes, attributes, shape, work) -> None:
    opset = 17 if op in {"ReduceMean", "DFT"} else 23
    found = read(op, shapes, opset=opset, **attributes)
    assert results(found) == [shape]
    assert works(found) == [work]


FUSED = [
    ("MultiHeadAttention", [("n", 10, 32), ("n", 12, 32), ("n", 12, 32)], {"num_heads": 4}, (B, 10, 32),
     [("attention", (B, 4, 4, 10, 12, 8))]),
    ("Attention", [("n", 10, 32), (32, 96), (96,)], {"num_heads": 4}, (B, 10, 32),
     [("matmul", (1, 10 * B, 96, 32)), ("attention", (B, 4, 4, 10, 10, 8))]),
    ("SkipLayerNormalization", [("n", 10, 32), ("n", 10, 32), (32,), (32,)], {}, (B, 10, 32),
     [("elementwise", (320 * B, 2, 1)), ("norm", (10 * B, 32))]),
    ("SimplifiedLayerNormalization", [("n", 10, 32), (32,)], {}, (B, 10, 32), [("norm", (10 * B, 32))]),
    ("FastGelu", [("n", 8), (8,)], {}, (B, 8), [("elementwise", (8 * B, 2, 9))]),
    ("FusedMatMul", [("n", 8), (6, 8)], {"transB": 1}, (B, 6), [("matmul", (1, B, 6, 8))]),
    ("MatMulNBits", [("n", 10, 32), (64, 1, 16), (64,)], {"K": 32, "N": 64, "bits": 4, "block_size": 32}, (B, 10, 64),
     [("matmul", (1, 10 * B, 64, 32))]),
]  # fmt: skip


@pytest.mark.parametrize(("op", "shapes", "attributes", "shape", "work"), FUSED, ids=[case[0] for case in FUSED])
def test_an_operator_of_optimised_transformers_is_its_parts(op: str, shapes, attributes, shape, work) -> None:
    found = read(op, shapes, domain="com.microsoft", **attributes)
    assert (results(found), works(found)) == ([shape], work)


def test_grouped_query_attention_counts_the_cache_before_it() -> None:
    shapes = [("n", 1, 64), ("n", 1, 32), ("n", 1, 32), ("n", 4, 100, 8), ("n", 4, 100, 8)]
    found = read("GroupQueryAttention", shapes, outputs=3, domain="com.microsoft", num_heads=8, kv_num_heads=4)
    assert works(found) == [("attention", (B, 8, 4, 1, 101, 8))]
    assert results(found) == [(B, 1, 64), (B, 4, 101, 8), (B, 4, 101, 8)]


def test_a_recurrent_layer_runs_once_for_each_direction() -> None:
    found = read("LSTM", [(7, "n", 10)], outputs=3, stored=[(2, 32, 10), (2, 32, 8)], hidden_size=8, direction="bidirectional")
    assert works(found) == [("rnn", (7, symbol("n"), 10, 8, 4))] * 2
    assert all(one.marks == ("serial_scan",) for one in found.nodes)
    assert results(found)[0] == (7, 2, symbol("n"), 8)


@pytest.mark.parametrize(("op", "shapes", "stored", "attributes", "shape"), [
    ("Reshape", [("n", 6, 4)], [[0, -1]], {}, (B, 24)), ("Reshape", [("n", 6, 4)], [[-1, 2]], {}, (12 * B, 2)),
    ("Transpose", [("n", 6, 4)], [], {"perm": [2, 0, 1]}, (4, B, 6)), ("Flatten", [("n", 6, 4)], [], {"axis": 2}, (6 * B, 4)),
    ("Unsqueeze", [("n", 6)], [[0, 3]], {}, (1, B, 6, 1)), ("Squeeze", [("n", 1, 6)], [[1]], {}, (B, 6)),
    ("Slice", [("n", 9)], [[-5], [1 << 62], [1], [2]], {}, (B, 3)), ("Slice", [("n", 9)], [[8], [-20], [1], [-1]], {}, (B, 9)),
    ("Expand", [("n", 1)], [[1, 7]], {}, (B, 7)), ("Identity", [("n", 7)], [], {}, (B, 7)),
])  # fmt: skip
def test_what_only_looks_differently_at_memory_is_a_view(op: str, shapes, stored, attributes, shape) -> None:
    found = read(op, shapes, stored=stored, **attributes)
    assert results(found) == [shape]
    assert [one.kind for one in found.nodes] == ["view"]
    assert found.tensors[found.outputs[0]].storage == found.tensors[found.nodes[0].inputs[0]].storage


@pytest.mark.parametrize(("op", "shapes", "stored", "attributes", "shape"), [
    ("Pad", [("n", 4, 5)], [[0, 1, 2, 0, 3, 4]], {}, (B, 8, 11)), ("Tile", [("n", 4)], [[2, 3]], {}, (2 * B, 12)),
    ("Resize", [("n", 3, 4, 5)], [[], [], [1, 3, 8, 10]], {}, (1, 3, 8, 10)), ("Trilu", [("n", 4, 4)], [], {}, (B, 4, 4)),
])  # fmt: skip
def test_what_moves_memory_is_a_copy_without_arithmetic(op: str, shapes, stored, attributes, shape) -> None:
    found = read(op, shapes, stored=stored, **attributes)
    assert results(found) == [shape]
    assert (found.nodes[0].kind, found.nodes[0].dims[2]) == ("elementwise", 0)


def test_rows_of_a_trained_table_are_an_embedding_and_others_are_gathered() -> None:
    body = [node("Gather", ["table.weight", "x"], ["y"]), node("Gather", ["y", "x"], ["z"])]
    found = whole(body, [value("x", ("n", 5), INT64)], [value("z", None)], [tensor("table.weight", (100, 16))])
    assert works(found) == [("embedding", (5 * B, 16, 100)), ("gather", (5 * B, 80))]
    assert [one.marks for one in found.nodes] == [("gather",), ("gather",)]


def test_the_greatest_few_sort_and_say_so() -> None:
    found = read("TopK", [("n", 50)], outputs=2, stored=[[3]])
    assert (results(found), works(found), found.nodes[0].marks) == ([(B, 3), (B, 3)], [("sort", (B, 50))], ("sort",))


@pytest.mark.parametrize(("op", "shape", "dtype", "mark"), [
    ("NonZero", ("n", 4), BOOL, "dynamic_shape"), ("Relu", ("n", 4), FP64, "fp64"), ("RandomNormalLike", ("n", 4), 1, "random"),
    ("Relu", ("n", 4), 14, "complex"),
])  # fmt: skip
def test_what_decides_portability_is_marked(op: str, shape, dtype: int, mark: str) -> None:
    assert mark in read(op, [shape], dtypes=[dtype]).nodes[0].marks


def test_a_convolution_over_three_dimensions_is_marked() -> None:
    assert read("Conv", [(1, 2, 4, 4, 4)], stored=[(3, 2, 3, 3, 3)]).nodes[0].marks == ("conv3d",)


def test_an_operator_of_its_own_has_the_shape_that_the_file_declares() -> None:
    found = read("Mystery", [("n", 4)], domain="my.own", declared=[value("y0", ("n", 9))])
    assert results(found) == [(B, 9)]
    assert found.nodes[0].marks == ("custom:my.own.Mystery",)
    assert works(found) == [("custom", (0, 4 * B, 9 * B))]
    assert any("not counted" in note for note in found.notes)


def test_integer_products_and_quantised_weights_keep_their_dtype() -> None:
    stored = [tensor("w", (8, 6), 3), tensor("s", (), 1, real=[0.5])]
    nodes = [node("DequantizeLinear", ["w", "s"], ["d"]), node("MatMul", ["x", "d"], ["y"])]
    found = whole(nodes, [value("x", ("n", 8))], [value("y", None)], stored)
    told = [(one.name, one.dtype, one.role) for one in found.tensors[1:3]]
    assert told == [("w", "int8", "parameter"), ("s", "fp32", "constant")]
    assert read("MatMulInteger", [("n", 8), (8, 6)], dtypes=[3, 3]).tensors[-1].dtype == "int32"


def test_sequences_of_tensors_are_followed() -> None:
    nodes = [node("SplitToSequence", ["x"], ["s"], axis=1), node("SequenceAt", ["s", "one"], ["a"]),
             node("SequenceInsert", ["s", "a"], ["t"]), node("ConcatFromSequence", ["t"], ["y"], axis=1)]
    stored = [tensor("one", (), INT64, [1])]
    found = whole(nodes, [value("x", ("n", 3, 4))], [value("y", None)], stored)
    assert results(found) == [(B, 4, 4)]


@pytest.mark.parametrize(("op", "shapes", "attributes"), [
    ("MatMul", [(3, 4), (5, 6)], {}), ("Conv", [(1, 3, 2, 2), (4, 3, 5, 5)], {}), ("Transpose", [(2, 3)], {"perm": [0, 0]}),
    ("Gemm", [(2, 3, 4), (4, 5)], {}), ("Concat", [(2, 3), (4, 5)], {"axis": 0}), ("Einsum", [(2, 3)], {"equation": "ij,jk"}),
    ("Softmax", [(2, 3)], {"axis": 7}), ("Reshape", [(2, 3), (2,)], {}), ("Add", [(2, 3), (4,)], {}), ("Nothing", [(2,)], {}),
    ("LSTM", [(3,), (2,), (1,)], {}), ("TopK", [(2,)], {}), ("MaxPool", [(1, 1, 4)], {"kernel_shape": [0]}),
])  # fmt: skip
def test_operands_that_do_not_fit_are_refused_with_the_operator_s_name(op: str, shapes, attributes) -> None:
    with pytest.raises(onnx.BadInput, match=f"operator {op}"):
        read(op, shapes, dtypes=[INT32] * len(shapes), **attributes)
