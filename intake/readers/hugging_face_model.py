"""From a Hugging Face `config.json` to a model of transformers' own on torch's meta device, without weights.

Only classes that transformers itself contains are made. What a config names beside them (`auto_map`, other people's code, a
quantisation of the checkpoint) is left out and listed.
"""

# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false, reportUntypedBaseClass=false
# torch has no types here: it is imported inside functions, and its objects are Any.

import copy
import re
from collections.abc import Mapping
from typing import Any

from core.errors import BadInput
from intake.readers.hugging_face_values import checked_config, unknown_type

_HEADS = (
    "FOR_SPEECH_SEQ_2_SEQ", "FOR_SEQ_TO_SEQ_CAUSAL_LM", "FOR_IMAGE_TEXT_TO_TEXT", "FOR_MASKED_LM", "FOR_CAUSAL_LM", "FOR_CTC",
    "FOR_ZERO_SHOT_IMAGE_CLASSIFICATION", "FOR_OBJECT_DETECTION", "FOR_IMAGE_CLASSIFICATION", "FOR_AUDIO_CLASSIFICATION",
    "FOR_VIDEO_CLASSIFICATION", "FOR_UNIVERSAL_SEGMENTATION", "FOR_SEMANTIC_SEGMENTATION", "FOR_DEPTH_ESTIMATION",
    "FOR_MULTIMODAL_LM", "FOR_PRETRAINING", "FOR_SEQUENCE_CLASSIFICATION", "",
)  # fmt: skip
"""Kinds of heads in the order in which one is chosen for a config that names no class."""


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
        raise unknown_type(kind, list(CONFIG_MAPPING_NAMES))
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
