"""The answer of a split whose pieces were measured here: planned from them, in place of what the catalog or old figures said."""

from advisor.split.judgement import Planned, judge
from core import format as fmt
from core.quantity import log_normal
from core.split import Bar, Share, Single, Split, Verified

SIGMA = 0.08
"""Deviation of ln(truth / measured) of a side alone, whose pieces were measured a moment ago."""
WORK = ("compute", "update")


def measured_split(told: Split, found: Verified) -> Split:
    """Return the split as it follows from the measured pieces; as it was where none were measured.

    Args:
        told: as it was planned before.
        found: what came of running it.
    """
    if found.planned_s is None or len(told.singles) != len(found.sides):
        return told
    order = _order(told.singles, found.sides)
    alone = [
        Single(
            told.singles[at].pool, _runtime(name),
            None if seconds is None else log_normal(seconds, SIGMA, "measured", "pieces of its step, measured alone"),
            None, None, seconds is not None, "" if seconds is not None else "not measured alone",
        )
        for at, name, seconds in zip(order, found.sides, found.single_s, strict=True)
    ]  # fmt: skip
    step_s = found.planned_s.mid
    shares = tuple(_share(one, name, fraction, found.planned_timeline, step_s)
                   for one, name, fraction in zip(alone, found.sides, found.shares, strict=False))
    said = ", ".join(f"{fmt.percent(share.fraction)} on {name}" for share, name in zip(shares, found.sides, strict=False))
    plan = Planned(
        found.mode, found.planned_s, terms=(("pieces of a step, as they were measured", step_s),), shares=shares,
        timeline=found.planned_timeline, said=said or f"both sides ({found.mode})", verdicts=told.verdicts,
    )
    singles = tuple(alone[order.index(at)] for at in range(len(order)))
    return judge([plan], singles, "time", told.least_saving, found.link)


def _order(singles: tuple[Single, ...], names: tuple[str, ...]) -> list[int]:
    """Return which of the pools each side is: the two may have changed places."""
    first = singles[0]
    swapped = first.runtime != singles[-1].runtime and f"({first.runtime})" in names[-1] and f"({first.runtime})" not in names[0]
    return [1, 0] if swapped else [0, 1]


def _runtime(name: str) -> str:
    return name.partition("(")[2].partition(")")[0]


def _share(one: Single, name: str, fraction: float, timeline: tuple[Bar, ...], step_s: float) -> Share:
    busy = min(step_s, sum(bar.stop_s - bar.start_s for bar in timeline if bar.lane == name and bar.kind in WORK))
    return Share(one.pool, one.runtime, fraction, fraction, "of the work", busy, step_s - busy)
