"""Public cases: of each the model or code that it is about is made small, and the picture or the scan has the fact it turns on.

Facts are restated from the threads whose addresses stand beside them; what is decided from the facts is the advisor's.
"""

from json import dumps, loads
from math import prod

import pytest

from core.finding import Scan
from core.graph import DTYPE_BITS, Graph, Shape
from core.graph_json import graph_from_json, graph_to_json
from core.optimizers import state_bytes
from core.picture import WORD, Picture, Portability
from core.symbols import Extent, symbol, value_of
from intake.code import SourceFile, expand, facts, scan_tree
from intake.picture import picture_of
from intake.picture.draw import CACHE
from intake.picture.tiles import tiled_bytes
from intake.readers.jaxpr import text_graph
from intake.readers.stablehlo import module_graph
from tests.unit.intake.picture.sketch import Sketch

GIB, GB, MIB = 2**30, 10**9, 2**20
LLAMA_8B = {"layers": 32, "width": 4096, "wide": 14336, "heads": 32, "kv_heads": 8, "vocabulary": 128256}
LLAMA_70B = {"layers": 80, "width": 8192, "wide": 28672, "heads": 64, "kv_heads": 8, "vocabulary": 128256}
LLAMA_7B = {"layers": 32, "width": 4096, "wide": 11008, "heads": 32, "kv_heads": 32, "vocabulary": 32000}
LLAMA_30B = {"layers": 60, "width": 6656, "wide": 17920, "heads": 52, "kv_heads": 52, "vocabulary": 32000}


def case(name: str, *values: object, url: str):
    """Values of a test, known by the case's name; `url` is where its facts are from."""
    assert url.startswith("https://")
    return pytest.param(*values, id=name)


def text_picture(body: str) -> Picture:
    return picture_of(module_graph(f"module {{ {body} }}".encode(), "text"))


def result(shape: Shape, dtype: str, op: str, kind: str, dims: Shape, *marks: str,
           taken: tuple[tuple[Shape, str], ...] = ()) -> Graph:  # fmt: skip
    """One operation with a result of this shape."""
    sketch = Sketch(dtype=dtype)
    inputs = tuple(sketch.given(*sides, dtype=width) for sides, width in taken or ((shape, dtype),))
    made = sketch.tensor(*shape)
    sketch.node(op, kind, dims, inputs, (made,), *marks)
    return sketch.graph(made)


def only(picture: Picture, mark: str) -> Portability:
    (found,) = [one for one in picture.operations if one.mark == mark]
    return found


