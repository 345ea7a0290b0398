"""What a Hugging Face `config.json` may hold, found out with the standard library alone.

A configuration that nobody could trace is refused here, within the sandbox and before torch and transformers are loaded, which
takes many seconds. It names no families and no defaults: what is missing is filled, or missed, by transformers itself.
"""

import difflib
import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

from core.errors import BadInput
from intake.readers.plain_json import is_list, is_mapping, mapping, read_json, sequence
from intake.source import Source

MOST_BYTES = 4_000_000
MOST_LAYERS, MOST_ITEMS, MOST_DEPTH, MOST_NUMBER = 2_000, 20_000, 12, 10**9
MOST_PARAMETERS = 10**14
DTYPES = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16", "fp64": "float64", "tf32": "float32",
          "fp8": "bfloat16", "int8": "bfloat16", "int4": "bfloat16", "fp4": "bfloat16"}  # fmt: skip
"""What a model is traced in, by the compute dtype: torch traces no model in narrow ones, and shapes are the same."""
PHASES = ("train", "infer", "decode")
LEFT_OUT = {
    "auto_map": "code of its own (auto_map) is not run: transformers' own class is taken",
    "trust_remote_code": "", "custom_pipelines": "code of its own (custom_pipelines) is not run", "_name_or_path": "",
    "quantization_config": "quantisation of the checkpoint is not counted: weights have the dtype of the computation",
    "_attn_implementation": "", "attn_implementation": "", "_attn_implementation_internal": "", "experts_implementation": "",
    "_experts_implementation": "", "_experts_implementation_internal": "", "compression_config": "", "transformers_version": "",
    "use_pretrained_backbone": "", "backbone_kwargs": "",
}  # fmt: skip
"""Keys that transformers may not see, and what is said of each."""
_COUNTS = re.compile(r"(layers?|depths?|blocks|stages|n_layer)$")
_WIDTHS = ("hidden_size", "n_embd", "d_model", "dim", "hidden_dim")
_HIDDEN = ("intermediate_size", "n_inner", "d_ff", "ffn_dim", "encoder_ffn_dim")
_LAYERS = ("num_hidden_layers", "n_layer", "num_layers", "n_layers", "encoder_layers")
_ABOVE_0 = (*_WIDTHS, "vocab_size", "num_attention_heads", "n_head", "num_heads", "num_key_value_heads", "patch_size",
            "num_channels")  # fmt: skip
"""Keys that hold a whole number above 0, or a list of such, in every family that has them; counts of layers may be 0."""
_EXPECTED = "a Hugging Face config.json with its model_type"
_WHOLE_FILE = "give the whole file that belongs to the model"


def read(source: Source, options: Mapping[str, object]) -> dict[str, object]:
    """Refuse what cannot be read, and return nothing otherwise.

    Args:
        source: the file.
        options: as for the reader of configurations; `known`, texts of which a model_type that exists is one, where there are.

    Raises:
        BadInput: it is no configuration, or one that no model has.
    """
    asked_phase(options)
    asked_dtype(options)
    values, _ = checked_config(values_of(source))
    known = sequence(options.get("known"))
    if known and values["model_type"] not in known:
        raise unknown_type(str(values["model_type"]), [str(one) for one in known])
    return {}


def values_of(source: Source) -> object:
    """Return what the file holds.

    Raises:
        BadInput: it is too large, or no JSON.
    """
    with source.open() as file:
        text = file.read(MOST_BYTES + 1)
    if len(text) > MOST_BYTES:
        raise BadInput(
            f"a config.json of over {MOST_BYTES} bytes", "a configuration alone", "give the file that belongs to the model"
        )
    return read_json(text, f"the file {source.name[:60]!r}", "give a Hugging Face config.json")


def asked_phase(options: Mapping[str, object]) -> str:
    """Return the phase that is asked for.

    Raises:
        BadInput: no such phase.
    """
    phase = options.get("phase", "train")
    if phase not in PHASES:
        raise BadInput(f"phase {phase!r:.40}", "train, infer or decode", "choose one of them")
    return str(phase)


def asked_dtype(options: Mapping[str, object]) -> str | None:
    """Return torch's name of the dtype to trace in; None for that of the file.

    Raises:
        BadInput: no such dtype.
    """
    dtype = options.get("dtype")
    if dtype is None:
        return None
    if dtype not in DTYPES:
        raise BadInput(f"dtype {dtype!r:.40}", ", ".join(DTYPES), "choose one of them")
    return DTYPES[str(dtype)]


