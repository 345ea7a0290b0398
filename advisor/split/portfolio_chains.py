"""Chains of ejections over lanes of full pools, compiled: where a choice could go, what that pushes out, and whether it is done.

A hundred thousand chains are tried each second, which the search of `advisor.split.portfolio_anneal` lives on: hence a board of
arrays that is changed in place. All that is compiled is in this one file, since what is kept of it on disk is known by its file:
a change elsewhere would go unnoticed. A board is of records, since every array that is passed takes time to compile.

Source: S. K. Lam, A. Pitrou, S. Seibert, "Numba: a LLVM-based Python JIT compiler", LLVM-HPC, 2015. Places are drawn with the
odds of their Boltzmann factors by draws of Gumbel: E. J. Gumbel, "Statistical theory of extreme values and some practical
applications", National Bureau of Standards, 1954.
"""

from math import exp, inf
from typing import Any

from advisor.split.compiled import compiled, inner
from advisor.split.portfolio_board import Board

LOOSE = 50.0
"""Times the heat at which the first choice of a chain is put somewhere."""
LINKS = 4
"""Workloads that are put elsewhere in one chain at most."""
STARTS = 8
"""Starts that are tried for a choice of several lanes."""
RARE = 9.0
"""Times the heat that chance forgives at most; more would be one time in ten thousand."""
ROUNDED = 1 + 1e-15
"""Times the latest start that rounding of what was before may take."""
FOUND, TAKEN, PASSING = 0, 1, 2
"""Spots: the best one of a choice, the best one of all choices of a link, and one that is looked at."""


@compiled
def anneal(board: Board, heat: float, cost: float, best: float, chains: int) -> tuple[float, float]:
    """Try some chains, and keep the best plan on the board.

    Args:
        board: of the search.
        heat: loss at which a chain is done one time in e.
        cost, best: of the plan, and of the best one so far.
        chains: how many are tried.

    Returns:
        Both costs after them.
    """
    for lane in range(len(board.lanes)):
        _refresh(board, lane)
    for _ in range(chains):
        drawn, low, high = _draw(board).even * board.ways[-1].odds, 0, len(board.ways) - 1
        while low < high:
            middle = (low + high) // 2
            if board.ways[middle].odds <= drawn:
                low = middle + 1
            else:
                high = middle
        cost += _chain(board, board.ways[low].choice, heat)
        if cost < best - 1e-9 * abs(best):
            best = cost
            _save(board)
    return cost, best


@inner
def _save(board: Board) -> None:
    """Take the plan for the best one."""
    for work in range(len(board.works)):
        board.works[work].best_at = board.works[work].at
    for lane in range(len(board.lanes)):
        for place in range(board.lanes[lane].count):
            choice = board.choices[board.slots[lane, place].choice]
            board.works[choice.work].best_start = board.slots[lane, place + 1].end - choice.seconds


@inner
def _chain(board: Board, index: int, heat: float) -> float:
    """Put a choice somewhere and what it pushes out elsewhere, or do nothing; returns what that costs."""
    _begin(board)
    old, cost = board.works[board.choices[index].work].at, 0.0
    if old >= 0:
        _drop(board, old)
        cost += board.choices[old].saves
    taken, waiting = index, 0
    if _place(board, index, heat * LOOSE, inf) == inf:
        _undo(board)
        return 0.0
    _copy(board, FOUND, TAKEN, board.choices[index].width)
    for link in range(LINKS + 1):
        if link > 0:
            if waiting == 0:
                break
            waiting -= 1
            taken = _elsewhere(board, _largest(board, waiting), heat)
        if taken >= 0:
            more, waiting = _put(board, taken, waiting)
            cost += more
    if cost > heat * exp(-_draw(board).gumbel):
        _undo(board)
        return 0.0
    return cost


@inner
def _largest(board: Board, last: int) -> int:
    """Take what saves most out of the choices that are out, of which `last` is the last; returns its workload."""
    largest = last
    for other in range(last):
        if board.choices[board.out[other]].saves > board.choices[board.out[largest]].saves:
            largest = other
    index = board.out[largest]
    board.out[largest] = board.out[last]
    return board.choices[index].work


