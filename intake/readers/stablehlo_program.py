"""A program of XLA's operations as plain records: what the readers of StableHLO and of jaxpr text both make of their files.

Operations carry StableHLO's names without their dialect (`dot_general`, `while`, `call`), whichever file they came from, so that
what they cost is written once. Nothing here knows MLIR or Python's syntax; `stablehlo_walk` runs through it.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias, cast

from core.errors import BadInput
from core.symbols import Extent

Type: TypeAlias = tuple[tuple[Extent | None, ...], str]
"""Shape, None for an extent that only the operands tell, and a key of `core.graph.DTYPE_BITS`."""
MOST_OPERATIONS = 400_000
"""Operations that a file may hold; a model of 100 layers, unrolled, trained, has some 60,000."""

_DTYPES = {
    "f64": "fp64", "f32": "fp32", "tf32": "fp32", "bf16": "bf16", "f16": "fp16", "i1": "bool", "pred": "bool", "bool": "bool",
    "index": "int64", "token": "token", "string": "string", "c64": "complex64", "c128": "complex128",
    "complex<f32>": "complex64", "complex<f64>": "complex128", "float0": "bool", "b1": "bool",
}  # fmt: skip
_LONG = {"float": "f", "int": "i", "uint": "u", "complex": "c", "bfloat": "bf"}
_INTEGER = re.compile(r"(?P<sign>[us]?)i?(?P<bits>2|4|8|16|32|64)")


@dataclass(frozen=True, slots=True)
class Value:
    """Something computed once.

    Args:
        number: its own number in the program.
        type: shape and dtype.
    """

    number: int
    type: Type


@dataclass(frozen=True, slots=True)
class Region:
    """Operations in order, with what they are given and what they give back.

    Args:
        arguments: given.
        body: operations.
        returns: numbers of the values given back.
    """

    arguments: tuple[Value, ...]
    body: "tuple[Instruction, ...]"
    returns: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Instruction:
    """One operation.

    Args:
        label: its name in the file, with the dialect.
        op: its name in StableHLO, without.
        operands: numbers of values.
        results: what it makes.
        attributes: whole numbers, texts and tuples of them, under StableHLO's names.
        regions: bodies that belong to it.
        path: where it came from, as JAX writes it (`jit(f)/jvp(mlp)/dot_general`), without the last part.
        last: operands that nothing after it reads: their memory can be written in place.
    """

    label: str
    op: str
    operands: tuple[int, ...]
    results: tuple[Value, ...]
    attributes: Mapping[str, object]
    regions: tuple[Region, ...] = ()
    path: str = ""
    last: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Function:
    """A function of a program.

    Args:
        region: its arguments and body.
        names: of its arguments, as the program that was traced called them; empty texts where the file does not tell.
        roles: of its arguments where the file tells them (`core.graph.ROLES`), else empty texts.
        results: names of its results where the file tells them.
        donated: places of (argument, result): the result is written into the memory of the argument. The result is -1 where the
            compiler is to find one.
    """

    region: Region
    names: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()
    results: tuple[str, ...] = ()
    donated: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Program:
    """A whole file.

    Args:
        format, title: as in `core.graph.Graph`.
        functions: by name.
        main: name of the one that is run.
        symbols: name and value of each symbol in types.
        notes: as in `core.graph.Graph`.
        specification: what the file says of shapes that follow symbols; empty where it says nothing.
        bounds: axis and greatest size of open extents, where the file has them.
        devices: that it is made for.
    """

    format: str
    title: str
    functions: Mapping[str, Function]
    main: str
    symbols: tuple[tuple[str, int], ...] = ()
    notes: tuple[str, ...] = ()
    specification: str = ""
    bounds: tuple[tuple[int, int], ...] = ()
    devices: int = 1


def dtype_of(written: str) -> str:
    """Return the dtype for an element type as MLIR or JAX writes it.

    Raises:
        BadInput: one that Tandem does not know.
    """
    text = written.strip().lower()
    if text.startswith("!quant."):
        text = text.partition("<")[2].split(":")[0]
    if found := re.fullmatch(r"(bfloat|float|uint|int|complex)(\d+)(_\w+)?", text):
        text = _LONG[found[1]] + found[2] + (found[3] or "")
    if text in _DTYPES:
        return _DTYPES[text]
    if re.match(r"f[68]e?\d?", text):
        return "fp8"
    if text.startswith("f4"):
        return "fp4"
    found = _INTEGER.fullmatch(text)
    if found and f"{found['sign'].replace('s', '')}{found['bits']}" != "u2":
        return f"{'u' if found['sign'] == 'u' else ''}int{found['bits']}"
    if text.startswith(("ui2", "u2")):
        return "int2"
    if text.startswith("key<"):
        return "uint64"
    raise BadInput(f"a tensor of {written[:60]!r}", "elements of XLA's types", "export it with floats, whole numbers or bools")


def refuse(got: str, expected: str, remedy: str) -> BadInput:
    """Return the refusal of a file; what was got is cut to a phrase."""
    return BadInput(got[:200], expected, remedy)


def region_of(arguments: Sequence[Value], body: Sequence[Instruction], returns: Sequence[int]) -> Region:
    """Return a region whose operations know which of their operands nothing else reads.

    Args:
        arguments, body, returns: as in `Region`.
    """
    uses: dict[int, int] = {}
    for number in (*(one for instruction in body for one in _used(instruction)), *returns):
        uses[number] = uses.get(number, 0) + 1
    once = frozenset(number for number, count in uses.items() if count == 1)
    told = (replace(one, last=once.intersection(one.operands)) if once.intersection(one.operands) else one for one in body)
    return Region(tuple(arguments), tuple(told), tuple(returns))


def _used(instruction: Instruction) -> list[int]:
    """Values that an operation reads; those that its regions see from outside count twice, since regions may run again."""
    found = list(instruction.operands)
    for region in instruction.regions:
        for one in region.body:
            found.extend(2 * _used(one))
    return found


def wholes(attributes: Mapping[str, object], name: str) -> tuple[int, ...]:
    """Return an attribute that is a list of whole numbers, or one; empty where it is missing."""
    value = attributes.get(name, ())
    items = cast("tuple[object, ...]", value) if isinstance(value, tuple) else (value,)
    return tuple(int(one) for one in items if isinstance(one, int))
