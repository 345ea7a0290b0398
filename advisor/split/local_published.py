"""What is published about copies that meet only every so many steps, as data, and what of it covers a plan.

Nobody has published such a run over GPUs and TPUs together; all of these are of one kind of chip, or of TPU generations.
"""

from dataclasses import dataclass

VARIANTS = ("plain", "streaming", "decoupled")
"""All parameters at once while all wait; a fragment at a time while they compute; the same, and nobody waits for anybody."""


@dataclass(frozen=True, slots=True)
class Published:
    """One report.

    Args:
        name: of the method or run.
        variant: one of `VARIANTS`.
        workers: copies, at most; None where the report's summary does not say.
        inner_steps: between two meetings; None likewise.
        bits: of an exchanged value at least; None likewise.
        finding: one phrase.
        source: where.
    """

    name: str
    variant: str
    workers: int | None
    inner_steps: int | None
    bits: int | None
    finding: str
    source: str


PUBLISHED = (
    Published(
        "DiLoCo",
        "plain",
        8,
        500,
        None,
        "on C4, 8 workers do as well as synchronous training with 500 times less communication",
        "arXiv 2311.08105",
    ),
    Published(
        "INTELLECT-1",
        "plain",
        14,
        100,
        8,
        "10 billion parameters, 10^12 tokens: 83 to 96 % of the time computes, 400 times less communication",
        "arXiv 2412.01152",
    ),
    Published(
        "Scaling laws for DiLoCo",
        "plain",
        None,
        None,
        None,
        "well tuned, it scales better with model size than data parallelism, and bears larger batches",
        "arXiv 2503.09799",
    ),
    Published(
        "Streaming DiLoCo",
        "streaming",
        None,
        None,
        4,
        "fragments, overlap and 4 bits, billions of parameters: the quality of data parallelism at a hundredth of the bandwidth",
        "arXiv 2501.18512",
    ),
    Published(
        "Decoupled DiLoCo",
        "decoupled",
        8,
        None,
        None,
        "learners of their own pace, TPU v5p with v6e: accuracy 64.1 % for 64.4 %, 0.84 for 198 Gbit/s over 8 sites",
        "arXiv 2604.21428; Google DeepMind, 2026-04-22",
    ),
)


def covering(variant: str) -> tuple[Published, ...]:
    """Return the reports about a variant, the ones about its plain form after them."""
    own = tuple(one for one in PUBLISHED if one.variant == variant)
    return own + (() if variant == "plain" else tuple(one for one in PUBLISHED if one.variant == "plain"))


def quality_note(variant: str, workers: int, inner_steps: int, bits: int) -> str:
    """Return what is known about the quality of such a plan, one or two sentences.

    Args:
        variant: one of `VARIANTS`.
        workers: copies.
        inner_steps: between two meetings.
        bits: of an exchanged value.
    """
    first = covering(variant)[0]
    beyond: list[str] = []
    for what, own, known, more in (
        ("copies", workers, [one.workers for one in PUBLISHED], True),
        ("steps between meetings", inner_steps, [one.inner_steps for one in PUBLISHED], True),
        ("bits of a value", bits, [one.bits for one in covering(variant)], False),
    ):
        limits = [one for one in known if one is not None]
        if limits and (own > max(limits) if more else own < min(limits)):
            beyond.append(f"{own} {what} where {max(limits) if more else min(limits)} are published")
    known_text = f"{first.name}: {first.finding} ({first.source})."
    return known_text if not beyond else f"{known_text} Beyond that: {', '.join(beyond)}."
