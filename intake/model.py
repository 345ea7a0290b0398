"""The `model` section of a document: a preset, a Hugging Face configuration, a parameter count, or blocks one by one."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count as counting
from pathlib import Path
from typing import cast

from catalog import preset
from core.codec import parse_json
from core.format import count
from core.picture import Picture
from core.sketch import Windows
from core.workload import Block, Size
from intake.families import Family, families
from intake.fields import Section
from intake.files import read_config_values, read_model_file
from intake.hugging_face import MODEL_TYPES, kept_config, read_config
from intake.layers import layer_kinds, make_block
from intake.picture.packed import packed
from intake.sizes import Sizes, read_sizes
from intake.typical import HIGH, LOW, typical_decoder
from intake.wording import fault, unknown

SOURCES = ("preset", "config", "file", "params", "blocks", "picture")
_CONFIG_BYTES = 1024 * 1024
_SCALED = ("heads", "kv_heads", "hidden")


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How model files of a document are read.

    Args:
        values: for the reader: `dtype`, `batch`, `length` as the document has them.
        weak_sandbox: whether an administrator accepts a sandbox below the minimum.
    """

    values: Mapping[str, str | int]
    weak_sandbox: bool = False


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """A model that was named, its sizes checked, not yet built.

    Args:
        title: for people, and the name of the workload when it has none.
        family: what builds it.
        config: its sizes.
        defaults: by task, what a document holds when it says nothing; empty unless a preset was named.
        image: pixels of each side that a configuration names; None when it names none.
        assumptions: what was filled in, one short phrase each.
        source: where the sizes come from.
        windows: how far attention looks back.
    """

    title: str
    family: Family
    config: Sizes
    defaults: Mapping[str, Mapping[str, Size]]
    image: int | None
    assumptions: tuple[str, ...]
    source: str
    windows: Windows = ()


def model_source(model: Mapping[str, object]) -> str:
    """Return which of `SOURCES` a model section uses.

    Raises:
        BadInput: none, or more than one.
    """
    used = [key for key in SOURCES if model.get(key) is not None]
    if len(used) == 1:
        return used[0]
    if not used:
        keys = [key for key, item in model.items() if item is not None]
        if keys and not {"layers", "width"} & set(keys):
            raise unknown("model", "key", keys[0], SOURCES)
        raise fault("model", dict(model), f"one of {', '.join(SOURCES)}", "write for example model: {preset: gpt2-small}")
    raise fault("model", " and ".join(used), f"only one of {', '.join(SOURCES)}", f"keep {used[0]} or {used[1]}")


def read_model(value: object, folder: Path | None) -> ModelChoice:
    """Read a model section that names a family: all but `blocks`, `picture` and what becomes one.

    Args:
        value: what stands at `model`.
        folder: where a path to a configuration starts; None when paths are not allowed (pasted text).

    Raises:
        BadInput: anything that cannot be used; one line that names it.
    """
    model = cast("Mapping[str, object]", value)
    source = model_source(model)
    overrides = {key: item for key, item in model.items() if key != source and item is not None}
    if source == "preset":
        return _from_preset(model["preset"], overrides)
    if source == "params":
        return _from_parameters(model["params"], overrides)
    if source == "config":
        return _from_config(config_mapping(model["config"], folder), overrides)
    raise fault(f"model.{source}", model[source], "a model that was read", "give the workload as a file")