def checked_config(values: object) -> tuple[dict[str, Any], list[str]]:
    """Return the keys of a configuration that transformers may see, and notes on those that it may not.

    Args:
        values: what the JSON file holds.

    Raises:
        BadInput: no mapping, no `model_type`, or sizes that no model has.
    """
    if not isinstance(values, Mapping):
        raise _fault(f"a JSON {type(values).__name__}")
    kept = {str(key): value for key, value in cast("Mapping[object, object]", values).items()}
    if not isinstance(kept.get("model_type"), str):
        raise _fault(f"a config whose model_type is {kept.get('model_type')!r:.60}")
    _bounded(kept, "", 0)
    _sized(kept)
    notes = [note for key, note in LEFT_OUT.items() if note and kept.get(key)]
    return cast("dict[str, Any]", _without(kept)), notes


def unknown_type(kind: str, known: Sequence[str]) -> BadInput:
    """Return the error for a model_type that transformers does not contain, with the nearest that it does."""
    near = difflib.get_close_matches(kind, known, 4, 0.5)
    told = f"one that transformers contains{', such as ' + ', '.join(near) if near else ''}"
    return BadInput(f"model_type {kind[:60]!r}", told, "export the model with torch.export or to ONNX, or run ./tandem capture")


def _fault(got: str) -> BadInput:
    return BadInput(got, _EXPECTED, _WHOLE_FILE)


def _without(value: object) -> object:
    if isinstance(value, Mapping):
        return {key: _without(one) for key, one in cast("Mapping[str, object]", value).items() if key not in LEFT_OUT}
    return value


def _bounded(value: object, key: str, depth: int) -> None:
    if depth > MOST_DEPTH:
        raise _fault(f"a config that nests deeper than {MOST_DEPTH}")
    if is_mapping(value) or is_list(value):
        inner = list(mapping(value).items()) if is_mapping(value) else [(key, one) for one in sequence(value)]
        if len(inner) > MOST_ITEMS:
            raise _fault(f"{key[:40]!r} of {len(inner)} entries")
        for name, one in inner:
            _bounded(one, str(name), depth + 1)
    elif isinstance(value, int) and not isinstance(value, bool):
        most = MOST_LAYERS if _COUNTS.search(key) else 10**6 if key == "num_labels" or "expert" in key else MOST_NUMBER
        free = any(part in key for part in ("token", "seed", "max", "length"))
        if abs(value) > (2**62 if free else most):
            raise BadInput(f"{key[:40]} {_short(value)}", f"at most {most}", "check the sizes in config.json")
    elif isinstance(value, str) and len(value) > 100_000:
        raise _fault(f"{key[:40]!r} of {len(value)} characters")


def _short(value: int) -> str:
    """Return a whole number of any length as a few characters."""
    return f"{value}" if abs(value) < 10**15 else f"of {value.bit_length()} bits"


def _sized(values: Mapping[str, object], path: str = "") -> None:
    """Refuse sizes that are no whole numbers above 0, and such that no memory holds; parts of a model each by itself."""
    for keys, least in ((_ABOVE_0, 1), ((*_HIDDEN, *_LAYERS, "head_dim"), 0)):
        for key in keys:
            _whole(f"{path}{key}", values.get(key), least)
    width, hidden, layers = (_first(values, keys) for keys in (_WIDTHS, _HIDDEN, _LAYERS))
    vocabulary = _first(values, ("vocab_size",))
    if width * max(vocabulary, layers * max(width, hidden)) > MOST_PARAMETERS:
        sizes = {"width": width, "vocabulary": vocabulary, "hidden": hidden, "layers": layers}
        told = ", ".join(f"{name} {size}" for name, size in sizes.items() if size > 1)
        got = f"{path}{told}: over {MOST_PARAMETERS:.0e} parameters"
        raise BadInput(got, "sizes of a model", "check the sizes in config.json")
    for key, value in values.items():
        if is_mapping(value) and key.endswith(("_config", "config")):
            _sized(mapping(value), f"{path}{key[:40]}.")


def _whole(path: str, value: object, least: int) -> None:
    if value is None or is_mapping(value):
        return
    if is_list(value):
        for one in sequence(value):
            _whole(path, one, least)
    elif not isinstance(value, int) or isinstance(value, bool) or value < least:
        remedy = "give the config.json as it was saved with the model"
        raise BadInput(f"{path} {value!r:.60}", f"a whole number from {least}", remedy)


def _first(values: Mapping[str, object], keys: Sequence[str]) -> int:
    """Return the first of some sizes that is there; 1 where none is."""
    return next((value for key in keys if isinstance(value := values.get(key), int)), 1)
