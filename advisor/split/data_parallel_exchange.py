"""What it takes to bring the hosts of several pools to one sum: two swap, more pass parts around a ring.

Of a bucket of S bytes, two pools send each other all of it at once (both ways of a link at the same time). More of them send
2 (n - 1) times S / n to the next in a ring: half of the rounds sum the parts, half hand them round. A round is as slow as its
slowest link. Bytes occupy the ring; latency does not, so that the next bucket follows at once.

Source: bandwidth-optimal ring (Patarasuk and Yuan 2009), bus factor 2 (n - 1) / n as in NVIDIA/nccl-tests, doc/PERFORMANCE.md.
"""

from dataclasses import dataclass
from itertools import pairwise, permutations
from math import inf

from core.device import Link
from core.errors import BadInput

Links = tuple[tuple[Link | None, ...], ...]
MOST_TRIED = 7
"""Of so many pools every ring is tried, 720; of more, those that go on to the nearest from each start."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """One bucket's way.

    Args:
        ring: pools by index, each sends to the next and the last to the first.
        busy_s: while it occupies the ring.
        latency_s: from then until the sum is there.
        sent_bytes: by each pool.
    """

    ring: tuple[int, ...]
    busy_s: float
    latency_s: float
    sent_bytes: float


FREE = Exchange((), 0.0, 0.0, 0.0)
"""What a pool alone needs, or a link that costs nothing."""


def check_links(links: Links, count: int) -> None:
    """Refuse links that are not between `count` pools, or whose rate or latency no link has.

    Args:
        links: between all pools.
        count: of the pools.

    Raises:
        BadInput: what is wrong.
    """
    if len(links) != count or any(len(row) != count for row in links):
        raise BadInput(f"{len(links)} rows of links", f"{count} by {count}", "give one for each pair of pools")
    for way in (way for row in links for way in row if way is not None):
        if not way.bytes_per_s > 0 or not 0 <= way.latency_s < inf:
            got = f"a link of {way.bytes_per_s} bytes a second and {way.latency_s} s"
            raise BadInput(got, "a rate above zero and a latency from zero", "correct it, or leave the link out")


def exchange_of(links: Links, used: tuple[int, ...], size_bytes: float) -> Exchange | None:
    """Return the fastest exchange of a bucket among some pools; None when they cannot all reach each other in a ring.

    Args:
        links: between all pools.
        used: pools that take part, by index.
        size_bytes: of the bucket.
    """
    if len(used) == 1:
        return Exchange(used, 0.0, 0.0, 0.0)
    rounds, part = _rounds(len(used), size_bytes)
    found: list[tuple[float, Exchange]] = []
    for ring in _rings(links, used, part):
        ways = [links[a][b] for a, b in pairwise((*ring, ring[0]))]
        joined = [way for way in ways if way is not None]
        if len(joined) == len(ways):
            busy = rounds * max(part / way.bytes_per_s for way in joined)
            latency = rounds * max(way.latency_s for way in joined)
            found.append((busy + latency, Exchange(ring, busy, latency, rounds * part)))
    return min(found, key=lambda one: one[0])[1] if found else None


def least_exchange(links: Links, count: int, size_bytes: float) -> Exchange:
    """Return what no exchange among so many pools is faster than.

    Args:
        links: between all pools.
        count: pools that take part.
        size_bytes: of the bucket.
    """
    ways = [way for row in links for way in row if way is not None]
    if count == 1 or not ways:
        return FREE
    rounds, part = _rounds(count, size_bytes)
    busy = rounds * part / max(way.bytes_per_s for way in ways)
    return Exchange((), busy, rounds * min(way.latency_s for way in ways), rounds * part)


def _rounds(count: int, size_bytes: float) -> tuple[int, float]:
    return (1, size_bytes) if count == 2 else (2 * (count - 1), size_bytes / count)


def _rings(links: Links, used: tuple[int, ...], part: float) -> list[tuple[int, ...]]:
    first, *rest = used
    if len(used) <= MOST_TRIED:
        alike = {(way.latency_s, way.bytes_per_s) if (way := links[a][b]) else None for a in used for b in used if a != b}
        return [used] if len(alike) == 1 else [(first, *order) for order in permutations(rest)]
    return [_nearest(links, used, start, part) for start in used]


def _nearest(links: Links, used: tuple[int, ...], start: int, part: float) -> tuple[int, ...]:
    ring, left = [start], [pool for pool in used if pool != start]

    def cost(pool: int) -> float:
        way = links[ring[-1]][pool]
        return inf if way is None else way.latency_s + part / way.bytes_per_s

    while left:
        ring.append(min(left, key=cost))
        left.remove(ring[-1])
    return tuple(ring)
