"""An architecture guessed from the names and shapes of parameters, for names as published checkpoints have them."""

import pytest

from core.graph import Tensor
from intake.readers.guess import guessed

Shapes = dict[str, tuple[int, ...]]


def _guess(shapes: Shapes, **told: object) -> dict[str, object]:
    found = guessed([Tensor(name, shape, "fp32", "parameter", at) for at, (name, shape) in enumerate(shapes.items())], told)
    assert found.config is not None
    assert found.reasons
    return found.config


def _layers(prefix: str, count: int, shapes: Shapes) -> Shapes:
    return {f"{prefix}{at}.{name}": shape for at in range(count) for name, shape in shapes.items()}


def _decoder(width: int = 4096, kv: int = 1024, hidden: int = 14336, words: int = 128256, **more: tuple[int, ...]) -> Shapes:
    layer = {"self_attn.q_proj.weight": (width, width), "self_attn.k_proj.weight": (kv, width),
        "self_attn.v_proj.weight": (kv, width),
             "self_attn.o_proj.weight": (width, width), "mlp.gate_proj.weight": (hidden, width),
             "mlp.up_proj.weight": (hidden, width),
             "mlp.down_proj.weight": (width, hidden), "input_layernorm.weight": (width,)}  # fmt: skip
    extra = {name.replace("__", "."): shape for name, shape in more.items()}
    return {
        "model.embed_tokens.weight": (words, width),
        **_layers("model.layers.", 4, {**layer, **extra}),
        "lm_head.weight": (words, width),
    }


LLAMA = {"model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 4, "num_attention_heads": 32, "num_key_value_heads": 8,
         "intermediate_size": 14336, "vocab_size": 128256, "tie_word_embeddings": False}  # fmt: skip