@inner
def _elsewhere(board: Board, work: int, heat: float) -> int:
    """Return the choice of a workload that gains most, and take the spot on which it does; -1 where none gains."""
    least, taken = 0.0, -1
    for way in range(board.works[work].way_at, board.works[work + 1].way_at):
        index = board.ways[way].choice
        saves = board.choices[index].saves
        score = _place(board, index, heat, saves + least + RARE * heat) - saves
        if score < least:
            least, taken = score, index
            _copy(board, FOUND, TAKEN, board.choices[index].width)
    return taken


@inner
def _place(board: Board, index: int, heat: float, most: float) -> float:
    """Find the best spot of a choice; returns what is lost there less what chance forgives, infinite where there is none.

    Args:
        board: of the search.
        index: of the choice; its workload has no place.
        heat: of what chance forgives.
        most: loss that a place may have.
    """
    choice = board.choices[index]
    pool, best, last = board.pools[choice.pool], inf, board.spans[board.choices[index + 1].span_at - 1].last
    if pool.used + choice.chip_s > pool.quota:
        return best
    if choice.width > 1:
        return _abreast(board, index, heat, most)
    for lane in range(pool.lane_at, board.pools[choice.pool + 1].lane_at):
        slots, rest = board.slots[lane], 0
        for first in range(board.lanes[lane].count + 1):
            if slots[first].end > last:
                break
            start, rest = _first_start(board, index, slots[first].end), max(rest, first)
            while slots[rest].must < start + choice.seconds:
                rest += 1
            loss = slots[rest].worth - slots[first].worth
            if loss > most or loss - RARE * heat > best:
                continue
            score = loss - heat * _draw(board).gumbel
            if score < best:
                best, found = score, board.spots[FOUND, 0]
                found.lane, found.first, found.rest, found.start = lane, first, rest, start
    return best


@inner
def _abreast(board: Board, index: int, heat: float, most: float) -> float:
    """Do the same for a choice of several lanes: at some starts, on the lanes that lose least."""
    choice, best = board.choices[index], inf
    lane_at = board.pools[choice.pool].lane_at
    lanes = board.pools[choice.pool + 1].lane_at - lane_at
    for _ in range(STARTS):
        lane = lane_at + int(_draw(board).even * lanes)
        free = board.slots[lane, int(_draw(board).even * (board.lanes[lane].count + 1))].end
        start = _first_start(board, index, free)
        loss = _least(board, index, start) if start < inf else inf
        if loss > most or loss == inf:
            continue
        score = loss - heat * _draw(board).gumbel
        if score < best:
            best = score
            _copy(board, PASSING, FOUND, choice.width)
    return best


@inner
def _least(board: Board, index: int, start: float) -> float:
    """Note the lanes that lose least at a start; returns what they lose together."""
    choice, spots, found, whole = board.choices[index], board.spots[PASSING], 0, 0.0
    for lane in range(board.pools[choice.pool].lane_at, board.pools[choice.pool + 1].lane_at):
        slots, first = board.slots[lane], board.lanes[lane].count
        while slots[first].end > start:
            first -= 1
        rest = first
        while slots[rest].must < start + choice.seconds:
            rest += 1
        loss, place = slots[rest].worth - slots[first].worth, min(found, choice.width - 1)
        if found == choice.width and loss >= spots[place].loss:
            continue
        while place > 0 and spots[place - 1].loss > loss:
            new, old = spots[place], spots[place - 1]
            new.lane, new.first, new.rest, new.loss = old.lane, old.first, old.rest, old.loss
            place -= 1
        new, found = spots[place], min(found + 1, choice.width)
        new.lane, new.first, new.rest, new.loss, new.start = lane, first, rest, loss, start
    for one in range(choice.width):
        whole += spots[one].loss
    return whole


@inner
def _draw(board: Board) -> Any:
    """Return the next draw, one of `DRAW`."""
    board.turn[0] = (board.turn[0] + 1) % len(board.draws)
    return board.draws[board.turn[0]]


@inner
def _first_start(board: Board, choice: int, free: float) -> float:
    """Return when a choice can begin at the earliest; infinite when never."""
    for span in range(board.choices[choice].span_at, board.choices[choice + 1].span_at):
        if free <= board.spans[span].last * ROUNDED:
            return min(max(free, board.spans[span].first), board.spans[span].last)
    return inf


