"""Models of transformers with small sizes, one of each way of building them, and what each is called with.

For `bench.memory_truth`. What is drawn anew at each step (layers left out, masks of random places) is turned off, since no
count can follow it; dropout stays as the families have it.
"""

from typing import Any

BATCH, LENGTH = 4, 128
_TEXT: dict[str, Any] = {"vocab_size": 1000}
_SIZES: dict[str, Any] = {"hidden_size": 128, "num_hidden_layers": 4, "num_attention_heads": 4, "intermediate_size": 384}
_ENDS = {"bos_token_id": 1, "eos_token_id": 2}
_LISTENS = {"d_model": 128, "encoder_layers": 3, "decoder_layers": 3, "encoder_attention_heads": 4, "decoder_attention_heads": 4,
            "encoder_ffn_dim": 384, "decoder_ffn_dim": 384}  # fmt: skip
_SEES = {"hidden_sizes": [32, 64, 128, 256]}
MODELS: dict[str, dict[str, Any]] = {
    "GPT2LMHeadModel": {"model_type": "gpt2", "n_embd": 128, "n_layer": 4, "n_head": 4, **_TEXT, **_ENDS},
    "LlamaForCausalLM": {"model_type": "llama", **_SIZES, **_TEXT, "num_key_value_heads": 2},
    "Qwen2ForCausalLM": {"model_type": "qwen2", **_SIZES, **_TEXT, "num_key_value_heads": 2},
    "GPTNeoXForCausalLM": {"model_type": "gpt_neox", **_SIZES, **_TEXT},
    "OPTForCausalLM": {
        "model_type": "opt", "hidden_size": 128, "num_hidden_layers": 4, "num_attention_heads": 4, "ffn_dim": 384,
        "word_embed_proj_dim": 128, **_TEXT,
    },
    "BertForMaskedLM": {"model_type": "bert", **_SIZES, **_TEXT},
    "RobertaForMaskedLM": {"model_type": "roberta", **_SIZES, **_TEXT},
    "ViTForImageClassification": {"model_type": "vit", **_SIZES, "image_size": 96, "patch_size": 8},
    "ResNetForImageClassification": {"model_type": "resnet", **_SEES, "depths": [2, 2, 2, 2], "embedding_size": 32},
    "ConvNextForImageClassification": {"model_type": "convnext", **_SEES, "depths": [2, 2, 3, 2], "image_size": 96},
    "SwinForImageClassification": {
        "model_type": "swin", "embed_dim": 48, "depths": [2, 2], "num_heads": [3, 6], "image_size": 112,
    },
    "T5ForConditionalGeneration": {
        "model_type": "t5", "d_model": 128, "d_ff": 384, "d_kv": 32, "num_layers": 3, "num_heads": 4,
        "decoder_start_token_id": 0, **_TEXT,
    },
    "DistilBertForMaskedLM": {
        "model_type": "distilbert", "dim": 128, "n_layers": 4, "n_heads": 4, "hidden_dim": 384, **_TEXT,
    },
    "GemmaForCausalLM": {"model_type": "gemma", **_SIZES, **_TEXT, "num_key_value_heads": 1, "head_dim": 32},
    "MixtralForCausalLM": {"model_type": "mixtral", **_SIZES, **_TEXT, "num_key_value_heads": 2, "num_local_experts": 4},
    "MambaForCausalLM": {"model_type": "mamba", "hidden_size": 128, "num_hidden_layers": 4, "state_size": 8, **_TEXT},
    "WhisperForConditionalGeneration": {
        "model_type": "whisper", **_LISTENS, **_TEXT, **_ENDS, "max_source_positions": 200, "pad_token_id": 0,
        "decoder_start_token_id": 1,
    },
    "CLIPModel": {
        "model_type": "clip", "projection_dim": 64, "text_config": {**_SIZES, **_TEXT, **_ENDS, "max_position_embeddings": 128},
        "vision_config": {**_SIZES, "image_size": 96, "patch_size": 8},
    },
    "SegformerForSemanticSegmentation": {
        "model_type": "segformer", **_SEES, "depths": [2, 2, 2, 2], "decoder_hidden_size": 128, "image_size": 128,
    },
    "FalconForCausalLM": {"model_type": "falcon", **_SIZES, **_TEXT, **_ENDS},
    "BloomForCausalLM": {"model_type": "bloom", "hidden_size": 128, "n_layer": 4, "n_head": 4, **_TEXT},
    "DebertaV2ForMaskedLM": {"model_type": "deberta-v2", **_SIZES, **_TEXT, "relative_attention": True,
                             "pos_att_type": ["p2c", "c2p"]},
    "MobileNetV2ForImageClassification": {"model_type": "mobilenet_v2", "image_size": 96},
    "EfficientNetForImageClassification": {"model_type": "efficientnet", "image_size": 96, "hidden_dim": 640,
                                           "width_coefficient": 0.5, "depth_coefficient": 0.5},
    "Wav2Vec2ForCTC": {"model_type": "wav2vec2", **_SIZES, "vocab_size": 40, "layerdrop": 0.0, "apply_spec_augment": False,
                       "conv_dim": [64] * 7, "num_conv_pos_embedding_groups": 4, "sampling_rate": 16000},
}  # fmt: skip
"""By the class that is made."""


def inputs_of(model: Any, known: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what a model is called with, and what is added for its loss.

    Args:
        model: of transformers.
        known: its configuration.
    """
    import torch

    vision = getattr(known, "vision_config", known)
    side = getattr(vision, "image_size", 224)
    words = known.get_text_config().vocab_size if hasattr(known.get_text_config(), "vocab_size") else 1000
    ids = torch.randint(5, words, (BATCH, LENGTH))
    kind = type(model).__name__
    if kind == "CLIPModel":
        return {"input_ids": ids, "pixel_values": torch.randn(BATCH, 3, side, side)}, {"return_loss": True}
    if "CTC" in kind:
        return {"input_values": torch.randn(BATCH, 5 * 16_000)}, {"labels": ids[:, :20]}
    if "Whisper" in kind:
        sound = torch.randn(BATCH, known.num_mel_bins, 2 * known.max_source_positions)
        return {"input_features": sound, "decoder_input_ids": ids}, {"labels": ids}
    if "Segmentation" in kind:
        return {"pixel_values": torch.randn(BATCH, 3, side, side)}, {"labels": torch.zeros(BATCH, side, side, dtype=torch.long)}
    if model.main_input_name == "pixel_values":
        return {"pixel_values": torch.randn(BATCH, 3, side, side)}, {"labels": torch.zeros(BATCH, dtype=torch.long)}
    if known.is_encoder_decoder:
        return {"input_ids": ids, "decoder_input_ids": ids}, {"labels": ids}
    return {"input_ids": ids}, {"labels": ids}
