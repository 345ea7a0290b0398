"""What a model of transformers is called with, on the meta device: ids, pixels, samples, labels, by its signature and config."""

# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false, reportUntypedBaseClass=false
# torch has no types here: it is imported inside functions, and its objects are Any.

import inspect
from math import prod
from typing import Any

from core.errors import BadInput
from intake.readers.torch_fit import Point
from intake.readers.torch_recorder import Recorder, tensors_of
from intake.readers.torch_trace import traced

_TOKEN = 7
"""A token that is neither padding nor a mark in any vocabulary that matters."""
_IMAGE_TOKENS = ("image_token_id", "image_token_index", "video_token_id")
_SECONDS = 5
CACHES = ("cache", "past_key_values", "cache_params")
"""What families call the memory of a decoder."""


class Inputs:
    """What one model is called with.

    Args:
        model: of transformers, on the meta device.
        training: whether labels are wanted.
    """

    def __init__(self, model: Any, training: bool) -> None:
        import torch

        self.torch, self.model, self.config, self.training = torch, model, model.config, training
        self.names = inspect.signature(model.forward).parameters
        self.text = model.config.get_text_config()
        self.labels = True
        self.kind = type(model).__name__
        self._image_tokens: int | None = None

    def longest(self) -> int | None:
        """Positions that the model has for text; None without a bound or without text."""
        bounds = [
            getattr(self.text, name, None)
            for name in ("max_position_embeddings", "n_positions", "max_target_positions", "max_source_positions", "seq_length")
        ]
        found = [bound for bound in bounds if isinstance(bound, int) and bound > 0]
        return min(found) - self._lost() if found else None

    def _lost(self) -> int:
        """Positions that some families keep for padding."""
        return (
            2
            if self.config.model_type
            in (
                "roberta",
                "xlm-roberta",
                "camembert",
                "longformer",
                "mpnet",
                "layoutlmv3",
                "esm",
                "data2vec-text",
                "xlm-roberta-xl",
                "roberta-prelayernorm",
                "luke",
                "xmod",
            )
            else 0
        )

    def chunk(self) -> int:
        """Tokens that the model works on at a time; 1 where it takes them as they come."""
        found = [
            value
            for name in ("chunk_size", "mamba_chunk_size", "block_size", "attention_window")
            if isinstance(value := getattr(self.text, name, None), int) and value > 0
        ]
        return found[0] if found else 1

    def has_length(self) -> bool:
        """Whether the length of a text is free."""
        return any(name in self.names for name in ("input_ids", "decoder_input_ids"))

    def make(self, recorder: Recorder, point: Point) -> dict[str, Any]:
        """Return the named arguments at a batch and a length."""
        given: dict[str, Any] = {}
        rows, length = point
        if "pixel_values" in self.names or "pixel_values_videos" in self.names:
            given |= self._pixels(recorder, rows)
        if "input_features" in self.names:
            given["input_features"] = self._features(rows)
        if "input_values" in self.names:
            given["input_values"] = self._samples(rows, length)
        if "input_ids" in self.names:
            images = self._placeholders(given, rows)
            given["input_ids"] = self._ids(recorder, rows, length, images)
            if images and "mm_token_type_ids" in self.names:
                kinds = self.torch.zeros((rows, images + length), dtype=self.torch.int64, device="cpu")
                kinds[:, :images] = 1
                given["mm_token_type_ids"] = self.empty(*kinds.shape, dtype=self.torch.int64)
                recorder.know(given["mm_token_type_ids"], kinds, given=True)
        self._extras(given, rows, length)
        decoder = "decoder_input_ids" in self.names
        if self.training and self.labels:
            given |= self._labels(recorder, rows, length, given)
        if decoder and "labels" not in given:
            given["decoder_input_ids"] = self._ids(recorder, rows, length, 0)
        return given

    def decoding(self, recorder: Recorder, point: Point) -> dict[str, Any]:
        """Return the arguments of one step of decoding: one token, and a cache that holds `point.length` of them."""
        rows = point.batch
        recorder.recording = False
        with traced(recorder, {}, fused=True), self.torch.no_grad():
            first = self.make(recorder, point)
            held = self.model(**first, use_cache=True)
        recorder.recording = True
        cache = cache_of(held)
        name = next((one for one in CACHES if one in self.names), None)
        if cache is None or name is None:
            raise BadInput(
                f"{self.kind} without a cache", "a model that decodes token by token", "ask for inference without a phase"
            )
        for one in tensors_of(self.torch, cache):
            recorder.name(one, "cache", "input")
        text = "decoder_input_ids" if "decoder_input_ids" in self.names else "input_ids"
        given = {name: cache, text: self._ids(recorder, rows, 1, 0), "use_cache": True}
        if text != "input_ids":
            given["encoder_outputs"] = (held.encoder_last_hidden_state,)
        return given

    def empty(self, *shape: int, dtype: Any = None) -> Any:
        """Return a tensor without data; of the model's own dtype unless another is named."""
        return self.torch.empty(shape, dtype=dtype or self.model.dtype, device="meta")

    def _ids(self, recorder: Recorder, rows: int, length: int, images: int) -> Any:
        torch = self.torch
        vocabulary = getattr(self.text, "vocab_size", None) or 100
        real = torch.full((rows, images + length), min(_TOKEN, vocabulary - 1), dtype=torch.int64, device="cpu")
        image = next((value for name in _IMAGE_TOKENS if isinstance(value := getattr(self.config, name, None), int)), None)
        if images and image is not None:
            real[:, :images] = image
        end = getattr(self.text, "eos_token_id", None)
        if isinstance(end, int):
            real[:, -1] = end
        if "MultipleChoice" in self.kind:
            real = real[:, None].repeat(1, 2, 1)
        made = self.empty(*real.shape, dtype=torch.int64)
        recorder.know(made, real, given=True)
        return made

    def image_size(self) -> tuple[int, int]:
        """Height and width of an image: the config's own, else what such models are used with."""
        for config in self._configs("vision_config", "vision", "backbone_config", "encoder"):
            size = getattr(config, "image_size", None) or getattr(config, "img_size", None) or getattr(config, "input_size", None)
            if isinstance(size, dict):
                return int(size.get("height", 224)), int(size.get("width", 224))
            if isinstance(size, list | tuple) and len(size) >= 2:
                return int(size[-2]), int(size[-1])
            if isinstance(size, int) and size > 1:
                return size, size
        return (640, 640) if "Detection" in self.kind or "Segmentation" in self.kind else (224, 224)

    def _configs(self, *names: str) -> list[Any]:
        inner = [getattr(self.config, name, None) for name in names]
        return [self.config, *(one for one in inner if one is not None and not isinstance(one, dict | str | int))]

    def _first(
        self, default: int, *names: str, configs: tuple[str, ...] = ("vision_config", "backbone_config", "audio_config")
    ) -> int:
        for config in self._configs(*configs):
            for name in names:
                value = getattr(config, name, None)
                if isinstance(value, int) and not isinstance(value, bool):
                    return value
        return default

    def _pixels(self, recorder: Recorder, rows: int) -> dict[str, Any]:
        height, width = self.image_size()
        channels = self._first(3, "num_channels", "in_channels", "in_chans")
        if "image_grid_thw" in self.names:
            return self._patches(recorder, rows, channels)
        frames = self._first(0, "num_frames")
        if frames > 1 and (
            "Video" in self.kind
            or ("pixel_values_videos" in self.names and "pixel_values" not in self.names)
            or self.config.model_type in ("videomae", "vivit", "timesformer")
        ):
            name = "pixel_values" if "pixel_values" in self.names else "pixel_values_videos"
            return {name: self.empty(rows, frames, channels, height, width)}
        name = "pixel_values" if "pixel_values" in self.names else "pixel_values_videos"
        return {name: self.empty(rows, channels, height, width)}

    def _patches(self, recorder: Recorder, rows: int, channels: int) -> dict[str, Any]:
        """One image of 16 x 16 patches a row, laid out flat as Qwen's processors do."""
        torch = self.torch
        side = 16
        patch, frames = self._first(14, "patch_size"), self._first(2, "temporal_patch_size")
        merge = self._first(2, "spatial_merge_size")
        grid = torch.tensor([[1, side, side]] * rows, dtype=torch.int64, device="cpu")
        known = self.empty(rows, 3, dtype=torch.int64)
        recorder.know(known, grid, given=True)
        self._image_tokens = side * side // merge**2
        return {"pixel_values": self.empty(rows * side * side, channels * frames * patch * patch), "image_grid_thw": known}

    def _placeholders(self, given: dict[str, Any], rows: int) -> int:
        """How many tokens of the text stand for one image: as many as the model's own image tower gives."""
        if "pixel_values" not in given or not any(isinstance(getattr(self.config, name, None), int) for name in _IMAGE_TOKENS):
            return 0
        tokens = self._image_tokens
        if tokens is None:
            tower = getattr(self.model, "get_image_features", None) or self.model.model.get_image_features
            with self.torch.no_grad(), self.torch.device("meta"):
                made = tower(pixel_values=given["pixel_values"])
            made = getattr(made, "pooler_output", made)
            width = getattr(self.text, "hidden_size", 1)
            tokens = sum(prod(one.shape) for one in tensors_of(self.torch, made)) // (width * rows)
            self._image_tokens = tokens
        return tokens

    def _features(self, rows: int) -> Any:
        bins = self._first(80, "num_mel_bins", "feature_size", "input_feat_per_channel")
        positions: Any = getattr(self.config, "max_source_positions", None)
        if self.config.model_type == "whisper" or ("audio_config" in self.config.sub_configs and positions is None):
            positions = self._first(1500, "max_source_positions", configs=("audio_config",))
            return self.empty(rows, bins, 2 * positions)
        if self.config.model_type in ("wav2vec2-bert", "seamless_m4t", "seamless_m4t_v2"):
            return self.empty(rows, 100 * _SECONDS, self._first(160, "feature_projection_input_dim"))
        return self.empty(rows, 100 * _SECONDS, bins)

    def _samples(self, rows: int, length: int) -> Any:
        if self.config.model_type == "audio-spectrogram-transformer":
            return self.empty(rows, self._first(1024, "max_length"), self._first(128, "num_mel_bins"))
        if self.config.model_type in ("encodec", "dac", "mimi"):
            return self.empty(rows, self._first(1, "audio_channels"), self._first(24_000, "sampling_rate"))
        if self.config.model_type == "speecht5" and "input_ids" in self.names:
            return None
        del length
        return self.empty(rows, self._first(16_000, "sampling_rate") * _SECONDS)

    def _extras(self, given: dict[str, Any], rows: int, length: int) -> None:
        """What single families ask for beside."""
        integers = self.torch.int64
        if "bbox" in self.names:
            given["bbox"] = self.empty(rows, length, 4, dtype=integers)
        if "past_values" in self.names:
            given["past_values"] = self.empty(rows, self._first(128, "context_length"), self._first(1, "num_input_channels"))
        if "bool_masked_pos" in self.names and "MaskedImage" in self.kind:
            patches = prod(size // self._first(16, "patch_size") for size in self.image_size())
            given["bool_masked_pos"] = self.empty(rows, patches, dtype=self.torch.bool)
        if "noise" in self.names and "MAE" in self.kind:
            patches = prod(size // self._first(16, "patch_size") for size in self.image_size())
            given["noise"] = self.empty(rows, patches)
        if given.get("input_values", 0) is None:
            del given["input_values"]

    def _labels(self, recorder: Recorder, rows: int, length: int, given: dict[str, Any]) -> dict[str, Any]:
        whole, kind = self.torch.int64, self.kind
        if "start_positions" in self.names:
            return {name: self.empty(rows, dtype=whole) for name in ("start_positions", "end_positions")}
        if "return_loss" in self.names:
            return {"return_loss": True}
        if "labels" not in self.names or any(part in kind for part in ("Detection", "Mask2Former", "Universal")):
            return {}
        if "CTC" in kind:
            return {"labels": self._ids(recorder, rows, 20, 0)}
        if kind.endswith(("CausalLM", "MaskedLM", "LMHeadModel", "ConditionalGeneration", "TokenClassification", "PreTraining",
                          "ImageTextToText", "Seq2SeqLM")):  # fmt: skip
            if "input_ids" in given and "decoder_input_ids" not in self.names:
                length = int(given["input_ids"].shape[-1])
            return {"labels": self._ids(recorder, rows, length, 0)}
        if "SemanticSegmentation" in kind:
            return {"labels": self.empty(rows, *self.image_size(), dtype=whole)}
        if "Classification" in kind or "NextSentence" in kind or "MultipleChoice" in kind:
            return {"labels": self.empty(rows, dtype=whole)}
        return {}


def cache_of(made: Any) -> Any:
    """Return the memory of a decoder among what it gave; None without one."""
    found = (getattr(made, name, None) for name in CACHES)
    return next((one for one in found if one is not None), None)