_CASES: list[tuple[str, Shapes, dict[str, object]]] = [
    ("llama", _decoder(), LLAMA),
    ("wrapped", {f"module.{name}": shape for name, shape in _decoder().items()}, LLAMA),
    ("qwen2", _decoder(self_attn__q_proj__bias=(4096,)), {"model_type": "qwen2"}),
    ("qwen3", _decoder(self_attn__q_norm__weight=(128,)), {"model_type": "qwen3", "head_dim": 128, "num_attention_heads": 32}),
    ("gemma2", _decoder(3072, 1536, 9216, 256000, pre_feedforward_layernorm__weight=(3072,),
    post_feedforward_layernorm__weight=(3072,)),
     {"model_type": "gemma2", "head_dim": 256}),
    ("mixtral", {"model.embed_tokens.weight": (32000, 4096), **_layers("model.layers.", 2, {
        "self_attn.q_proj.weight": (4096, 4096), "self_attn.k_proj.weight": (1024, 4096),
        "block_sparse_moe.gate.weight": (8, 4096),
        "input_layernorm.weight": (4096,), **{f"block_sparse_moe.experts.{one}.w1.weight": (14336, 4096) for one in range(8)}})},
     {"model_type": "mixtral", "num_local_experts": 8, "num_experts_per_tok": 2, "intermediate_size": 14336,
     "num_key_value_heads": 8}),
    ("deepseek", {"model.embed_tokens.weight": (102400, 5120), **_layers("model.layers.", 2, {
        "self_attn.kv_a_proj_with_mqa.weight": (576, 5120), "self_attn.kv_a_layernorm.weight": (512,),
        "self_attn.q_a_layernorm.weight": (1536,),
        "self_attn.q_b_proj.weight": (128 * 192, 1536), "self_attn.o_proj.weight": (5120, 128 * 128)}),
        "model.layers.0.mlp.gate_proj.weight": (12288, 5120), "model.layers.1.mlp.gate.weight": (160, 5120),
        **{f"model.layers.1.mlp.experts.{one}.gate_proj.weight": (1536, 5120) for one in range(160)},
        "model.layers.1.mlp.shared_experts.gate_proj.weight": (3072, 5120)},
     {"model_type": "deepseek_v2", "num_attention_heads": 128, "kv_lora_rank": 512, "qk_rope_head_dim": 64,
     "qk_nope_head_dim": 128,
      "n_routed_experts": 160, "n_shared_experts": 2, "first_k_dense_replace": 1, "q_lora_rank": 1536}),
    ("phi3", {"model.embed_tokens.weight": (32064, 3072), **_layers("model.layers.", 2, {
        "self_attn.qkv_proj.weight": (9216, 3072), "self_attn.o_proj.weight": (3072, 3072),
        "mlp.gate_up_proj.weight": (16384, 3072)})},
     {"model_type": "phi3", "num_attention_heads": 32, "num_key_value_heads": 32, "intermediate_size": 8192}),
    ("gpt2", {"wte.weight": (50257, 768), "wpe.weight": (1024, 768), **_layers("h.", 12, {
        "attn.c_attn.weight": (768, 2304), "mlp.c_fc.weight": (768, 3072)})},
     {"model_type": "gpt2", "n_layer": 12, "n_embd": 768, "n_head": 12, "n_positions": 1024, "n_inner": 3072}),
    ("neox", {"gpt_neox.embed_in.weight": (50304, 512), "embed_out.weight": (50304, 512), **_layers("gpt_neox.layers.", 6, {
        "attention.query_key_value.weight": (1536, 512), "mlp.dense_h_to_4h.weight": (2048, 512)})},
     {"model_type": "gpt_neox", "num_hidden_layers": 6, "hidden_size": 512, "num_attention_heads": 8, "intermediate_size": 2048}),
    ("bert", {"bert.embeddings.word_embeddings.weight": (30522, 768), "bert.embeddings.position_embeddings.weight": (512, 768),
              "bert.embeddings.token_type_embeddings.weight": (2, 768), **_layers("bert.encoder.layer.", 12, {
                  "attention.self.query.weight": (768, 768), "intermediate.dense.weight": (3072, 768)})},
     {"model_type": "bert", "num_hidden_layers": 12, "num_attention_heads": 12, "max_position_embeddings": 512,
     "type_vocab_size": 2}),
    ("roberta", {"roberta.embeddings.word_embeddings.weight": (50265, 768),
    "roberta.embeddings.position_embeddings.weight": (514, 768),
                 **_layers("roberta.encoder.layer.", 2, {"attention.self.query.weight": (768, 768)})},
     {"model_type": "roberta", "max_position_embeddings": 514}),
    ("t5", {"shared.weight": (32128, 512), "encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight": (32, 8),
            **_layers("encoder.block.", 6, {"layer.0.SelfAttention.q.weight": (512, 512),
            "layer.1.DenseReluDense.wi.weight": (2048, 512)}),
            **_layers("decoder.block.", 6, {"layer.0.SelfAttention.q.weight": (512, 512)})},
     {"model_type": "t5", "num_heads": 8, "d_kv": 64, "d_ff": 2048, "num_layers": 6, "num_decoder_layers": 6}),
    ("whisper", {"model.encoder.conv1.weight": (384, 80, 3), "model.encoder.embed_positions.weight": (1500, 384),
                 "model.decoder.embed_tokens.weight": (51865, 384), "model.decoder.embed_positions.weight": (448, 384),
                 **_layers("model.encoder.layers.", 4, {"self_attn.q_proj.weight": (384, 384), "fc1.weight": (1536, 384)}),
                 **_layers("model.decoder.layers.", 4, {"encoder_attn.q_proj.weight": (384, 384), "fc1.weight": (1536, 384)})},
     {"model_type": "whisper", "num_mel_bins": 80, "encoder_layers": 4, "d_model": 384, "encoder_attention_heads": 6,
     "vocab_size": 51865}),
    ("vit", {"vit.embeddings.patch_embeddings.projection.weight": (768, 3, 16, 16),
    "vit.embeddings.position_embeddings": (1, 197, 768),
             **_layers("vit.encoder.layer.", 12, {"intermediate.dense.weight": (3072, 768)}), "classifier.weight": (1000, 768)},
     {"model_type": "vit", "image_size": 224, "patch_size": 16, "num_hidden_layers": 12, "num_labels": 1000,
     "intermediate_size": 3072}),
    ("clip", {"text_model.embeddings.token_embedding.weight": (49408, 512), "text_projection.weight": (512, 512),
              "text_model.embeddings.position_embedding.weight": (77, 512),
              "vision_model.embeddings.position_embedding.weight": (50, 768),
              "vision_model.embeddings.patch_embedding.weight": (768, 3, 32, 32),
              **_layers("text_model.encoder.layers.", 12, {"self_attn.q_proj.weight": (512, 512)}),
              **_layers("vision_model.encoder.layers.", 12, {"self_attn.q_proj.weight": (768, 768)})},
     {"model_type": "clip", "projection_dim": 512}),
    ("resnet", {"conv1.weight": (64, 3, 7, 7), "fc.weight": (1000, 2048), **{
        f"layer{stage}.{at}.conv{conv}.weight": (64 * 2 ** (stage - 1) * (4 if conv == 3 else 1), 64, 1, 1)
        for stage, depth in ((1, 3), (2, 4), (3, 6), (4, 3)) for at in range(depth) for conv in (1, 2, 3)}},
     {"model_type": "resnet", "depths": [3, 4, 6, 3], "hidden_sizes": [256, 512, 1024, 2048], "layer_type": "bottleneck",
     "num_labels": 1000}),
    ("unet", {"conv_in.weight": (320, 4, 3, 3), "conv_out.weight": (4, 320, 3, 3), **{
        f"down_blocks.{at}.resnets.{one}.conv1.weight": (width, 320, 3, 3) for at,
        width in enumerate((320, 640, 1280, 1280)) for one in range(2)},
        "down_blocks.0.attentions.0.transformer_blocks.0.attn2.to_k.weight": (320, 768),
        "up_blocks.0.resnets.0.conv1.weight": (1280, 1280, 3, 3)},
     {"_class_name": "UNet2DConditionModel", "block_out_channels": [320, 640, 1280, 1280], "layers_per_block": 2,
     "cross_attention_dim": 768}),
    ("mamba", {"backbone.embeddings.weight": (50280, 768), **_layers("backbone.layers.", 24, {
        "mixer.A_log": (1536, 16), "mixer.dt_proj.weight": (1536, 48)})},
     {"model_type": "mamba", "hidden_size": 768, "state_size": 16, "expand": 2, "time_step_rank": 48}),
    ("adapter",
    {f"base_model.model.model.layers.{at}.self_attn.{name}.lora_{part}.weight": shape for at in range(3) for name in ("q_proj",
    "v_proj")
                 for part, shape in (("A", (16, 4096)), ("B", (4096, 16)))},
     {"peft_type": "LORA", "r": 16, "target_modules": ["q_proj", "v_proj"], "num_hidden_layers": 3, "hidden_size": 4096}),
]  # fmt: skip


@pytest.mark.parametrize(("shapes", "wanted"), [case[1:] for case in _CASES], ids=[case[0] for case in _CASES])
def test_names_and_shapes_speak_for_an_architecture(shapes: Shapes, wanted: dict[str, object]) -> None:
    found = _guess(shapes)
    assert {key: found.get(key) for key in wanted} == wanted


def test_what_shapes_do_not_say_is_told_as_assumed() -> None:
    shapes = _decoder()
    found = guessed([Tensor(name, shape, "fp32", "parameter", at) for at, (name, shape) in enumerate(shapes.items())], {})
    assert found.notes == ("a guess from names and shapes: heads: assumed to be 128 wide; shapes do not say it",)


def test_a_config_beside_the_weights_is_taken_as_it_is() -> None:
    assert _guess(_decoder(), model_type="mistral", num_attention_heads=32) == {
        "model_type": "mistral",
        "num_attention_heads": 32,
    }


def test_names_of_no_known_architecture_give_no_guess() -> None:
    found = guessed([Tensor("alpha", (3, 4), "fp32", "parameter", 0)], {})
    assert found.config is None
    assert found.notes
