"""Memory that the picture of a model tells, against what its framework really allocates on the processor.

Each model is made with small sizes, run for real in PyTorch under its profiler, and every allocation and release that it reports
is added up; the greatest sum is the truth. Beside it stands what Tandem's liveness analysis says of the same model read as a
`config.json`, at the same batch, length and dtype. Parameters are not counted, their gradients are.

Bounds, all of which must hold for exit 0: at least twelve models; of each the forward pass without gradients and the training
step are within 10 % of the truth.

Run: `python -m bench.memory_truth [--json] [--only NAME]`.
"""

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

BOUND, FEWEST = 0.10, 12
BATCH, LENGTH = 4, 128
_TEXT: dict[str, Any] = {"vocab_size": 1000}
_SIZES: dict[str, Any] = {"hidden_size": 128, "num_hidden_layers": 4, "num_attention_heads": 4, "intermediate_size": 384}
_PLAIN = {"attention_probs_dropout_prob": 0.0}
"""PyTorch has no fused attention with dropout for the processor; elsewhere it has, and that is what Tandem counts."""
MODELS: dict[str, dict[str, Any]] = {
    "GPT2LMHeadModel": {"model_type": "gpt2", "n_embd": 128, "n_layer": 4, "n_head": 4, "attn_pdrop": 0.0, **_TEXT},
    "LlamaForCausalLM": {"model_type": "llama", **_SIZES, **_TEXT, "num_key_value_heads": 2},
    "Qwen2ForCausalLM": {"model_type": "qwen2", **_SIZES, **_TEXT, "num_key_value_heads": 2},
    "GPTNeoXForCausalLM": {"model_type": "gpt_neox", **_SIZES, **_TEXT},
    "OPTForCausalLM": {
        "model_type": "opt", "hidden_size": 128, "num_hidden_layers": 4, "num_attention_heads": 4, "ffn_dim": 384,
        "word_embed_proj_dim": 128, **_TEXT,
    },
    "BertForMaskedLM": {"model_type": "bert", **_SIZES, **_PLAIN, **_TEXT},
    "RobertaForMaskedLM": {"model_type": "roberta", **_SIZES, **_PLAIN, **_TEXT},
    "ViTForImageClassification": {"model_type": "vit", **_SIZES, "image_size": 96, "patch_size": 8},
    "ResNetForImageClassification": {
        "model_type": "resnet", "hidden_sizes": [32, 64, 128, 256], "depths": [2, 2, 2, 2], "embedding_size": 32,
    },
    "ConvNextForImageClassification": {
        "model_type": "convnext", "hidden_sizes": [32, 64, 128, 256], "depths": [2, 2, 3, 2], "image_size": 96,
    },
    "SwinForImageClassification": {
        "model_type": "swin", "embed_dim": 48, "depths": [2, 2], "num_heads": [3, 6], "image_size": 112,
    },
    "T5ForConditionalGeneration": {
        "model_type": "t5", "d_model": 128, "d_ff": 384, "d_kv": 32, "num_layers": 3, "num_heads": 4, "dropout_rate": 0.0,
        "decoder_start_token_id": 0, **_TEXT,
    },
    "DistilBertForMaskedLM": {
        "model_type": "distilbert", "dim": 128, "n_layers": 4, "n_heads": 4, "hidden_dim": 384, "attention_dropout": 0.0, **_TEXT,
    },
    "GemmaForCausalLM": {"model_type": "gemma", **_SIZES, **_TEXT, "num_key_value_heads": 1, "head_dim": 32},
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Row:
    """One model in one mode; bytes."""

    model: str
    mode: str
    truth: int
    told: int

    @property
    def off(self) -> float:
        """What is told over the truth, less one."""
        return self.told / self.truth - 1


def peak_allocated(work: Callable[[], object]) -> int:
    """Return the greatest sum of bytes that torch allocated on the processor and had not yet released during some work."""
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as seen:
        kept = work()
    del kept
    events: Any = seen.profiler
    records = [one for one in events.kineto_results.events() if one.name() == "[memory]"]
    running = worst = 0
    for one in sorted(records, key=lambda record: record.start_ns()):
        running += one.nbytes()
        worst = max(worst, running)
    return worst


def measured(name: str, config: dict[str, Any]) -> list[Row]:
    """Return the rows of one model."""
    import torch
    import transformers

    from core.picture import greatest
    from core.symbols import value_of
    from intake.files import read_model_file

    known = transformers.AutoConfig.for_model(**config)
    known.use_cache = False  # keys and values are told apart from the activations
    model = getattr(transformers, name)(known)
    rows: list[Row] = []
    text = json.dumps({**config, "architectures": [name]}).encode()
    picture = read_model_file(text, "config.json", options={"batch": BATCH, "length": LENGTH, "dtype": "fp32"}).picture
    values = picture.values(batch=BATCH, length=LENGTH, word=4)
    given = value_of(picture.inputs, values)
    inputs, labels = _inputs(model, known)

    def infer() -> object:
        with torch.no_grad():
            return model(**inputs)

    def train() -> object:
        made = model(**inputs, **labels)
        loss = made.loss if made.loss is not None else made.logits.sum()
        loss.backward()
        return made

    model.eval()
    infer()
    rows.append(Row(name, "forward", peak_allocated(infer), greatest(picture.peak_forward, values)))
    model.train()
    train()
    model.zero_grad(set_to_none=True)
    rows.append(Row(name, "training", peak_allocated(train), greatest(picture.peak_step, values)))
    assert given > 0
    return rows


def _inputs(model: Any, known: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    import torch

    if model.main_input_name == "pixel_values":
        side = getattr(known, "image_size", 224)
        return {"pixel_values": torch.randn(BATCH, 3, side, side)}, {"labels": torch.zeros(BATCH, dtype=torch.long)}
    ids = torch.randint(5, known.vocab_size, (BATCH, LENGTH))
    if known.is_encoder_decoder:
        return {"input_ids": ids, "decoder_input_ids": ids}, {"labels": ids}
    return {"input_ids": ids}, {"labels": ids}


def verdict(rows: Sequence[Row], models: int) -> tuple[bool, str]:
    """Return whether every bound holds, and the closing line."""
    off = [row for row in rows if abs(row.off) > BOUND]
    worst = max(rows, key=lambda row: abs(row.off), default=None)
    told = f"{len(rows) - len(off)} of {len(rows)} within {BOUND:.0%} over {models} models"
    if worst is not None:
        told += f"; worst {worst.model} {worst.mode} {worst.off:+.1%}"
    held = not off and models >= FEWEST
    return held, f"{'HOLDS' if held else 'FALLS SHORT'}: {told}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; exit 0 when every bound holds, else 1."""
    parser = argparse.ArgumentParser(prog="python -m bench.memory_truth", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", action="store_true", help="one JSON document in place of the table")
    parser.add_argument("--only", action="append", choices=list(MODELS), metavar="NAME", help="this one alone")
    asked = parser.parse_args(arguments)
    names = asked.only or list(MODELS)
    rows = [row for name in names for row in measured(name, MODELS[name])]
    held, said = verdict(rows, len(names))
    if asked.json:
        plain = [{**asdict(row), "off": row.off} for row in rows]
        print(json.dumps({"schema_version": 1, "holds": held, "rows": plain, "verdict": said}))
        return 0 if held else 1
    print(f"{'model':32} {'mode':9} {'truth MB':>9} {'told MB':>9} {'off':>7}")
    for row in rows:
        print(f"{row.model:32} {row.mode:9} {row.truth / 1e6:9.2f} {row.told / 1e6:9.2f} {row.off:+7.1%}")
    print("\n" + said)
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