def config_mapping(value: object, folder: Path | None) -> Mapping[str, object]:
    """Return what `model.config` holds: the mapping itself, or the JSON file that it names.

    Raises:
        BadInput: a path in pasted text, or a file that cannot be read as a JSON mapping.
    """
    if isinstance(value, Mapping):
        return cast("Mapping[str, object]", value)
    if not isinstance(value, str):
        raise fault("model.config", value, "the path of a config.json or the mapping that it holds")
    if folder is None:
        raise fault("model.config", value, "the content of the config.json in a pasted text",
                    "paste it as a mapping, or give the workload as a file")
    path = folder / value
    try:
        if not path.is_file():
            raise fault("model.config", f"{value} (no regular file)", "a config.json that can be read", "correct the path")
        if path.stat().st_size > _CONFIG_BYTES:
            raise fault("model.config", value, "a file of at most 1 MiB", "give the config.json of the model")
        plain = parse_json(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else "not UTF-8 text"
        raise fault("model.config", f"{value} ({reason})", "a config.json that can be read", "correct the path") from None
    if not isinstance(plain, dict):
        raise fault("model.config", value, "a file that holds one JSON mapping", "give the config.json of the model")
    return cast("dict[str, object]", plain)


def self_contained(model: Mapping[str, object], folder: Path | None, options: ReadOptions) -> dict[str, object]:
    """Return the model section with a configuration, or a picture, in place of a path: it can be read again anywhere then.

    Args:
        model: the section.
        folder: where paths start; None where they are not allowed (pasted text).
        options: how model files are read.

    Raises:
        BadInput: a file that cannot be used, or a configuration of a model that nobody knows.
    """
    kept = {key: value for key, value in model.items() if value is not None}
    source = model_source(kept)
    if source == "file":
        read = read_model_file(_place(kept["file"], folder), options=options.values, weak_sandbox=options.weak_sandbox)
        return _with_picture(kept, source, read.picture)
    if source == "config":
        values = config_mapping(kept["config"], folder)
        if values.get("model_type") in MODEL_TYPES or not isinstance(values.get("model_type"), str):
            return kept | {"config": kept_config(values)}
        return _with_picture(kept, source, read_config_values(values, options.values, weak_sandbox=options.weak_sandbox))
    return kept


def _with_picture(model: Mapping[str, object], source: str, picture: Picture) -> dict[str, object]:
    if others := [key for key in model if key != source]:
        raise fault(f"model.{others[0]}", model[others[0]], "nothing beside a model that is read as it is", f"remove {others[0]}")
    return {"picture": packed(picture)}


def _place(value: object, folder: Path | None) -> Path:
    if not isinstance(value, str):
        raise fault("model.file", value, "the path of a model file", "write model: {file: PATH}")
    if folder is None:
        raise fault("model.file", value, "a workload file, since a pasted text has no folder", "upload the model file itself")
    return folder / value


def read_blocks(value: object, batch: int, length: int | None, dtype: str) -> tuple[Block, ...]:
    """Build blocks that are listed one by one; `batch` and `length` of the document serve those that give none.

    Args:
        value: the list at `model.blocks`.
        batch, length: of the document.
        dtype: compute dtype.

    Raises:
        BadInput: not a list of mappings, an unknown kind, or sizes that cannot be used.
    """
    section = Section("model", value, ("blocks",))
    entries = section.items("blocks", "a list of blocks such as [{kind: lstm_layer, repeats: 2, inputs: 650, hidden: 650}]")
    if not entries:
        raise fault(
            "model.blocks", list(entries), "at least one block", "add one such as {kind: lstm_layer, inputs: 8, hidden: 8}"
        )
    names: set[str] = set()
    return tuple(_listed_block(f"model.blocks[{i}]", entry, batch, length, dtype, names) for i, entry in enumerate(entries))


def _listed_block(path: str, entry: object, batch: int, length: int | None, dtype: str, names: set[str]) -> Block:
    if not isinstance(entry, Mapping):
        raise fault(path, entry, "a mapping with kind, repeats and sizes")
    plain = {key: value for key, value in cast("Mapping[str, object]", entry).items() if value is not None}
    kind, repeats, name = plain.pop("kind", None), plain.pop("repeats", 1), plain.pop("name", None)
    if not isinstance(kind, str):
        raise fault(f"{path}.kind", kind, f"one of {', '.join(layer_kinds())}", "add kind: ...")
    if kind not in layer_kinds():
        raise unknown(path, "kind", kind, layer_kinds())
    if name is not None and (not isinstance(name, str) or not name.strip() or len(name) > 60 or not name.isprintable()):
        raise fault(f"{path}.name", name, "one line of 1 to 60 characters")
    free = (f"{kind} {number}" for number in counting(len(names) + 1) if f"{kind} {number}" not in names)
    label = str(name) if name is not None else next(free)
    if label in names:
        raise fault(f"{path}.name", label, "a name that no other block has", "rename it")
    names.add(label)
    specs = {spec.name for spec in layer_kinds()[kind].sizes}
    plain.setdefault("batch", batch)
    if "length" in specs and length is not None:
        plain.setdefault("length", length)
    return make_block(kind, label, plain, cast("int", repeats), dtype)


def _from_preset(name: object, overrides: Mapping[str, object]) -> ModelChoice:
    if not isinstance(name, str):
        raise fault("model.preset", name, "the name of a preset such as gpt2-small")
    known = preset(name)
    config, notes = _overridden(known.family, known.config, overrides)
    title = known.title if not overrides else f"{known.title}, changed"
    return ModelChoice(title, families()[known.family], config, known.tasks, None, notes, f"preset {name}: {known.source}")


def _from_parameters(value: object, overrides: Mapping[str, object]) -> ModelChoice:
    number = Section("model", {"params": value}, ("params",)).number("params", LOW, HIGH) or LOW
    config, notes = _overridden("decoder", typical_decoder(number), overrides)
    said = f"a typical decoder is assumed: {config.whole('layers')} layers of width {config.whole('width')}, vocabulary "
    said += f"{config.whole('vocabulary'):,}"
    return ModelChoice(f"Decoder of {count(number)} parameters", families()["decoder"], config, {}, None, (said, *notes),
                       "params: a typical decoder")


def _from_config(values: Mapping[str, object], overrides: Mapping[str, object]) -> ModelChoice:
    read = read_config(values)
    config, notes = _overridden(read.family, read.config, overrides)
    return ModelChoice(f"{values['model_type']} from a config.json", families()[read.family], config, {}, read.image,
                       (*read.assumptions, *notes), "config.json", read.windows)


def _overridden(family: str, base: Mapping[str, Size], overrides: Mapping[str, object]) -> tuple[Sizes, tuple[str, ...]]:
    """Return the base with overrides; where the width is changed alone, heads and MLP keep their proportion to it."""
    specs = families()[family].specs
    given: dict[str, object] = {**base, **overrides}
    notes: tuple[str, ...] = ()
    if (
        families()[family].scales
        and "width" in overrides
        and isinstance(overrides["width"], int)
        and overrides["width"] != base["width"]
    ):
        followed = _scaled(base, overrides["width"], {key for key in _SCALED if key not in overrides})
        given |= followed
        if followed:
            notes = (f"{', '.join(f'{key} {value}' for key, value in followed.items())}, in proportion to the new width",)
    return read_sizes("model", specs, given), notes


def _scaled(base: Mapping[str, Size], width: int, keys: set[str]) -> dict[str, int]:
    before = cast("int", base["width"])
    ratio = width / before
    followed = {key: max(1, round(cast("int", base[key]) * ratio)) for key in _SCALED if key in base and key in keys}
    heads = followed.get("heads")
    kv_heads = followed.get("kv_heads")
    if heads is not None and kv_heads is not None:
        while heads % kv_heads:
            kv_heads -= 1
        followed["kv_heads"] = kv_heads
    return followed
