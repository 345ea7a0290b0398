"""Words for parts of one step placed on unlike pools by kind: embeddings and irregular parts here, the dense tower there.

Numbers only. A part is whatever is never cut: an operation, a block, an embedding table. Its backward pass and the state that it
trains stay where its forward pass is.
"""

from dataclasses import dataclass
from math import isfinite

from core.device import Link
from core.errors import BadInput
from core.split import Bar, Move

WAYS = ("serial", "overlapped", "prefetch")
"""How steps are carried out: one thing after another; side by side what does not wait for another; steps into each other, with
the parts that allow it ahead."""


@dataclass(frozen=True, slots=True)
class On:
    """A part on one pool.

    Args:
        forward_s, backward_s: of one step; the backward pass with its update, 0 where nothing is trained.
        memory_bytes: that it takes there, for good and while it runs.
        missing: why it cannot run there; empty when it can.
    """

    forward_s: float = 0.0
    backward_s: float = 0.0
    memory_bytes: float = 0.0
    missing: str = ""

    @property
    def seconds(self) -> float:
        """Both passes."""
        return self.forward_s + self.backward_s


@dataclass(frozen=True, slots=True)
class Part:
    """Something that runs whole on one pool.

    Args:
        name: of it.
        on: what it takes on each pool, in the order of the problem's pools.
        ahead: how many steps its forward pass may run before its own last update is in: 0 for what must see it, 1 for embedding
            lookups that put up with tables one step old, and for what is not trained at all.
    """

    name: str
    on: tuple[On, ...]
    ahead: int = 0


@dataclass(frozen=True, slots=True)
class Flow:
    """What goes from one part to a later one.

    Args:
        source, target: numbers of parts, the source's being smaller.
        forward_bytes, backward_bytes: activations in a step, and their gradients the other way.
    """

    source: int
    target: int
    forward_bytes: float
    backward_bytes: float = 0.0


@dataclass(frozen=True, slots=True)
class OperatorProblem:
    """Parts in an order in which they can run, and pools.

    Args:
        pools: names, the lanes.
        parts: each with a column for each pool.
        flows: what goes between parts.
        links: `links[a][b]` carries from pool a to b; None on the diagonal and where there is no way.
        memory_bytes: of each pool; None where there is no limit.
        least_pools: how many pools must have a part at least; 2 tells what the split costs even where one pool is faster.

    Raises:
        BadInput: lengths or numbers that do not fit together.
    """

    pools: tuple[str, ...]
    parts: tuple[Part, ...]
    flows: tuple[Flow, ...]
    links: tuple[tuple[Link | None, ...], ...]
    memory_bytes: tuple[float | None, ...]
    least_pools: int = 1

    def __post_init__(self) -> None:
        count = len(self.pools)
        if not self.parts or not count or len(set(self.pools)) < count:
            raise BadInput(f"{len(self.parts)} parts and pools {self.pools}", "at least one of each, no name twice", "name them")
        if len(self.memory_bytes) != count or len(self.links) != count or any(len(row) != count for row in self.links):
            raise BadInput("links or memory of another number of pools", f"those of {count} pools", "give one for each")
        if not 1 <= self.least_pools <= min(count, len(self.parts)):
            got, most = f"least_pools {self.least_pools}", min(count, len(self.parts))
            raise BadInput(got, f"1 to {most}: no more than pools and parts", "ask for fewer")
        for part in self.parts:
            numbers = [value for one in part.on for value in (one.forward_s, one.backward_s, one.memory_bytes)]
            if len(part.on) != count or not all(isfinite(value) and value >= 0 for value in numbers) or part.ahead < 0:
                raise BadInput(f"part {part.name!r}", f"{count} pools with numbers from 0", "give seconds and bytes of each")
        for flow in self.flows:
            sizes = (flow.forward_bytes, flow.backward_bytes)
            if not (0 <= flow.source < flow.target < len(self.parts) and all(isfinite(size) and size >= 0 for size in sizes)):
                raise BadInput(f"flow {flow}", "from a part to a later one, bytes from 0", "order the parts as they run")

    def crossing_s(self, size_bytes: float, source: int, target: int) -> float | None:
        """Return seconds of a message from one pool to another; 0 for no bytes or no way to go, None where there is no link."""
        link = self.links[source][target]
        if source == target or size_bytes <= 0:
            return 0.0
        return None if link is None else link.latency_s + size_bytes / link.bytes_per_s


@dataclass(frozen=True, slots=True)
class Task:
    """One thing that is done in a step: a pass of a part, or a message.

    Args:
        what: `forward of x`, `backward of x`, `x to y`.
        lane: the pool, or `from>to` of a link.
        seconds: that it takes.
        after: numbers of tasks that come before.
        part: whose pass it is; None for a message.
        flow, size_bytes: of a message; flow is None for a pass.
        backward: which way.
        ends: numbers of the two pools of a message.
    """

    what: str
    lane: str
    seconds: float
    after: tuple[int, ...]
    part: int | None = None
    backward: bool = False
    flow: int | None = None
    size_bytes: float = 0.0
    ends: tuple[int, int] = (0, 0)


@dataclass(frozen=True, slots=True)
class PlacedAlone:
    """All parts on one pool; `missing` says why not."""

    pool: str
    seconds: float | None
    missing: str = ""


@dataclass(frozen=True, slots=True)
class OperatorPlan:
    """Where each part runs.

    Args:
        way: one of `WAYS`.
        seconds: of one step; with prefetch from the end of one step to the end of the next.
        placed: number of the pool of each part.
        bound_s: no placement takes less, as far as is proven.
        memory_bytes: of each pool.
        fractions: (pool, part of the seconds of work); they sum to one.
        terms: (name, seconds): the busiest pool's work, and what it waits for links and for others; they add up to `seconds`.
        moves: what crosses in a step.
        timeline: of one step.
        singles: each pool alone.
        staleness: by how many steps a part's forward pass may miss updates.
        said: what to know of that, one sentence; empty without.
    """

    way: str
    seconds: float
    placed: tuple[int, ...]
    bound_s: float
    memory_bytes: tuple[float, ...]
    fractions: tuple[tuple[str, float], ...]
    terms: tuple[tuple[str, float], ...]
    moves: tuple[Move, ...]
    timeline: tuple[Bar, ...]
    singles: tuple[PlacedAlone, ...]
    staleness: int = 0
    said: str = ""

    @property
    def best_single(self) -> PlacedAlone | None:
        """The fastest pool alone; None when none holds all parts."""
        able = [(one.seconds, one.pool, one) for one in self.singles if one.seconds is not None]
        return min(able)[2] if able else None


@dataclass(frozen=True, slots=True)
class NoPlacement:
    """No pools hold all parts; `missing` says why, one phrase each."""

    missing: tuple[str, ...]
    singles: tuple[PlacedAlone, ...] = ()
