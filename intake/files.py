"""Model files: which reader one is for, and the picture that comes of it; read in the sandbox, never by a framework's loader."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from json import dumps
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType

import intake.readers
from core.errors import BadInput
from core.graph import Graph, Parameters
from core.graph_json import graph_from_json
from core.ops import COMPUTE_DTYPES
from core.picture import Picture
from intake.picture import picture_of
from intake.sandbox import Sandbox, SandboxLevel, level, require

HEAD_BYTES = 4096
CONFIG_READER = "hugging_face_config"
CONFIG_CHECK = "hugging_face_values"
"""What refuses a configuration before the libraries of its reader are loaded."""
_KNOWN_TYPES = ("models/auto/auto_mappings.py", "models/auto/configuration_auto.py")
"""Where transformers writes down the names of its models."""
USUAL: dict[str, str | int] = {"dtype": "bf16"}
"""What readers are asked for where nobody says: what a model keeps in fp32 besides shows only in a narrower dtype."""
_QUOTED = re.compile(r"[\"']([A-Za-z0-9][\w.-]{0,80})[\"']")
_KEY_FILES = ("saved_model.pb", "config.json", "model.safetensors.index.json")
"""Files by which a folder is known as a model; the first that is there counts."""


@dataclass(frozen=True, slots=True)
class ModelFile:
    """A model file that was read.

    Args:
        reader: title of the format.
        picture: of the model, or of the architecture that its weights speak for.
        weights: what a file of weights alone says; None for a file that holds operations.
    """

    reader: str
    picture: Picture
    weights: Parameters | None = None


@cache
def readers() -> Mapping[str, ModuleType]:
    """Return the readers by the names of their modules."""
    found = (import_module(f"{intake.readers.__name__}.{info.name}") for info in iter_modules(intake.readers.__path__))
    return {one.__name__.rpartition(".")[2]: one for one in found if hasattr(one, "TITLE") and hasattr(one, "fits")}


@cache
def sandbox_level() -> SandboxLevel:
    """Return how strong the sandbox is here, found out once."""
    return level()


def require_sandbox(weak_sandbox: bool) -> None:
    """Raise BadInput where the sandbox here is below the minimum and no administrator accepts it."""
    require(sandbox_level(), weak_sandbox)


def titles() -> tuple[str, ...]:
    """Return what the formats are called."""
    return tuple(sorted(str(module.TITLE) for module in readers().values()))


def suffixes() -> tuple[str, ...]:
    """Return the suffixes by which model files are known, with the dot."""
    return tuple(sorted({suffix for module in readers().values() for suffix in module.SUFFIXES}))


def looks_like_model(path: Path) -> bool:
    """Whether a path is a model file or folder rather than a workload or code: by its content where its name says nothing."""
    try:
        return (_key_of(path) if path.is_dir() else _reader_of(path.name, _head(path))) is not None
    except (OSError, ValueError):
        return False


def bytes_look_like_model(name: str, data: bytes) -> bool:
    """Whether the bytes of an upload are a model file."""
    return _reader_of(name, data[:HEAD_BYTES]) is not None


def read_model_file(
    source: Path | bytes, name: str = "", *, options: Mapping[str, str | int] | None = None, weak_sandbox: bool = False
) -> ModelFile:
    """Read a model file, or a folder that holds one.

    Args:
        source: a path that the user may read, or the bytes of a file.
        name: what it is called; the last part of the path when empty.
        options: for the reader: `batch`, `length`, `dtype`, `phase`.
        weak_sandbox: whether an administrator accepts a sandbox below the minimum.

    Raises:
        BadInput: no format that is read, or refused; one line.
    """
    dtype = (options or {}).get("dtype")
    if dtype is not None and dtype not in COMPUTE_DTYPES:
        raise BadInput(f"dtype {dtype!r:.40}", f"one of {', '.join(COMPUTE_DTYPES)}", "choose one of them")
    require_sandbox(weak_sandbox)
    name = name or (source.name if isinstance(source, Path) else "the file")
    source, name, reader = _chosen(source, name)
    return _read(reader, source, name, dict(options or {}))


def read_config_values(values: Mapping[str, object], options: Mapping[str, str | int], *, weak_sandbox: bool = False) -> Picture:
    """Return the picture of a Hugging Face configuration that is there already.

    Raises:
        BadInput: transformers does not contain it, or it cannot be traced; one line.
    """
    text = dumps(dict(values), default=str).encode()
    return read_model_file(text, "config.json", options=options, weak_sandbox=weak_sandbox).picture


@cache
def known_types() -> tuple[str, ...]:
    """Return texts of which every model_type of the installed transformers is one; none where it is not found.

    Importing it would take seconds, so its list is looked up as text: whatever it puts in quotes there.
    """
    found = find_spec("transformers")
    folder = Path(found.origin).parent if found is not None and found.origin else None
    files = [folder / name for name in _KNOWN_TYPES if (folder / name).is_file()] if folder is not None else []
    return tuple(sorted({text for file in files for text in _QUOTED.findall(file.read_text(encoding="utf-8"))}))


def _read(reader: str, source: Path | bytes, name: str, options: dict[str, str | int]) -> ModelFile:
    title = str(readers()[reader].TITLE)
    if reader == CONFIG_READER:
        with Sandbox(CONFIG_CHECK) as sandbox:
            sandbox.read(source, {**USUAL, **options, "known": [*known_types()]}, name)
    inference: Graph | Parameters | None = None
    with Sandbox(reader, preload=reader == CONFIG_READER) as sandbox:
        found = graph_from_json(sandbox.read(source, USUAL | options, name))
        if isinstance(found, Graph) and found.has_backward and reader == CONFIG_READER:
            inference = graph_from_json(sandbox.read(source, USUAL | options | {"phase": "infer"}, name))
    if isinstance(found, Graph):
        picture = _titled(picture_of(found), name)
        if isinstance(inference, Graph):
            picture = replace(picture, peak_forward=picture_of(inference).peak_forward)
        return ModelFile(title, replace(picture, facts=(*picture.facts, ("sandbox_level", sandbox_level().level))))
    if found.guess is None:
        raise BadInput(
            f"{name[:80]}: {len(found.tensors):,} tensors whose names fit no architecture that is known",
            "weights of a usual architecture", "give the config.json or the graph that belongs to them",
        )  # fmt: skip
    guessed = _read(CONFIG_READER, dumps(dict(found.guess)).encode(), "config.json", options)
    said = (f"the architecture is a guess from names and shapes of parameters: {'; '.join(found.reasons[:4])}", *found.notes)
    return ModelFile(title, replace(_titled(guessed.picture, name), notes=(*said, *guessed.picture.notes)), found)


def _titled(picture: Picture, name: str) -> Picture:
    """Return a picture with the file's name where the file has no better one."""
    return picture if picture.title.strip() else replace(picture, title=name)


