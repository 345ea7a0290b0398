"""What of a program is followed: operations, types and forms that were held against the compiler; else no figure is told."""

from core.graph import DTYPE_BITS
from intake.readers.stablehlo_program import Instruction, Program, Region, Value, wholes
from intake.xla_cpu.effort import NotFollowed
from intake.xla_cpu.hlo import ELEMENTWISE

_OTHERS = frozenset({
    "bitcast_convert", "broadcast_in_dim", "call", "composite", "concatenate", "constant", "convolution", "dot_general",
    "dynamic_slice", "dynamic_update_slice", "gather", "iota", "optimization_barrier", "pad", "reduce", "reduce_window",
    "reshape", "reverse", "scatter", "select_and_scatter", "slice", "sort", "square", "top_k", "transpose", "while",
})  # fmt: skip
_TYPES = frozenset({
    "fp32", "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
})  # fmt: skip
_REDUCED = frozenset({"add", "maximum", "minimum", "and", "or"})
_REASONS = {
    "if": "conditions are not followed", "case": "conditions are not followed",
    "custom_call": "calls of what is outside the program are not followed",
    "rng_bit_generator": "random bits of the compiler's own generator are not followed",
}  # fmt: skip


def check_program(program: Program) -> None:
    """Raise where a program as a whole is none that is followed.

    Args:
        program: it.

    Raises:
        NotFollowed: it is for several devices.
    """
    if program.devices > 1:
        raise NotFollowed("programs for several devices are not followed")


def check_value(value: Value) -> None:
    """Raise where a value is of a type that is not followed.

    Raises:
        NotFollowed: it is, or its shape is open.
    """
    shape, dtype = value.type
    if not all(isinstance(extent, int) for extent in shape):
        raise NotFollowed("sizes are open")
    if dtype not in _TYPES:
        narrow = DTYPE_BITS[dtype] < 32
        raise NotFollowed(f"{dtype}, which the compiler widens, is not followed" if narrow else f"{dtype} is not followed")


def check_instruction(instruction: Instruction) -> None:
    """Raise where an operation is none that is followed.

    Args:
        instruction: it; those within it are checked when their turn comes.

    Raises:
        NotFollowed: it is none.
    """
    name = instruction.op
    if name not in ELEMENTWISE and name not in _OTHERS:
        raise NotFollowed(_REASONS.get(name, f"{name[:40]} is not followed"))
    for result in instruction.results:
        check_value(result)
    match name:
        case "while":
            _check_condition(instruction.regions[0])
        case "reduce_window" if running(instruction) is None:
            _check_window(instruction)
        case "reduce" if len(instruction.operands) == 2:
            body = instruction.regions[0].body if instruction.regions else ()
            if len(body) != 1 or body[0].op not in _REDUCED:
                raise NotFollowed("reductions other than sums, extremes and truths are not followed")
        case _:
            pass


def _check_condition(region: Region) -> None:
    """Conditions of loops are not gone through: they may only compare numbers."""
    if any(one.op == "call" or one.regions or any(result.type[0] for result in one.results) for one in region.body):
        raise NotFollowed("loops whose condition is computed of arrays are not followed")
    if any(one.op == "constant" and one.attributes.get("value") == (1,) for one in region.body):
        raise NotFollowed("loops of one pass, which the compiler opens, are not followed")


def running(instruction: Instruction) -> int | None:
    """Return the axis along which windows make a running sum: as long as the axis, over one edge of it; None of others."""
    windows, padding = wholes(instruction.attributes, "window_dimensions"), wholes(instruction.attributes, "padding")
    body = instruction.regions[0].body if instruction.regions else ()
    if len(instruction.operands) != 2 or len(body) != 1 or body[0].op not in {"add", "multiply"}:
        return None
    long = [axis for axis, size in enumerate(windows) if size > 1]
    shape = instruction.results[0].type[0]
    if len(long) != 1 or len(padding) != 2 * len(windows) or windows[long[0]] != shape[long[0]]:
        return None
    edges = sorted(padding[2 * long[0] : 2 * long[0] + 2])
    return long[0] if edges == [0, windows[long[0]] - 1] and sum(padding) == edges[1] else None


def _check_window(instruction: Instruction) -> None:
    """Windows as long as an axis that make no running sum, such as a running maximum, are not followed."""
    windows, padding = wholes(instruction.attributes, "window_dimensions"), wholes(instruction.attributes, "padding")
    edges = zip(windows, padding[::2], padding[1::2], strict=False)
    if any(size > 1 and max(low, high) >= size - 1 for size, low, high in edges):
        raise NotFollowed("running extremes are not followed")
