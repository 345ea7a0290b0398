"""Opens a `.pt2` file: a zip whose program is JSON. Weights are looked at by their sizes alone, and no pickle is opened."""

import lzma
import struct
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from core.errors import BadInput
from intake.readers.plain_json import read_json
from intake.source import Source

MOST_ENTRIES, MOST_PROGRAM, MOST_RATIO = 100_000, 160_000_000, 200
REMEDY = "export the model again with torch.export.save"


_BROKEN = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, NotImplementedError, EOFError, OSError, RuntimeError,
           OverflowError, ValueError)  # fmt: skip
"""What the standard library raises for a zip that is damaged."""


@dataclass(frozen=True, slots=True)
class Program:
    """What a file holds of use.

    Args:
        graph: of the program, as its JSON has it.
        signature: which inputs are parameters, buffers or given by the user.
        ranges: bounds of symbols.
        stored: by the name of a weight, the entry that holds it and that entry's bytes; empty where the layout does not say.
        version: of torch that wrote it; empty where the file does not say.
    """

    graph: Mapping[str, object]
    signature: Mapping[str, object]
    ranges: Mapping[str, object]
    stored: Mapping[str, tuple[str, int]]
    version: str


def opened(source: Source) -> Program:
    """Return the program of a file.

    Raises:
        BadInput: no zip, no program of torch.export, or larger than any program is.
    """
    try:
        with source.open() as file, zipfile.ZipFile(file) as archive:
            return _program(archive)
    except _BROKEN as error:
        raise BadInput(f"a file that is no readable zip ({str(error)[:80]})", "a .pt2 of torch.export.save", REMEDY) from None
    except zipfile.LargeZipFile:
        raise BadInput("a zip beyond its own limits", "a .pt2 of torch.export.save", REMEDY) from None


def _program(archive: zipfile.ZipFile) -> Program:
    entries = archive.infolist()
    if len(entries) > MOST_ENTRIES:
        raise BadInput(f"a zip of {len(entries)} entries", f"at most {MOST_ENTRIES}", REMEDY)
    programs = [one for one in entries if one.filename == "serialized_exported_program.json"
                or (one.filename.endswith(".json") and "/models/" in f"/{one.filename}")]
    if not programs:
        raise BadInput("a zip without the JSON of a program", "a .pt2 of torch.export.save", REMEDY)
    plain = read_json(_content(archive, programs[0]), "a program", REMEDY)
    values = _mapping(plain, "program")
    module = _mapping(values.get("graph_module"), "graph_module")
    signature = _mapping(module.get("signature"), "signature")
    ranges = values.get("range_constraints")
    version = values.get("torch_version")
    return Program(_mapping(module.get("graph"), "graph"), signature,
                   cast("Mapping[str, object]", ranges) if isinstance(ranges, Mapping) else {}, _stored(archive, entries),
                   str(version)[:40] if version else "")


def _content(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> bytes:
    most = min(MOST_PROGRAM, max(1_000_000, MOST_RATIO * max(1, entry.compress_size)))
    if entry.file_size > most:
        raise BadInput(f"a program of {entry.file_size} bytes", f"at most {most}", REMEDY)
    with archive.open(entry) as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise BadInput("a program that unpacks to more than it says", f"at most {most} bytes", REMEDY)
    return content


def _stored(archive: zipfile.ZipFile, entries: list[zipfile.ZipInfo]) -> dict[str, tuple[str, int]]:
    """Return where each weight lies, from the list that newer layouts have of them."""
    lists = [one for one in entries if one.filename.endswith("_weights_config.json")]
    if not lists:
        return {}
    sizes = {one.filename.rpartition("/")[2]: one.file_size for one in entries if "/weights/" in one.filename}
    listed = _mapping(read_json(_content(archive, lists[0]), "a list of weights", REMEDY), "list of weights").get("config")
    found: dict[str, tuple[str, int]] = {}
    for name, value in _mapping(listed, "list of weights").items():
        path = _mapping(value, "weight").get("path_name")
        if isinstance(path, str):
            found[str(name)] = (path, sizes.get(path, -1))
    return found


def _mapping(value: object, what: str) -> Mapping[str, object]:
    if not isinstance(value, Mapping):
        raise BadInput(f"a program whose {what} is no mapping", "a .pt2 of torch.export.save", REMEDY)
    return cast("Mapping[str, object]", value)
