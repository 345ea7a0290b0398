"""The answer of a split whose pieces were measured here: planned from them, in place of what the catalog or old figures said."""

from advisor.split.judgement import Planned, judge
from core import format as fmt
from core.quantity import log_normal
from core.split import Bar, Share, Single, Split, Verified
from services.split_measured import MEASURED_SIGMA

WORK = ("compute", "update")


def measured_split(told: Split, found: Verified) -> Split:
    """Return the split as it follows from the measured pieces; as it was where none were measured.

    Args:
        told: as it was planned before.
        found: what came of running it.
    """
    if found.planned_s is None or len(told.singles) != len(found.sides):
        return told
    alone = [
        Single(
            told.singles[place].pool, runtime,
            None if seconds is None else log_normal(seconds, MEASURED_SIGMA, "measured", "pieces of its step, measured alone"),
            None, None, seconds is not None, "" if seconds is not None else "not measured alone",
        )
        for place, runtime, seconds in zip(found.places, found.runtimes, found.single_s, strict=True)
    ]  # fmt: skip
    step_s = found.planned_s.mid
    shares = tuple(_share(one, name, fraction, found.planned_timeline, step_s)
                   for one, name, fraction in zip(alone, found.sides, found.shares, strict=False))
    said = ", ".join(f"{fmt.percent(share.fraction)} on {name}" for share, name in zip(shares, found.sides, strict=False))
    plan = Planned(
        found.mode, found.planned_s, terms=(("pieces of a step, as they were measured", step_s),), shares=shares,
        timeline=found.planned_timeline, said=said or f"both sides ({found.mode})", verdicts=told.verdicts,
    )
    singles = tuple(alone[found.places.index(place)] for place in range(len(alone)))
    return judge([plan], singles, "time", told.least_saving, found.link)


def _share(one: Single, name: str, fraction: float, timeline: tuple[Bar, ...], step_s: float) -> Share:
    busy = min(step_s, sum(bar.stop_s - bar.start_s for bar in timeline if bar.lane == name and bar.kind in WORK))
    return Share(one.pool, one.runtime, fraction, fraction, "of the work", busy, step_s - busy)
