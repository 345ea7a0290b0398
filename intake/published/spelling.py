"""Spellings of published tables: what their words for an accelerator, a precision, a framework, a task and a number mean.

Tables of other people write `TPU v5p`, `H100 80GB`, `bfloat16`, `PyTorch 2.3`, `TensorRT-LLM`. A name that the catalog would ask
about means in such a table what almost every published row means by it: the board with the mezzanine link, the larger memory.
"""

import re
from datetime import date
from functools import lru_cache
from math import isfinite

import catalog
from core.device import Accelerator
from core.errors import BadInput, NotFound

_KEYS = {
    "v100": "v100-16", "v2": "tpu-v2", "v3": "tpu-v3", "v4": "tpu-v4", "v5e": "tpu-v5e", "v5p": "tpu-v5p", "v6e": "tpu-v6e",
    "v7": "tpu-v7", "v7x": "tpu-v7", "a100": "a100-80", "h100": "h100-sxm", "trn1": "trainium1", "trn2": "trainium2",
}  # fmt: skip
"""Names that tables of measurements use where they mean one thing."""
_MAKERS = re.compile(r"^(?:nvidia|tesla|google|cloud|aws|amd|intel)[ _-]+")
_MEMORY = re.compile(r"[ _-]{0,4}\d{1,6} ?gi?b$")
_PRECISIONS = {
    "bfloat16": "bf16", "float16": "fp16", "half": "fp16", "float32": "fp32", "single": "fp32", "float64": "fp64",
    "double": "fp64", "awq": "int4", "gptq": "int4", "w4a16": "int4", "w8a8": "int8", "w8a16": "int8", "nvfp4": "fp4",
    "mxfp4": "fp4", "mxfp8": "fp8", "e4m3": "fp8", "e5m2": "fp8",
}  # fmt: skip
_NARROWEST_FIRST = ("fp4", "int4", "fp8", "int8", "fp16", "bf16", "tf32", "fp32", "fp64")
_FRAMEWORKS = {
    "tf": "tensorflow", "tf2": "tensorflow", "tensorflow2": "tensorflow", "tensorrt-llm": "trtllm",
    "tensorrtllm": "trtllm", "trt-llm": "trtllm",
    "maxtext": "jax/maxtext", "levanter": "jax/levanter", "axlearn": "jax/axlearn", "pax": "jax/pax", "paxml": "jax/pax",
    "t5x": "jax/t5x", "flax": "jax/flax", "easylm": "jax/easylm", "nemo": "torch/nemo", "megatron": "torch/megatron",
    "megatron-lm": "torch/megatron", "megatron-core": "torch/megatron", "megatron-bridge": "torch/nemo",
    "deepspeed": "torch/deepspeed", "torchtitan": "torch/torchtitan", "llm-foundry": "torch/llm-foundry",
    "transformers": "torch/transformers", "huggingface": "torch/transformers", "vllm": "torch/vllm", "sglang": "torch/sglang",
    "tgi": "torch/tgi", "gpt-fast": "torch/gpt-fast", "torch-xla": "torch/xla", "pytorch-xla": "torch/xla",
    "paddle": "paddlepaddle", "jetstream": "jetstream/torch", "keras": "tensorflow+keras",
    "keras-jax": "jax/keras", "keras/jax": "jax/keras", "keras/torch": "torch/keras", "keras/tensorflow": "tensorflow+keras",
}  # fmt: skip
"""Libraries that a table names alone, with the framework below them; `pytorch` is written `torch` in all of them."""

_NO_TPU = frozenset(("mxnet", "paddlepaddle", "megatron", "nemo", "deepspeed"))
"""Frameworks and libraries that have no backend for TPUs.

Sources: support table of the catalog (MXNet), rules R004 and following on libraries that are bound to CUDA.
"""
_NVIDIA_ONLY = frozenset(("trtllm", "tensorrt", "hugectr", "apex"))
"""Those that are compiled for NVIDIA's chips alone. Source: their own documentation."""


