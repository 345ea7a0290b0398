"""What people are told of XLA's CPU compiler and a program: bytes where it is followed, else the reason why it is not."""

from math import prod
from typing import cast

from core.graph import DTYPE_BITS, Compiled
from core.symbols import MOST_VALUE
from intake.readers.stablehlo_program import Program
from intake.xla_cpu.donated import written_into
from intake.xla_cpu.effort import Effort, NotFollowed
from intake.xla_cpu.memory import planned

COMPILER = "XLA's CPU compiler (jaxlib 0.10.2)"


def foretold(program: Program, effort: Effort | None = None) -> Compiled:
    """Return what XLA's CPU compiler would set aside for a program.

    Args:
        program: as it was read.
        effort: how much work it may be; what people wait for when None.
    """
    count = len(program.functions[program.main].region.arguments)
    memory, why = None, ""
    try:
        memory = planned(program, effort or Effort())
    except NotFollowed as error:
        why = str(error)
    except RecursionError:
        why = "operations are nested too deep to follow"
    except (IndexError, KeyError, TypeError, ValueError, OverflowError) as error:  # a program that does not go together
        why = f"something in it does not go together ({str(error)[:60]})"
    if memory is not None and memory.total_bytes > MOST_VALUE:
        memory, why = None, "its sizes are beyond what is counted"
    return Compiled(COMPILER, count, memory, why, _reused(program))


def _reused(program: Program) -> int:
    """Return the bytes of results that the program writes into memory of its arguments; none where sizes are open."""
    main = program.functions[program.main]
    types = [main.region.arguments[at].type for at in written_into(main).values()]
    fixed = [(shape, dtype) for shape, dtype in types if all(isinstance(extent, int) for extent in shape)]
    return sum(prod(cast("tuple[int, ...]", shape)) * DTYPE_BITS[dtype] // 8 for shape, dtype in fixed)
