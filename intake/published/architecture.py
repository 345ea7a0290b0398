"""The model of a published row: its sizes in columns, the rest in a phrase ("SwiGLU 3-matrix MLP; GQA; 1 shared expert")."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from core.errors import BadInput
from core.sketch import Sketch, Windows
from core.sketching import sketch_of
from intake.published.reference import reference_of
from intake.published.spelling import number
from intake.understand import read_text

Row = Mapping[str, str]
_MLA_WIDTHS = (1536, 512, 128, 64, 128)
"""Ranks of queries and of keys and values, widths of a head without and with positions, width of a value.

Source: DeepSeek-V3 technical report, arXiv:2412.19437, section 4.2; Kimi K2 keeps them.
"""
_DECODER_SHARE_OF_T5 = 0.55
_TARGET_OF_512 = 114
"""Target tokens of span corruption for 512 inputs. Source: Raffel et al., arXiv:1910.10683, section 3.1.4."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """What the columns and the phrase of a row say of a transformer; 0 where they say nothing."""

    layers: float
    width: float
    heads: float
    kv_heads: float
    head_width: float
    hidden: float
    vocabulary: float
    experts: float
    used: float
    shared: float
    every: float
    dense_hidden: float
    dense_layers: float
    gated: bool
    latent: bool
    tied: bool
    causal: bool
    windows: Windows


_VIT = re.compile(r"ViT|\bvit[-_ ]|vision transformer", re.ASCII)
"""Names of models that see pictures as patches."""


def in_words(pattern: str, text: str) -> float | None:
    """Return the first number that a pattern finds in a phrase."""
    found = re.search(pattern, text, re.IGNORECASE)
    return None if found is None else float(found.group(1))


def sketch_from(row: Row) -> Sketch:
    """Return the sketch of a row's model.

    Raises:
        BadInput: the row does not say enough of it; the message says what is missing.
    """
    phrase, model = row.get("arch_notes", ""), row.get("model", "")
    if _VIT.search(model) and not _image(phrase):  # its notes say no more than a side, or nothing
        side = in_words(r"(?:image|img|resolution|side)[ =:]*(\d+)", phrase) or in_words(r"(\d+) ?(?:px|pixels)", phrase) or 224.0
        phrase = f"{phrase}; ViT {side:.0f}x{side:.0f}"
        row = {**row, "arch_notes": phrase}
    known = reference_of(model, phrase)
    if known is not None:
        return known
    sizes = _sizes(row)
    parameters = (number(row.get("params_b")) or 0.0) * 1e9
    if "enc-dec" in phrase.lower() or "encoder-decoder" in phrase.lower():
        return _encoder_decoder(model, sizes, parameters, phrase)
    if all((sizes.layers, sizes.width, sizes.heads, sizes.hidden)):
        return _transformer(model, sizes, parameters, phrase)
    preset = _preset_of(model)
    if preset is not None:
        return preset
    return _by_parameters(model, sizes, parameters, phrase)


def _sizes(row: Row) -> Sizes:
    phrase = row.get("arch_notes", "")
    layers, width, heads, hidden = (number(row.get(name)) or 0.0 for name in ("n_layers", "d_model", "n_heads", "d_ff"))
    experts, used = (number(row.get(name)) or 0.0 for name in ("moe_experts", "moe_topk"))
    two = bool(re.search(r"2-matrix", phrase))
    gated = bool(re.search(r"SwiGLU|GeGLU|3-matrix|gated", phrase, re.IGNORECASE)) or (not two and _modern(phrase, experts))
    silent = not two and not gated and not re.search(r"\bGELU|\bReLU|DiT|\benc|cross", phrase, re.IGNORECASE)
    gated = gated or (silent and _has_gates(row))
    image = bool(re.search(r"\dx\d|\btokens\b|DiT|ViT", phrase))
    encoder = bool(re.search(r"\bencoder\b", phrase)) or "BERT" in row.get("model", "")
    return Sizes(
        layers,
        width,
        heads,
        number(row.get("n_kv_heads")) or heads,
        in_words(r"head_dim (\d+)", phrase) or (width / heads if heads else 0.0),
        hidden,
        number(row.get("vocab")) or 0.0,
        experts,
        used,
        in_words(r"(\d+) shared", phrase) or 0.0,
        2.0 if re.search(r"every (2nd|second|other)", phrase) else 1.0,
        in_words(r"dense d_ff (\d+)", phrase) or in_words(r"layers (\d\d+)\)", phrase) or hidden,
        in_words(r"first (\d+) layers", phrase) or 0.0,
        gated,
        "MLA" in phrase,
        "tied" in phrase and "untied" not in phrase,
        not (encoder or image),
        _windows(phrase),
    )


def _modern(phrase: str, experts: float) -> bool:
    """Whether a phrase that names no kind of MLP is of a kind that has had gates since 2023."""
    return experts > 0 or bool(re.search(r"RMSNorm|RoPE|GQA|head_dim", phrase))


def _has_gates(row: Row) -> bool:
    """Whether the parameters of a dense model are nearer to those with three matrices in an MLP than with two."""
    names = ("n_layers", "d_model", "n_heads", "d_ff", "vocab", "params_b")
    layers, width, heads, hidden, vocabulary, billions = (number(row.get(name)) or 0.0 for name in names)
    if not all((layers, width, heads, hidden, billions)):
        return False
    attention = 2 * width * width * (1 + (number(row.get("n_kv_heads")) or heads) / heads)

    def off(matrices: int) -> float:
        body = layers * (attention + matrices * width * hidden)
        return min(abs(body + tables * vocabulary * width - billions * 1e9) for tables in (1, 2))

    return off(3) < off(2)


def _windows(phrase: str) -> Windows:
    found = re.search(r"(\d{1,9}):1 local\((\d{1,9})\)", phrase)
    if found:
        local = float(found.group(1))
        return ((local / (local + 1), float(found.group(2))),)
    window = in_words(r"alternating (?:sliding )?window (\d+)", phrase)
    if window:
        return ((0.5, window),)
    window = in_words(r"sliding[- ]window (\d+)", phrase)
    if window:
        return ((1.0, window),)
    # Llama 4: three layers of four look at chunks of 8,192. Source: its model card and config.json (attention_chunk_size).
    return ((0.75, 8192.0),) if "chunked attention" in phrase else ()


def _transformer(model: str, sizes: Sizes, parameters: float, phrase: str) -> Sketch:
    d, ff, layers = sizes.width, sizes.hidden, sizes.layers
    queries, keys = sizes.heads * sizes.head_width, sizes.kv_heads * sizes.head_width
    attention, per_pair, cached = _attention_of(sizes)
    matrices = 3.0 if sizes.gated else 2.0
    mixed = (layers - sizes.dense_layers) / sizes.every if sizes.experts else 0.0
    plain = layers - mixed
    plain_hidden = sizes.dense_hidden if sizes.experts else ff
    dense = layers * attention + plain * matrices * d * plain_hidden
    used = mixed * matrices * d * ff * (sizes.used + sizes.shared)
    held = mixed * matrices * d * ff * (sizes.experts + sizes.shared)
    table = sizes.vocabulary * d
    inner = plain * plain_hidden + mixed * ff * (sizes.used + sizes.shared)
    vector = layers * (16 * d + 4 * (queries + keys)) + (3.0 if sizes.gated else 2.5) * inner
    saved = layers * (5 * d + 2 * (queries + keys)) + (3.0 if sizes.gated else 2.0) * inner
    kind = "mixture" if sizes.experts else "decoder" if sizes.causal else "vision" if _image(phrase) else "encoder"
    if "DiT" in phrase:
        kind = "diffusion"
    sequence = (in_words(r"(\d+) tokens", phrase) or _patches(phrase)) if kind == "vision" else 0.0
    inside = max(1.0, sequence)  # a model that counts samples has all its positions in one
    return Sketch(
        name=model,
        kind=kind,
        linear_flop=2 * dense * inside,
        expert_flop=2 * used * inside,
        head_flop=2 * table,
        attention_flop=layers * per_pair,
        vector_elements=vector * inside,
        logits=sizes.vocabulary,
        parameters=parameters or dense + held + table * (1 if sizes.tied else 2),
        expert_parameters=held,
        layers=layers,
        width=d,
        head_width=sizes.head_width,
        hidden=ff,
        experts=sizes.experts,
        experts_used=sizes.used,
        cached_elements=layers * cached,
        saved_elements=saved * inside,
        kernels=layers * 15.0,
        windows=sizes.windows,
        causal=sizes.causal,
        length=sequence,
        products=_products(sizes, queries, keys, matrices),
    )


def _products(sizes: Sizes, queries: float, keys: float, matrices: float) -> tuple[tuple[float, float, float], ...]:
    """Return (columns, depth, part of the FLOPs) of a layer's products."""
    d, ff = sizes.width, sizes.hidden
    shapes = [(queries + 2 * keys, d), (d, queries), (ff, d), (d, ff)]
    weights = [d * (queries + 2 * keys), d * queries, (matrices - 1) * d * ff, d * ff]
    return tuple((columns, depth, weight / sum(weights)) for (columns, depth), weight in zip(shapes, weights, strict=True))


