"""Guesses of language models from the names and shapes of their parameters.

Source of the names: the modules of Hugging Face transformers, as its checkpoints have them.
"""

from collections.abc import Callable
from math import gcd

from intake.readers.guess_names import Names

Config = dict[str, object]
_LAYER = r"(?:^|\.)layers\.(\d+)\."


def _kind_of_decoder(names: Names) -> tuple[str, str]:
    """Return model_type and what speaks for it, of a decoder with gated layers."""
    normed, biased = names.has(r"self_attn\.q_norm\."), names.has(r"self_attn\.q_proj\.bias$")
    vocabulary = names.rows(r"embed_tokens\.weight$")
    table = (
        (
            names.has(r"self_attn\.kv_a_proj_with_mqa") and names.has(r"e_score_correction_bias"),
            "deepseek_v3",
            "kv_a_proj_with_mqa and e_score_correction_bias",
        ),
        (names.has(r"self_attn\.kv_a_proj_with_mqa"), "deepseek_v2", "kv_a_proj_with_mqa"),
        (names.has(r"block_sparse_moe\.experts"), "mixtral", "block_sparse_moe.experts"),
        (names.has(r"mlp\.shared_expert\.") and names.has(r"mlp\.experts"), "qwen2_moe", "mlp.experts beside mlp.shared_expert"),
        (names.has(r"mlp\.experts") and normed, "qwen3_moe", "mlp.experts and self_attn.q_norm"),
        (names.has(r"mlp\.experts") and names.has(r"mlp\.router"), "gpt_oss", "mlp.experts and mlp.router"),
        (names.has(r"mlp\.experts"), "olmoe", "mlp.experts"),
        (names.has(r"pre_feedforward_layernorm") and normed, "gemma3_text", "pre_feedforward_layernorm and q_norm"),
        (names.has(r"pre_feedforward_layernorm"), "gemma2", "pre_feedforward_layernorm"),
        (names.has(r"post_feedforward_layernorm"), "olmo2", "post_feedforward_layernorm without one before"),
        (names.has(r"self_attn\.qkv_proj"), "phi3", "one qkv_proj and one gate_up_proj"),
        (normed, "qwen3", "self_attn.q_norm and gate_proj"),
        (biased and names.has(r"self_attn\.o_proj\.bias$"), "llama", "biases on every projection"),
        (biased, "qwen2", "biases on q, k and v alone"),
        (vocabulary in (256000, 256128), "gemma", f"a vocabulary of {vocabulary}"),
        (True, "llama", "q_proj, k_proj, gate_proj without biases (Mistral and others share these names)"),
    )
    return next((kind, why) for fits, kind, why in table if fits)


