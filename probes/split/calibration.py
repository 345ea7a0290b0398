"""Calibration: how long each side takes for its pieces of a step, and what the channel between them gives.

Both sides of a machine share its memory: what a side takes is measured alone, and while the other works as it does in a step.
"""

from collections.abc import Iterable, Mapping
from random import Random

from probes.split.messages import Rehearse, Taken, Trade
from probes.split.session import SplitSession
from probes.split.words import Calibrated, Cost, SplitTask

TRADE_S = 0.5
"""Seconds of trades of one size."""
WINDOW_GOES = 2.5
"""A window is at least so many times as long as the longest of what both sides do in it, so that they load each other."""
SMALLEST_BYTES = 2**12
Window = dict[int, int]
Found = dict[tuple[int, str, int, bool], list[float]]


def calibrate(
    session: SplitSession,
    task: SplitTask,
    together: Iterable[tuple[int, int]],
    alone: tuple[Iterable[int], Iterable[int]],
    sizes: Iterable[int] = (),
    seconds: float = 0.25,
    rounds: int = 3,
    seed: int = 0,
) -> Calibrated:
    """Measure what a planner needs; the task's models are left changed.

    Args:
        session: with both sides open.
        task: whose mode says what each side does with so many rows.
        together: rows of both sides, worked on at the same time.
        alone: rows of each side, worked on while the other rests.
        sizes: bytes to be traded; empty takes those that the task's gradients or activations have.
        seconds: of each window.
        rounds: that the windows are spread over, in random order.
        seed: of that order.

    Raises:
        SideLost: a side ended or failed.
        Cancelled: stopped meanwhile.
    """
    begun = session.begin(task, fresh=False)
    windows = [dict(enumerate(pair)) for pair in together]
    windows += [{i: rows} for i in (0, 1) for rows in alone[i]]
    spans = [warmed(session, window, seconds) for window in windows]
    found: Found = {}
    order = list(range(len(windows)))
    random = Random(seed)
    for _ in range(rounds):
        random.shuffle(order)
        for at in order:
            rehearse(session, windows[at], spans[at], found)
    costs = tuple(
        tuple(Cost(what, rows, loaded, tuple(times)) for (i, what, rows, loaded), times in found.items() if i == side)
        for side in (0, 1)
    )
    gradient_bytes = begun.parameter_count * (2 if session.link.sixteen_bit else 4)
    whole = begun.activation_bytes or gradient_bytes
    traded = tuple(sizes) or (SMALLEST_BYTES, max(SMALLEST_BYTES, whole // 4), whole)
    exchanges = trades(session, traded, one_way=False) if task.mode in ("data", "local") else ()
    sends = trades(session, traded, one_way=True)
    return Calibrated((costs[0], costs[1]), exchanges, sends, gradient_bytes, begun.activation_bytes)


def warmed(session: SplitSession, window: Mapping[int, int], seconds: float) -> float:
    """Compile, time one go of each side, and return the seconds of a window that lets them load each other."""
    asked = {i: Rehearse(rows, 0.0) for i, rows in window.items()}
    session.ask(asked, Taken, "pace")
    taken = session.ask(asked, Taken, "pace")
    return max(seconds, WINDOW_GOES * max(sum(s for _, s in reply.times) for reply in taken))


def rehearse(session: SplitSession, window: Mapping[int, int], span_s: float, found: Found) -> None:
    """Let the sides of a window work for its time, and add what each piece took; raises SideLost or Cancelled."""
    replies = session.ask({i: Rehearse(rows, span_s) for i, rows in window.items()}, Taken, "pace")
    for (side, rows), reply in zip(window.items(), replies, strict=True):
        pieces = list(dict.fromkeys(name for name, _ in reply.times))
        goes = len(reply.times) // len(pieces)
        kept = reply.times[: max(1, goes - 1) * len(pieces)]  # the last go may outlast the other side's
        for what, taken_s in kept:
            found.setdefault((side, what, rows, len(window) > 1), []).append(taken_s)


def trades(session: SplitSession, sizes: Iterable[int], *, one_way: bool) -> tuple[tuple[int, float], ...]:
    """Return (bytes, seconds) of trades, raw; one way, half of what an empty one takes is left out as the way back."""
    found: list[tuple[int, float]] = []
    empty_s = 0.0
    if one_way:
        empty_s = min(trade(session, 1, 8, one_way)[1:]) / 2
    for size in sizes:
        first_s = trade(session, size, 2, one_way)[-1]
        times = max(3, min(20, int(TRADE_S / max(first_s, 1e-6))))
        found += [(size, max(taken - empty_s, 1e-9)) for taken in trade(session, size, times, one_way)]
    return tuple(found)


def trade(session: SplitSession, size: int, times: int, one_way: bool) -> list[float]:
    """Return the seconds of each trade of one size, on the side that ends it later."""
    asked = Trade(size, times, one_way)
    first, second = session.ask({0: asked, 1: asked}, Taken, "pace")
    if one_way:
        return [taken for _, taken in first.times]
    return [max(a, b) for (_, a), (_, b) in zip(first.times, second.times, strict=True)]