def _patches(phrase: str) -> float:
    """Return the patches of 16 x 16 of a square image with the class token, for `224x224`."""
    side = in_words(r"(\d+)x\d+", phrase) or 224.0
    return (side // 16) ** 2 + 1


def _attention_of(sizes: Sizes) -> tuple[float, float, float]:
    """Return parameters of one layer's projections, FLOPs of one query and key, elements kept of one position."""
    d, heads = sizes.width, sizes.heads
    if sizes.latent:
        q_rank, kv_rank, plain, rotary, value = _MLA_WIDTHS
        weights = d * q_rank + q_rank * heads * (plain + rotary) + d * (kv_rank + rotary)
        weights += kv_rank * heads * (plain + value) + heads * value * d
        return weights, 2.0 * heads * (plain + rotary + value), kv_rank + rotary
    queries, keys = heads * sizes.head_width, sizes.kv_heads * sizes.head_width
    return d * queries * 2 + 2 * d * keys, 4.0 * queries, 2.0 * keys


def _image(phrase: str) -> bool:
    return bool(re.search(r"\dx\d|\d tokens|ViT", phrase))


def _encoder_decoder(model: str, sizes: Sizes, parameters: float, phrase: str) -> Sketch:
    """Return the sketch of a T5-like model per input token: the decoder sees fewer tokens than the encoder."""
    if not parameters or not sizes.width:
        raise BadInput(f"an encoder-decoder model {model!r}", "its parameters and width", "fill params_b and d_model")
    layers = in_words(r"(\d+)\+", phrase) or sizes.layers or 24.0
    share = _TARGET_OF_512 / 512
    table = sizes.vocabulary * sizes.width
    body = parameters - table * (1 if sizes.tied else 2)
    part = (1 - _DECODER_SHARE_OF_T5) + _DECODER_SHARE_OF_T5 * share
    heads = sizes.heads * (sizes.head_width or 64.0) or sizes.width
    hidden = sizes.hidden or 4 * sizes.width
    return Sketch(
        name=model,
        kind="encoder-decoder",
        linear_flop=2 * body * part,
        head_flop=2 * table * share,
        attention_flop=4.0 * heads * layers * part,
        vector_elements=2 * layers * part * (16 * sizes.width + 3 * hidden),
        logits=sizes.vocabulary * share,
        parameters=parameters,
        layers=2 * layers,
        width=sizes.width,
        head_width=sizes.head_width or 64.0,
        hidden=hidden,
        kernels=2 * layers * 15.0,
        saved_elements=2 * layers * part * (7 * sizes.width + 3 * hidden),
    )


def _by_parameters(model: str, sizes: Sizes, parameters: float, phrase: str) -> Sketch:
    """Return the sketch of a language model whose shapes are not published: two FLOPs a parameter that is used.

    Raises:
        BadInput: it is a mixture, and how many parameters one token uses is not said.
    """
    active = in_words(r"([\d.]+)B active", phrase)
    mixture = "MoE" in phrase or sizes.experts > 0
    if not parameters:
        raise BadInput(
            f"a model {model!r} without sizes", "layers and widths, or at least its parameters", "fill the row's columns"
        )
    if mixture and not active:
        raise BadInput(f"a mixture of experts {model!r} without shapes", "how many parameters are active",
                       "fill the sizes, or write '12B active' in arch_notes")  # fmt: skip
    if re.search(r"CNN|conv|GAT|embedding tables|LSTM|detection|Net\b", phrase):
        raise BadInput(f"a model {model!r} without shapes", "a known model or its operations", "use a preset's name or its sizes")
    used = (active * 1e9) if active else parameters
    vocabulary = sizes.vocabulary or 128_000.0
    width = sizes.width or max(512.0, (used / (12 * 40)) ** 0.5)
    layers = sizes.layers or 40.0
    table = vocabulary * width
    body = max(used - 2 * table, 0.5 * used)
    # layers of a state space move their state through memory beside their products. Source: Dao and Gu, arXiv:2405.21060
    moved = 2.5 if re.search(r"mamba|state[- ]space|\bSSM\b", phrase, re.IGNORECASE) else 1.0
    return Sketch(
        name=model,
        kind="mixture" if mixture else "decoder",
        linear_flop=body * (0.8 if mixture else 2.0),
        expert_flop=body * 1.2 if mixture else 0.0,
        head_flop=2 * table,
        attention_flop=4.0 * width * layers,
        vector_elements=moved * layers * 32 * width,
        logits=vocabulary,
        parameters=parameters,
        expert_parameters=max(0.0, parameters - 0.4 * body - 2 * table) if mixture else 0.0,
        layers=layers,
        width=width,
        head_width=128.0,
        hidden=width / 4 if mixture else width,
        experts=sizes.experts or (128.0 if mixture else 0.0),
        experts_used=sizes.used or (8.0 if mixture else 0.0),
        cached_elements=layers * width / 4,
        saved_elements=layers * 17 * width,
        kernels=layers * 15.0,
        causal=True,
    )


def _preset_of(model: str) -> Sketch | None:
    """Return the sketch of a preset that a model's name begins with (`ResNet-50-v1.5` is `resnet-50`)."""
    plain = re.sub(r"[^a-z0-9]+", "-", model.lower())
    for name in ("resnet-50", "mobilenet-v2", "bert-base", "vit-b16", "gpt2-small", "llama-3-8b"):
        if plain.startswith(name):
            return _sketch_of_preset(name)
    return _sketch_of_preset("vit-b16") if plain.startswith("vit-b-16") else None


@cache
def _sketch_of_preset(name: str) -> Sketch:
    return sketch_of(read_text(f"{name}:train").workload)
