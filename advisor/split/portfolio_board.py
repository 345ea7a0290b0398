"""A problem and a plan of its full pools in arrays of records, for the compiled `advisor.split.portfolio_chains`.

The chips of a full pool are lanes of as many chips as all of its choices share. What was compiled is kept on disk and names
`Board`: it must be deleted when that is to have another name.
"""

from collections.abc import Collection, Sequence
from math import gcd, inf
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from advisor.split.portfolio_choices import Table

Wholes: TypeAlias = NDArray[np.int64]
Records: TypeAlias = Any
"""An array of records of one kind; a record has their names as attributes."""
DRAWS = 1 << 15
"""Random numbers that some hundred chains share."""
CHOICE = np.dtype([
    ("work", "i8"), ("pool", "i8"), ("width", "i8"), ("seconds", "f8"), ("saves", "f8"), ("chip_s", "f8"), ("span_at", "i8"),
])  # fmt: skip
"""A choice: its workload and pool by number, lanes, seconds, what it saves against a pool that is not full, its chip-seconds, and
where its spans begin; one more record holds where the last ones end."""
SPAN = np.dtype([("first", "f8"), ("last", "f8")])
"""Starts that a choice allows."""
WAY = np.dtype([("choice", "i8"), ("odds", "f8")])
"""A choice that is worth trying, and how often it and all before it are tried together; those of one workload in a row."""
WORK = np.dtype([
    ("way_at", "i8"), ("at", "i8"), ("start", "f8"), ("kept_at", "i8"), ("kept_start", "f8"), ("best_at", "i8"),
    ("best_start", "f8"),
])  # fmt: skip
"""A workload: where its ways begin; its choice, or -1, and the start of one of several lanes, now and before the chain; and both
in the best plan so far. One more record holds where the last ways end."""
POOL = np.dtype([("lane_at", "i8"), ("quota", "f8"), ("used", "f8"), ("kept_used", "f8")])
"""A pool: its first lane; chip-seconds that it allows, and that are used now and before the chain. One more record holds how many
lanes there are."""
LANE = np.dtype([("count", "i8"), ("kept_count", "i8"), ("is_kept", "i8")])
"""A lane: how many choices it has now and before the chain, and whether that is known."""
SLOT = np.dtype([("choice", "i8"), ("end", "f8"), ("must", "f8"), ("worth", "f8"), ("kept", "i8")])
"""A place on a lane: the choice there, now and before the chain; when those before it have ended, when it must have begun for all
from there on to be in time (infinite behind the last), and what those before it save together."""
SPOT = np.dtype([("lane", "i8"), ("first", "i8"), ("rest", "i8"), ("start", "f8"), ("loss", "f8")])
"""Where a choice could go, of one of its lanes: how many choices stay before, from which on they stay behind, its start, and what
is lost that is between."""
DRAW = np.dtype([("even", "f8"), ("gumbel", "f8")])
"""A draw from 0 to 1, and one by Gumbel."""


class Board(NamedTuple):
    """A problem and a plan of it.

    Args:
        choices: C + 1 of `CHOICE`.
        spans: of all choices, of `SPAN`.
        ways: of all workloads, of `WAY`.
        works: W + 1 of `WORK`.
        pools: P + 1 of `POOL`; those that are not full have no lanes.
        lanes: L of `LANE`.
        slots: L x (W + 1) of `SLOT`.
        spots: 3 x L of `SPOT`: the best one of a choice, the best one of all choices of a link, and one that is looked at.
        out: W choices that a chain pushed out.
        draws: of `DRAW`; used one after the other, and again from the first on.
        turn: number of the last one that was used; 1.
    """

    choices: Records
    spans: Records
    ways: Records
    works: Records
    pools: Records
    lanes: Records
    slots: Records
    spots: Records
    out: Wholes
    draws: Records
    turn: Wholes


def boarded(
    table: Table, full: Collection[int], saves: Sequence[float], ways: Sequence[Sequence[int]], odds: Sequence[float]
) -> Board:
    """Return a problem on a board, without a plan.

    Args:
        table: of the problem.
        full: pools, by number; the only ones with lanes.
        saves: of each choice, against its workload's cheapest choice on a pool that is not full.
        ways: for each workload the choices that are worth trying.
        odds: how often each of these is tried, one workload's after the other's.
    """
    choices, pools, works = table.choices, table.problem.pools, len(table.of_work)
    chips = [[one.chips for one in choices if one.pool == pool] for pool in range(len(pools))]
    units = [gcd(pool.chips, *mine) for pool, mine in zip(pools, chips, strict=True)]
    lanes = [pool.chips // units[number] if number in full else 0 for number, pool in enumerate(pools)]
    spans = np.array([span for one in choices for span in one.spans], SPAN)
    board = Board(
        _zeros(CHOICE, len(choices) + 1), spans, _zeros(WAY, len(odds)), _zeros(WORK, works + 1), _zeros(POOL, len(pools) + 1),
        _zeros(LANE, sum(lanes)), _zeros(SLOT, sum(lanes), works + 1), _zeros(SPOT, 3, sum(lanes)),
        np.zeros(works, np.int64), _zeros(DRAW, DRAWS), np.zeros(1, np.int64),
    )  # fmt: skip
    board.choices[:-1] = [
        (one.work, one.pool, one.chips // units[one.pool], one.seconds, saved, one.chips * one.seconds, 0)
        for one, saved in zip(choices, saves, strict=True)
    ]
    board.choices["span_at"][1:] = np.cumsum([len(one.spans) for one in choices])
    board.ways["choice"], board.ways["odds"] = [index for mine in ways for index in mine], np.cumsum(odds)
    board.works["way_at"][1:] = np.cumsum([len(mine) for mine in ways])
    board.works["at"] = board.works["best_at"] = -1
    board.pools["lane_at"][1:] = np.cumsum(lanes)
    quotas = (pool.quota_chip_h for pool in pools)
    board.pools["quota"][:-1] = [inf if quota is None else quota * 3600.0 * (1 + 1e-9) for quota in quotas]
    return board


def _zeros(kind: Any, *shape: int) -> Records:
    return np.zeros(shape, kind)


def load(board: Board, table: Table, plan: dict[int, float]) -> None:
    """Put the choices of a plan on lanes, where they are free by its starts; what ends just then is no hindrance.

    Args:
        board: without a plan.
        table: of the problem.
        plan: starts by choice; those on pools that are not full are left out.
    """
    free = [0.0] * len(board.lanes)
    for index in sorted(plan, key=plan.__getitem__):
        one, slack, width = table.choices[index], 1e-9 * max(1.0, plan[index]), int(board.choices[index]["width"])
        of_pool = range(board.pools[one.pool]["lane_at"], board.pools[one.pool + 1]["lane_at"])
        idle = (lane for lane in of_pool if free[lane] <= plan[index] + slack)
        mine = sorted(idle, key=lambda lane: -free[lane])[:width]
        begun = max([plan[index], *(free[lane] for lane in mine)])
        if len(mine) < width or begun > one.last:
            continue
        for lane in mine:
            board.slots[lane, board.lanes[lane]["count"]]["choice"] = index
            board.lanes[lane]["count"] += 1
            free[lane] = begun + one.seconds
        board.works[one.work]["at"], board.works[one.work]["start"] = index, begun
        board.pools[one.pool]["used"] += one.chips * one.seconds
    board.works["best_at"], board.works["best_start"] = board.works["at"], board.works["start"]
