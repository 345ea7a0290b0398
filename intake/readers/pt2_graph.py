"""The JSON of an exported program becomes a graph: names to tensors, operations to kinds, symbols to batch and length."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from core.graph import VIEW, Graph, Node, Shape, Tensor
from core.symbols import BATCH, LENGTH, Extent, Polynomial, product, value_of
from intake.readers.aten import VIEWS, contiguous, works_of
from intake.readers.aten_call import Call, Shaped, Work
from intake.readers.pt2_file import Program
from intake.readers.pt2_sizes import Sizes, free_symbols, graph_name, named, plain_symbol

MOST_NODES, MOST_TENSORS, MOST_NAME, MOST_DEPTH, MOST_RANK, MOST_ELEMENTS = 200_000, 400_000, 300, 12, 64, 2**62
_DTYPES = {
    1: "uint8", 2: "int8", 3: "int16", 4: "int32", 5: "int64", 6: "fp16", 7: "fp32", 8: "fp64", 9: "complex64", 10: "complex64",
    11: "complex128", 12: "bool", 13: "bf16", 28: "uint16", 29: "fp8", 30: "fp8", 31: "fp8", 32: "fp8", 33: "fp8", 34: "uint32",
    35: "uint64",
}  # fmt: skip
"""By the number of torch's schema (torch/_export/serde/schema.py, ScalarType)."""
_ROLES = {"parameter": "parameter", "buffer": "constant", "tensor_constant": "constant", "user_input": "input", "token": "input",
          "custom_obj": "constant", "constant_input": "input"}  # fmt: skip
_ONCE = ("wrap_with_set_grad_enabled", "wrap_with_autocast", "wrap", "strict_mode", "hints_wrapper", "invoke_subgraph",
         "checkpoint", "tag_activation_checkpoint", "wrap_activation_checkpoint")  # fmt: skip
_MAYBE_VIEWS = ("contiguous", "reshape", "to", "type_as", "flatten", "_to_copy", "reshape_as", "ravel", "float", "half", "clone")


@dataclass(slots=True)
class Place:
    """Names of one graph within the program: tensors by name, and their shapes."""

    values: Mapping[str, object]
    sizes: Mapping[str, object]
    names: dict[str, int]


