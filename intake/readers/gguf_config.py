"""A `config.json` from what a GGUF file says of its own architecture: the keys name what shapes leave open."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from core.graph import Tensor
from intake.readers.guess_names import Guess


@dataclass(frozen=True, slots=True)
class Kept:
    """An array of the metadata: its length, and its items where they are few numbers."""

    length: int
    items: tuple[object, ...]


_KINDS: dict[str, str] = {
    "llama": "llama", "llama4": "llama4_text", "mistral3": "mistral", "qwen2": "qwen2", "qwen2moe": "qwen2_moe",
    "qwen2vl": "qwen2_vl_text", "qwen3": "qwen3", "qwen3moe": "qwen3_moe", "gemma": "gemma", "gemma2": "gemma2",
    "gemma3": "gemma3_text", "gemma3n": "gemma3n_text", "phi2": "phi", "phi3": "phi3", "phimoe": "phimoe", "falcon": "falcon",
    "gptneox": "gpt_neox", "gpt2": "gpt2", "gptj": "gptj", "bloom": "bloom", "mpt": "mpt", "starcoder": "gpt_bigcode",
    "starcoder2": "starcoder2", "stablelm": "stablelm", "command-r": "cohere", "cohere2": "cohere2", "olmo": "olmo",
    "olmo2": "olmo2", "olmoe": "olmoe", "deepseek": "deepseek", "deepseek2": "deepseek_v2", "dbrx": "dbrx", "bert": "bert",
    "nomic-bert": "nomic_bert", "t5": "t5", "t5encoder": "t5", "mamba": "mamba", "rwkv6": "rwkv6", "granite": "granite",
    "granitemoe": "granitemoe", "internlm2": "internlm2", "baichuan": "baichuan", "exaone": "exaone", "glm4": "glm4",
    "gpt-oss": "gpt_oss", "nemotron": "nemotron", "jamba": "jamba", "smollm3": "smollm3", "ernie4_5": "ernie4_5",
}  # fmt: skip
_KEYS: tuple[tuple[str, str], ...] = (
    ("block_count", "num_hidden_layers"), ("embedding_length", "hidden_size"), ("feed_forward_length", "intermediate_size"),
    ("attention.head_count", "num_attention_heads"), ("attention.head_count_kv", "num_key_value_heads"),
    ("attention.key_length", "head_dim"), ("context_length", "max_position_embeddings"),
    ("expert_used_count", "num_experts_per_tok"), ("attention.sliding_window", "sliding_window"),
    ("rope.freq_base", "rope_theta"), ("attention.layer_norm_rms_epsilon", "rms_norm_eps"),
    ("expert_feed_forward_length", "moe_intermediate_size"),
    ("expert_shared_feed_forward_length", "shared_expert_intermediate_size"), ("attention.kv_lora_rank", "kv_lora_rank"),
    ("attention.q_lora_rank", "q_lora_rank"), ("leading_dense_block_count", "first_k_dense_replace"),
    ("expert_shared_count", "n_shared_experts"), ("ssm.state_size", "state_size"), ("ssm.conv_kernel", "conv_kernel"),
)  # fmt: skip


def config_of(metadata: Mapping[str, object], tensors: Sequence[Tensor]) -> Guess:
    """Return the config that a file's own keys speak for.

    Args:
        metadata: by key, without the vocabularies.
        tensors: with their names, as GGUF has them.
    """
    architecture = metadata.get("general.architecture")
    if not isinstance(architecture, str):
        return Guess(None, (), ("the file does not say its general.architecture",))
    found: dict[str, object] = {}
    notes: list[str] = []
    for key, name in _KEYS:
        value = metadata.get(f"{architecture}.{key}")
        items = value.items if isinstance(value, Kept) else ()
        if value is not None and items:
            value = max((one for one in items if isinstance(one, int | float)), default=None)
            if len(set(items)) > 1:
                notes.append(f"{key} differs from layer to layer: its greatest is told")
        if isinstance(value, int | float) and not isinstance(value, bool):
            found[name] = value
    shapes = {tensor.name: tensor.shape for tensor in tensors}
    embedded = shapes.get("token_embd.weight")
    if embedded and len(embedded) == 2:
        found["vocab_size"] = embedded[0]
    experts = metadata.get(f"{architecture}.expert_count")
    kind = _KINDS.get(architecture)
    if isinstance(experts, int) and experts:
        found[
            "num_local_experts"
            if architecture == "llama"
            else "n_routed_experts"
            if architecture.startswith("deepseek")
            else "num_experts"
        ] = experts
        kind = "mixtral" if architecture == "llama" else kind
    if kind == "deepseek_v2" and any(name.endswith("exp_probs_b.bias") for name in shapes):
        kind = "deepseek_v3"
    if kind in ("deepseek_v2", "deepseek_v3"):
        _latent(metadata, architecture, found)
    if kind is None:
        return Guess(None, (), (f"the architecture {architecture:.60} has no Hugging Face model_type that is known here",))
    found["tie_word_embeddings"] = "output.weight" not in shapes
    if kind == "qwen2" or any(name == "blk.0.attn_q.bias" for name in shapes):
        found["attention_bias"] = "blk.0.attn_q.bias" in shapes
    return Guess({"model_type": kind, **_renamed(kind, found)},
        (f"{kind}: the file says general.architecture {architecture}, with its sizes",),
                 tuple(notes))  # fmt: skip


def _latent(metadata: Mapping[str, object], architecture: str, found: dict[str, object]) -> None:
    """Put the head widths of DeepSeek's attention in the config's own words."""
    rotary = metadata.get(f"{architecture}.rope.dimension_count")
    key = metadata.get(f"{architecture}.attention.key_length_mla", metadata.get(f"{architecture}.attention.key_length"))
    value = metadata.get(f"{architecture}.attention.value_length_mla", metadata.get(f"{architecture}.attention.value_length"))
    found.pop("head_dim", None)
    if isinstance(rotary, int) and isinstance(key, int):
        found |= {"qk_rope_head_dim": rotary, "qk_nope_head_dim": key - rotary}
    if isinstance(value, int):
        found["v_head_dim"] = value


def _renamed(kind: str, found: Mapping[str, object]) -> dict[str, object]:
    """Return a config with the names that its family has for them."""
    names: dict[str, str] = {}
    if kind in ("gpt2", "gptj", "gpt_bigcode"):
        names = {"num_hidden_layers": "n_layer", "hidden_size": "n_embd", "num_attention_heads": "n_head",
            "intermediate_size": "n_inner",
                 "max_position_embeddings": "n_positions"}  # fmt: skip
    elif kind in ("bloom", "mpt"):
        names = {
            "num_hidden_layers": "n_layers" if kind == "mpt" else "n_layer",
            "num_attention_heads": "n_heads" if kind == "mpt" else "n_head",
        }
    elif kind == "t5":
        names = {"num_hidden_layers": "num_layers", "hidden_size": "d_model", "num_attention_heads": "num_heads",
            "intermediate_size": "d_ff",
                 "head_dim": "d_kv"}  # fmt: skip
    return {names.get(key, key): value for key, value in found.items()}
