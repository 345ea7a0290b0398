"""Whether flax models are read exactly: parameters, FLOPs, and the same figures from StableHLO text, bytecode and jaxpr text.

Bounds, all of which must hold for exit 0, for each model forward and with its gradients: parameters equal to the pytree's own
count; FLOPs of products and convolutions within 1 % of a count by hand (`bench.flax_models`); the three formats the same FLOPs to
the last one. Beside them stands what XLA's own `cost_analysis` says of the whole program: it counts every operation, elementwise
ones too, and the body of a loop once, so it is a witness and no bound.

Run: `python -m bench.architectures_flax [--json] [--only NAME]`.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import jax
from jax import export

from bench.flax_models import CASES, Case
from core.graph import Graph
from core.ops import Op
from core.symbols import value_of
from intake.readers.jaxpr import text_graph
from intake.readers.stablehlo import module_graph

PRODUCTS = frozenset({"matmul", "conv", "attention", "rnn"})
WITHIN = 0.01
_LINE = "{:30} {:9} {:>10} {:>10} {:>12} {:>12} {:>7} {:8} {:>12} {:>12} {:>9} {:>6}"


@dataclass(frozen=True, slots=True)
class Row:
    """One model, forward or with its gradients.

    Args:
        model, task: which.
        parameters, parameters_true: as read, and the pytree's own count.
        flop, flop_true: of products and convolutions: as read from bytecode, and by hand.
        flop_text, flop_jaxpr: as read from the other formats.
        flop_all, flop_xla: of all operations: as read, and as XLA counts them.
        parameters_jaxpr: as guessed from text without names.
        read_s: seconds that reading the bytecode took.
    """

    model: str
    task: str
    parameters: int
    parameters_true: int
    flop: int
    flop_true: int
    flop_text: int
    flop_jaxpr: int
    flop_all: int
    flop_xla: int
    parameters_jaxpr: int
    read_s: float

    @property
    def holds(self) -> bool:
        """Whether every bound holds."""
        same = self.flop == self.flop_text == self.flop_jaxpr and self.parameters == self.parameters_true
        return same and abs(self.flop - self.flop_true) <= WITHIN * self.flop_true


def flop_of(graph: Graph, *, products: bool) -> int:
    """Return the FLOPs of a graph.

    Args:
        graph: as read.
        products: whether of products and convolutions alone.
    """
    values = dict(graph.symbols)
    nodes = (node for node in graph.nodes if node.dims and (node.kind in PRODUCTS or not products))
    return sum(Op(node.kind, tuple(value_of(extent, values) for extent in node.dims), "fp32").flop for node in nodes)


def parameters_of(graph: Graph) -> int:
    """Return how many numbers a graph's parameters hold."""
    values = dict(graph.symbols)
    total = 0
    for tensor in graph.tensors:
        if tensor.role == "parameter":
            count = 1
            for extent in tensor.shape:
                count *= value_of(extent, values)
            total += count
    return total


def row_of(case: Case, task: str) -> Row:
    """Lower, read and count one model."""
    function: Callable[..., Any] = case.apply if task == "forward" else jax.value_and_grad(case.loss, allow_int=True)

    def step(params: Any, *inputs: Any) -> Any:
        return function(params, *inputs)

    lowered = jax.jit(step, keep_unused=True).lower(case.variables, *case.inputs)
    costs = lowered.cost_analysis() or {}
    bytecode = export.export(jax.jit(step, keep_unused=True))(case.variables, *case.inputs).mlir_module_serialized
    started = time.perf_counter()
    graph = module_graph(bytecode, case.name)
    taken = time.perf_counter() - started
    text = module_graph(lowered.as_text().encode(), case.name)
    printed = text_graph(str(jax.make_jaxpr(step)(case.variables, *case.inputs)), case.name)
    counts = [flop_of(one, products=True) for one in (graph, text, printed)]
    expected = case.flop if task == "forward" else case.flop_training
    return Row(
        case.name, task, parameters_of(graph), case.parameter_count, counts[0], expected, counts[1], counts[2],
        flop_of(graph, products=False), int(costs.get("flops", 0)), parameters_of(printed), taken,
    )  # fmt: skip


def main(arguments: Sequence[str]) -> int:
    """Read every model, print the table and the verdict, and return 0 when every bound holds."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--only", help="a word of the model's name")
    asked = parser.parse_args(arguments)
    cases = [case for case in (make() for make in CASES) if not asked.only or asked.only in case.name]
    rows = [row_of(case, task) for case in cases for task in ("forward", "gradients")]
    held = bool(rows) and all(row.holds for row in rows)
    if asked.json:
        print(
            json.dumps(
                {"schema_version": 1, "holds": held, "rows": [asdict(row) | {"holds": row.holds} for row in rows]}, indent=1
            )
        )
        return 0 if held else 1
    heads = (
        "model",
        "task",
        "parameters",
        "true",
        "FLOPs",
        "by hand",
        "off %",
        "formats",
        "all read",
        "XLA, all",
        "guessed",
        "read s",
    )
    print(_LINE.format(*heads))
    for row in rows:
        same = "equal" if row.flop == row.flop_text == row.flop_jaxpr else "DIFFER"
        off, read_s = f"{100 * (row.flop / row.flop_true - 1):.3f}", f"{row.read_s:.3f}"
        cells = (row.model, row.task, row.parameters, row.parameters_true, row.flop, row.flop_true, off, same)
        told = "" if row.holds else "  FALLS SHORT"
        print(_LINE.format(*cells, row.flop_all, row.flop_xla, row.parameters_jaxpr, read_s) + told)
    worst = max((abs(row.flop / row.flop_true - 1) for row in rows), default=0.0)
    exact = sum(row.parameters == row.parameters_true for row in rows)
    guessed = sum(row.parameters_jaxpr == row.parameters_true for row in rows)
    alike = sum(row.flop == row.flop_text == row.flop_jaxpr for row in rows)
    said = (
        f"{len(rows)} rows of {len(cases)} models: parameters exact in {exact}, products within {100 * worst:.3f} % of a count by"
        f" hand, the same from three formats in {alike}; parameters guessed without names right in {guessed}"
    )
    print(f"{'HOLDS' if held else 'FALLS SHORT'}: {said}")
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