class Reading:
    """One reading of a program with some of its symbols fixed.

    Args:
        program: as it was opened.
        title: of the model.
        fixed: symbols of the graph that are numbers, and the expression that made them so.
    """

    def __init__(self, program: Program, title: str, fixed: Mapping[str, str]) -> None:
        self.program, self.title = program, title
        self.sizes = Sizes()
        self.tensors: list[Tensor] = []
        self.strides: list[Shape] = []
        self.nodes: list[Node] = []
        self.notes: dict[str, None] = {}
        self.fixed = fixed
        self.marks: tuple[str, ...] = ()

    def graph(self) -> Graph:
        """Return the graph; raises Fixed where another symbol has to become a number, and ValueError for what cannot be."""
        plain = self.program.graph
        place = Place(_mapping(plain["tensor_values"]), _mapping(plain.get("sym_int_values") or {}), {})
        roles = dict(self._roles())
        inputs = [_named(one) for one in _rows(plain["inputs"])]
        self._symbols([name for name in inputs if name and roles.get(name, ("input", ""))[0] == "input"], place)
        tied: dict[tuple[str, Shape], int] = {}
        for name in inputs:
            if name:
                self._input(name, place, roles.get(name, ("input", name)), tied)
        self._run(plain, place, 0)
        if not self.program.stored:
            self.notes["this layout does not tell which weights are tied: each counts for itself"] = None
        outputs = [place.names[name] for one in _rows(plain["outputs"]) for name in _names(one) if name in place.names]
        asked = tuple((name, value) for name, value in self.sizes.values.items() if name not in self.fixed)
        for name, expression in self.fixed.items():
            self.notes[f"{name} is fixed at {self.sizes.values[name]}: {expression} is no polynomial"] = None
        total = sum(_whole(product(one.shape), self.sizes.values) for one in self.tensors if one.role == "parameter")
        return Graph(
            "pt2",
            self.title,
            tuple(self.tensors),
            tuple(self.nodes),
            tuple(dict.fromkeys(outputs)),
            asked,
            False,
            tuple(self.notes),
            (("parameters", total),),
        )

    def _roles(self) -> Iterator[tuple[str, tuple[str, str]]]:
        for spec in _rows(self.program.signature.get("input_specs") or []):
            for kind, value in _mapping(spec).items():
                inner = _mapping(value)
                name = _named(inner.get("arg"))
                own = next(
                    (str(inner[key]) for key in ("parameter_name", "buffer_name", "tensor_constant_name") if key in inner), name
                )
                if name:
                    yield name, (_ROLES.get(kind, "input"), own or name)

    def _symbols(self, inputs: Sequence[str], place: Place) -> None:
        """Name the symbols: the first axis of an input is the batch, the next of tokens or of a sequence the length."""
        hints: dict[str, int | None] = {}
        order: list[tuple[str, str]] = []
        for name in inputs:
            if name not in place.values:
                continue
            meta = _mapping(place.values[name])
            for axis, size in enumerate(_rows(meta["sizes"])):
                found = plain_symbol(size)
                if found:
                    flat = meta.get("dtype") in (4, 5) or len(_rows(meta["sizes"])) == 3
                    order.append((found[0], BATCH if axis == 0 else LENGTH if axis == 1 and flat else ""))
        everywhere = [size for meta in place.values.values() for size in _rows(_mapping(meta).get("sizes") or [])]
        for size in (*everywhere, *place.sizes.values()):
            if found := plain_symbol(size):
                hints[found[0]] = hints.get(found[0]) or found[1]
                order.append((found[0], ""))
            elif isinstance(size, Mapping) and isinstance(
                expression := cast("Mapping[str, object]", size).get("as_expr"), Mapping
            ):
                order += [(name, "") for name in free_symbols(str(cast("Mapping[str, object]", expression).get("expr_str")))]
        order += [(name, "") for name in self.program.ranges]
        for own, wanted in dict(reversed(order)).items() if not order else _first(order).items():
            if re.match(r"^(u|i|zuf)\d+$", own):
                continue  # known only while it runs: bounded where it is made
            name = wanted if wanted and wanted not in self.sizes.values else graph_name(own)
            if name in self.sizes.values:
                name = f"{name[:24]}_{len(self.sizes.values)}"
            value = hints.get(own) or {BATCH: 1, LENGTH: 128}.get(name, 128)
            self.sizes.values[name] = value
            self.sizes.named[own] = value if name in self.fixed else named(name)

    def _input(self, name: str, place: Place, role: tuple[str, str], tied: dict[tuple[str, Shape], int]) -> None:
        if name not in place.values:
            return  # a number, or an object of the user's
        shape = self._shape(place, name)
        stored = self.program.stored.get(role[1])
        if stored is not None and role[0] == "parameter":
            known = tied.get((stored[0], shape))
            if known is not None:
                place.names[name] = known
                return
            tied[stored[0], shape] = len(self.tensors)
            bits = {"fp64": 64, "fp32": 32, "int32": 32, "int64": 64}.get(
                self._dtype(place, name), 16 if "16" in self._dtype(place, name) else 8
            )
            wanted = _whole(product(shape), self.sizes.values) * bits // 8
            if 0 <= stored[1] < wanted:
                raise ValueError(f"a weight {role[1][:60]} of {wanted} bytes of which {stored[1]} are there")
        self._tensor(role[1], shape, place, name, role[0], None)

    def _tensor(self, shown: str, shape: Shape, place: Place, name: str, role: str, storage: int | None) -> int:
        if len(self.tensors) >= MOST_TENSORS:
            raise ValueError(f"over {MOST_TENSORS} tensors")
        dtype, at = self._dtype(place, name), len(self.tensors)
        strides = tuple(self.sizes.extent(one) for one in _rows(_mapping(place.values[name]).get("strides") or []))
        self.tensors.append(Tensor(shown[:MOST_NAME], shape, dtype, role, at if storage is None else storage))
        self.strides.append(strides)
        place.names[name] = at
        return at

    def _dtype(self, place: Place, name: str) -> str:
        number = _mapping(place.values[name]).get("dtype")
        found = _DTYPES.get(number) if isinstance(number, int) else None
        if found is None:
            raise ValueError(f"{name[:60]} of the dtype {number!r:.20}")
        return found

    def _shape(self, place: Place, name: str) -> Shape:
        sizes = _rows(_mapping(place.values[name])["sizes"])
        if len(sizes) > MOST_RANK:
            raise ValueError(f"{name[:60]} of {len(sizes)} axes")
        shape = tuple(self.sizes.extent(size) for size in sizes)
        total = 1
        for extent in shape:
            value = _whole(extent, self.sizes.values)
            if value < 0:
                raise ValueError(f"{name[:60]} with an axis of {value}")
            total *= max(1, value)
        if total > MOST_ELEMENTS:
            raise ValueError(f"{name[:60]} of {total:.3g} elements")
        return shape

    def _run(self, graph: Mapping[str, object], place: Place, depth: int) -> None:
        if depth > MOST_DEPTH:
            raise ValueError(f"graphs within graphs beyond {MOST_DEPTH}")
        for row in _rows(graph["nodes"]):
            if len(self.nodes) > MOST_NODES:
                raise ValueError(f"over {MOST_NODES} operations")
            node = _mapping(row)
            target = str(node["target"])
            if "higher_order" in target or any(
                isinstance(_mapping(_mapping(one)["arg"]).get("as_graph"), Mapping) for one in _rows(node["inputs"])
            ):
                self._inner(target.rpartition(".")[2], node, place, depth)
            else:
                self._node(target, node, place)

    def _inner(self, name: str, node: Mapping[str, object], place: Place, depth: int) -> None:
        """Read the graphs that a call holds: once each, with a mark where values say how often, or which."""
        arguments = [_mapping(_mapping(one)["arg"]) for one in _rows(node["inputs"])]
        graphs = [_mapping(_mapping(one["as_graph"])["graph"]) for one in arguments if "as_graph" in one]
        given = [found for one in arguments if "as_graph" not in one for found in _names(one) if found in place.names]
        results = [found for one in _rows(node["outputs"]) for found in _names(one)]
        if not graphs:
            self._node(f"torch.ops.higher_order.{name}", node, place)
            return
        marks, once = self.marks, name in _ONCE
        if not once:
            self.marks = tuple(dict.fromkeys((*marks, "data_loop")))
            kind = "each side of a branch is counted" if name == "cond" else "the body of a loop is counted once"
            self.notes[f"{kind} ({name})"] = None
        for graph in graphs:
            inner = Place(_mapping(graph["tensor_values"]), _mapping(graph.get("sym_int_values") or {}), {})
            wanted = [found for one in _rows(graph["inputs"]) if (found := _named(one)) and found in inner.values]
            inner.names.update(zip(wanted, (place.names[one] for one in given[max(0, len(given) - len(wanted)) :]), strict=False))
            for one in wanted:
                if one not in inner.names:
                    self._tensor(one, self._shape(inner, one), inner, one, "value", None)
            self._run(graph, inner, depth + 1)
            made = [inner.names.get(found) for one in _rows(graph["outputs"]) for found in _names(one)]
            for outer, at in zip(results, made, strict=False):
                if at is not None and outer not in place.names:
                    place.names[outer] = at
        self.marks = marks
        for outer in results:
            if outer not in place.names:
                self._tensor(outer, self._shape(place, outer), place, outer, "value", None)

    def _node(self, target: str, node: Mapping[str, object], place: Place) -> None:
        parts = target.removeprefix("torch.ops.").split(".")
        if parts[0] in ("_operator", "math", "torch") or len(parts) < 2:
            return  # arithmetic of sizes
        results = [name for one in _rows(node["outputs"]) for name in _names(one)]
        if twice := [name for name in results if name in place.names]:
            raise ValueError(f"an operation {target!r:.60} that makes {twice[0]!r:.60}, which is there already")
        taken: list[int] = []
        arguments = {
            str(_mapping(one)["name"]): self._argument(_mapping(_mapping(one)["arg"]), place, taken)
            for one in _rows(node["inputs"])
        }
        host = parts[1] in ("item", "_local_scalar_dense")
        if not results and not host:
            return
        made = [Shaped(self._bound(place, name, taken), self._dtype(place, name)) for name in results]
        call = Call(".".join(parts[:2]), parts[2] if len(parts) > 2 else "default", arguments, tuple(made))
        works = self._works(call, place, results, taken)
        shared = (
            self.tensors[taken[0]].storage if taken and (self._shares(call) or all(one.kind == VIEW for one in works)) else None
        )
        outputs = tuple(
            self._tensor(name, one.shape, place, name, "value", shared) for name, one in zip(results, made, strict=True)
        )
        metadata = node.get("metadata")
        stack = cast("Mapping[str, object]", metadata).get("nn_module_stack") if isinstance(metadata, Mapping) else None
        scope = scope_of(stack)
        for work in works:
            if not work.known:
                self.notes[f"counted as elementwise: {call.op}"[:300]] = None
            marks = tuple(dict.fromkeys((*work.marks, *self.marks)))
            self.nodes.append(
                Node(call.op[:100], work.kind, work.dims, work.dtype, tuple(taken), outputs, scope, "forward", marks)
            )

    def _works(self, call: Call, place: Place, results: Sequence[str], taken: Sequence[int]) -> tuple[Work, ...]:
        if call.name in _MAYBE_VIEWS and taken and call.outputs and self._same_memory(call, place, results[0], taken[0]):
            return (Work(VIEW, (), call.outputs[0].dtype),)
        return works_of(call)

    def _same_memory(self, call: Call, place: Place, result: str, at: int) -> bool:
        """Whether what may copy did not: the same dtype, and memory in order where that was asked for."""
        given = self.tensors[at]
        strides = tuple(self.sizes.extent(one) for one in _rows(_mapping(place.values[result]).get("strides") or []))
        if given.dtype != call.outputs[0].dtype or call.name == "clone":
            return False
        if call.name in ("to", "type_as", "_to_copy", "float", "half"):
            return call.name != "_to_copy" and strides == self.strides[at]
        return contiguous(given.shape, self.strides[at]) or (call.name == "contiguous" and strides == self.strides[at])

    @staticmethod
    def _shares(call: Call) -> bool:
        return (call.op.endswith("_") and not call.op.endswith("__")) or (call.name in VIEWS and call.op.startswith("aten."))

    def _bound(self, place: Place, name: str, taken: Sequence[int]) -> Shape:
        """Return the shape of a result; sizes that only a run knows are taken as large as they can be."""
        most = product(self.tensors[taken[0]].shape) if taken else 1
        for size in _rows(_mapping(place.values[name])["sizes"]):
            found = plain_symbol(size)
            if found and found[0] not in self.sizes.named:
                self.sizes.named[found[0]] = most
                self.notes["results as long as values say are taken as long as they can be"] = None
        return self._shape(place, name)

    def _argument(self, value: Mapping[str, object], place: Place, taken: list[int]) -> object:
        """Return an argument in the words of `aten_call.Call`."""
        kind, content = next(iter(value.items()), ("as_none", True))
        if kind in ("as_tensor", "as_optional_tensor", "as_tensors", "as_optional_tensors", "as_nested_tensors"):
            found = [self._given(name, place, taken) for name in _names(value, empty=True)]
            return found[0] if kind in ("as_tensor", "as_optional_tensor") and found else tuple(found)
        if kind in ("as_sym_int", "as_sym_float"):
            return self._size(content, place)
        if kind == "as_sym_ints":
            return tuple(self._size(one, place) for one in _rows(content))
        if kind == "as_scalar_type":
            return _DTYPES.get(cast("int", content), "fp32")
        if kind in ("as_int", "as_bool", "as_float", "as_string"):
            return content
        if kind in ("as_ints", "as_bools", "as_floats", "as_strings"):
            return tuple(_rows(content))
        return None

    def _given(self, name: str, place: Place, taken: list[int]) -> Shaped | None:
        if not name:
            return None
        at = place.names.get(name)
        if at is None:
            raise ValueError(f"the unknown tensor {name[:60]}")
        taken.append(at)
        return Shaped(self.tensors[at].shape, self.tensors[at].dtype)

    def _size(self, value: object, place: Place) -> Extent | None:
        plain = _mapping(value)
        if isinstance(whole := plain.get("as_int"), int):
            return whole
        known = place.sizes.get(str(plain.get("as_name")))
        if known is None:
            return None
        found = plain_symbol(known)
        if found and found[0] not in self.sizes.named:
            return None
        try:
            return self.sizes.extent(known)
        except ValueError:
            return None