@inner
def _refresh(board: Board, lane: int) -> None:
    """Work out the times and the worth of a lane from its order."""
    slots, count = board.slots[lane], board.lanes[lane].count
    slots[0].end = slots[0].worth = 0.0
    slots[count].must = inf
    for place in range(count):
        choice = board.choices[slots[place].choice]
        wide = choice.width > 1
        begun = board.works[choice.work].start if wide else _first_start(board, slots[place].choice, slots[place].end)
        slots[place + 1].end = begun + choice.seconds
        slots[place + 1].worth = slots[place].worth + choice.saves
    for place in range(count - 1, -1, -1):
        choice = board.choices[slots[place].choice]
        if choice.width > 1:
            slots[place].must = board.works[choice.work].start
            continue
        latest, span = slots[place + 1].must - choice.seconds, board.choices[slots[place].choice + 1].span_at - 1
        while span > choice.span_at and board.spans[span].first > latest:
            span -= 1
        slots[place].must = min(latest, board.spans[span].last) if board.spans[span].first <= latest else -inf


@inner
def _drop(board: Board, index: int) -> None:
    """Take a choice off its lanes."""
    choice = board.choices[index]
    left, lane = choice.width, board.pools[choice.pool].lane_at
    while left:
        slots, count, place = board.slots[lane], board.lanes[lane].count, 0
        while place < count and slots[place].choice != index:
            place += 1
        if place < count:
            _keep(board, lane)
            for later in range(place, count - 1):
                slots[later].choice = slots[later + 1].choice
            board.lanes[lane].count = count - 1
            _refresh(board, lane)
            left -= 1
        lane += 1
    board.works[choice.work].at = -1
    board.pools[choice.pool].used -= choice.chip_s


@inner
def _put(board: Board, index: int, waiting: int) -> tuple[float, int]:
    """Put a choice on the spot that is taken, and out what is in its way; returns what that costs, and how many are out then.

    Args:
        board: of the search.
        index: of the choice; its workload has no place.
        waiting: choices that are out before.
    """
    choice, spots, before = board.choices[index], board.spots[TAKEN], waiting
    cost = -choice.saves
    for one in range(choice.width):
        for place in range(spots[one].first, spots[one].rest):
            gone, known = board.slots[spots[one].lane, place].choice, False
            for other in range(before, waiting):
                known |= board.out[other] == gone
            if not known:
                board.out[waiting] = gone
                waiting += 1
                cost += board.choices[gone].saves
    for other in range(before, waiting):
        _drop(board, board.out[other])
    board.works[choice.work].at, board.works[choice.work].start = index, spots[0].start
    board.pools[choice.pool].used += choice.chip_s
    for one in range(choice.width):
        lane, first = spots[one].lane, spots[one].first
        _keep(board, lane)
        for place in range(board.lanes[lane].count, first, -1):
            board.slots[lane, place].choice = board.slots[lane, place - 1].choice
        board.slots[lane, first].choice = index
        board.lanes[lane].count += 1
        _refresh(board, lane)
    return cost, waiting


@inner
def _copy(board: Board, source: int, target: int, width: int) -> None:
    """Note one spot as another, of so many lanes."""
    for one in range(width):
        old, new = board.spots[source, one], board.spots[target, one]
        new.lane, new.first, new.rest, new.start = old.lane, old.first, old.rest, old.start


@inner
def _begin(board: Board) -> None:
    """Remember the plan as it is before a chain."""
    for lane in range(len(board.lanes)):
        board.lanes[lane].is_kept = 0
    for work in range(len(board.works)):
        board.works[work].kept_at, board.works[work].kept_start = board.works[work].at, board.works[work].start
    for pool in range(len(board.pools)):
        board.pools[pool].kept_used = board.pools[pool].used


@inner
def _keep(board: Board, lane: int) -> None:
    """Remember a lane as it was before the chain."""
    if not board.lanes[lane].is_kept:
        board.lanes[lane].is_kept, board.lanes[lane].kept_count = 1, board.lanes[lane].count
        for place in range(board.lanes[lane].count):
            board.slots[lane, place].kept = board.slots[lane, place].choice


@inner
def _undo(board: Board) -> None:
    """Make the plan again what it was before the chain."""
    for work in range(len(board.works)):
        board.works[work].at, board.works[work].start = board.works[work].kept_at, board.works[work].kept_start
    for pool in range(len(board.pools)):
        board.pools[pool].used = board.pools[pool].kept_used
    for lane in range(len(board.lanes)):
        if board.lanes[lane].is_kept:
            board.lanes[lane].count = board.lanes[lane].kept_count
            for place in range(board.lanes[lane].count):
                board.slots[lane, place].choice = board.slots[lane, place].kept
            _refresh(board, lane)
