"""How near Tandem's liveness analysis comes to the memory that XLA's compiler plans for flax models on the CPU.

Bound for exit 0: for each model, forward and with its gradients, arguments, results and temporary memory together within 10 % of
`compiled.memory_analysis()`. Arguments must agree to the byte. XLA sets memory for all results aside before it starts, so here
they are counted throughout, and what lies beside them at the worst moment is added. What falls short is what XLA's CPU compiler
does besides: it splits sums over wide rows in two, so that what they add up is stored; writes grouped convolutions' gradients out
without groups; copies operands into other layouts; and computes what does not change within a loop once before it, where it lies
until the loop ends. It also lets results' memory serve before they are written, which is not counted here.

Run: `python -m bench.compiled_memory [--json] [--only NAME]`.
"""

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from math import prod
from typing import Any

import jax

from bench.flax_models import CASES, Case
from core.graph import DTYPE_BITS, Graph
from core.picture import WORD, greatest
from core.symbols import value_of
from intake.picture.timeline import compute_dtype, forward_spans, peaks, traced_spans
from intake.readers.stablehlo import module_graph

WITHIN = 0.10
_LINE = "{:30} {:9} {:>11} {:>11} {:>11} {:>11} {:>12} {:>12} {:>7}"


@dataclass(frozen=True, slots=True)
class Row:
    """One model, forward or with its gradients; all in bytes.

    Args:
        model, task: which.
        arguments, arguments_xla: what it is given, as read and as compiled.
        results_xla, temporary_xla: as compiled.
        results, temporary: of Tandem's liveness analysis: the answer, and what lies beside it at the worst moment.
    """

    model: str
    task: str
    arguments: int
    arguments_xla: int
    results_xla: int
    temporary_xla: int
    results: int
    temporary: int

    @property
    def off(self) -> float:
        """Relative difference of the whole."""
        true = self.arguments_xla + self.results_xla + self.temporary_xla
        return (self.arguments + self.results + self.temporary) / true - 1

    @property
    def holds(self) -> bool:
        """Whether both bounds hold."""
        return self.arguments == self.arguments_xla and abs(self.off) <= WITHIN


def bytes_of(graph: Graph, at: int) -> int:
    """Return the bytes of a tensor."""
    values = dict(graph.symbols)
    return prod(value_of(extent, values) for extent in graph.tensors[at].shape) * DTYPE_BITS[graph.tensors[at].dtype] // 8


def row_of(case: Case, task: str) -> Row:
    """Compile, read and compare one model."""
    function: Callable[..., Any] = case.apply if task == "forward" else jax.value_and_grad(case.loss, allow_int=True)

    def step(params: Any, *inputs: Any) -> Any:
        return function(params, *inputs)

    lowered = jax.jit(step, keep_unused=True).lower(case.variables, *case.inputs)
    planned = lowered.compile().memory_analysis()
    graph = module_graph(lowered.as_text(debug_info=True).encode(), case.name)
    dtype = compute_dtype(graph)
    spans = forward_spans(graph, dtype) if task == "forward" else traced_spans(graph, dtype)
    answered = {graph.tensors[at].storage for at in graph.outputs}
    beside = [span for span in spans if span.storage not in answered]
    values = {**dict(graph.symbols), WORD: DTYPE_BITS[dtype] // 8}
    count = len(jax.tree.leaves((case.variables, case.inputs)))  # a graph's first tensors are its arguments
    return Row(
        case.name, task, sum(bytes_of(graph, at) for at in range(count)), planned.argument_size_in_bytes,
        planned.output_size_in_bytes, planned.temp_size_in_bytes, sum(bytes_of(graph, at) for at in graph.outputs),
        greatest(peaks(beside, dict(graph.symbols)), values),
    )  # fmt: skip


def main(arguments: Sequence[str]) -> int:
    """Compare every model, print the table and the verdict, and return 0 when the bounds hold."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--only", help="a word of the model's name")
    asked = parser.parse_args(arguments)
    cases = [case for case in (make() for make in CASES) if not asked.only or asked.only in case.name]
    rows = [row_of(case, task) for case in cases for task in ("forward", "gradients")]
    held = bool(rows) and all(row.holds for row in rows)
    if asked.json:
        plain = [asdict(row) | {"off": row.off, "holds": row.holds} for row in rows]
        print(json.dumps({"schema_version": 1, "holds": held, "rows": plain}, indent=1))
        return 0 if held else 1
    print(_LINE.format("model", "task", "arguments", "XLA's", "results", "XLA's", "temporary", "XLA's", "off %"))
    for row in rows:
        cells = (
            row.model,
            row.task,
            row.arguments,
            row.arguments_xla,
            row.results,
            row.results_xla,
            row.temporary,
            row.temporary_xla,
        )
        print(_LINE.format(*cells, f"{100 * row.off:.1f}") + ("" if row.holds else "  FALLS SHORT"))
    near = sum(row.holds for row in rows)
    worst = max((abs(row.off) for row in rows), default=0.0)
    said = f"{near} of {len(rows)} rows within {100 * WITHIN:.0f} %, the worst off by {100 * worst:.1f} %"
    print(f"{'HOLDS' if held else 'FALLS SHORT'}: {said}")
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
