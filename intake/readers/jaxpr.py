"""Reads the text of a jaxpr, as `print(jax.make_jaxpr(f)(*args))` gives it, with a parser of ours: no framework is asked.

What the text leaves out, names of arguments and, by default, of modules, is left out here: which arguments are trained is
guessed, and said to be.
"""

import re
from collections.abc import Mapping

from core.errors import BadInput
from core.graph import Graph
from core.graph_json import graph_to_json
from core.symbols import Extent
from intake.readers.jaxpr_program import JaxprReader
from intake.readers.stablehlo_graph import graph_of
from intake.readers.stablehlo_program import Program, refuse
from intake.source import Source

TITLE = "jaxpr text"
SUFFIXES = (".jaxpr",)
NEEDS: tuple[str, ...] = ()
MOST_BYTES = 64 * 2**20
_START = re.compile(rb"\s*(?:let\s+\w+\s*=\s*)?\{\s*lambda\b[^\n]*;")
_REMEDY = "hand in what print(jax.make_jaxpr(f)(*args)) gives, types and all"


def fits(name: str, head: bytes) -> bool:
    """Whether a file of this name, or with these first bytes, is a jaxpr's text."""
    return name.lower().endswith(SUFFIXES) or _START.match(head) is not None


def read(source: Source, options: Mapping[str, object]) -> dict[str, object]:
    """Return the graph of a jaxpr.

    Args:
        source: a text file.
        options: none is known.

    Raises:
        BadInput: it is no jaxpr, or its shapes do not go together.
    """
    del options
    if source.names() or source.size > MOST_BYTES:
        raise refuse(f"{source.size} bytes or a folder", f"one text of at most {MOST_BYTES} bytes", "print the jaxpr of one step")
    with source.open() as file:
        data = file.read(MOST_BYTES + 1)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        raise refuse("bytes that are no text", "a jaxpr's text", _REMEDY) from None
    return graph_to_json(text_graph(text, source.name))


def text_graph(text: str, title: str) -> Graph:
    """Return the graph of a jaxpr's text.

    Args:
        text: as JAX prints it.
        title: what people call it.
    """

    def program_with(replacements: Mapping[str, Extent]) -> Program:
        return JaxprReader(text, replacements).program(title)

    try:
        return graph_of(program_with)
    except BadInput as bad:
        raise BadInput(bad.got, "a jaxpr whose shapes go together", _REMEDY) from None