def scope_of(stack: object) -> str:
    """Return the path of the innermost module of a stack (`key,path,type;...`); empty without one."""
    if not isinstance(stack, str):
        return ""
    entries = [entry.split(",") for entry in stack[:20_000].split(";")]
    path = next((entry[1] for entry in reversed(entries) if len(entry) > 2), "")
    path = re.sub(r"\[['\"]?([^\]'\"]*)['\"]?\]", r".\1", path.replace("._modules", ""))
    return re.sub(r"^(L\.self\.?|self\.?)", "", path).replace("..", ".").strip(".")[:MOST_NAME]


def _first(order: Sequence[tuple[str, str]]) -> dict[str, str]:
    found: dict[str, str] = {}
    for own, wanted in order:
        found[own] = found.get(own) or wanted
    return found


def _whole(extent: Extent, values: Mapping[str, int]) -> int:
    return value_of(extent, values) if isinstance(extent, Polynomial) else extent


def _mapping(value: object) -> Mapping[str, object]:
    if not isinstance(value, Mapping):
        raise TypeError(f"{value!r:.40} where a mapping was expected")
    return cast("Mapping[str, object]", value)


def _rows(value: object) -> Sequence[object]:
    if not isinstance(value, list):
        raise TypeError(f"{value!r:.40} where a list was expected")
    return cast("list[object]", value)


def _named(value: object) -> str:
    """Return the name of one tensor argument; empty for anything else."""
    return next(iter(_names(value)), "")


def _names(value: object, empty: bool = False) -> list[str]:
    """Return the names of tensors in an argument; an empty one for each that is left out, when asked for."""
    if isinstance(value, list):
        return [name for one in cast("list[object]", value) for name in _names(one, empty)]
    if not isinstance(value, Mapping):
        return []
    plain = cast("Mapping[str, object]", value)
    if isinstance(name := plain.get("name"), str):
        return [name]
    for kind in ("as_tensor", "as_tensors", "as_optional_tensor", "as_optional_tensors", "as_nested_tensors"):
        if kind in plain:
            return _names(plain[kind], empty)
    return [""] if empty and "as_none" in plain else []