def gated_decoder(names: Names) -> tuple[Config, str] | None:
    """Return the config of a Llama-like decoder, its variants and its mixtures of experts."""
    attention = names.has(_LAYER + r"self_attn\.(q_proj|qkv_proj|kv_a_proj_with_mqa)\.")
    if (
        not attention
        or not names.has(r"(gate_proj|gate_up_proj|experts\.\d+\.w1|mlp\.experts)")
        or names.has(r"(encoder|vision|visual)\S*layers\.0")
    ):
        return None
    kind, why = _kind_of_decoder(names)
    vocabulary, width = names.first(r"embed_tokens\.weight$", 2) or (0, names.rows(r"input_layernorm\.weight$"))
    config: Config = {
        "model_type": kind,
        "vocab_size": vocabulary,
        "hidden_size": width,
        "num_hidden_layers": names.count(_LAYER),
    }
    if kind.startswith("deepseek"):
        _latent(names, config, width)
    elif kind == "phi3":
        fused = names.rows(r"self_attn\.qkv_proj\.weight")
        heads = names.heads(names.columns(r"self_attn\.o_proj\.weight", width), 128 if width >= 4096 else 96)
        each = max(width // heads, 1)
        config |= {"num_attention_heads": heads, "num_key_value_heads": max((fused - width) // (2 * each), 1),
                   "intermediate_size": names.rows(r"gate_up_proj\.weight") // 2}  # fmt: skip
    else:
        _grouped(names, config, kind)
    if names.has(r"experts"):
        _experts(names, config, kind)
    elif "intermediate_size" not in config:
        config["intermediate_size"] = names.rows(r"mlp\.gate_proj\.weight")
    config["tie_word_embeddings"] = not names.has(r"lm_head\.weight$")
    return config, why


def _grouped(names: Names, config: Config, kind: str) -> None:
    queries, keys = names.rows(r"self_attn\.q_proj\.weight"), names.rows(r"self_attn\.k_proj\.weight")
    told = names.rows(r"self_attn\.q_norm\.weight")
    width = names.rows(r"input_layernorm\.weight$")
    usual = 256 if kind.startswith("gemma") else 128 if width >= 2048 else 64
    both = gcd(queries, keys)  # a head is as wide in queries as in keys
    each = told if told and told != queries else both // names.heads(both, usual)
    config |= {
        "num_attention_heads": max(queries // max(each, 1), 1),
        "num_key_value_heads": max(keys // max(each, 1), 1),
        "head_dim": each,
    }
    if names.has(r"self_attn\.q_proj\.bias$") and kind == "llama":
        config["attention_bias"] = True


def _latent(names: Names, config: Config, width: int) -> None:
    """Add the sizes of DeepSeek's compressed attention."""
    rank = names.rows(r"kv_a_layernorm\.weight")
    rotary = names.rows(r"kv_a_proj_with_mqa\.weight") - rank
    out = names.columns(r"self_attn\.o_proj\.weight")
    names.notes.append("heads: values assumed to be 128 wide; shapes do not say it")
    heads = max(out // 128, 1)
    each = names.rows(r"self_attn\.(q_b_proj|q_proj)\.weight") // heads
    config |= {"num_attention_heads": heads, "num_key_value_heads": heads, "kv_lora_rank": rank, "qk_rope_head_dim": rotary,
               "qk_nope_head_dim": max(each - rotary, 1), "v_head_dim": 128,
               "intermediate_size": names.rows(r"layers\.0\.mlp\.gate_proj\.weight", 4 * width),
               "q_lora_rank": names.rows(r"q_a_layernorm\.weight") or None}  # fmt: skip


def _experts(names: Names, config: Config, kind: str) -> None:
    number = max(
        names.count(r"experts\.(\d+)\."), names.rows(r"(mlp|block_sparse_moe)\.gate\.weight"), names.rows(r"mlp\.router\.weight")
    )
    per = 2 if kind == "mixtral" else 8
    hidden = names.rows(r"experts\.\d+\.(w1|gate_proj)\.weight")
    names.notes.append(f"experts: {min(per, number)} of {number} assumed to be active; shapes do not say it")
    if kind == "mixtral":
        config |= {"num_local_experts": number, "num_experts_per_tok": per, "intermediate_size": hidden}
        return
    config |= {"moe_intermediate_size": hidden, "num_experts_per_tok": min(per, number)}
    config["n_routed_experts" if kind.startswith("deepseek") else "num_experts"] = number
    if kind == "qwen2_moe":
        config["shared_expert_intermediate_size"] = names.rows(r"shared_expert\.gate_proj\.weight")
    if kind.startswith("deepseek"):
        config["n_shared_experts"] = names.rows(r"shared_experts\.gate_proj\.weight") // max(hidden, 1)
        config["first_k_dense_replace"] = names.count(r"layers\.(\d+)\.mlp\.gate_proj\.weight")
    if kind == "olmoe":
        config["intermediate_size"] = hidden


def gpt2(names: Names) -> tuple[Config, str] | None:
    """Return the config of GPT-2, whose projections are stored transposed."""
    fused = names.first(r"(?:^|\.)h\.\d+\.attn\.c_attn\.weight$", 2)
    if fused is None or names.has(r"multi_query|attn\.c_attn\.weight_scale"):
        return None
    vocabulary, width = names.first(r"wte\.weight$", 2) or (0, min(fused))
    if fused[0] != width or fused[1] != 3 * width:
        kind = {"model_type": "gpt_bigcode", "multi_query": fused[0] != 3 * width}
        inner = names.rows(r"mlp\.c_fc\.weight")
    else:
        kind, inner = {"model_type": "gpt2"}, names.columns(r"mlp\.c_fc\.weight")
    return {**kind, "vocab_size": vocabulary, "n_embd": width, "n_layer": names.count(r"(?:^|\.)h\.(\d+)\."),
        "n_head": names.heads(width),
            "n_positions": names.rows(r"wpe\.weight$", 1024), "n_inner": inner or None}, "h.N.attn.c_attn beside wte"  # fmt: skip


def neox(names: Names) -> tuple[Config, str] | None:
    """Return the config of GPT-NeoX, Pythia, Falcon or BLOOM: one fused query_key_value."""
    fused = names.first(r"(?:self_)?attention\.query_key_value\.weight$", 2)
    if fused is None:
        return None
    layers, width = names.count(r"(?:layers|h)\.(\d+)\.(?:self_)?attention\."), fused[1]
    vocabulary = names.rows(r"(embed_in|word_embeddings)\.weight$")
    if names.has(r"gpt_neox|embed_in"):
        return {"model_type": "gpt_neox", "vocab_size": vocabulary, "hidden_size": width, "num_hidden_layers": layers,
                "num_attention_heads": names.heads(width), "intermediate_size": names.rows(r"mlp\.dense_h_to_4h\.weight"),
                "tie_word_embeddings": not names.has(r"embed_out")}, "gpt_neox layers with a fused query_key_value"  # fmt: skip
    if names.has(r"word_embeddings_layernorm"):
        return {"model_type": "bloom", "vocab_size": vocabulary, "hidden_size": width, "n_layer": layers,
                "n_head": names.heads(width, 128 if width > 4096 else 64)}, "word_embeddings_layernorm"  # fmt: skip
    heads = names.heads(width)
    each = width // heads
    groups = (fused[0] - width) // (2 * each)
    return {
        "model_type": "falcon",
        "vocab_size": vocabulary,
        "hidden_size": width,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "multi_query": groups == 1,
        "num_kv_heads": max(groups, 1),
        "new_decoder_architecture": names.has(r"\.ln_attn\."),
    }, "self_attention.query_key_value without gpt_neox"


def other_decoders(names: Names) -> tuple[Config, str] | None:
    """Return the config of OPT, GPT-J, GPT-Neo, Phi or StarCoder2."""
    if (
        names.has(r"decoder\.layers\.\d+\.self_attn\.q_proj")
        and names.has(r"decoder\.embed_positions")
        and not names.has(r"encoder\.layers")
    ):
        vocabulary, narrow = names.first(r"embed_tokens\.weight$", 2) or (0, 0)
        width = names.rows(r"self_attn\.q_proj\.weight", narrow)
        return {
            "model_type": "opt",
            "vocab_size": vocabulary,
            "hidden_size": width,
            "word_embed_proj_dim": narrow,
            "num_hidden_layers": names.count(r"layers\.(\d+)\."),
            "num_attention_heads": names.heads(width),
            "ffn_dim": names.rows(r"\.fc1\.weight"),
            "max_position_embeddings": names.rows(r"embed_positions\.weight") - 2,
        }, "decoder.layers and learned embed_positions"
    if names.has(r"h\.\d+\.attn\.(attention\.)?q_proj"):
        vocabulary, width = names.first(r"wte\.weight$", 2) or (0, 0)
        kind = "gpt_neo" if names.has(r"attn\.attention\.q_proj") else "gptj"
        keys = ("hidden_size", "num_layers", "num_heads") if kind == "gpt_neo" else ("n_embd", "n_layer", "n_head")
        values = (width, names.count(r"h\.(\d+)\."), names.heads(width, 256 if kind == "gptj" else 128))
        return {
            "model_type": kind,
            "vocab_size": vocabulary,
            **dict(zip(keys, values, strict=True)),
        }, "h.N.attn with separate q_proj"
    plain = (
        names.has(_LAYER + r"mlp\.(fc1|c_fc)\.") and names.has(_LAYER + r"self_attn\.q_proj") and not names.has(r"vision|encoder")
    )
    if plain:
        vocabulary, width = names.first(r"embed_tokens\.weight$", 2) or (0, 0)
        kind = "starcoder2" if names.has(r"mlp\.c_fc") else "phi"
        heads = names.heads(
            names.rows(r"self_attn\.q_proj\.weight", width), 128 if kind == "starcoder2" else 80 if width % 80 == 0 else 64
        )
        each = max(width // heads, 1)
        return {
            "model_type": kind,
            "vocab_size": vocabulary,
            "hidden_size": width,
            "num_hidden_layers": names.count(_LAYER),
            "num_attention_heads": heads,
            "num_key_value_heads": max(names.rows(r"self_attn\.k_proj\.weight", width) // each, 1),
            "intermediate_size": names.rows(r"mlp\.(fc1|c_fc)\.weight"),
        }, "self_attn with an MLP of two layers"
    return None


def state_space(names: Names) -> tuple[Config, str] | None:
    """Return the config of Mamba, whose state matrix has two axes, or of Mamba 2, whose has one."""
    if names.has(r"layers\.\d+\.mixer\.A_log"):
        vocabulary, width = names.first(r"(embeddings|embedding)\.weight$", 2) or (0, 0)
        state = names.first(r"mixer\.A_log$")
        if state is not None and len(state) == 2:
            return {"model_type": "mamba", "vocab_size": vocabulary, "hidden_size": width,
                "num_hidden_layers": names.count(r"layers\.(\d+)\."),
                    "state_size": state[1], "intermediate_size": state[0], "expand": max(state[0] // max(width, 1), 1),
                    "time_step_rank": names.columns(r"mixer\.dt_proj\.weight", 1)}, \
                    "layers.N.mixer.A_log of two axes"  # fmt: skip
        heads = state[0] if state else 1
        return {"model_type": "mamba2", "vocab_size": vocabulary, "hidden_size": width,
            "num_hidden_layers": names.count(r"layers\.(\d+)\."),
                "num_heads": heads, "head_dim": names.columns(r"mixer\.out_proj\.weight", heads) // heads}, \
                "layers.N.mixer.A_log of one axis"  # fmt: skip
    return None


def bert(names: Names) -> tuple[Config, str] | None:
    """Return the config of BERT, RoBERTa, ELECTRA, DistilBERT or DeBERTa."""
    if names.has(r"transformer\.layer\.\d+\.attention\.q_lin"):
        vocabulary, width = names.first(r"word_embeddings\.weight$", 2) or (0, 0)
        return {"model_type": "distilbert", "vocab_size": vocabulary, "dim": width, "n_layers": names.count(r"layer\.(\d+)\."),
                "n_heads": names.heads(width), "hidden_dim": names.rows(r"ffn\.lin1\.weight"),
                "max_position_embeddings": names.rows(r"position_embeddings\.weight", 512)}, \
                "transformer.layer.N.attention.q_lin"  # fmt: skip
    if not names.has(r"encoder\.layer\.\d+\.attention\.self\.(query|query_proj)\.") or not names.has(r"word_embeddings\.weight$"):
        return None
    vocabulary, narrow = names.first(r"word_embeddings\.weight$", 2) or (0, 0)
    width, positions = (
        names.rows(r"attention\.self\.(query|query_proj)\.weight", narrow),
        names.rows(r"(?<!_)position_embeddings\.weight$", 512),
    )
    types = names.rows(r"token_type_embeddings\.weight", 0)
    roberta = names.has(r"^(xlm_)?roberta\.|lm_head\.layer_norm") or positions % 512 == 2
    kind = (
        "deberta-v2"
        if names.has(r"rel_embeddings|query_proj")
        else "electra"
        if names.has(r"^electra\.|embeddings_project")
        else ("xlm-roberta" if vocabulary > 200_000 else "roberta")
        if roberta
        else "bert"
    )
    config: Config = {
        "model_type": kind, "vocab_size": vocabulary, "hidden_size": width,
        "num_hidden_layers": names.count(r"encoder\.layer\.(\d+)\."), "num_attention_heads": names.heads(width),
        "intermediate_size": names.rows(r"layer\.\d+\.intermediate\.dense\.weight"), "max_position_embeddings": positions,
        "type_vocab_size": types,
    }  # fmt: skip
    if narrow != width:
        config["embedding_size"] = narrow
    return config, f"encoder.layer.N.attention.self.query and {positions} positions"


def encoder_decoder(names: Names) -> tuple[Config, str] | None:
    """Return the config of T5, BART, Marian or Whisper."""
    if names.has(r"encoder\.block\.\d+\.layer\.0\.SelfAttention\.q"):
        vocabulary, width = names.first(r"(shared|embed_tokens)\.weight$", 2) or (0, 0)
        inner = names.rows(r"SelfAttention\.q\.weight")
        heads = names.columns(r"relative_attention_bias\.weight", 0) or names.heads(inner)
        gated = names.has(r"DenseReluDense\.wi_0")
        return {"model_type": "t5", "vocab_size": vocabulary, "d_model": width, "d_kv": inner // heads, "num_heads": heads,
                "d_ff": names.rows(r"DenseReluDense\.wi(_0)?\.weight"), "num_layers": names.count(r"encoder\.block\.(\d+)\."),
                "num_decoder_layers": names.count(r"decoder\.block\.(\d+)\."), "tie_word_embeddings": not names.has(r"lm_head"),
                "feed_forward_proj": "gated-gelu" if gated else "relu"}, "encoder.block.N.layer.0.SelfAttention"  # fmt: skip
    if not names.has(r"encoder\.layers\.\d+\.self_attn\.q_proj") or not names.has(r"decoder\.layers\.\d+\.encoder_attn"):
        return None
    audio = names.first(r"encoder\.conv1\.weight$", 3)
    width = names.rows(r"encoder\.layers\.0\.self_attn\.q_proj\.weight")
    config: Config = {
        "d_model": width, "encoder_layers": names.count(r"encoder\.layers\.(\d+)\."),
        "decoder_layers": names.count(r"decoder\.layers\.(\d+)\."), "encoder_attention_heads": names.heads(width),
        "decoder_attention_heads": max(width // 64, 1), "encoder_ffn_dim": names.rows(r"encoder\.layers\.\d+\.fc1\.weight"),
        "decoder_ffn_dim": names.rows(r"decoder\.layers\.\d+\.fc1\.weight"),
    }  # fmt: skip
    positions = names.rows(r"decoder\.embed_positions\.weight")
    if audio is not None:
        return {
            "model_type": "whisper",
            "vocab_size": names.rows(r"decoder\.embed_tokens\.weight"),
            "num_mel_bins": audio[1],
            **config,
            "max_source_positions": names.rows(r"encoder\.embed_positions\.weight", 1500),
            "max_target_positions": positions,
        }, "an encoder with conv1 over mel bins, and decoder.layers.N.encoder_attn"
    return {"model_type": "bart", "vocab_size": names.rows(r"(shared|embed_tokens)\.weight"), **config,
            "max_position_embeddings": max(positions - 2, 0)}, "encoder.layers and decoder.layers with encoder_attn"  # fmt: skip


TEXT: tuple[Callable[[Names], tuple[Config, str] | None], ...] = (
    encoder_decoder,
    gated_decoder,
    gpt2,
    neox,
    bert,
    other_decoders,
    state_space,
)
