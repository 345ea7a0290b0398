"""PyTorch's `.pt2` (torch.export): its program is read as JSON, without torch and without any pickle.

The program lists operations with the shapes of what they make; symbols of sizes become those of the graph. Both layouts are
known: `models/model.json` in an archive with one file a weight, and the older `serialized_exported_program.json`.
"""

from collections.abc import Mapping

from core.errors import BadInput
from core.graph_json import graph_to_json
from intake.readers.pt2_file import REMEDY, opened
from intake.readers.pt2_graph import Reading
from intake.readers.pt2_sizes import Fixed
from intake.source import Source

TITLE = "PyTorch exported program (.pt2)"
SUFFIXES = (".pt2",)
NEEDS: tuple[str, ...] = ()


def fits(name: str, head: bytes) -> bool:
    """Whether a file is an exported program: a zip under that name, or one that begins with its program."""
    return head[:4] == b"PK\x03\x04" and (name.lower().endswith(".pt2") or b"serialized_exported_program.json" in head[:200]
                                          or b"archive_format" in head)  # fmt: skip


def read(source: Source, options: Mapping[str, object]) -> dict[str, object]:
    """Return the graph of an exported program.

    Args:
        source: the file.
        options: none are used.

    Raises:
        BadInput: it is no exported program, or one whose sizes cannot be.
    """
    del options
    program = opened(source)
    fixed: dict[str, str] = {}
    for _ in range(64):  # each round fixes at least one symbol more
        try:
            graph = Reading(program, source.name.rpartition(".")[0] or source.name, fixed).graph()
            return graph_to_json(graph)
        except Fixed as found:
            fixed.update(dict.fromkeys(found.names, found.expression[:80]))
        except (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError) as error:
            raise BadInput(f"an exported program with {str(error)[:160]}", "what torch.export.save writes", REMEDY) from None
    raise BadInput("an exported program of over 64 symbols that cannot be followed", "fewer", "export it with fixed shapes")
