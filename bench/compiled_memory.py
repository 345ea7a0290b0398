"""How near Tandem comes to the memory that XLA's compiler plans for flax models on the CPU.

Bound for exit 0: for each model, forward and with its gradients, arguments, results and temporary memory together within 10 % of
what `compiled.memory_analysis()` says, by the liveness analysis of `intake.picture`, which is what people are told, and by
`intake.xla_cpu`, which follows what XLA's CPU compiler does with a program: what it rewrites, computes inside something else,
keeps through loops, and puts in one place. Arguments must agree to the byte. The first (`portable`) holds for any target and
knows nothing of that compiler; the second says what of the difference is that compiler's own. XLA sets memory for all results
aside before it starts, so in the first they are counted throughout, and what lies beside them at the worst moment is added.

The second half of the models (`bench.flax_models_further`, `bench.compiled_models`) was written after the first version of
`intake.xla_cpu`, to see whether what held for the others holds for them.

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

from bench.compiled_models import FURTHER
from bench.flax_case import Case
from bench.flax_models import CASES
from core.errors import BadInput
from core.graph import DTYPE_BITS, Graph
from core.picture import WORD, greatest
from core.symbols import value_of
from intake.picture.timeline import compute_dtype, forward_spans, peaks, traced_spans
from intake.readers.stablehlo import module_graph
from intake.readers.stablehlo_module import parse
from intake.xla_cpu.memory import planned

WITHIN = 0.10
_LINE = "{:30} {:9} {:>11} {:>11} {:>11} {:>11} {:>12} {:>12} {:>7} {:>9}"


@dataclass(frozen=True, slots=True)
class Row:
    """One model, forward or with its gradients; all in bytes.

    Args:
        model, task: which.
        arguments, arguments_xla: what it is given, as read and as compiled.
        results_xla, temporary_xla: as compiled.
        results, temporary: as `intake.xla_cpu` has them.
        portable: arguments, results and temporary memory together, by the liveness analysis that holds for any target.
    """

    model: str
    task: str
    arguments: int
    arguments_xla: int
    results_xla: int
    temporary_xla: int
    results: int
    temporary: int
    portable: int

    @property
    def whole_xla(self) -> int:
        """All that is set aside."""
        return self.arguments_xla + self.results_xla + self.temporary_xla

    @property
    def off(self) -> float:
        """Relative difference of the whole."""
        return (self.arguments + self.results + self.temporary) / self.whole_xla - 1

    @property
    def off_portable(self) -> float:
        """The same of the liveness analysis."""
        return self.portable / self.whole_xla - 1

    @property
    def holds(self) -> bool:
        """Whether every bound holds."""
        return self.arguments == self.arguments_xla and max(abs(self.off), abs(self.off_portable)) <= WITHIN


def bytes_of(graph: Graph, at: int) -> int:
    """Return the bytes of a tensor."""
    values = dict(graph.symbols)
    return prod(value_of(extent, values) for extent in graph.tensors[at].shape) * DTYPE_BITS[graph.tensors[at].dtype] // 8


def portable_of(graph: Graph, task: str, count: int) -> int:
    """Return the bytes that the liveness analysis has for a program.

    Args:
        graph: of it.
        task: `forward` or `gradients`.
        count: of its arguments, a graph's first tensors.
    """
    dtype = compute_dtype(graph)
    spans = forward_spans(graph, dtype) if task == "forward" else traced_spans(graph, dtype)
    answered = {graph.tensors[at].storage for at in graph.outputs}
    beside = [span for span in spans if span.storage not in answered]
    values = {**dict(graph.symbols), WORD: DTYPE_BITS[dtype] // 8}
    given = sum(bytes_of(graph, at) for at in (*range(count), *graph.outputs))
    return given + greatest(peaks(beside, dict(graph.symbols)), values)


def row_of(case: Case, task: str) -> Row:
    """Compile, read and compare one model."""
    function: Callable[..., Any] = case.apply if task == "forward" else jax.value_and_grad(case.loss, allow_int=True)

    def step(params: Any, *inputs: Any) -> Any:
        return function(params, *inputs)

    lowered = jax.jit(step, keep_unused=True).lower(case.variables, *case.inputs)
    true = lowered.compile().memory_analysis()
    text = lowered.as_text(debug_info=True).encode()
    found = planned(parse(text, case.name))
    count = len(jax.tree.leaves((case.variables, case.inputs)))
    return Row(
        case.name, task, found.arguments, true.argument_size_in_bytes, true.output_size_in_bytes, true.temp_size_in_bytes,
        found.results, found.temporary, portable_of(module_graph(text, case.name), task, count),
    )  # fmt: skip


def _near(offs: Sequence[float]) -> str:
    """Return how many differences are within the bound, and the worst."""
    near, worst = sum(abs(off) <= WITHIN for off in offs), max(map(abs, offs))
    return f"{near} of {len(offs)} rows within {100 * WITHIN:.0f} %, the worst off by {100 * worst:.1f} %"


def main(arguments: Sequence[str]) -> int:
    """Compare every model, print the table and the verdict, and return 0 when the bounds hold."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--only", help="a word of the model's name")
    asked = parser.parse_args(arguments)
    cases = [case for case in (make() for make in (*CASES, *FURTHER)) if not asked.only or asked.only in case.name]
    if not cases:
        raise BadInput(f"no model whose name holds {asked.only!r}", "a word of a model of this bench", "leave --only out")
    rows = [row_of(case, task) for case in cases for task in ("forward", "gradients")]
    held = all(row.holds for row in rows)
    if asked.json:
        plain = [asdict(row) | {"off": row.off, "off_portable": row.off_portable, "holds": row.holds} for row in rows]
        print(json.dumps({"schema_version": 1, "holds": held, "rows": plain}, indent=1))
        return 0 if held else 1
    print(_LINE.format("model", "task", "arguments", "XLA's", "results", "XLA's", "temporary", "XLA's", "off %", "portable"))
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
            f"{100 * row.off:.1f}",
            f"{100 * row.off_portable:.1f}",
        )
        print(_LINE.format(*cells) + ("" if row.holds else "  FALLS SHORT"))
    portable, followed = _near([row.off_portable for row in rows]), _near([row.off for row in rows])
    print(f"{'HOLDS' if held else 'FALLS SHORT'}: the portable analysis {portable}; the compiler followed {followed}")
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
