"""Guesses of vision, audio and diffusion models from the names and shapes of their parameters.

Source of the names: the modules of Hugging Face transformers and diffusers, timm and torchvision, as their checkpoints have them.
"""

import re
from collections.abc import Callable

from intake.readers.guess_names import Names

Config = dict[str, object]


def _image(positions: int, patch: int, extra: int = 1) -> int:
    side = round(max(positions - extra, 1) ** 0.5)
    return side * patch


def clip(names: Names) -> tuple[Config, str] | None:
    """Return the config of CLIP or SigLIP: a text tower and a vision tower, or one of them."""
    text, vision = names.has(r"text_model\.encoder\.layers\."), names.has(r"vision_model\.encoder\.layers\.")
    if not text and not vision:
        return None
    siglip = names.has(r"vision_model\.head\.|logit_bias$")
    config: Config = {"model_type": "siglip" if siglip else "clip"}
    towers: dict[str, Config] = {}
    for tower, there in (("text", text), ("vision", vision)):
        if not there:
            continue
        width = names.rows(rf"{tower}_model\.encoder\.layers\.0\.self_attn\.q_proj\.weight")
        towers[tower] = {
            "hidden_size": width, "num_hidden_layers": names.count(rf"{tower}_model\.encoder\.layers\.(\d+)\."),
            "num_attention_heads": names.heads(width),
            "intermediate_size": names.rows(rf"{tower}_model\.encoder\.layers\.0\.mlp\.fc1\.weight"),
        }  # fmt: skip
    if text:
        towers["text"] |= {"vocab_size": names.rows(r"text_model\.embeddings\.token_embedding\.weight"),
                           "max_position_embeddings": names.rows(r"text_model\.embeddings\.position_embedding\.weight",
                           77)}  # fmt: skip
    if vision:
        patch = (names.first(r"vision_model\.embeddings\.patch_embedding\.weight", 4) or (0, 3, 16, 16))[2]
        positions = names.rows(r"vision_model\.embeddings\.position_embedding\.weight", 50)
        towers["vision"] |= {"patch_size": patch, "image_size": _image(positions, patch, 0 if siglip else 1)}
    if text and vision:
        return {**config, "text_config": towers["text"], "vision_config": towers["vision"],
                "projection_dim": names.rows(r"text_projection\.weight", 512)}, \
                "text_model and vision_model side by side"  # fmt: skip
    one = "text" if text else "vision"
    return {"model_type": f"{config['model_type']}_{one}_model", **towers[one]}, f"{one}_model.encoder.layers alone"


