"""Charts in words, for people who cannot see them and for the text beside a picture."""

from core import format as write
from core.advice import Recommendation
from core.probe import Measurement
from core.run import Run
from reports.gather import listed
from reports.ranked_by import ranked_by
from reports.roof import device_of, op_marks, points_of, roof_of
from reports.view import figure, share_rows

CHARTS = ("candidates", "breakdown", "memory", "roofline", "outcomes")


def describe(chart: str, subject: Recommendation | Run) -> str:
    """Return what a chart shows, in two or three sentences.

    Args:
        chart: one of `CHARTS`.
        subject: what the chart was made of: a recommendation for the first three, a run for the others.

    Raises:
        ValueError: an unknown chart, or a subject of the other kind.
    """
    if isinstance(subject, Recommendation):
        if chart in ("candidates", "breakdown", "memory"):
            return {"candidates": _candidates, "breakdown": _breakdown, "memory": _memory}[chart](subject)
    elif chart in ("roofline", "outcomes"):
        return {"roofline": _roofline, "outcomes": _outcomes}[chart](subject)
    raise ValueError(f"got chart {chart!r} of a {type(subject).__name__}; expected one of {', '.join(CHARTS)} with its subject")


def _candidates(advice: Recommendation) -> str:
    if not advice.ranked:
        return "No candidate has a step time."
    what = ranked_by(advice)
    first, last = advice.ranked[0], advice.ranked[-1]
    text = f"{what.name.capitalize()} of {len(advice.ranked)} candidates with 80 % bands."
    text += f" First: {first.candidate.label}, {figure(what.of(first), what.written).full}."
    if len(advice.ranked) > 1:
        text += f" Last: {last.candidate.label}, {figure(what.of(last), what.written).full}."
    if advice.equal:
        text += f" Equal to the chosen one as far as can be told: {listed(tuple(dict.fromkeys(advice.equal)))}."
    if advice.unranked:
        text += f" {len(advice.unranked)} without a {what.name}."
    return text


def _breakdown(advice: Recommendation) -> str:
    parts: list[str] = []
    for estimate in advice.ranked[:3]:
        rows = share_rows(estimate)[:3]
        if rows:
            said = ", ".join(f"{row.term}{f' of {row.block}' if row.block else ''} {row.share}" for row in rows)
            parts.append(f"{estimate.candidate.label}: {said}.")
    return " ".join(["Where the step time goes.", *parts]) if parts else "No candidate has a breakdown."


def _memory(advice: Recommendation) -> str:
    first = next((e for e in advice.ranked + advice.unranked if e.memory_parts and e.capacity_bytes), None)
    if first is None:
        return "No candidate has both a memory need and a capacity."
    parts = ", ".join(f"{name} {write.memory(size)}" for name, size in first.memory_parts)
    return f"Memory of one chip against its capacity. {first.candidate.label}: {parts}, of {write.memory(first.capacity_bytes)}."


def _roofline(run: Run) -> str:
    device = device_of(run)
    if device is None:
        return "Nothing was measured, so there is no roofline."
    roof, points = roof_of(run, device), points_of(run, device)
    limits = f"{write.count(roof.flop_per_s, 'FLOP/s')} and {write.count(roof.bytes_per_s, 'B/s')}"
    text = f"Roofline of {device.id}: {limits} ({roof.tier})."
    if points:
        best = max(points, key=lambda point: point.flop_per_s)
        text += f" Fastest block: {best.block} in {best.runtime}, {write.count(best.flop_per_s, 'FLOP/s')}."
    marks = op_marks(run.workload)
    if marks:
        text += f" Most work: {marks[0].kind}, {write.three_digits(marks[0].intensity)} FLOP/byte."
    return text


def _outcomes(run: Run) -> str:
    blocks = [o for o in run.outcomes if o.probe.family != "kernel"]
    answered = [o for o in blocks if isinstance(o, Measurement)]
    text = f"Times of the workload's blocks: {len(answered)} measured, {len(blocks) - len(answered)} failed."
    if answered:
        quickest = min(answered, key=lambda o: o.median_s)
        text += f" Shortest: {quickest.probe.subject} in {quickest.probe.runtime}, {write.seconds(quickest.median_s)}."
    return text
