"""Graphs as JSON: what was written is read again, and whatever else comes is refused in one line that names the fault."""

import json
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import BadInput
from core.graph import VIEW, Compiled, Graph, Node, Parameters, SetAside, Tensor
from core.graph_json import graph_from_json, graph_to_json
from core.symbols import symbol

BATCH = symbol("batch")
GRAPH = Graph(
    "hand", "two products",
    (
        Tensor("x", (BATCH, 8), "fp32", "input", 0), Tensor("w", (8, 4), "bf16", "parameter", 1),
        Tensor("y", (BATCH, 4), "fp32", "value", 2, dies=1), Tensor("z", (4 * BATCH,), "fp32", "value", 2),
        Tensor("ids", (2 * BATCH + 1,), "int64", "constant", 4),
    ),
    (
        Node("aten.mm", "matmul", (1, BATCH, 4, 8), "fp32", (0, 1), (2,), "layers.0", "forward", ("custom:mine", "gather")),
        Node("aten.view", VIEW, (), "fp32", (2,), (3,), phase="backward"),
    ),
    (3,), (("batch", 2),), True, ("a note",), (("active_parameters", 12),), Compiled("a compiler", 2, SetAside(3, 4, 5)),
)  # fmt: skip
WEIGHTS = Parameters("gguf", "weights", (Tensor("w", (8, 4), "bf16", "parameter", 0),), (("general.name", "x"),),
                     {"model_type": "llama"}, ("names",), ("a note",))  # fmt: skip
PLAIN: Any = graph_to_json(GRAPH)


@pytest.mark.parametrize("graph", [GRAPH, WEIGHTS, Parameters("h5", "t", ())], ids=["graph", "weights", "no weights"])
def test_what_was_written_is_read_again(graph):
    assert graph_from_json(json.loads(json.dumps(graph_to_json(graph)))) == graph


def test_what_a_compiler_is_not_followed_through_is_read_again_and_so_is_a_graph_of_before_it_was_told():
    silent = replace(GRAPH, compiled=Compiled("a compiler", 2, None, "it branches"))
    assert graph_from_json(json.loads(json.dumps(graph_to_json(silent)))) == silent
    before = {key: value for key, value in PLAIN.items() if key != "compiled"}
    assert graph_from_json(before) == replace(GRAPH, compiled=None)


def changed(path: tuple[Any, ...], value: object) -> object:
    plain = deepcopy(PLAIN)
    within = plain
    for key in path[:-1]:
        within = within[key]
    within[path[-1]] = value
    return plain


@pytest.mark.parametrize(("path", "value", "said"), [
    (("schema",), 2, "schema 2"),
    (("tensors", 0, 2), "float", "dtype 'float'"),
    (("tensors", 0, 3), "weight", "role 'weight'"),
    (("tensors", 0, 4), 9, "number 9 of 5"),
    (("tensors", 0, 4), 3, "memory of one that has none of its own"),
    (("tensors", 0, 1), [-1, 8], "size -1"),
    (("tensors", 0, 1), ["rows"], "'rows' without a value"),
    (("tensors", 0, 1), ["rows + "], "polynomial"),
    (("tensors", 0, 1), 8, "a list was expected"),
    (("tensors", 0), ["x"], "not enough values"),
    (("nodes", 0, 1), "product", "kind 'product'"),
    (("nodes", 0, 1), ["matmul"], "kind"),
    (("nodes", 0, 2), [1, 2, 3], "3 dims"),
    (("nodes", 0, 2), [1, "tokens", 4, 8], "'tokens' without a value"),
    (("nodes", 0, 4), [0, -1], "number -1 of 5"),
    (("nodes", 0, 4), [True], "a whole number was expected"),
    (("nodes", 0, 7), 3, "number 3 of 3"),
    (("nodes", 0, 8), ["slow"], "mark 'slow'"),
    (("nodes", 1, 2), [4], "kind 'view' with 1 dims"),
    (("outputs",), [5], "number 5 of 5"),
    (("symbols",), [["batch", 0]], "'batch' without a value"),
    (("symbols",), [["batch"]], "not enough values"),
    (("facts",), [["n", 1.5]], "a whole number was expected"),
    (("notes",), "a note", "a list was expected"),
    (("compiled", 1), 6, "6 arguments among 5 tensors"),
    (("compiled", 2, 0), -1, "number -1 of"),
    (("compiled", 2), [1, 2], "missing"),
])  # fmt: skip
def test_a_fault_is_named(path, value, said):
    with pytest.raises(BadInput, match=r"got no graph of a model") as caught:
        graph_from_json(changed(path, value))
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("plain", [None, [], 7, "graph", {}, {"schema": 1}, {"schema": 1, "tensors": [], "format": "x"}])
def test_what_is_no_graph_at_all_is_refused(plain):
    with pytest.raises(BadInput):
        graph_from_json(plain)


def leaves(value: object, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(found for key, one in inner for found in leaves(one, (*path, key)))]


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(leaves(PLAIN)[1:]), st.sampled_from([None, -1, 10**40, 0.5, "", "x", [], {}, True, [[]], ["a"], [1, 2]]))
def test_any_field_that_is_changed_is_read_or_refused_but_never_breaks(path, value):
    try:
        found = graph_from_json(changed(path, value))
    except BadInput:
        return
    assert graph_from_json(graph_to_json(found)) == found
