"""Reads StableHLO: MLIR text, MLIR bytecode, portable artifacts, `jax.export` files and folders that torch_xla exports.

Everything is read by jaxlib's own parser and turned into records at once; nothing is compiled or evaluated. What bytes claim of
their nesting is checked before the parser sees text, since it follows nesting on the stack.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import cast

from core.errors import BadInput
from core.graph import Graph
from core.graph_json import graph_to_json
from core.symbols import Extent
from intake.readers.buffer_names import is_buffer_name
from intake.readers.stablehlo_graph import graph_of
from intake.readers.stablehlo_module import BYTECODE, parse
from intake.readers.stablehlo_program import Function, Program, refuse
from intake.readers.stablehlo_symbols import close
from intake.source import Source
from intake.xla_cpu.foretold import foretold

TITLE = "StableHLO"
SUFFIXES = (".mlir", ".mlirbc", ".stablehlo", ".hlo", ".jax_export")
NEEDS = ("jaxlib",)
MOST_BYTES = 512 * 2**20
MOST_NESTING = 200
_EXPECTED = "a StableHLO module, as text or bytecode"
_REMEDY = "export it again, for example with jax.jit(f).lower(...).as_text() or jax.export"
_TEXT = re.compile(rb"\b(?:stablehlo|mhlo|chlo|vhlo)\.\w|^[ \t]*(?:builtin\.)?module\b[^\n]*\{|\bfunc\.func\b", re.MULTILINE)


def fits(name: str, head: bytes) -> bool:
    """Whether a file of this name, or with these first bytes, is StableHLO."""
    return name.lower().endswith(SUFFIXES) or head.startswith(BYTECODE) or (b"\0" not in head and _TEXT.search(head) is not None)


def read(source: Source, options: Mapping[str, object]) -> dict[str, object]:
    """Return the graph of a module.

    Args:
        source: a file, or a folder with `functions/NAME.bytecode` or `.mlir` and `NAME.meta` beside it.
        options: none is known.

    Raises:
        BadInput: it is no StableHLO, or of no use.
    """
    del options
    data, meta = _files(source)
    return graph_to_json(module_graph(data, source.name, meta))


def module_graph(data: bytes, title: str, meta: Mapping[str, object] | None = None) -> Graph:
    """Return the graph of a module that lies in memory, such as one inside another format.

    Args:
        data: text or bytecode, or bytes that have bytecode inside.
        title: what people call it.
        meta: what torch_xla writes beside a function: where each argument comes from.
    """
    program = parse(_module(data), title)
    if meta:
        main = program.functions[program.main]
        program = replace(program, functions={**program.functions, program.main: _described(main, meta)})

    def program_with(replacements: Mapping[str, Extent]) -> Program:
        return close(program, replacements)

    return replace(graph_of(program_with), compiled=foretold(program))


def _files(source: Source) -> tuple[bytes, Mapping[str, object] | None]:
    names = source.names()
    if not names:
        if source.size > MOST_BYTES:
            raise refuse(f"{source.size} bytes", f"at most {MOST_BYTES}", "export the module without its constants")
        with source.open() as file:
            return file.read(MOST_BYTES + 1), None
    functions = [name for name in names if name.endswith((".bytecode", ".mlirbc", ".mlir", ".stablehlo"))]
    if not functions:
        raise refuse("a folder without a module", "functions/NAME.bytecode or NAME.mlir in it", _REMEDY)
    chosen = min(functions, key=lambda name: (not name.endswith((".bytecode", ".mlirbc")), "forward" not in name, name))
    with source.open(chosen) as file:
        data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise refuse(f"{chosen[:60]} of over {MOST_BYTES} bytes", "a smaller module", "export the module without its constants")
    beside = chosen.rpartition(".")[0] + ".meta"
    return data, _meta(source, beside) if beside in names else None


def _meta(source: Source, name: str) -> Mapping[str, object]:
    with source.open(name) as file:
        data = file.read(64 * 2**20)
    try:
        value: object = json.loads(data)
    except (ValueError, RecursionError):
        raise refuse(f"{name[:60]} that is no JSON", "what torch_xla writes", "export the model again") from None
    return cast("Mapping[str, object]", value) if isinstance(value, dict) else {}


def _module(data: bytes) -> bytes:
    """The module itself: from inside a `jax.export` file too, which has it as a length and its bytes."""
    if data.startswith(BYTECODE):
        return data
    at = data.find(BYTECODE)
    if at >= 4:
        length = int.from_bytes(data[at - 4 : at], "little")
        return data[at : at + length] if 0 < length <= len(data) - at else data[at:]
    if b"\0" in data[:4096]:
        raise refuse("bytes that are neither text nor MLIR bytecode", _EXPECTED, _REMEDY)
    _check_nesting(data)
    return data


def _check_nesting(data: bytes) -> None:
    """Refuse text whose brackets are nested beyond what any model needs; those in quotes do not count."""
    depth = 0
    for found in re.finditer(rb'"(?:[^"\\\n]|\\.)*"|[()\[\]{}<>]|->', data):
        mark = found[0]
        if len(mark) > 1:
            continue
        depth += 1 if mark in b"([{<" else -1 if mark in b")]}>" else 0
        if depth > MOST_NESTING:
            raise refuse(f"brackets over {MOST_NESTING} deep", _EXPECTED, _REMEDY)


def _described(main: Function, meta: Mapping[str, object]) -> Function:
    """A function with what torch_xla says of its arguments: `input_locations`, one for each, with `type_` and `name`."""
    rows = meta.get("input_locations")
    count = len(main.region.arguments)
    if not isinstance(rows, list) or len(cast("list[object]", rows)) != count:
        raise BadInput(f"a description of other arguments than the module's {count}", "the one that belongs to it", _REMEDY)
    names: list[str] = []
    roles: list[str] = []
    for at, row in enumerate(cast("list[object]", rows)):
        said: Mapping[str, object] = cast("dict[str, object]", row) if isinstance(row, dict) else {}
        kind = str(said.get("type_", ""))
        names.append(str(said.get("name") or f"{kind} {at}")[:300])
        role = {"parameter": "parameter", "constant": "constant"}.get(kind, "input")
        roles.append("constant" if role == "parameter" and is_buffer_name(names[-1]) else role)
    return replace(main, names=tuple(names), roles=tuple(roles))
