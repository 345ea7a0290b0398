"""How long programs took to compile: what others published and what this project measured, each with its source.

Operations are counted as Tandem counts a workload's: products, convolutions, attention, norms and chains of element-wise work,
forward and backward, each as often as it stands in the program. Compilers see more, smaller ones; what matters is that all
rows count alike. A row more changes what is told of its compiler on its kind of chip.
"""

from dataclasses import dataclass
from functools import cache

from catalog.tables import rows_of


@dataclass(frozen=True, slots=True)
class CompileTime:
    """One compilation.

    Args:
        compiler: `xla`, `inductor`, or `graph` for one that fuses little and makes no code of its own.
        kind: of the chip that it compiled for.
        operations: in the program.
        seconds: that it took.
        what: the model, one phrase.
    """

    compiler: str
    kind: str
    operations: float
    seconds: float
    what: str
    source: str
    source_date: str
    confidence: str


@cache
def compile_times(compiler: str, kind: str) -> tuple[CompileTime, ...]:
    """Return what is known of one compiler for one kind of chip, in the order of the file; empty when nothing is.

    Args:
        compiler: as in `CompileTime`.
        kind: `cpu`, `gpu` or `tpu`.
    """
    return tuple(one for one in _all() if (one.compiler, one.kind) == (compiler, kind))


@cache
def _all() -> tuple[CompileTime, ...]:
    return tuple(
        CompileTime(
            row["compiler"], row["kind"], float(row["operations"]), float(row["seconds"]), row["what"],
            row["source"], row["source_date"], row["confidence"],
        )
        for row in rows_of("compile_times.csv")
    )  # fmt: skip
