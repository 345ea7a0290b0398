"""Model files as a use case: what was dropped becomes a workload, and what Tandem understood of it can be shown."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from core import format as fmt
from core.errors import BadInput, one_line
from core.graph import MARKS, Graph, SetAside
from core.low_rank import adapter_parameters
from core.optimizers import OPTIMIZER_SOURCES, state_bytes
from core.picture import Picture
from intake.files import bytes_look_like_model, looks_like_model, read_model_file, sandbox_level, suffixes, titles
from intake.picture.packed import packed, unpacked
from intake.readers.capture_torch import capture as traced
from intake.readers.captured import written
from services.context import context

__all__ = [
    "LORA_RANK", "Adapter", "OptimizerState", "ProgramMemory", "adapter", "bytes_look_like_model", "capture", "facts",
    "looks_like_model", "mark_meaning", "model_document", "optimizer_states", "picture_of", "program_memory",
    "sandbox_level", "sandbox_of", "suffixes", "titles",
]  # fmt: skip

SHAPES: dict[str, str] = {
    "unit_axis": "an axis of one that tiles of a TPU pad to 8 or 128",
    "off_tile": "sides that are no multiples of 8 or 128, which tiles of a TPU pad",
}
LORA_RANK = 16
MOST_TITLE = 200
"""Characters of the name of a workload; a file may have a longer one, or one that is not printable."""


@dataclass(frozen=True, slots=True)
class OptimizerState:
    """What one optimizer would keep of a model: its name, what that is, and bytes."""

    name: str
    what: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Adapter:
    """What low-rank adapters on every weight matrix of the layers would train and keep.

    Args:
        rank: of the adapters.
        parameter_count: that they add, which alone are trained.
        state_bytes: of AdamW for them.
    """

    rank: int
    parameter_count: int
    state_bytes: int


@dataclass(frozen=True, slots=True)
class ProgramMemory:
    """Memory of the program that a file holds, in one of the ways in which it is told.

    Args:
        key: `any_target` or `compiled`.
        title: for whom it is.
        memory: None where nothing is told.
        how: where it comes from, or why it is not told.
    """

    key: str
    title: str
    memory: SetAside | None
    how: str


def model_document(source: Path | bytes, name: str = "", asked: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the document of a workload for a model file.

    Args:
        source: a path, or the bytes of an upload.
        name: of the file; the last part of the path when empty.
        asked: keys of the document that are known already: task, batch, length, dtype, optimizer.

    Raises:
        BadInput: no model that is read, or refused; one line.
    """
    given = {key: value for key, value in (asked or {}).items() if value is not None}
    options = {key: value for key, value in given.items() if key in {"batch", "length", "dtype"}}
    found = read_model_file(source, name, options=options, weak_sandbox=context().settings.weak_sandbox)
    title = one_line(found.picture.title, MOST_TITLE) or "model"
    return {"schema": 1, "name": title, "task": "train", "model": {"picture": packed(found.picture)}, **given}


def capture(function: str, target: Path, *, training: bool) -> Graph:
    """Trace a model that a function of a script makes, in this process, and write its graph.

    Args:
        function: `script.py:make_model`.
        target: file to write, in one move.
        training: whether the backward pass is traced too.

    Raises:
        BadInput: no such function, no model, or the file cannot be written.
    """
    graph = traced(function, training)
    made = target.with_name(f"{target.name}.new")
    try:
        made.write_bytes(written(graph))
        made.replace(target)
    except OSError as error:
        with suppress(OSError):
            made.unlink()
        raise BadInput(f"{str(target)[:80]!r} ({error.strerror})", "a file that can be written", "name another") from None
    return graph


def facts(picture: Picture) -> tuple[tuple[str, int], ...]:
    """Return whole numbers of a model that no operation shows, such as active parameters, without those told elsewhere."""
    return tuple((name.replace("_", " "), value) for name, value in picture.facts if name not in {"parameters", "sandbox_level"})


def sandbox_of(picture: Picture) -> int | None:
    """Return the level of the sandbox in which a model was read; None where none was needed."""
    return dict(picture.facts).get("sandbox_level")


def picture_of(document: Mapping[str, Any]) -> Picture | None:
    """Return the picture that a document holds; None where its model is described in another way."""
    given = document.get("model")
    text = cast("Mapping[str, Any]", given).get("picture") if isinstance(given, Mapping) else None
    return unpacked(text) if isinstance(text, str) else None


def program_memory(picture: Picture) -> tuple[ProgramMemory, ...]:
    """Return the memory of the program that a file holds, as it is told; nothing where the file holds no compiler's program."""
    if picture.compiled is None:
        return ()
    reused = picture.compiled.reused_bytes
    shared = f"; {fmt.memory(reused)} of the results are written where arguments lay, and count once" if reused else ""
    followed = f"its rules followed step by step; neither compiled nor measured{shared}"
    how = followed if picture.compiled.memory is not None else f"not told: {picture.compiled.silent}"
    general = f"liveness analysis, which knows no compiler{shared}" if picture.program is not None else "not told: sizes are open"
    return (
        ProgramMemory("compiled", f"as {picture.compiled.compiler} lays it out", picture.compiled.memory, how),
        ProgramMemory("any_target", "on any target", picture.program, general),
    )


def optimizer_states(picture: Picture) -> tuple[OptimizerState, ...]:
    """Return what each usual optimizer would keep of a model, the least first."""
    shapes = [
        (one.shape, one.count * block.repeats)
        for block in picture.blocks for one in block.parameters if one.trained and one.shape
    ]  # fmt: skip
    tables = frozenset(
        side for block in picture.blocks for one in block.operations if one.kind == "embedding"
        for side in one.dims[2:] if isinstance(side, int)
    )  # fmt: skip
    found = [OptimizerState(name, what, state_bytes(name, shapes, tables)) for name, what in OPTIMIZER_SOURCES.items()]
    return tuple(sorted(found, key=lambda one: one.size_bytes))


def adapter(picture: Picture, rank: int = LORA_RANK) -> Adapter:
    """Return what low-rank adapters on the matrices of the repeated layers would train: rank x (rows + columns) each.

    Source: Hu et al., arXiv:2106.09685.
    """
    factors = [((side, rank), times) for shape, times in picture.matrices for side in shape]
    return Adapter(rank, adapter_parameters(picture.matrices, rank), state_bytes("adamw", factors))


def mark_meaning(mark: str) -> str:
    """Return what a mark of portability means, in words; empty for one that an address alone names."""
    return MARKS.get(mark) or SHAPES.get(mark, "")