def vit(names: Names) -> tuple[Config, str] | None:
    """Return the config of a vision transformer, as transformers, timm or torchvision name it."""
    patch = names.first(r"(patch_embeddings\.projection|patch_embed\.proj|conv_proj|patch_embeddings)\.weight$", 4)
    if patch is None or names.has(r"decoder|swin|layers\.\d+\.blocks|stages\."):
        return None
    width, channels, side = patch[0], patch[1], patch[2]
    positions = names.first(r"(position_embeddings|pos_embed|pos_embedding)$", 3) or (1, 197, width)
    layers = max(names.count(r"(?:encoder\.layer|blocks)\.(\d+)\."), names.count(r"encoder_layer_(\d+)\."))
    hidden = names.rows(r"(intermediate\.dense|mlp\.fc1|mlp\.0|mlp\.linear_1)\.weight", 4 * width)
    dino = names.has(r"layer_scale1|\.ls1\.|mask_token")
    kind = "dinov2" if dino else "deit" if names.has(r"distillation_token|dist_token") else "vit"
    config: Config = {
        "model_type": kind, "hidden_size": width, "num_hidden_layers": layers, "num_attention_heads": names.heads(width),
        "patch_size": side, "num_channels": channels, "image_size": _image(positions[1], side, 2 if kind == "deit" else 1),
        "num_labels": names.rows(r"(classifier|heads?(\.head)?)\.weight$", 0),
    }  # fmt: skip
    config |= {"mlp_ratio": hidden // width} if dino else {"intermediate_size": hidden}
    return config, f"a patch embedding of {side}x{side} and {layers} layers"


def resnet(names: Names) -> tuple[Config, str] | None:
    """Return the config of a ResNet, as torchvision, timm or transformers name it."""
    torch = names.has(r"(?:^|\.)layer1\.0\.conv1\.weight$") and names.has(r"(?:^|\.)layer4\.")
    if not torch and not names.has(r"encoder\.stages\.\d+\.layers\.\d+\.layer\.\d+\.convolution\.weight"):
        return None
    if torch:
        depths = [names.count(rf"(?:^|\.)layer{stage}\.(\d+)\.") for stage in range(1, 5)]
        bottle = names.has(r"layer1\.0\.conv3\.weight")
        widths = [names.rows(rf"(?:^|\.)layer{stage}\.0\.conv{3 if bottle else 2}\.weight$") for stage in range(1, 5)]
        stem, classes = names.rows(r"(?:^|\.)conv1\.weight$", 64), names.rows(r"(?:^|\.)fc\.weight$")
        groups = names.first(r"layer1\.0\.conv2\.weight$", 4)
        if bottle and groups and groups[0] != groups[1]:
            names.notes.append("grouped convolutions (ResNeXt): a ResNet's config does not say them")
    else:
        stages = names.count(r"encoder\.stages\.(\d+)\.")
        depths = [names.count(rf"encoder\.stages\.{stage}\.layers\.(\d+)\.") for stage in range(stages)]
        bottle = names.has(r"stages\.0\.layers\.0\.layer\.2\.")
        widths = [
            names.rows(rf"stages\.{stage}\.layers\.0\.layer\.{2 if bottle else 1}\.convolution\.weight")
            for stage in range(stages)
        ]
        stem, classes = names.rows(r"embedder\.embedder\.convolution\.weight", 64), names.rows(r"classifier\.1\.weight")
    names.notes.append("strides: assumed to be those of a ResNet of 224 pixels; shapes do not say it")
    config: Config = {"model_type": "resnet", "depths": depths, "hidden_sizes": widths, "embedding_size": stem,
                      "layer_type": "bottleneck" if bottle else "basic", "num_labels": classes}  # fmt: skip
    return config, f"stages of {'-'.join(map(str, depths))} residual layers"


def windowed(names: Names) -> tuple[Config, str] | None:
    """Return the config of a Swin transformer or a ConvNeXt."""
    if names.has(r"relative_position_bias_table$") and (
        first := names.first(r"(patch_embeddings\.projection|patch_embed\.proj)\.weight$", 4)
    ):
        table = names.first(r"relative_position_bias_table$", 2) or (169, 3)
        window = (round(table[0] ** 0.5) + 1) // 2
        stages = names.count(r"layers\.(\d+)\.blocks\.")
        depths = [names.count(rf"layers\.{stage}\.blocks\.(\d+)\.") for stage in range(stages)]
        heads = [
            (names.first(rf"layers\.{stage}\.blocks\.0\.\S*relative_position_bias_table$") or (0, 0))[1]
            for stage in range(stages)
        ]
        return {"model_type": "swin", "embed_dim": first[0], "patch_size": first[2], "depths": depths, "num_heads": heads,
            "window_size": window,
                "num_labels": names.rows(r"(classifier|head(\.fc)?)\.weight$")}, \
                "relative_position_bias_table in each of its blocks"  # fmt: skip
    stages = names.count(r"stages\.(\d+)\.(?:layers|blocks)\.\d+\.(?:dwconv|conv_dw)\.weight")
    if stages:
        depths = [names.count(rf"stages\.{stage}\.(?:layers|blocks)\.(\d+)\.") for stage in range(stages)]
        widths = [names.rows(rf"stages\.{stage}\.(?:layers|blocks)\.0\.(?:dwconv|conv_dw)\.weight") for stage in range(stages)]
        return {"model_type": "convnextv2" if names.has(r"grn\.") else "convnext", "depths": depths, "hidden_sizes": widths,
                "num_labels": names.rows(r"(classifier|head\.fc)\.weight$")}, "stages of depthwise convolutions"  # fmt: skip
    return None


def diffusion(names: Names) -> tuple[Config, str] | None:
    """Return the config of a diffusion backbone or a VAE, as diffusers names them."""
    if names.has(r"(?:^|\.)down_blocks\.\d+\.resnets\.") and names.has(r"(?:^|\.)up_blocks\.\d+\.resnets\."):
        vae = names.has(r"^(encoder|decoder)\.")
        prefix = r"encoder\.down_blocks" if vae else r"(?:^|\.)down_blocks"
        blocks = names.count(prefix + r"\.(\d+)\.")
        widths = [names.rows(rf"{prefix}\.{at}\.resnets\.0\.conv1\.weight") for at in range(blocks)]
        config: Config = {"_class_name": "AutoencoderKL" if vae else "UNet2DConditionModel", "block_out_channels": widths,
                          "layers_per_block": names.count(prefix + r"\.0\.resnets\.(\d+)\."),
                          "in_channels": names.columns(r"(encoder\.)?conv_in\.weight"),
                          "out_channels": names.rows(r"(?:^|decoder\.)conv_out\.weight")}  # fmt: skip
        if vae:
            config["latent_channels"] = names.columns(r"decoder\.conv_in\.weight")
        else:
            config["cross_attention_dim"] = names.columns(r"attn2\.to_k\.weight") or None
            depth = [names.count(rf"{prefix}\.{at}\.attentions\.0\.transformer_blocks\.(\d+)\.") for at in range(blocks)]
            config["transformer_layers_per_block"] = [max(one, 1) for one in depth]
            config["down_block_types"] = ["CrossAttnDownBlock2D" if one else "DownBlock2D" for one in depth]
            config["up_block_types"] = ["CrossAttnUpBlock2D" if one else "UpBlock2D" for one in reversed(depth)]
            config["attention_head_dim"] = [names.heads(width) for width in widths]
        return config, f"down_blocks and up_blocks of residual layers, {' '.join(map(str, widths))} channels"
    single, double = names.count(r"single_transformer_blocks\.(\d+)\."), names.count(r"(?:^|\.)transformer_blocks\.(\d+)\.")
    if double and names.has(r"x_embedder|pos_embed\.proj|context_embedder|proj_out|caption_projection"):
        kind = (
            "FluxTransformer2DModel" if single else "SD3Transformer2DModel" if names.has(r"add_k_proj") else "Transformer2DModel"
        )
        width = names.rows(r"transformer_blocks\.0\.(attn|attn1)\.to_q\.weight")
        heads = names.heads(width, 128 if single else 64)
        return {"_class_name": kind, "num_layers": double, "num_single_layers": single, "num_attention_heads": heads,
                "attention_head_dim": width // heads}, f"{double} transformer_blocks with {single} single ones"  # fmt: skip
    return None


def audio(names: Names) -> tuple[Config, str] | None:
    """Return the config of wav2vec 2.0 and its kin."""
    if not names.has(r"feature_extractor\.conv_layers\.\d+\.conv\.weight"):
        return None
    width = names.rows(r"feature_projection\.projection\.weight")
    layers = names.count(r"feature_extractor\.conv_layers\.(\d+)\.")
    shapes = [names.first(rf"conv_layers\.{at}\.conv\.weight$", 3) or (512, 512, 3) for at in range(layers)]
    names.notes.append("strides: assumed to be 5, then 2 in each layer; shapes do not say it")
    return {
        "model_type": "hubert" if names.has(r"^hubert\.") else "wav2vec2",
        "hidden_size": width,
        "num_attention_heads": names.heads(width),
        "num_hidden_layers": names.count(r"encoder\.layers\.(\d+)\."),
        "intermediate_size": names.rows(r"intermediate_dense\.weight"),
        "conv_dim": [shape[0] for shape in shapes],
        "conv_kernel": [shape[2] for shape in shapes],
        "conv_stride": [5, *[2] * (layers - 1)],
        "vocab_size": names.rows(r"lm_head\.weight", 32),
    }, "feature_extractor.conv_layers over raw sound"


def adapter(names: Names) -> tuple[Config, str] | None:
    """Return what a low-rank adapter says: its rank, where it sits, and how wide the model is."""
    pattern = re.compile(r"\b(\w++)\.(?:lora_A|lora_down|lora\.down)(?:\.\w+)?\.weight$")
    found = [
        (match[1], shape, name) for name, shape in names.shapes.items() if (match := pattern.search(name)) and len(shape) >= 2
    ]
    if not found:
        return None
    ranks = sorted({shape[0] for _, shape, _ in found})
    targets = sorted({target for target, _, _ in found})
    config: Config = {"peft_type": "LORA", "r": ranks[-1], "target_modules": targets,
                      "num_hidden_layers": names.count(r"(?:layers|h|layer|block|blocks)\.(\d+)\.")}  # fmt: skip
    queries = next(
        (shape for target, shape, _ in found if target in ("q_proj", "query", "to_q", "c_attn", "query_key_value")), None
    )
    if queries:
        config["hidden_size"] = queries[1]
    if any(one.startswith(("gate_proj", "up_proj")) for one in targets):
        config["intermediate_size"] = names.rows(r"(gate_proj|up_proj)\.lora_B\S*weight$")
    names.notes.append("an adapter alone: name the model that it belongs to, its own weights are not in this file")
    if len(ranks) > 1:
        names.notes.append(f"ranks from {ranks[0]} to {ranks[-1]}: the greatest is told")
    return config, f"lora_A of rank {ranks[-1]} on {len(found)} modules: {', '.join(targets[:8])}"


OTHER: tuple[Callable[[Names], tuple[Config, str] | None], ...] = (clip, diffusion, windowed, vit, resnet, audio)
