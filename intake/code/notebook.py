"""Cells of a notebook as text: JSON is read as data, and the lines that only a notebook understands are set apart.

A cell that begins with `%%bash` is a shell script; `!pip install` and `%env` lines are told apart from Python.
"""

import json
import re
from dataclasses import dataclass
from typing import cast

from intake.code.python_text import deepest

_SHELL_CELLS = ("%%bash", "%%sh", "%%shell", "%%script bash", "%%script sh")
_ASKS = re.compile(r"^\s*[\w.]+\?\??$")


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell of code.

    Args:
        number: from 1, counting all cells of the notebook.
        python: its Python, magic lines replaced by empty ones so that lines keep their numbers.
        commands: (line, text) of what goes to a shell.
    """

    number: int
    python: str
    commands: tuple[tuple[int, str], ...]


def cells_of(text: str, nesting: int) -> tuple[Cell, ...] | None:
    """Return the code cells of a notebook, or None when it is none.

    Args:
        text: of the file.
        nesting: brackets in brackets that are read.
    """
    if len(text) > 1 and text.lstrip()[:1] != "{":
        return None
    if deepest(text) > nesting * 100:
        return None
    try:
        document: object = json.loads(text)
    except (ValueError, RecursionError, MemoryError):
        return None
    if not isinstance(document, dict):
        return None
    top = cast("dict[str, object]", document)
    found = top.get("cells")
    if not isinstance(found, list):
        sheets = top.get("worksheets")
        first = cast("list[object]", sheets)[0] if isinstance(sheets, list) and sheets else None
        found = cast("dict[str, object]", first).get("cells") if isinstance(first, dict) else None
    if not isinstance(found, list):
        return None
    return tuple(_cell(number, one) for number, one in enumerate(cast("list[object]", found), 1) if _is_code(one))


def _is_code(cell: object) -> bool:
    return isinstance(cell, dict) and cast("dict[str, object]", cell).get("cell_type") == "code"


def _cell(number: int, cell: object) -> Cell:
    mapping = cast("dict[str, object]", cell)
    source = mapping.get("source", mapping.get("input", ""))
    if isinstance(source, list):
        source = "".join(part for part in cast("list[object]", source) if isinstance(part, str))
    text = source if isinstance(source, str) else ""
    lines = text.replace("\r\n", "\n").split("\n")
    if lines and lines[0].strip().startswith(_SHELL_CELLS):
        return Cell(number, "", tuple(enumerate(lines[1:], 2)))
    if lines and lines[0].strip().startswith("%%") and not lines[0].strip().startswith(("%%time", "%%capture", "%%prun",
        "%%timeit")):
        return Cell(number, "", ())
    python: list[str] = []
    commands: list[tuple[int, str]] = []
    for at, line in enumerate(lines, 1):
        if not _is_magic(line):
            python.append(line)
            continue
        indent = line[: len(line) - len(line.lstrip())]
        python.append(f"{indent}pass" if indent else "")
        commands.append((at, _command(line)))
    return Cell(number, "\n".join(python), tuple(commands))


def _is_magic(line: str) -> bool:
    stripped = line.lstrip()
    if stripped.startswith(("!", "%")):
        return True
    return bool(_ASKS.match(line)) or bool(re.match(r"\s*+[\w, ]++=\s*+!", line))


def _command(line: str) -> str:
    text = line.strip()
    if text.startswith(("%pip", "%conda", "%sx", "%system")):
        return text[1:]
    if text.startswith(("%env", "%set_env")):
        return "export " + text.split(None, 1)[1].replace(" ", "=", 1) if " " in text else ""
    if "!" in text:
        return text.split("!", 1)[1].lstrip("!")
    return ""