def _chosen(source: Path | bytes, name: str) -> tuple[Path | bytes, str, str]:
    """Return what is to be read, its name and its reader."""
    try:
        if isinstance(source, Path) and source.is_dir():
            return _chosen_of_folder(source, name)
        head = source[:HEAD_BYTES] if isinstance(source, bytes) else _head(source)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise BadInput(f"{name[:80]!r} ({why})", "a model file that can be read", "correct the path") from None
    reader = _reader_of(name, head)
    if reader is None:
        raise BadInput(f"{name[:80]!r}, in no format that is read", f"one of {', '.join(titles())}",
                       "export the model to one of them, or run ./tandem capture script.py:make_model")  # fmt: skip
    return source, name, reader


def _chosen_of_folder(folder: Path, name: str) -> tuple[Path, str, str]:
    found = _key_of(folder)
    if found is None:
        expected = f"a folder with a model's {', '.join(_KEY_FILES)} or *.safetensors"
        raise BadInput(f"the folder {name[:80]!r}", expected, "give the file of the model itself")
    key, reader = found
    return (folder / key, key, reader) if key == "config.json" else (folder, name, reader)


def _key_of(folder: Path) -> tuple[str, str] | None:
    """Return the file by which a folder is known as a model, and its reader; code may have a config.json that is none."""
    names = (*_KEY_FILES, *sorted(one.name for one in folder.glob("*.safetensors")))
    heads = ((name, _reader_of(name, _head(folder / name))) for name in names if (folder / name).is_file())
    return next(((name, reader) for name, reader in heads if reader is not None), None)


def _reader_of(name: str, head: bytes) -> str | None:
    """Return the reader of a file: one of its suffix whose content fits before one that fits by content alone."""
    fitting = [key for key, module in readers().items() if module.fits(name, head)]
    by_name = [key for key in fitting if name.lower().endswith(tuple(readers()[key].SUFFIXES or ("\0",)))]
    return (by_name or fitting or [None])[0]


def _head(path: Path) -> bytes:
    """Return the first bytes of a regular file; a pipe is not waited for."""
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    with os.fdopen(descriptor, "rb") as file:
        return file.read(HEAD_BYTES) or b""
