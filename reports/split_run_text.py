"""A timeline, and what came of running a split, as rows of text; companion of `split_text.py`, with the same rule.

Times are told beside what was planned, and whether they are within the plan's band; whether that will do is for the reader.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from core import format as write
from core.errors import one_line
from core.quantity import Quantity, exact
from core.split import BAR_KINDS, Bar, Verified
from core.statistics import quantile
from reports.split_text import Section, link_text, percent
from reports.view import UNKNOWN, Figure, figure

KIND_WORDS: dict[str, str] = {"compute": "computes", "move": "moves", "wait": "waits", "update": "updates"}


@dataclass(frozen=True, slots=True)
class PaceRow:
    """A step as planned, as measured, or of one side alone (`what`); `off` is how far it is from the plan."""

    what: str
    label: str
    figure: Figure
    off: str


@dataclass(frozen=True, slots=True)
class CheckRow:
    """One comparison of a run split with the same on one side, in words."""

    mark: str
    what: str
    difference: str
    tolerance: str


def lane_totals(bars: Sequence[Bar]) -> dict[str, str]:
    """Return for each lane of a timeline what it does in all: `computes 4.44 s, waits 591 ms`."""
    totals: dict[str, dict[str, float]] = {}
    for bar in bars:
        kinds = totals.setdefault(bar.lane, {})
        kinds[bar.kind] = kinds.get(bar.kind, 0.0) + bar.stop_s - bar.start_s
    return {
        lane: ", ".join(f"{KIND_WORDS[kind]} {write.seconds(kinds[kind])}" for kind in BAR_KINDS if kinds.get(kind))
        for lane, kinds in totals.items()
    }


def timeline_rows(bars: Sequence[Bar]) -> tuple[tuple[str, str, str, float, float], ...]:
    """Return a timeline as (lane, does, what, from, to), seconds, in the order of time."""
    ordered = sorted(bars, key=lambda bar: (bar.start_s, bar.stop_s))
    return tuple((bar.lane, KIND_WORDS.get(bar.kind, bar.kind), one_line(bar.what), bar.start_s, bar.stop_s) for bar in ordered)


def lanes_of(lanes: Sequence[str], moving: Sequence[str]) -> tuple[str, ...]:
    """Return lanes of a timeline in the order in which they are drawn: of two pools, the link stands between.

    Args:
        lanes: every lane, in the order of their first bar.
        moving: those that are links.
    """
    pools = [lane for lane in lanes if lane not in moving]
    links = [lane for lane in lanes if lane in moving]
    return (pools[0], *links, pools[1]) if len(pools) == 2 else (*pools, *links)


def measured_step(found: Verified) -> Quantity | None:
    """Return the median of the timed steps with their middle 80 %; None when there is none."""
    steps = found.step_s
    if not steps:
        return None
    low, mid, high = (quantile(steps, fraction) for fraction in (0.1, 0.5, 0.9))
    return Quantity(low, mid, high, "measured", (f"{len(steps)} steps",))


def pace_rows(found: Verified) -> tuple[PaceRow, ...]:
    """Return a step as planned, as measured, and of each side alone."""
    measured, planned = measured_step(found), found.planned_s
    off = "" if measured is None or planned is None or planned.mid <= 0 else f"{100 * (measured.mid / planned.mid - 1):+.1f} %"
    alone = (None if value is None else exact(value, "measured") for value in found.single_s)
    count = len(found.step_s)
    return (
        PaceRow("planned", "planned", figure(planned), ""),
        PaceRow("measured", f"measured, {count} step{'' if count == 1 else 's'}", figure(measured), off),
        *(PaceRow("alone", f"{side} alone", figure(one), "") for side, one in zip(found.sides, alone, strict=False)),
    )


def against_alone(found: Verified) -> tuple[str, float] | None:
    """Return the quicker side alone and what part of its step the sides together save, negative when they lose.

    None where no step was timed, or no side alone.
    """
    alone = [(seconds, side) for side, seconds in zip(found.sides, found.single_s, strict=False) if seconds]
    measured = measured_step(found)
    if measured is None or not alone:
        return None
    seconds, side = min(alone)
    return side, 1.0 - measured.mid / seconds


def check_rows(found: Verified) -> tuple[CheckRow, ...]:
    """Return what was compared, with a tick where the difference is within what was allowed."""
    return tuple(
        CheckRow("✔" if one.holds else "✘", one_line(one.what, 120), f"{one.difference:.2g}", f"{one.tolerance:.2g}")
        for one in found.checks
    )


def verified_sentence(found: Verified) -> str:
    """Return what came of running a plan, in one sentence or two."""
    measured, planned = measured_step(found), found.planned_s
    if measured is None:
        said = "No step was timed"
    else:
        count = len(found.step_s)
        said = (
            f"A step took {write.seconds(measured.mid)}, the median of {count}"
            if count > 1
            else (f"The one step that was timed took {write.seconds(measured.mid)}")
        )
        if planned is not None and planned.mid > 0:
            off = measured.mid / planned.mid - 1
            word = "longer" if off > 0 else "less"
            about = f"{percent(abs(off))} {word} than" if round(abs(off), 3) else "as"
            said += f", {about} the planned {write.seconds(planned.mid)}" if about != "as" else ", as planned"
            said += "" if planned.low <= measured.mid <= planned.high else ", outside of its band"
    held = sum(one.holds for one in found.checks)
    checks = f" {held} of {len(found.checks)} comparisons hold." if found.checks else ""
    ended = f" It ended early: {one_line(found.ended).rstrip('.')}." if found.ended else ""
    return f"{said}.{_alone_words(found)}{checks}{ended}"


def _alone_words(found: Verified) -> str:
    against = against_alone(found)
    if against is None:
        return ""
    side, saving = against
    word = "saves" if saving >= 0 else "loses by"
    return f" Together it {word} {percent(abs(saving))} against {side} alone."


def loss_text(found: Verified) -> str:
    """Return how the loss went: `from 4.00 to 2.10 over 20 steps, falls`; empty where nothing is learned."""
    if len(found.losses) < 2:
        return ""
    first, last = found.losses[0], found.losses[-1]
    went = "falls" if last < first else "does not fall"
    return f"from {first:.4g} to {last:.4g} over {len(found.losses)} steps, {went}"


def verified_sections(found: Verified) -> tuple[Section, ...]:
    """Return what came of running a plan as plain tables; empty ones are left out."""
    steps = tuple((row.label, row.figure.full, row.off or UNKNOWN) for row in pace_rows(found))
    checks = tuple((row.mark, row.what, row.difference, row.tolerance) for row in check_rows(found))
    shares = tuple((side, percent(part)) for side, part in zip(found.sides, found.shares, strict=False))
    loss = loss_text(found)
    text = (f"Link: {link_text(found.link)}", *([f"Loss: {loss}"] if loss else []))
    every = (
        Section(verified_sentence(found), text),
        Section("Planned and measured", heads=("What", "Step", "Off by"), rows=steps),
        Section("Shares", heads=("Side", "Share"), rows=shares),
        Section("Compared with one side alone", heads=("Holds", "What", "Difference", "Allowed"), rows=checks),
    )
    return tuple(section for section in every if section.text or section.rows)
