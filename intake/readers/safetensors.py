"""Reads the header of safetensors files: names, shapes and dtypes; of one file, or of a folder of shards with its index.

The rules of the format are held in full (no gaps, no overlaps, offsets that agree with shapes), so that two readers of one file
never see two models. Weights are never read.
Source: README.md of huggingface/safetensors, "Format".
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import prod

from core.errors import BadInput
from core.graph import Parameters, Tensor
from core.graph_json import graph_to_json
from intake.readers.buffer_names import is_buffer_name
from intake.readers.guess import guessed
from intake.readers.plain_json import is_list, is_mapping, mapping, read_json, sequence
from intake.source import Source

TITLE = "safetensors"
SUFFIXES = (".safetensors", ".safetensors.index.json")
NEEDS: tuple[str, ...] = ()
MOST_HEADER, MOST_TENSORS, MOST_NAME, MOST_RANK = 100_000_000, 400_000, 300, 32
_REMEDY = "write the file again with safetensors"
_INDEX = ".safetensors.index.json"
_DTYPES: dict[str, tuple[str, int]] = {
    "F64": ("fp64", 64), "F32": ("fp32", 32), "F16": ("fp16", 16), "BF16": ("bf16", 16), "F8_E4M3": ("fp8", 8),
    "F8_E5M2": ("fp8", 8), "F8_E4M3FNUZ": ("fp8", 8), "F8_E5M2FNUZ": ("fp8", 8), "F8_E8M0": ("fp8", 8), "F6_E2M3": ("fp8", 6),
    "F6_E3M2": ("fp8", 6), "F4": ("fp4", 4), "I64": ("int64", 64), "I32": ("int32", 32), "I16": ("int16", 16),
    "I8": ("int8", 8), "I4": ("int4", 4), "U64": ("uint64", 64), "U32": ("uint32", 32), "U16": ("uint16", 16),
    "U8": ("uint8", 8), "U4": ("uint4", 4), "BOOL": ("bool", 8), "C64": ("complex64", 64),
}  # fmt: skip
"""Tandem's dtype and the bits of an element, by the format's name."""


@dataclass(frozen=True, slots=True)
class _Header:
    """One file's header."""

    tensors: tuple[Tensor, ...]
    metadata: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]


def fits(name: str, head: bytes) -> bool:
    """Whether a file is safetensors, by its name or by a header that begins after its length."""
    return name.lower().endswith(SUFFIXES) or (8 < int.from_bytes(head[:8], "little") <= MOST_HEADER and head[8:9] == b"{")


def read(source: Source, options: Mapping[str, object]) -> dict[str, object]:
    """Read a file or a folder.

    Args:
        source: one file, or a folder that holds shards, with their index and a `config.json` where there are.
        options: none are used.

    Raises:
        BadInput: no safetensors, or one that breaks the format's rules.
    """
    del options
    if source.names():
        return graph_to_json(_folder(source))
    if source.name.lower().endswith(".json"):
        raise BadInput(f"{source.name:.80}, an index without its shards", "the folder that holds the shards beside it",
                       "hand in the folder, or one shard")  # fmt: skip
    header = read_header(source, "")
    return graph_to_json(_told(source.name, header.tensors, header.metadata, header.notes, {}))


def _told(title: str, tensors: tuple[Tensor, ...], metadata: tuple[tuple[str, str], ...], notes: Iterable[str],
          told: Mapping[str, object]) -> Parameters:  # fmt: skip
    if not tensors:
        raise BadInput(f"{title:.80} without tensors", "weights of a model", "hand in the file that holds them")
    guess = guessed(tensors, told)
    return Parameters("safetensors", title, tensors, metadata, guess.config, guess.reasons, (*notes, *guess.notes))


def _folder(source: Source) -> Parameters:
    names = source.names()
    shards = _shards(source, names)
    tensors: list[Tensor] = []
    metadata: dict[str, str] = {}
    notes: list[str] = []
    seen: set[str] = set()
    for shard in shards:
        folder = shard.rpartition("/")[0]
        header = read_header(source, shard)
        for tensor in header.tensors:
            name = f"{folder.replace('/', '.')}.{tensor.name}" if folder else tensor.name
            if name in seen or len(tensors) >= MOST_TENSORS:
                raise BadInput(
                    f"{shard:.80} with {name:.80}, which another shard has too", "each tensor once", "hand in one model's shards"
                )
            seen.add(name)
            tensors.append(Tensor(name[:MOST_NAME], tensor.shape, tensor.dtype, tensor.role, len(tensors)))
        metadata |= dict(header.metadata)
        notes += header.notes
    config = next((one for one in ("config.json", "adapter_config.json") if one in names), None)
    told: Mapping[str, object] = {}
    if config is not None:
        with source.open(config) as stream:
            found = read_json(stream.read(2**24), config, "hand in the config.json that belongs to the model")
        told = mapping(found)
    return _told(source.name, tuple(tensors), tuple(sorted(metadata.items())), notes, told)


