"""Reads a Hugging Face `config.json` as data: which family it is and its sizes. Never imports transformers.

Only the keys that fix sizes are looked at; what they leave open is filled as transformers fills it. Anything that changes the
arithmetic and is not modelled becomes an assumption.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import cast

from core.errors import BadInput
from core.sketch import Windows
from core.workload import Size
from intake.sizes import items_of, whole_number
from intake.windows import windows_of
from intake.wording import fault, unknown

_ACTIVATIONS = {
    "gelu": "gelu",
    "gelu_new": "gelu_new",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    "silu": "silu",
    "swish": "silu",
    "relu": "relu",
}
_MOST = 10**9


@dataclass(frozen=True, slots=True)
class ReadConfig:
    """What a `config.json` says.

    Args:
        family: name of a family of `intake/families`.
        config: its sizes.
        image: pixels of each side it was trained on; None for token models.
        assumptions: what was not said or is not modelled, one short phrase each.
        windows: how far its attention looks back.
    """

    family: str
    config: dict[str, Size]
    image: int | None
    assumptions: tuple[str, ...]
    windows: Windows = ()


class _Keys:
    """Typed access to the keys of a `config.json`."""

    def __init__(self, values: Mapping[str, object]) -> None:
        self.values = values

    def whole(self, key: str, default: int | None = None, low: int = 0) -> int:
        value = self.values.get(key)
        if value is None:
            if default is None:
                raise fault(
                    "model.config", f"no {key!r}", f"a config.json with {key}", "give the whole file that belongs to the model"
                )
            return default
        return whole_number(f"model.config.{key}", value, low, _MOST)

    def wholes(self, key: str) -> tuple[int, ...]:
        value = self.values.get(key)
        items = items_of(value)
        if not items:
            raise fault(f"model.config.{key}", value, "a list of whole numbers", "give the whole file that belongs to the model")
        return tuple(whole_number(f"model.config.{key}[{i}]", item, 1, _MOST) for i, item in enumerate(items))

    def flag(self, key: str, default: bool) -> int:
        value = self.values.get(key)
        if value is not None and not isinstance(value, bool):
            raise fault(f"model.config.{key}", value, "true or false")
        return int(default if value is None else value)

    def activation(self, key: str, default: str) -> str:
        value = self.values.get(key, default)
        if not isinstance(value, str) or value not in _ACTIVATIONS:
            raise fault(f"model.config.{key}", value, f"one of {', '.join(_ACTIVATIONS)}", "choose the nearest of them")
        return _ACTIVATIONS[value]

    def classes(self) -> int:
        labels = self.values.get("id2label")
        return len(cast("dict[str, str]", labels)) if isinstance(labels, Mapping) and labels else self.whole("num_labels", 2, 1)


def read_config(values: Mapping[str, object]) -> ReadConfig:
    """Read a configuration.

    Args:
        values: the mapping that `config.json` holds.

    Raises:
        BadInput: no or an unknown `model_type`, or a size that is missing or unusable.
    """
    kind = values.get("model_type")
    if not isinstance(kind, str):
        raise fault("model.config.model_type", kind, f"one of {', '.join(_READERS)}", "give a Hugging Face config.json")
    if kind not in _READERS:
        raise unknown("model.config", "model_type", kind, _READERS)
    read = _READERS[kind](_Keys(values))
    extra = ("quantisation of the checkpoint is not counted",) if values.get("quantization_config") else ()
    return replace(read, assumptions=read.assumptions + extra, windows=windows_of(values) if read.family == "decoder" else ())


def _gpt2(keys: _Keys) -> ReadConfig:
    width = keys.whole("n_embd")
    return ReadConfig(
        "decoder",
        {
            "layers": keys.whole("n_layer"),
            "width": width,
            "heads": keys.whole("n_head"),
            "hidden": keys.whole("n_inner", 4 * width),
            "vocabulary": keys.whole("vocab_size"),
            "positions": keys.whole("n_positions", keys.whole("n_ctx", 1024)),
            "activation": keys.activation("activation_function", "gelu_new"),
            "norm": "layer",
            "bias": 1,
            "rotary": 0,
            "gated": 0,
            "tied": keys.flag("tie_word_embeddings", True),
            "fused_qkv": 1,
        },
        None,
        (),
    )


def _llama(keys: _Keys) -> ReadConfig:
    width, heads = keys.whole("hidden_size"), keys.whole("num_attention_heads", low=1)
    notes: list[str] = []
    if keys.flag("attention_bias", False) or keys.flag("mlp_bias", False) or keys.values.get("model_type") == "qwen2":
        notes.append("biases of single projections are left out (under 0.1 % of the parameters)")
    return ReadConfig(
        "decoder",
        {
            "layers": keys.whole("num_hidden_layers"),
            "width": width,
            "heads": heads,
            "kv_heads": keys.whole("num_key_value_heads", heads),
            "head_width": keys.whole("head_dim", width // heads),
            "hidden": keys.whole("intermediate_size"),
            "vocabulary": keys.whole("vocab_size"),
            "positions": 0,
            "activation": keys.activation("hidden_act", "silu"),
            "norm": "rms",
            "bias": 0,
            "rotary": 1,
            "gated": 1,
            "tied": keys.flag("tie_word_embeddings", False),
            "fused_qkv": 0,
        },
        None,
        tuple(notes),
    )


def _bert(keys: _Keys) -> ReadConfig:
    named = str(keys.values.get("architectures") or "")
    note = () if "MaskedLM" in named else ("masked language model head, whatever head the checkpoint has",)
    return ReadConfig("encoder", {
        "layers": keys.whole("num_hidden_layers"), "width": keys.whole("hidden_size"), "heads": keys.whole("num_attention_heads"),
        "hidden": keys.whole("intermediate_size"), "vocabulary": keys.whole("vocab_size"),
        "positions": keys.whole("max_position_embeddings", 512), "segments": keys.whole("type_vocab_size", 2),
        "activation": keys.activation("hidden_act", "gelu"), "norm": "layer", "bias": 1, "norm_first": 0, "embed_norm": 1,
        "transform": 1, "tied": keys.flag("tie_word_embeddings", True), "head_bias": 1, "fused_qkv": 0,
    }, None, note)


def _vit(keys: _Keys) -> ReadConfig:
    note = () if keys.flag("qkv_bias", True) else ("biases that the attention lacks are counted (under 0.1 % of the parameters)",)
    return ReadConfig(
        "vit",
        {
            "layers": keys.whole("num_hidden_layers"),
            "width": keys.whole("hidden_size"),
            "heads": keys.whole("num_attention_heads"),
            "hidden": keys.whole("intermediate_size"),
            "patch": keys.whole("patch_size"),
            "in_channels": keys.whole("num_channels", 3),
            "activation": keys.activation("hidden_act", "gelu"),
            "norm": "layer",
            "bias": 1,
            "fused_qkv": 0,
            "classes": keys.classes(),
        },
        keys.whole("image_size", 224),
        note,
    )


def _resnet(keys: _Keys) -> ReadConfig:
    if keys.values.get("layer_type", "bottleneck") != "bottleneck":
        raise fault(
            "model.config.layer_type",
            keys.values["layer_type"],
            "'bottleneck'",
            "basic layers are not counted yet: give model.blocks",
        )
    if keys.flag("downsample_in_first_stage", False):
        raise BadInput("model.config.downsample_in_first_stage: true", "false", "give model.blocks for such a network")
    return ReadConfig(
        "resnet",
        {
            "depths": keys.wholes("depths"),
            "channels": keys.wholes("hidden_sizes"),
            "stem_channels": keys.whole("embedding_size", 64),
            "in_channels": keys.whole("num_channels", 3),
            "stride_first": keys.flag("downsample_in_bottleneck", False),
            "classes": keys.classes(),
        },
        224,
        (),
    )


_READERS: dict[str, Callable[[_Keys], ReadConfig]] = {
    "gpt2": _gpt2, "llama": _llama, "mistral": _llama, "qwen2": _llama, "bert": _bert, "vit": _vit, "resnet": _resnet,
}
MODEL_TYPES = tuple(_READERS)
_KEPT = (
    "model_type",
    "architectures",
    "n_embd",
    "n_layer",
    "n_head",
    "n_inner",
    "vocab_size",
    "n_positions",
    "n_ctx",
    "activation_function",
    "tie_word_embeddings",
    "hidden_size",
    "num_attention_heads",
    "num_key_value_heads",
    "head_dim",
    "intermediate_size",
    "num_hidden_layers",
    "hidden_act",
    "attention_bias",
    "mlp_bias",
    "sliding_window",
    "use_sliding_window",
    "max_window_layers",
    "layer_types",
    "max_position_embeddings",
    "type_vocab_size",
    "patch_size",
    "num_channels",
    "qkv_bias",
    "image_size",
    "layer_type",
    "downsample_in_first_stage",
    "downsample_in_bottleneck",
    "depths",
    "hidden_sizes",
    "embedding_size",
    "num_labels",
)


def kept_config(values: Mapping[str, object]) -> dict[str, object]:
    """Return the keys that `read_config` looks at, so that a document can hold them in place of a path.

    Args:
        values: the mapping that `config.json` holds; the list of labels becomes their number.
    """
    kept = {key: values[key] for key in _KEPT if values.get(key) is not None}
    labels = values.get("id2label")
    if isinstance(labels, Mapping) and labels:
        kept["num_labels"] = len(cast("dict[str, str]", labels))
    if values.get("quantization_config"):
        kept["quantization_config"] = True
    return kept
