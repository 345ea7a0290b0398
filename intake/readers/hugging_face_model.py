"""From a Hugging Face `config.json` to a model of transformers' own on torch's meta device, without weights.

Only classes that transformers itself contains are made. What a config names beside them (`auto_map`, other people's code, a
quantisation of the checkpoint) is left out and listed.
"""

# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false, reportUntypedBaseClass=false
# torch has no types here: it is imported inside functions, and its objects are Any.

import copy
import difflib
import re
from collections.abc import Mapping
from typing import Any, cast

from core.errors import BadInput

MOST_LAYERS, MOST_ITEMS, MOST_DEPTH, MOST_NUMBER = 2_000, 20_000, 12, 10**9
_LEFT_OUT = {
    "auto_map": "code of its own (auto_map) is not run: transformers' own class is taken",
    "trust_remote_code": "", "custom_pipelines": "code of its own (custom_pipelines) is not run", "_name_or_path": "",
    "quantization_config": "quantisation of the checkpoint is not counted: weights have the dtype of the computation",
    "_attn_implementation": "", "attn_implementation": "", "_attn_implementation_internal": "", "experts_implementation": "",
    "_experts_implementation": "", "_experts_implementation_internal": "", "compression_config": "", "transformers_version": "",
    "use_pretrained_backbone": "", "backbone_kwargs": "",
}  # fmt: skip
_HEADS = (
    "FOR_SPEECH_SEQ_2_SEQ", "FOR_SEQ_TO_SEQ_CAUSAL_LM", "FOR_IMAGE_TEXT_TO_TEXT", "FOR_MASKED_LM", "FOR_CAUSAL_LM", "FOR_CTC",
    "FOR_ZERO_SHOT_IMAGE_CLASSIFICATION", "FOR_OBJECT_DETECTION", "FOR_IMAGE_CLASSIFICATION", "FOR_AUDIO_CLASSIFICATION",
    "FOR_VIDEO_CLASSIFICATION", "FOR_UNIVERSAL_SEGMENTATION", "FOR_SEMANTIC_SEGMENTATION", "FOR_DEPTH_ESTIMATION",
    "FOR_MULTIMODAL_LM", "FOR_PRETRAINING", "FOR_SEQUENCE_CLASSIFICATION", "",
)  # fmt: skip
"""Kinds of heads in the order in which one is chosen for a config that names no class."""
_COUNTS = re.compile(r"(layers?|depths?|blocks|stages|n_layer)$")


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
    notes = [note for key, note in _LEFT_OUT.items() if note and kept.get(key)]
    return cast("dict[str, Any]", _without(kept)), notes


def _fault(got: str) -> BadInput:
    return BadInput(got, "a Hugging Face config.json with its model_type", "give the whole file that belongs to the model")


def _without(value: object) -> object:
    if isinstance(value, Mapping):
        return {key: _without(one) for key, one in cast("Mapping[str, object]", value).items() if key not in _LEFT_OUT}
    return value


def _bounded(value: object, key: str, depth: int) -> None:
    if depth > MOST_DEPTH:
        raise _fault(f"a config that nests deeper than {MOST_DEPTH}")
    if isinstance(value, Mapping | list):
        inner = cast(
            "list[tuple[object, object]]", list(value.items()) if isinstance(value, Mapping) else [(key, v) for v in value]
        )
        if len(inner) > MOST_ITEMS:
            raise _fault(f"{key[:40]!r} of {len(inner)} entries")
        for name, one in inner:
            _bounded(one, str(name), depth + 1)
    elif isinstance(value, int) and not isinstance(value, bool):
        most = MOST_LAYERS if _COUNTS.search(key) else 10**6 if key == "num_labels" or "expert" in key else MOST_NUMBER
        free = any(part in key for part in ("token", "seed", "max", "length"))
        if abs(value) > (2**62 if free else most):
            raise BadInput(f"{key[:40]} {value:.3g}", f"at most {most}", "check the sizes in config.json")
    elif isinstance(value, str) and len(value) > 100_000:
        raise _fault(f"{key[:40]!r} of {len(value)} characters")


