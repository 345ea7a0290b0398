"""Makes the samples of weights alone with the libraries of their formats: needs safetensors, gguf and numpy; the tests do not."""

import json
from pathlib import Path

import gguf
import numpy as np
from safetensors.numpy import save_file

HERE = Path(__file__).resolve().parent
WIDTH, HIDDEN, WORDS, HEADS, GROUPS = 16, 32, 24, 2, 1


def llama(layers: int) -> dict[str, np.ndarray]:
    """Return a small Llama's weights by Hugging Face's names."""
    each = WIDTH // HEADS
    found = {"model.embed_tokens.weight": np.zeros((WORDS, WIDTH), np.float16), "model.norm.weight": np.ones(WIDTH, np.float16),
             "lm_head.weight": np.zeros((WORDS, WIDTH), np.float16)}  # fmt: skip
    for at in range(layers):
        shapes = {"self_attn.q_proj": (WIDTH, WIDTH),
                  "self_attn.k_proj": (GROUPS * each, WIDTH), "self_attn.v_proj": (GROUPS * each, WIDTH),
                  "self_attn.o_proj": (WIDTH, WIDTH), "mlp.gate_proj": (HIDDEN, WIDTH), "mlp.up_proj": (HIDDEN, WIDTH),
                  "mlp.down_proj": (WIDTH, HIDDEN), "input_layernorm": (WIDTH,),
                  "post_attention_layernorm": (WIDTH,)}  # fmt: skip
        found |= {f"model.layers.{at}.{name}.weight": np.zeros(shape, np.float16) for name, shape in shapes.items()}
    return found


def main() -> None:
    """Write every sample."""
    folder = HERE / "safetensors"
    weights = llama(2)
    save_file(weights, folder / "llama.safetensors", metadata={"format": "pt"})
    names = sorted(weights)
    shards = folder / "sharded"
    shards.mkdir(exist_ok=True)
    parts = {"model-00001-of-00002.safetensors": names[::2], "model-00002-of-00002.safetensors": names[1::2]}
    for file, held in parts.items():
        save_file({name: weights[name] for name in held}, shards / file)
    index = {"metadata": {}, "weight_map": {name: file for file, held in parts.items() for name in held}}
    (shards / "model.safetensors.index.json").write_text(json.dumps(index), encoding="utf-8")
    (shards / "config.json").write_text(json.dumps({"model_type": "llama", "num_attention_heads": HEADS}), encoding="utf-8")
    writer = gguf.GGUFWriter(HERE / "gguf" / "llama.gguf", "llama")
    writer.add_name("small llama")
    writer.add_block_count(2)
    writer.add_embedding_length(256)
    writer.add_feed_forward_length(512)
    writer.add_head_count(8)
    writer.add_head_count_kv(2)
    writer.add_context_length(2048)
    writer.add_token_list(["a", "b", "c"])
    writer.add_tensor("token_embd.weight", np.zeros((8, 256), np.float16))
    writer.add_tensor("output_norm.weight", np.ones(256, np.float32))
    rng = np.random.default_rng(0)
    for name, kind in (
        ("blk.0.attn_q.weight", gguf.GGMLQuantizationType.Q8_0),
        ("blk.1.attn_q.weight", gguf.GGMLQuantizationType.Q4_0),
    ):
        data = gguf.quants.quantize(rng.standard_normal((16, 256)).astype(np.float32), kind)
        writer.add_tensor(name, data, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    main()
