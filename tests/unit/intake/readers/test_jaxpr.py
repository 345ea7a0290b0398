"""Jaxpr text: the same figures as from StableHLO, from the text alone, in the printing of several versions of JAX."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import BadInput
from core.graph import Graph
from core.graph_json import graph_from_json
from core.ops import Op
from core.symbols import value_of
from intake.readers import jaxpr
from intake.readers.jaxpr import text_graph
from intake.source import BytesSource, PathSource

SAMPLES = Path(__file__).parents[3] / "samples" / "models" / "jaxpr"
FORWARD = 2 * 8 * (16 * 32 + 5 * 32 * 32 + 32 * 4)
"""Products of `stack` in make_stablehlo.py, by hand."""


def graph(name: str) -> Graph:
    found = graph_from_json(jaxpr.read(PathSource(SAMPLES / name), {}))
    assert isinstance(found, Graph)
    return found


def flop(found: Graph, phase: str = "", **values: int) -> int:
    at = {**dict(found.symbols), **values}
    nodes = (node for node in found.nodes if node.kind in {"matmul", "conv"} and phase in {"", node.phase})
    return sum(Op(node.kind, tuple(value_of(one, at) for one in node.dims), "fp32").flop for node in nodes)


def only(found: Graph, kind: str):
    (node,) = [node for node in found.nodes if node.kind == kind]
    return node


def test_a_training_step_is_told_apart_by_what_the_loss_needs():
    found = graph("gradients.jaxpr")
    assert found.has_backward
    assert flop(found, "forward") == FORWARD
    assert flop(found, "backward") == 2 * FORWARD - 2 * 8 * 16 * 32


def test_arguments_without_names_are_guessed_and_that_is_said():
    found = graph("gradients.jaxpr")
    assert [one.shape for one in found.tensors if one.role == "input"] == [(8, 16)]
    assert any("guessed" in note for note in found.notes)


def test_a_printed_name_stack_gives_module_paths():
    products = [node.scope for node in graph("stack_names.jaxpr").nodes if node.kind == "matmul"]
    assert products == ["stem", *(f"layers.{layer}" for layer in range(5)), ""]


def test_convolutions_count_groups_and_the_places_that_hold_data():
    assert flop(graph("images.jaxpr")) == 2 * 2 * 8 * 8 * 8 * (4 // 2) * 9 + 2 * 2 * 4 * 4 * 8 * 3 * 16


def test_operations_that_decide_portability_are_marked():
    found = graph("mixed.jaxpr")
    marks = {mark for node in found.nodes for mark in node.marks}
    assert {"gather", "sort", "fft", "complex", "linalg", "scatter", "data_loop"} <= marks
    assert flop(found) == 2 * (2 * 4 * 4 * 4)


def test_a_long_recurrence_is_multiplied_and_marked():
    found = graph("counted.jaxpr")
    assert flop(found) == 500 * 3 * 2 * 2 * 8 * 8
    assert all("serial_scan" in node.marks for node in found.nodes if node.kind == "matmul")


def test_symbolic_shapes_follow_batch_and_length():
    found = graph("symbols.jaxpr")
    assert dict(found.symbols) == {"batch": 1, "length": 128}
    assert flop(found, batch=3, length=7) == 3 * 2 * 21 * 16 * 16 + 2 * 2 * 21 * 7 * 16
    assert [str(one) for one in only(found, "embedding").dims] == ["batch*length", "16", "50"]


PRODUCT = "dot_general[dimension_numbers=(([1], [0]), ([], []))]"
INNER = f"{{ lambda ; d:f32[2,4] e:f32[4,6]. let g:f32[2,6] = {PRODUCT} d e in (g,) }}"
TUPLES = "dot_general[\n    dimension_numbers=(((1,), (0,)), ((), ()))\n    precision=None\n    preferred_element_type=None\n  ]"
WITH_MORE = f"{{ lambda ; d:f32[2,4] e:f32[4,6]. let\n g:f32[2,6] = {PRODUCT} d e; h:f32[2,6] = mul g 2.0 in (h,) }}"
PRINTED = {
    "on one line": f"{{ lambda ; a:f32[4,6] b:f32[2,4]. let c:f32[2,6] = {PRODUCT} b a in (c,) }}",
    "with tuples": f"{{ lambda  ; a:f32[4,6] b:f32[2,4]. let\n  c:f32[2,6] = {TUPLES} b a\n  in (c,) }}",
    "with constants": f"{{ lambda a:f32[4,6]; b:f32[2,4]. let c:f32[2,6] = pjit[name=f jaxpr={INNER}] b a in (c,) }}",
    "named": f"let f = {INNER} in\n{{ lambda ; a:f32[4,6] b:f32[2,4]. let c:f32[2,6] = jit[name=f jaxpr=f] b a in (c,) }}",
    "with shardings and effects": (
        "{ lambda ; a:f32[4,6]{V:x} b:f32[2@x,4]. let\n"
        f"    c:f32[2,6] = xla_call[ call_jaxpr={WITH_MORE} name=f ] b a\n  in (c,) : {{ Debug }} }}"
    ),
}


@pytest.mark.parametrize("text", PRINTED.values(), ids=PRINTED)
def test_every_printing_gives_the_same_product(text):
    node = only(text_graph(text, "m"), "matmul")
    assert node.dims == (1, 2, 6, 4)


@pytest.mark.parametrize(
    ("line", "kind", "dims"),
    [
        ("b:f32[2,8] = reduce_sum[axes=(0,)] a", "reduce", (64, 16)),
        ("b:f32[4,2,8] = exp a", "elementwise", (64, 1, 4)),
        ("b:f32[4,2,8] = cumsum[axis=0 reverse=False] a", "reduce", (64, 64)),
        ("b:f32[4,2,3] c:i32[4,2,3] = top_k[k=3 operand=None] a", "sort", (8, 8)),
        ("b:c64[4,2,8] = fft[fft_lengths=(8,) fft_type=jaxlib.hlo.FftType.FFT] a", "fft", (8, 8)),
        ("b:f32[4,2,8] = my_kernel[x=(1, 2) fmt={} y='a ] b'] a", "custom", (0, 64, 64)),
        (
            "b:f32[2] = pallas_call[name=flash jaxpr={ lambda ; r:Ref{f32[4]}. let q:f32[4] <- r[...] in () }] a",
            "custom",
            (0, 64, 2),
        ),
        ("debug_callback[callback=<function f at 0xXX> effect=Debug] a; b:f32[4,2,8] = neg a", "host_sync", (64,)),
    ],
)
def test_a_primitive_costs_what_its_shapes_say(line, kind, dims):
    assert only(text_graph(f"{{ lambda ; a:f32[4,2,8]. let {line} in (b,) }}", "m"), kind).dims == dims


def test_what_a_call_gives_back_to_nobody_has_no_name():
    inner = "{ lambda ; c:f32[4] d:f32[4]. let g:f32[4] = neg d\n _:f32[4] = exp c\n _:f32[4] = tanh g in (_, _) }"
    found = text_graph(
        f"{{ lambda ; a:f32[4] b:f32[4]. let _:f32[4] _:f32[4] = jit[name=f jaxpr={inner}] a b\n e:f32[4] = neg a in (e,) }}", "m"
    )
    assert sorted(node.op for node in found.nodes) == ["exp", "neg", "neg", "tanh"]


def test_a_literal_at_the_end_of_a_line_is_no_name_of_the_next():
    inner = "{ lambda ; e:bool[4]. let f:bool[4] = not e in (f,) }"
    lines = f"c:bool[4] = and a True:bool[]\n d:bool[4] = jit[name=f jaxpr={inner}] c"
    found = text_graph(f"{{ lambda ; a:bool[4]. let {lines} in (d,) }}", "m")
    assert [node.op for node in found.nodes] == ["and", "not"]


CONDITION = "{ lambda ; h:i32[] i:i32[] j:f32[4]. let k:bool[] = lt i h in (k,) }"


def test_a_loop_of_a_known_count_is_walked_as_often():
    body = "{ lambda ; c:f32[4] d:i32[] e:f32[4]. let f:i32[] = add d 2:i32[]; g:f32[4] = add e c in (f, g) }"
    loop = f"while[body_jaxpr={body} body_nconsts=1 cond_jaxpr={CONDITION} cond_nconsts=1] 9:i32[] a 0:i32[] a"
    found = text_graph(f"{{ lambda ; a:f32[4]. let _:i32[] b:f32[4] = {loop} in (b,) }}", "m")
    assert sum(node.op == "add" and node.kind == "elementwise" for node in found.nodes) == 5  # 0, 2, 4, 6, 8


def test_a_loop_that_depends_on_values_is_counted_once_and_marked():
    body = "{ lambda ; d:i32[] e:f32[4]. let f:i32[] = add d 1:i32[]; g:f32[4] = tanh e in (f, g) }"
    loop = f"while[body_jaxpr={body} body_nconsts=0 cond_jaxpr={CONDITION} cond_nconsts=1] n 0:i32[] a"
    found = text_graph(f"{{ lambda ; a:f32[4] n:i32[]. let _:i32[] b:f32[4] = {loop} in (b,) }}", "m")
    assert [node.op for node in found.nodes].count("tanh") == 1
    assert any("data_loop" in node.marks for node in found.nodes)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{ lambda ; a b. let c = tanh a in (c,) }", "a name with its type"),
        ("{ lambda ; a:f32[4]. let b:f32[4] = tanh z in (b,) }", "'z'"),
        ("{ lambda ; a:f32[4]. let b:f32[4] = tanh a", "never closed"),
        ("{ lambda ; a:f32[4]. let b:f32[4] = tanh a in (b,) } more", "more text"),
        ("{ lambda ; a:f99x[4]. let in (a,) }", "f99x"),
        ("{ lambda ; a:f32[9999999999,9999999999]. let in (a,) }", "2**62"),
        ("{" * 300, "deep"),
        ("", "'{'"),
        (f"{{ lambda ; a:f32[4] b:f32[5]. let c:f32[4] = {PRODUCT} a b in (c,) }}", "do not go together"),
        ("{ lambda ; a:f32[4]. let c:f32[4] = scan[jaxpr={ lambda ; b:f32[]. let in (b,) }] a in (c,) }", "scan"),
    ],
)  # fmt: skip
def test_what_cannot_be_used_is_refused_in_one_line(text, words):
    with pytest.raises(BadInput, match="expected") as caught:
        jaxpr.read(BytesSource("m.jaxpr", text.encode()), {})
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_bytes_that_are_no_text_are_refused():
    with pytest.raises(BadInput, match="no text"):
        jaxpr.read(BytesSource("m.jaxpr", b"\xff\xfe\x00"), {})


@pytest.mark.parametrize(
    ("name", "head", "own"),
    [("m.jaxpr", b"", True), ("m.txt", b"{ lambda ; a:f32[8]. let", True), ("m.txt", b"let f = { lambda ; a:f32[8]. let", True),
     ("m.json", b'{"lambda": 1}', False), ("m.py", b"f = lambda a: a", False)],
)  # fmt: skip
def test_files_are_known_by_name_or_content(name, head, own):
    assert jaxpr.fits(name, head) == own


TEXTS = tuple((SAMPLES / name).read_bytes() for name in ("gradients.jaxpr", "mixed.jaxpr", "images.jaxpr", "counted.jaxpr"))

PUT = st.one_of(st.binary(max_size=8), st.sampled_from((b"99999", b"[", b"in (", b"a")))


@settings(max_examples=150, deadline=None, derandomize=True)
@given(
    st.sampled_from(TEXTS),
    st.integers(0, 10_000),
    st.integers(0, 12),
    st.one_of(st.binary(max_size=8), st.sampled_from((b"99999", b"[", b"in (", b"a"))),
)
def test_changed_text_is_read_or_refused(text, at, cut, put):
    at %= len(text)
    changed = text[:at] + put + text[at + cut :]
    try:
        found = jaxpr.read(BytesSource("m.jaxpr", changed), {})
    except BadInput:
        return
    assert isinstance(graph_from_json(found), Graph)