def model_of(values: object, dtype: str | None) -> tuple[Any, list[str]]:
    """Return the model that a configuration describes, on the meta device, and notes.

    Args:
        values: what the JSON file holds.
        dtype: torch's name of the dtype of the weights; None for that of the file, else float32.

    Raises:
        BadInput: transformers does not contain it, or its sizes do not fit together.
    """
    import torch
    import transformers
    from transformers.utils.output_capturing import maybe_install_capturing_hooks

    transformers.logging.set_verbosity_error()
    kept, notes = checked_config(values)
    kind = kept.pop("model_type")
    found = _config_class(kind)
    named = [name for name in kept.get("architectures") or () if isinstance(name, str)]
    kept = _own_backbone(kept, kind, notes)
    try:
        config = found.from_dict(kept)
        made_class = _model_class(config, kind, named, notes)
        kept_dtype: Any = getattr(torch, dtype or str(config.dtype or "float32").removeprefix("torch."), None)
        if not isinstance(kept_dtype, torch.dtype) or not kept_dtype.is_floating_point:
            kept_dtype = torch.float32
        config.use_cache = False
        if getattr(config, "is_encoder_decoder", False) and getattr(config, "decoder_start_token_id", None) is None:
            config.decoder_start_token_id = getattr(config, "pad_token_id", None) or 0
        if hasattr(config, "apply_spec_augment"):
            config.apply_spec_augment = False  # masks of random places, on the host
        with torch.device("meta"):
            module = _made(made_class, config, kept_dtype)
        maybe_install_capturing_hooks(module)  # at the first call otherwise, when layers may be left out
    except (BadInput, MemoryError):
        raise
    except Exception as error:  # noqa: BLE001 - a library's validation of somebody's file raises whatever it likes
        reason = " ".join(str(error).split())[:160]
        raise BadInput(
            f"a config of {kind} that transformers refuses ({type(error).__name__}: {reason})",
            "sizes that fit together",
            "give the whole config.json, as it was saved with the model",
        ) from None
    return module, notes


def _own_backbone(kept: dict[str, Any], kind: str, notes: list[str]) -> dict[str, Any]:
    """Return the keys with a ResNet of transformers' own where another library's (timm) would be asked for."""
    inner = kept.get("backbone_config")
    named = str(kept.get("backbone") or (inner.get("backbone") if isinstance(inner, Mapping) else "") or "")
    foreign = isinstance(inner, Mapping) and inner.get("model_type") == "timm_backbone"
    by_default = inner is None and kind in ("detr", "conditional_detr", "deformable_detr", "table-transformer")
    if not (kept.get("use_timm_backbone") or foreign or by_default):
        return kept
    depth = next((one for one in (18, 34, 50, 101, 152) if named.startswith(f"resnet{one}")), 50)
    depths, layer = {18: ([2, 2, 2, 2], "basic"), 34: ([3, 4, 6, 3], "basic"), 101: ([3, 4, 23, 3], "bottleneck"),
                     152: ([3, 8, 36, 3], "bottleneck")}.get(depth, ([3, 4, 6, 3], "bottleneck"))  # fmt: skip
    widths = [64, 128, 256, 512] if layer == "basic" else [256, 512, 1024, 2048]
    stages = ["stage2", "stage3", "stage4"] if kind == "deformable_detr" else ["stage4"]
    notes.append(f"the backbone is another library's (timm): transformers' own ResNet of {depth} layers stands in its place")
    own = {"model_type": "resnet", "depths": depths, "layer_type": layer, "hidden_sizes": widths, "out_features": stages}
    return {**kept, "use_timm_backbone": False, "backbone": None, "backbone_config": own}


def _made(made_class: Any, config: Any, dtype: Any) -> Any:
    """Build the model: attention fused and experts as grouped products, where the class has them so."""
    refused: ValueError | None = None
    for attention in ("sdpa", "eager"):
        for experts in ({"experts_implementation": "grouped_mm"}, {}):
            try:
                return made_class._from_config(copy.deepcopy(config), dtype=dtype, attn_implementation=attention, **experts)  # noqa: SLF001
            except ValueError as error:
                refused = error
    assert refused is not None
    raise refused


def _config_class(kind: str) -> Any:
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING, CONFIG_MAPPING_NAMES  # pyright: ignore[reportPrivateImportUsage]

    if kind not in CONFIG_MAPPING_NAMES:
        near = difflib.get_close_matches(kind, list(CONFIG_MAPPING_NAMES), 4, 0.5)
        known = f"one that transformers contains{', such as ' + ', '.join(near) if near else ''}"
        raise BadInput(
            f"model_type {kind[:60]!r}", known, "export the model with torch.export or to ONNX, or run ./tandem capture"
        )
    return CONFIG_MAPPING[kind]


def _model_class(config: Any, kind: str, named: list[str], notes: list[str]) -> Any:
    import transformers
    from transformers.models.auto import modeling_auto

    for name in named:
        found = getattr(transformers, name, None) if re.fullmatch(r"[A-Za-z0-9_]{1,100}", name) else None
        if (
            isinstance(found, type)
            and issubclass(found, transformers.PreTrainedModel)
            and found.config_class is not None
            and isinstance(config, found.config_class)
        ):
            return found
    if named:
        notes.append(f"{named[0][:60]} is not transformers' own class for it")
    for head in ("FOR_CAUSAL_LM", *_HEADS) if getattr(config, "is_decoder", False) else _HEADS:
        names = getattr(modeling_auto, f"MODEL_{head}_MAPPING_NAMES" if head else "MODEL_MAPPING_NAMES", {}).get(kind)
        name = names[0] if isinstance(names, tuple | list) else names
        found = getattr(transformers, name, None) if name else None
        if isinstance(found, type) and issubclass(found, transformers.PreTrainedModel):
            notes.append(f"the config names no class that is usable: {name} is assumed")
            return found
    raise BadInput(f"a config of {kind} without a model class", "one with its architectures", "name the class in architectures")