def _shards(source: Source, names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the files that make up the model: those that an index names, or all."""
    indices = [one for one in names if one.endswith(_INDEX)]
    whole = [one for one in names if one.endswith(".safetensors")]
    chosen: dict[str, None] = {}
    for index in indices:
        folder = index.rpartition("/")[0]
        with source.open(index) as stream:
            found = read_json(stream.read(2**28), index, _REMEDY)
        listed = mapping(found).get("weight_map") if is_mapping(found) else None
        if not is_mapping(listed):
            raise BadInput(f"{index:.80} without weight_map", "names of tensors and their shards", _REMEDY)
        for shard in mapping(listed).values():
            path = f"{folder}/{shard}" if folder else str(shard)
            if path not in whole:
                raise BadInput(
                    f"{index:.60}, which names the shard {shard!s:.60}", "all shards in the folder", "add the missing shard"
                )
            chosen[path] = None
    indexed = {index.rpartition("/")[0] for index in indices}
    for one in whole:
        folder = one.rpartition("/")[0]
        if folder not in indexed and not any(other.rpartition("/")[0] == folder and _variant(other, one) for other in whole):
            chosen[one] = None
    if not chosen:
        raise BadInput("a folder without .safetensors files", "a model's weights", "hand in the folder that holds them")
    return tuple(sorted(chosen))


def _variant(plain: str, other: str) -> bool:
    """Whether a file holds the same weights as another in a smaller dtype (`model.fp16.safetensors`), so that one counts."""
    return other != plain and other.removesuffix(".safetensors").rpartition(".")[0] == plain.removesuffix(".safetensors")


def read_header(source: Source, name: str) -> _Header:
    """Return the header of one file.

    Args:
        source: that holds it.
        name: of a file of a folder; empty for a file by itself.

    Raises:
        BadInput: a header that breaks the format's rules, or data that is not all there.
    """
    shown = name or source.name
    with source.open(name) as stream:
        size = stream.seek(0, 2)
        stream.seek(0)
        length = int.from_bytes(stream.read(8), "little")
        if size < 8 or length > min(MOST_HEADER, size - 8):
            raise BadInput(f"{shown:.80} of {size} bytes, whose header claims {length}",
                f"a header that is there, of at most {MOST_HEADER} bytes",
                           _REMEDY)  # fmt: skip
        text = stream.read(length)
    found = read_json(text, f"the header of {shown:.80}", _REMEDY)
    if not is_mapping(found) or not text.startswith(b"{") or len(mapping(found)) > MOST_TENSORS:
        raise BadInput(
            f"{shown:.80} with a header that is no list of tensors", f"at most {MOST_TENSORS} tensors by name", _REMEDY
        )
    entries = dict(mapping(found))
    kept = entries.pop("__metadata__", {})
    metadata = tuple((str(key)[:100], str(value)[:400]) for key, value in mapping(kept).items()) if is_mapping(kept) else ()
    spans: list[tuple[int, int]] = []
    tensors = tuple(_tensor(key, value, at, spans) for at, (key, value) in enumerate(entries.items()))
    notes = _covered(shown, spans, size - 8 - length)
    return _Header(tensors, metadata[:1000], notes)


def _tensor(name: str, entry: object, at: int, spans: list[tuple[int, int]]) -> Tensor:
    held = mapping(entry)
    kind, shape, span = held.get("dtype"), held.get("shape"), held.get("data_offsets")
    if not isinstance(kind, str) or kind not in _DTYPES:
        raise BadInput(f"tensor {name:.80} of dtype {kind!r:.40}", f"one of {', '.join(_DTYPES)}", _REMEDY)
    extents, offsets = _wholes(shape), _wholes(span)
    if extents is None or len(extents) > MOST_RANK or offsets is None or len(offsets) != 2 or len(name) > 4096:
        raise BadInput(
            f"tensor {name:.80} of shape {shape!r:.60} at {span!r:.60}", "whole numbers that are not negative", _REMEDY
        )
    dtype, bits = _DTYPES[kind]
    total = prod(extents)
    if total >= 2**62 or total * bits % 8 or offsets[1] - offsets[0] != total * bits // 8:
        raise BadInput(f"tensor {name:.60} of shape {list(extents)!r:.80} and {kind} in {offsets[1] - offsets[0]} bytes",
                       f"{total * bits / 8:.0f} bytes", _REMEDY)  # fmt: skip
    spans.append((offsets[0], offsets[1]))
    role = "constant" if dtype in ("bool", "int64") or is_buffer_name(name) else "parameter"
    return Tensor(name[:MOST_NAME], extents, dtype, role, at)


def _wholes(value: object) -> tuple[int, ...] | None:
    if not is_list(value):
        return None
    items = sequence(value)
    kept = tuple(one for one in items if isinstance(one, int) and not isinstance(one, bool) and 0 <= one < 2**63)
    return kept if len(kept) == len(items) else None


def _covered(shown: str, spans: list[tuple[int, int]], size: int) -> tuple[str, ...]:
    """Hold the format's rule that tensors cover the data without gaps or overlaps.

    Raises:
        BadInput: they do not, or the data is not as long as they say. A header alone, without any data, is told in a note.
    """
    end = 0
    for begin, after in sorted(spans):
        if begin != end:
            raise BadInput(f"{shown:.80} with {'a gap' if begin > end else 'an overlap'} at byte {min(begin, end)} of its data",
                           "tensors one behind the other", _REMEDY)  # fmt: skip
        end = after
    if size == 0 and end:
        return ("a header alone: the data is not in the file",)
    if end != size:
        raise BadInput(
            f"{shown:.80} with {size} bytes of data, whose tensors claim {end}",
            "all of it, and nothing more",
            "load the file again in full",
        )
    return ()