def number(text: str | None) -> float | None:
    """Return a number of a column, None for an empty one or words; `1,024` is a thousand and some."""
    plain = (text or "").strip()
    try:
        return float(plain)
    except ValueError:
        grouped = re.fullmatch(r"[+-]?\d{1,3}(?:,\d{3})+(?:\.\d+)?", plain)
        return float(plain.replace(",", "")) if grouped else None


def positive(text: str | None) -> float | None:
    """Return a number above 0 that is finite, None for anything else."""
    value = number(text)
    return value if value is not None and isfinite(value) and value > 0 else None


@lru_cache(maxsize=4096)
def accelerator_key(name: str) -> tuple[str, int | None]:
    """Return the key of the accelerator that a table means, and the chips that its name counts, if it does.

    Args:
        name: as in the table.

    Raises:
        BadInput: the catalog knows nothing of that name, or it names a slice that does not exist.
    """
    plain = " ".join(name.lower().split())
    if plain in _KEYS:
        return _KEYS[plain], None
    try:
        named = catalog.parse_name(name)
    except NotFound:
        raise
    except BadInput:
        short = _KEYS.get(_MEMORY.sub("", _MAKERS.sub("", plain)))
        if short is None:
            raise
        return short, None
    return named.key, named.chips


def precision_of(text: str) -> str | None:
    """Return the dtype that a table names, None when it names none; a name of no known kind is returned as it is.

    Args:
        text: of the column, `BF16`, `bfloat16`, `fp8-e4m3`.
    """
    words = [word for word in re.split(r"[^a-z0-9]+", text.lower()) if word not in ("", "mixed", "amp", "precision")]
    known = [_PRECISIONS.get(word, word) for word in words]
    # "fp32 (TF32)" multiplies in TF32, "fp8 / bf16" in fp8: the narrowest is what the products run in
    found = [dtype for dtype in _NARROWEST_FIRST if dtype in known]
    return found[0] if found else "-".join(words) or None


def framework_of(text: str) -> str:
    """Return a framework, with its library, as the cost model names it: `pytorch/fsdp` is `torch/fsdp`.

    Args:
        text: of the column; a version behind the name is left out.
    """
    whole = text.strip().lower()
    plain = re.sub(r"[ _=-]{1,4}v?\d{1,9}(?:\.\d{1,9}){0,6}\w{0,30}$", "", whole) or whole or "unknown"
    plain = re.sub(r"[ _]+", "-", plain)
    return _FRAMEWORKS.get(plain, plain.replace("pytorch", "torch", 1))


def refuse_unrunnable(text: str, chip: Accelerator) -> None:
    """Refuse a framework that has never had a backend for a chip.

    Args:
        text: of the column.
        chip: of the run.

    Raises:
        BadInput: it has none.
    """
    words = set(re.split(r"[/+-]", framework_of(text)))
    no_tpu, foreign = words & _NO_TPU, words & _NVIDIA_ONLY
    if (no_tpu and chip.kind == "tpu") or (foreign and chip.vendor != "NVIDIA"):
        expected = f"a framework that runs on {chip.name}"
        raise BadInput(f"framework {text[:40]!r} on {chip.key}", expected, "correct framework or accelerator")


def is_date(text: str) -> bool:
    """Return whether a text is a day, a month or a year of 2010 to 2049 (`2025-06-30`, `2025-06`, `2025`).

    Args:
        text: of the column.
    """
    found = re.fullmatch(r"20[1-4]\d(-\d\d){0,2}", text)
    try:
        return found is not None and bool(date.fromisoformat(text + "-01-01"[len(text) - 4 :] if len(text) < 10 else text))
    except ValueError:
        return False


def group_of(task: str) -> str:
    """Return `training`, `inference` or `other` for the task of a row."""
    plain = task.strip().lower()
    if plain == "gnn" or re.search(r"train|fine-?_?tun|lora|\bsft\b", plain):
        return "training"
    return "inference" if re.search(r"infer|serv|decod|prefill|generat", plain) else "other"