def llama(layers: int, width: int, wide: int, heads: int, kv_heads: int, vocabulary: int) -> Picture:
    """A decoder with grouped queries and a gated MLP, in bf16."""
    tokens, sketch = symbol("batch") * symbol("length"), Sketch(dtype="bf16")
    keys = width // heads * kv_heads
    ids, x = sketch.given(tokens, dtype="int64"), sketch.tensor(tokens, width)
    sketch.scope = "model.embed_tokens"
    sketch.node("aten.embedding", "embedding", (tokens, width, vocabulary), (sketch.weight(vocabulary, width), ids), (x,))
    for number in range(layers):
        sketch.scope = f"model.layers.{number}"
        normal = sketch.each("aten.mul", x, sketch.weight(width))
        q, k, v = (sketch.product(normal, sketch.weight(width, side)) for side in (width, keys, keys))
        mixed = sketch.tensor(tokens, width)
        sizes = (symbol("batch"), heads, kv_heads, symbol("length"), symbol("length"), width // heads)
        sketch.node("aten.sdpa", "attention", sizes, (q, k, v), (mixed,))
        x = sketch.each("aten.add", x, sketch.product(mixed, sketch.weight(width, width)))
        normal = sketch.each("aten.mul", x, sketch.weight(width))
        gate, up = (sketch.product(normal, sketch.weight(width, wide)) for _ in range(2))
        x = sketch.each("aten.add", x, sketch.product(sketch.each("aten.mul", gate, up), sketch.weight(wide, width)))
    sketch.scope = "lm_head"
    out = sketch.product(sketch.each("aten.mul", x, sketch.weight(width)), sketch.weight(width, vocabulary))
    return picture_of(sketch.graph(out, symbols=(("batch", 1), ("length", 2048)), facts=((CACHE, 2 * 2 * layers * keys),)))


@pytest.mark.parametrize(("shape", "dtype", "logical", "padded"), [
    # the layout laid 2048 x 128 x 1 x 2048 in memory, the axis of one next to the last
    case("PAD-03", (2048, 128, 1, 2048), "bf16", GIB, 4 * GIB, url="https://github.com/pytorch/xla/issues/6674"),
    case("PAD-04", (2048, 1, 128, 128, 4), "int32", 512 * MIB, 16 * GIB, url="https://github.com/jax-ml/jax/issues/7502"),
    case("PAD-07", (8, 1024, 60), "fp32", 8 * 1024 * 60 * 4, 8 * 1024 * 128 * 4, url="https://github.com/tensorflow/tpu/issues/875"),
])  # fmt: skip
def test_a_tensor_takes_more_in_tiles_than_it_has(shape, dtype, logical, padded):
    picture = picture_of(result(shape, dtype, "copy", "elementwise", (prod(shape), 1, 0)))
    (told,) = [one for one in picture.operations if one.mark in {"unit_axis", "off_tile"}]
    assert (told.extent, told.padded) == (logical, padded)
    assert told.mark == ("unit_axis" if 1 in shape[-2:] else "off_tile")


@pytest.mark.parametrize(("rows", "wide", "dtype", "padded_rows"), [
    (1, 2560, "fp32", 2), (2, 2560, "fp32", 2), (3, 128, "fp32", 4), (5, 128, "fp32", 8), (12, 128, "fp32", 16),
    (1, 128, "bf16", 4), (5, 128, "bf16", 8), (1, 128, "int8", 8),
])  # fmt: skip
def test_a_tile_has_as_few_rows_as_xla_takes(rows, wide, dtype, padded_rows):
    assert tiled_bytes((rows, wide), dtype) == padded_rows * wide * DTYPE_BITS[dtype] // 8


@pytest.mark.parametrize(("op", "kind", "taken"), [
    case("PAD-04", "aten.gather.default", "gather", (2048, 1, 128, 128), url="https://github.com/jax-ml/jax/issues/7502"),
    case("EMB-10", "aten.gather.default", "gather", (10, 10, 512, 512), url="https://github.com/pytorch/xla/pull/3450"),
    case("EMB-10 in ONNX", "GatherElements", "gather", (10, 10, 512, 512), url="https://github.com/pytorch/xla/pull/3450"),
])  # fmt: skip
def test_a_gather_of_elements_has_an_index_of_coordinates_32_times_its_size(op, kind, taken):
    graph = result(taken, "fp32", op, kind, (prod(taken), 1), "gather", taken=((taken, "fp32"), (taken, "int64")))
    told = only(picture_of(graph), "gather")
    assert told.extent == prod(taken) * 4 * 4  # four coordinates of 32 bits
    assert told.padded == 32 * told.extent


def test_the_index_of_pad_04_in_stablehlo_is_read_as_it_stands():
    body = """func.func @main(%a: tensor<2048x1x128x128xf32>, %i: tensor<2048x1x128x128x4xi32>) -> tensor<2048x1x128x128xf32> {
      %0 = "stablehlo.gather"(%a, %i) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0, 1, 2, 3],
        start_index_map = [0, 1, 2, 3], index_vector_dim = 4>, slice_sizes = array<i64: 1, 1, 1, 1>}>
        : (tensor<2048x1x128x128xf32>, tensor<2048x1x128x128x4xi32>) -> tensor<2048x1x128x128xf32>
      return %0 : tensor<2048x1x128x128xf32> }"""
    told = only(text_picture(body), "gather")
    assert (told.extent, told.padded) == (512 * MIB, 16 * GIB)


@pytest.mark.parametrize(("rows", "n", "k", "ratio"), [
    case("PAD-06 on tiles", 512, 3072, 768, None, url="https://github.com/pytorch/xla/issues/6429"),
    case("PAD-06 off tiles", 512, 3000, 750, 3072 * 768 / (3000 * 750), url="https://github.com/pytorch/xla/issues/6429"),
    case("PAD-07", 64, 11000, 5500, 11008 * 5504 / (11000 * 5500), url="https://github.com/tensorflow/tpu/issues/875"),
    case("PAD-10", 512, 256, 96, 128 / 96, url="https://github.com/AI-Hypercomputer/maxtext/issues/1183"),
])  # fmt: skip
def test_a_product_off_the_tiles_is_told_with_what_padding_adds(rows, n, k, ratio):
    sketch = Sketch(dtype="bf16")
    out = sketch.product(sketch.given(rows, k), sketch.weight(k, n))
    told = [one for one in picture_of(sketch.graph(out)).operations if one.detail.startswith("product")]
    if ratio is None or ratio <= 1.02:
        assert told == []
    else:
        assert [(one.extent, one.padded) for one in told] == [(2 * rows * n * k, round(2 * rows * n * k * ratio))]


def test_krn_08_a_ragged_product_is_told_by_its_name_and_pad_10_by_its_side():
    """Source: https://github.com/marin-community/marin/issues/7012."""
    text = """{ lambda ; a:bf16[512,96] b:bf16[8,96,256] c:i32[8]. let
    d:bf16[512,256] = ragged_dot_general[
      group_offset=None
      out_sharding=None
      precision=None
      preferred_element_type=None
      ragged_dot_dimension_numbers=RaggedDotDimensionNumbers(dot_dimension_numbers=(((1,), (1,)), ((), ())), lhs_ragged_dimensions=(0,), rhs_group_dimensions=(0,))
    ] a b c
  in (d,) }"""  # noqa: E501
    picture = picture_of(text_graph(text, "experts"))
    (operation,) = [one for block in picture.blocks for one in block.operations if one.phase == "forward"]
    assert (operation.source, operation.dims) == ("ragged_dot_general", (1, 512, 256, 96))
    assert [one.detail for one in picture.operations] == ["product of 256 x 96"]


@pytest.mark.parametrize(("sizes", "count"), [
    case("MEM-14", LLAMA_8B, 8_030_261_248, url="https://github.com/meta-llama/llama3/issues/95"),
    case("MEM-01", LLAMA_70B, 70_553_706_496, url="https://github.com/vllm-project/vllm/issues/9331"),
    case("MEM-09 7B", LLAMA_7B, 6_738_415_616, url="https://github.com/young-geng/EasyLM/issues/35"),
    case("MEM-09 30B", LLAMA_30B, 32_528_943_616, url="https://github.com/young-geng/EasyLM/issues/35"),
])  # fmt: skip
def test_parameters_are_those_that_the_case_is_about(sizes, count):
    assert llama(**sizes).parameter_count == count


def test_mem_14_weights_and_cache_of_8b_in_bf16_exceed_16_gb_and_in_4_bits_do_not():
    """Source: https://github.com/meta-llama/llama3/issues/95."""
    picture = llama(**LLAMA_8B)
    cache = value_of(picture.cache, {"length": 8192, WORD: 2})
    assert cache == 8192 * 128 * 1024
    assert 2 * picture.parameter_count + cache > 16 * GB > picture.parameter_count // 2 + cache


def test_mem_01_eight_bits_fit_a_chip_of_eight_and_what_they_are_made_from_does_not():
    """Source: https://github.com/vllm-project/vllm/issues/9331."""
    of_one_chip = llama(**LLAMA_70B).parameter_count / 8
    assert round(of_one_chip / GB, 1) == 8.8
    assert of_one_chip < 16 * GB < 2 * of_one_chip


@pytest.mark.parametrize(("sizes", "fits"), [
    case("MEM-09 7B", LLAMA_7B, True, url="https://github.com/young-geng/EasyLM/issues/35"),
    case("MEM-09 30B", LLAMA_30B, False, url="https://github.com/young-geng/EasyLM/issues/35"),
])  # fmt: skip
def test_weights_and_moments_in_fp32_are_twelve_bytes_a_parameter(sizes, fits):
    picture = llama(**sizes)
    shapes = [(one.shape, one.count * block.repeats) for block in picture.blocks for one in block.parameters if one.trained]
    kept = 4 * picture.parameter_count + state_bytes("adamw", shapes)
    assert kept == 12 * picture.parameter_count
    assert (kept < 128 * GB) == fits


def test_mem_10_what_is_kept_with_and_without_remat_is_told_apart():
    """Source: https://github.com/google-deepmind/weathernext/issues/55."""
    nodes, width = 40_962, 512  # of the mesh, and of its processor of sixteen equal steps
    sketch = Sketch(dtype="bf16")
    x = sketch.product(sketch.given(nodes, 186), sketch.weight(186, width))
    for number in range(16):
        sketch.scope = f"processor.{number}"
        hidden = sketch.each("aten.silu", sketch.product(x, sketch.weight(width, width)))
        x = sketch.each("aten.add", x, sketch.product(hidden, sketch.weight(width, width)))
    block = next(block for block in picture_of(sketch.graph(x)).blocks if block.repeats == 16)
    one: Extent = nodes * width * symbol(WORD)
    assert block.given == one  # all that stays of a step with remat
    assert value_of(block.saved, {WORD: 2}) > 2.8 * value_of(one, {WORD: 2})


def test_emb_05_a_table_of_a_thousand_million_rows_takes_four_terabytes():
    """Source: https://github.com/tensorflow/recommenders/issues/127."""
    sketch = Sketch()
    rows = sketch.tensor(4096, 1000)
    taken = (sketch.weight(10**9, 1000), sketch.given(4096, dtype="int64"))
    sketch.node("ResourceGather", "embedding", (4096, 1000, 10**9), taken, (rows,), "gather")
    picture = picture_of(sketch.graph(rows))
    assert picture.parameter_count * 4 == 4 * 10**12
    assert only(picture, "gather").extent == 4096 * 8


@pytest.mark.parametrize(("op", "kind", "dims", "shapes", "mark"), [
    case("EMB-03", "GatherV2", "gather", (1000 * 30 * 128, 64), (((10**6, 64), "fp32"), ((128, 30_000), "int64")), "gather",
         url="https://github.com/tensorflow/tensorflow/issues/43784"),
    case("EMB-07", "aten.scatter_reduce.two", "scatter", (1_300_000, 1), (((5_600_000,), "fp32"), ((1_300_000,), "int64")),
         "scatter", url="https://github.com/pytorch/xla/issues/8720"),
    case("FWK-05", "ScatterNd", "scatter", (8 * 56 * 56 * 9, 192), (((8, 112, 112, 192), "fp32"), ((8, 56, 56, 9), "int64")),
         "scatter", url="https://github.com/leondgarse/keras_cv_attention_models/issues/8"),
])  # fmt: skip
def test_rows_that_are_gathered_or_scattered_are_told_with_their_index(op, kind, dims, shapes, mark):
    told = only(picture_of(result(shapes[0][0], "fp32", op, kind, dims, mark, taken=shapes)), mark)
    assert told.extent == 8 * prod(shapes[1][0])
    assert told.padded >= told.extent


FFT = """func.func @main(%a: tensor<4x64xcomplex<{0}>>) -> tensor<4x64xcomplex<{0}>> {{
  %0 = stablehlo.fft %a, type = FFT, length = [64] : (tensor<4x64xcomplex<{0}>>) -> tensor<4x64xcomplex<{0}>>
  return %0 : tensor<4x64xcomplex<{0}>> }}"""


@pytest.mark.parametrize(("width", "dtype"), [
    case("DTY-03", "f64", "complex128", url="https://github.com/jax-ml/jax/issues/10158"),
    case("DTY-04", "f32", "complex64", url="https://github.com/jax-ml/jax/issues/9881"),
])  # fmt: skip
def test_a_transform_is_told_with_its_numbers(width, dtype):
    picture = text_picture(FFT.format(width))
    assert {one.mark for one in picture.operations} >= {"fft", "complex"}
    assert [(one.kind, one.dims, one.dtype) for one in picture.blocks[0].operations] == [("fft", (4, 64), dtype)]


def test_dty_06_doubles_are_told():
    """Source: https://github.com/huggingface/accelerate/pull/523."""
    body = """func.func @main(%a: tensor<4x8xf64>, %b: tensor<8x2xf64>) -> tensor<4x2xf64> {
      %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<4x8xf64>, tensor<8x2xf64>) -> tensor<4x2xf64>
      return %0 : tensor<4x2xf64> }"""
    picture = text_picture(body)
    assert only(picture, "fp64").count == 1
    assert dict(picture.symbols)[WORD] == 8


@pytest.mark.parametrize(("text", "dims"), [
    case("DTY-13", "{ lambda ; a:f32[128,64]. let b:f32[64] = svd[\n compute_uv=False\n full_matrices=False\n ] a in (b,) }",
         (1, 64), url="https://github.com/jax-ml/jax/issues/10052"),
    case("DTY-14", "{ lambda ; a:f32[100000,2,2]. let b:f32[100000,2,2] c:f32[100000,2] = eigh[\n lower=True\n ] a in (c, b) }",
         (100_000, 2), url="https://github.com/tensorflow/tensorflow/issues/30466"),
])  # fmt: skip
def test_factorisations_are_told_with_how_many_and_how_large(text, dims):
    picture = picture_of(text_graph(text, "factors"))
    assert only(picture, "linalg").count == 1
    assert [one.dims for one in picture.blocks[0].operations if one.kind == "linalg"] == [dims]


def test_sml_02_a_scan_of_ten_million_scalars_is_told_with_its_steps():
    """Source: https://github.com/QuantEcon/lecture-python-programming/issues/440."""
    text = """{ lambda ; a:f32[]. let
    _:i32[] b:f32[] = scan[
      jaxpr={ lambda ; c:i32[] d:f32[]. let e:i32[] = add c 1:i32[]; f:f32[] = mul d 0.5:f32[] in (e, f) }
      length=10000000
      num_carry=2
      num_consts=0
      reverse=False
      unroll=1
    ] 0:i32[] a
  in (b,) }"""
    picture = picture_of(text_graph(text, "path"))
    assert only(picture, "serial_scan").count >= 1
    assert 10_000_000 in {one.dims[0] for one in picture.blocks[0].operations}


@pytest.mark.parametrize(("steps", "batch", "inputs", "hidden"), [
    case("SML-03", 70, 80, 400, 1150, url="https://github.com/pytorch/xla/issues/2422"),
    case("SML-04", 100, 32, 100, 100, url="https://github.com/pytorch/xla/issues/1027"),
])  # fmt: skip
def test_a_recurrent_layer_is_a_chain_of_steps(steps, batch, inputs, hidden):
    shapes = (((steps, batch, inputs), "fp32"), ((4 * hidden, inputs + hidden), "fp32"))
    picture = picture_of(result((steps, batch, hidden), "fp32", "LSTM", "rnn", (steps, batch, inputs, hidden, 4), "serial_scan",
                                taken=shapes))  # fmt: skip
    assert only(picture, "serial_scan").count == 1
    assert picture.blocks[0].operations[0].dims[0] == steps


@pytest.mark.parametrize(("op", "kind", "dims", "marks", "told"), [
    case("DYN-03", "aten.index.Tensor", "gather", (576, 4096), ("gather", "dynamic_shape"), {"gather", "dynamic_shape"},
         url="https://github.com/google/torchax/pull/96"),
    case("DYN-10", "aten.convolution.default", "custom", (10**9, 10**6, 10**6), ("conv3d",), {"conv3d"},
         url="https://github.com/pytorch/xla/issues/2523"),
    case("DYN-13", "aten.nonzero.default", "custom", (0, 2048, 2048), ("dynamic_shape",), {"dynamic_shape"},
         url="https://github.com/pytorch/xla/pull/5631"),
    case("KRN-07", "torchvision.nms.default", "custom", (0, 5000, 1000), ("custom:torchvision.nms", "dynamic_shape"),
         {"custom", "dynamic_shape"}, url="https://github.com/pytorch/vision/issues/2486"),
    case("KRN-06", "torch_scatter.scatter_max.default", "custom", (0, 10**6, 10**4), ("custom:torch_scatter.scatter_max",),
         {"custom"}, url="https://github.com/pyg-team/pytorch_geometric/issues/1584"),
])  # fmt: skip
def test_operations_that_decide_are_told_with_their_place(op, kind, dims, marks, told):
    sketch = Sketch(scope="vision.merge")
    made = sketch.tensor(1024, 4096)
    sketch.node(op, kind, dims, (sketch.given(1024, 4096), sketch.given(1024, dtype="bool")), (made,), *marks)
    graph = graph_from_json(loads(dumps(graph_to_json(sketch.graph(made)))))
    assert isinstance(graph, Graph)
    found = [one for one in picture_of(graph).operations if one.mark not in {"unit_axis", "off_tile"}]
    assert ({one.mark for one in found}, {one.where for one in found}) == (told, {"vision.merge"})
    assert [one.detail for one in found if one.mark == "custom"] == [mark[7:] for mark in marks if mark.startswith("custom:")]


def scanned(text: str) -> Scan:
    return scan_tree([SourceFile("train.py", text)])


@pytest.mark.parametrize(("text", "field", "value"), [
    case("DYN-03", "import torch\ndef forward(x):\n  x = torch.relu(x)\n  return x[x > 0]", "ops", "boolean-mask",
         url="https://github.com/google/torchax/pull/96"),
    case("DYN-13", "import torch\ni = torch.nonzero(torch.rand(9))", "ops", "nonzero", url="https://github.com/pytorch/xla/pull/5631"),
    case("EMB-07", "import torch\no = torch.zeros(9)\no.scatter_reduce_(0, i, v, 'amin')", "ops", "gather",
         url="https://github.com/pytorch/xla/issues/8720"),
    case("EMB-11", "from jax.experimental import sparse\na = sparse.BCOO.fromdense(x)\nb = a @ a", "ops", "sparse",
         url="https://github.com/jax-ml/jax/issues/18249"),
    case("DTY-03", "import jax.numpy as jnp\ny = jnp.fft.fft(x.astype(jnp.complex128))", "ops", "complex128",
         url="https://github.com/jax-ml/jax/issues/10158"),
    case("DTY-13", "import jax.numpy as jnp\nu, s, v = jnp.linalg.svd(a)", "ops", "linalg",
         url="https://github.com/jax-ml/jax/issues/10052"),
    case("DTY-14", "import tensorflow as tf\nw = tf.linalg.eig(a)", "ops", "eig",
         url="https://github.com/tensorflow/tensorflow/issues/30466"),
    case("KRN-02", "import torch\nimport bitsandbytes as bnb\nm = bnb.nn.Linear8bitLt(8, 8)", "libraries", "bitsandbytes",
         url="https://github.com/tloen/alpaca-lora/issues/58"),
    case("KRN-05", "import torch\nfrom awq import AutoAWQForCausalLM\nm = AutoAWQForCausalLM.from_quantized(p)", "libraries",
         "auto-gptq", url="https://github.com/vllm-project/tpu-inference/pull/1659"),
    case("KRN-06", "import torch\nfrom torch_scatter import scatter\ny = scatter(x, i)", "libraries", "torch-scatter",
         url="https://github.com/pyg-team/pytorch_geometric/issues/1584"),
    case("KRN-07", "import torch\nfrom torchvision.ops import nms, roi_align\nk = nms(b, s, 0.5)", "ops", "nms",
         url="https://github.com/pytorch/vision/issues/2486"),
])  # fmt: skip
def test_code_says_which_operation_or_library_a_case_turns_on(text, field, value):
    assert value in {one.value for one in getattr(facts(scanned(text)), field)}


@pytest.mark.parametrize(("line", "reads"), [
    case("DYN-09", "if torch.isnan(loss).item(): raise ValueError", 1, url="https://github.com/huggingface/transformers/issues/9345"),
    case("MEA-08", "print(loss)", 1, url="https://github.com/pytorch/xla/issues/7596"),
    case("none", "total = total + loss.detach()", 0, url="https://github.com/pytorch/xla/issues/7596"),
])  # fmt: skip
def test_values_that_each_step_reads_back_are_counted(line, reads):
    step = ("loss = model(x)", "loss.backward()", line, "optimizer.step()")
    text = "\n    ".join(("import torch\ntotal = torch.zeros(())\nfor x in loader:", *step))
    assert facts(scanned(text)).host_reads_per_step == reads


@pytest.mark.parametrize("text", [
    case("KRN-02", "import torch\nimport bitsandbytes as bnb\nm = bnb.nn.Linear8bitLt(8, 8)",
         url="https://github.com/tloen/alpaca-lora/issues/58"),
    case("KRN-06", "import torch\nfrom torch_scatter import scatter\ny = scatter(x, i)",
         url="https://github.com/pyg-team/pytorch_geometric/issues/1584"),
])  # fmt: skip
def test_libraries_that_are_written_for_cuda_alone_stand_in_the_way_of_a_tpu(text):
    severities = {one.severity for one in expand(scanned(text).findings, "jax-tpu") if one.rule.startswith("library-")}
    assert severities & {"work", "blocks"}
