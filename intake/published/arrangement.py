"""How a published run was divided: degrees of parallelism, micro-batch, recomputation, out of a column and a note in words."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from core.errors import BadInput
from core.sketch import Layout
from intake.published.architecture import in_words
from intake.published.reference import target_of
from intake.published.spelling import number, positive

_FULLY_RECOMPUTED = re.compile(
    r"remat full|full remat|full recompute|activation_checkpointing=True|full activation", re.IGNORECASE
)
_OF_NONE = re.compile(r"(?<![a-z])(?:dcn_)?(?:tp|pp|cp|vp|ep|dp|sp|etp|fsdp|hsdp)[ =:-]?0+\b")
"""A degree of nothing, which no run has."""
_PARTLY_RECOMPUTED = re.compile(r"custom remat|offload|selective", re.IGNORECASE)
_NOT_RECOMPUTED = re.compile(r"remat minimal|minimal remat|activation_checkpointing=False|no remat|remat none", re.IGNORECASE)

_MICRO_BATCH, _PARTS = r"\b(?:mbs|micro-?batch) (\d+)", r"grad_accum (\d+)"


@dataclass(frozen=True, slots=True)
class Amounts:
    """Batch and length of a run with what was assumed for them."""

    batch: float
    length: float
    assumed: tuple[str, ...]


def amounts_of(row: Mapping[str, str], fixed_length: float, kind: str) -> Amounts:
    """Return the global batch and the length of a run.

    Args:
        row: one published row.
        fixed_length: positions of one sample where the model fixes them, else 0.
        kind: class of the model; only language models have a length.
    """
    notes, chips = row.get("notes", ""), number(row.get("n_devices")) or 1.0
    assumed: list[str] = []
    speaks = kind in ("decoder", "mixture", "encoder", "encoder-decoder", "diffusion")
    length = positive(row.get("seq_len")) if speaks else 1.0
    if length is None:
        length = fixed_length or 2048.0
        assumed.append(f"length {length:g}: not stated")
    batch = positive(row.get("global_batch"))
    if batch is None:
        each = positive(row.get("per_device_batch")) or in_words(r"per-device batch (\d+)", notes) or None
        tokens = in_words(r"tokens per device (\d+)", notes) or None
        if each is not None:
            batch = each * chips
        elif tokens is not None:
            batch = tokens * chips / length
        else:
            known = target_of(row.get("model", ""))
            batch = _usual_batch(kind, length) * chips
            batch = batch if known is None else max(chips, min(batch, known.usual_batch))
            assumed.append(f"batch {batch:g}: not stated")
    return Amounts(batch, length, tuple(assumed))


def _usual_batch(kind: str, length: float) -> float:
    """Return a usual batch of one chip where nothing is said: 8,192 tokens, 128 images, 8,192 clicks."""
    if kind in ("decoder", "mixture", "encoder", "encoder-decoder"):
        return max(1.0, 8192.0 / length)
    return {"recommender": 8192.0, "graph": 1024.0}.get(kind, 128.0 if kind != "diffusion" else 1.0)


def layout_of(row: Mapping[str, str], batch: float, tpu: bool) -> Layout:
    """Return how a run is divided.

    Args:
        row: one published row.
        batch: samples in one global step.
        tpu: whether it runs on TPUs, where JAX shards what it can.

    Raises:
        BadInput: the degrees that are stated are of nothing, or do not divide the chips.
    """
    text, notes = row.get("parallelism", "").lower(), row.get("notes", "")
    chips = number(row.get("n_devices")) or 1.0
    nothing = _OF_NONE.search(text)
    if nothing is not None:
        raise BadInput(f"parallelism {text[:60]!r}", f"degrees from 1 on, not {nothing.group()}", "correct it or leave it out")
    tensor, pipeline = _degree("tp", text), _degree("pp", text)
    context, virtual = _degree("cp", text), _degree("vp", text)
    expert = _degree("ep", text)
    ways = tensor * pipeline * context
    if chips >= 1 and chips % ways:
        raise BadInput(f"{text!r} on {chips:g} chips", f"degrees that divide them, not {ways}", "correct one of them")
    data = max(1, round(chips / ways))
    islands = int(in_words(r"dp(\d{1,7}) over dcn", text) or in_words(r"dcn_\w*?(\d{1,7})", text) or 1)
    micro, parts = in_words(_MICRO_BATCH, notes) or None, in_words(_PARTS, notes)
    if micro is None and "micro-batch" in notes:
        micro = positive(row.get("per_device_batch"))
    if micro is None:
        micro = batch / data / (parts or 1.0) if pipeline == 1 else 1.0
    framework = row.get("framework", "")
    sharded = _sharded(text, framework, data, islands, tpu)
    return Layout(
        data=data,
        tensor=tensor,
        pipeline=pipeline,
        context=context,
        expert=expert,
        virtual=virtual,
        sharded=sharded,
        micro_batch=max(min(micro, batch / data), 1e-6),
        recompute=_recomputed(notes, framework, tpu),
        islands=islands,
    )


def guessed_of(row: Mapping[str, str]) -> tuple[str, ...]:
    """Return which of `division` and `micro-batch` nobody stated of a run, so that its layout has them by habit.

    Args:
        row: one published row.
    """
    notes = row.get("notes", "")
    micro = in_words(_MICRO_BATCH, notes) or in_words(_PARTS, notes) or "micro-batch" in notes
    return (*(() if row.get("parallelism", "").strip() else ("division",)), *(() if micro else ("micro-batch",)))


def check_batches(row: Mapping[str, str], layout: Layout) -> None:
    """Refuse a run whose devices take more samples than its whole step has.

    Args:
        row: one published row.
        layout: as it is divided.

    Raises:
        BadInput: the two batches contradict each other.
    """
    whole, each = positive(row.get("global_batch")), positive(row.get("per_device_batch"))
    if whole is not None and each is not None and each * layout.data > whole * 1.001:
        got = f"a global_batch of {whole:g} and a per_device_batch of {each:g} on {layout.data:g} replicas"
        raise BadInput(got, f"at least {each * layout.data:g} in all", "correct one of them, or leave it out")


def answering(layout: Layout, heads: int, domain: int) -> Layout:
    """Return the usual layout of a language model that answers on several chips: tensor parallel, replicas beyond one domain.

    Args:
        layout: of plain replicas, one on each chip. heads: of its attention. domain: chips that the fast link joins.
    """
    tensor = next((ways for ways in range(min(layout.data, domain), 0, -1) if layout.data % ways == 0 and heads % ways == 0), 1)
    data = layout.data // tensor
    micro = None if layout.micro_batch is None else layout.micro_batch * tensor
    return replace(layout, data=data, tensor=tensor, micro_batch=micro)


def _degree(name: str, text: str) -> int:
    """Return a degree of parallelism, 1 where none is stated: `tp8`, `tp=8`, `tp 8`."""
    found = re.search(rf"(?<![a-z_]){name}[ =:-]?(\d{{1,7}})\b", text)
    return max(1, int(found.group(1))) if found else 1


def _sharded(text: str, framework: str, data: int, islands: int, tpu: bool) -> int:
    """Return chips that weights are spread over: stated, or the habit of JAX and of Megatron's distributed optimizer."""
    stated = re.search(r"fsdp[ =:-]?(\d{1,7})\b", text)
    if stated and int(stated.group(1)):
        return min(int(stated.group(1)), data)
    if re.search(r"fsdp|full_shard|zero|shard_grad", text):
        return max(1, data // islands)
    language = framework.startswith(("jax/maxtext", "jax/pax")) and tpu
    return max(1, data // islands) if language else 1


def _recomputed(notes: str, framework: str, tpu: bool) -> float:
    if _FULLY_RECOMPUTED.search(notes):
        return 1.0
    if _NOT_RECOMPUTED.search(notes):
        return 0.0
    if _PARTLY_RECOMPUTED.search(notes):
        return 0.6
    # MaxText recomputes all but the products with weights unless it is told otherwise.
    return 0.6 if tpu and framework.startswith("jax/maxtext") else 0.0
