"""The timeline of one round between meetings, as bars; the round's length is known from `local_rounds`."""

from advisor.split.local_rounds import Round
from advisor.split.local_words import LocalProblem
from core.split import Bar


def timeline(problem: LocalProblem, chosen: Round) -> tuple[Bar, ...]:
    """Return who does what in a round: a stretch of compute for each fragment, its way over the link, and who waits.

    A fragment that is on its way while the pools compute is drawn from the start of its stretch.

    Args:
        problem: as planned.
        chosen: its round.
    """
    names = [pool.name for pool in problem.pools]
    count, several = chosen.fragments, len(chosen.samples) > 1
    way_s = chosen.way.busy_s + chosen.way.latency_s
    stretch = chosen.compute_s / count
    waited = chosen.waited_s / count
    hidden = way_s - waited if chosen.variant == "streaming" else 0.0
    bars: list[Bar] = []
    for fragment in range(count):
        begin = fragment * (stretch + waited)
        stop = begin + stretch + waited
        for index in chosen.samples:
            busy = chosen.busy_s[index] / count
            what = f"{chosen.steps[index] / count:g} steps of {chosen.samples[index]}"
            bars += _computed(
                names[index], begin, stop, busy, what, hidden if chosen.variant == "streaming" and waited > 0 else None
            )
        if several:
            sent = begin + stretch if chosen.variant == "plain" else begin
            what = "changes" if count == 1 else f"changes {fragment + 1} of {count}"
            bars.append(Bar(problem.lane, sent, sent + way_s, "move", what))
    if several and chosen.outer_s > 0:
        bars += [
            Bar(names[index], chosen.round_s - chosen.outer_s, chosen.round_s, "update", "outer step") for index in chosen.samples
        ]
    fine = [bar for bar in bars if bar.stop_s > bar.start_s]
    return tuple(sorted(fine, key=lambda bar: (bar.start_s, bar.stop_s, bar.lane)))


def _computed(lane: str, begin: float, stop: float, busy: float, what: str, hidden: float | None) -> list[Bar]:
    """Return compute and waiting of a stretch; where a fragment is late, the wait comes after what it may overlap."""
    if hidden is None:
        return [Bar(lane, begin, begin + busy, "compute", what), Bar(lane, begin + busy, stop, "wait", "waits for the meeting")]
    before = min(hidden, busy)
    after = busy - before
    return [
        Bar(lane, begin, begin + before, "compute", what),
        Bar(lane, begin + before, stop - after, "wait", "waits for a fragment"),
        Bar(lane, stop - after, stop, "compute", what),
    ]
