"""What every planner of a workload's split is given."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from advisor.split.bill import cost_of_split, energy_of_split
from advisor.split.judgement import Planned
from advisor.split.sides import Side, Variant
from advisor.split.spread import Uncertain, spread
from core.device import Link
from core.quantity import Quantity
from core.workload import Workload

Links: TypeAlias = tuple[tuple[Link | None, ...], ...]
"""Between each pair of sides; None on the diagonal and where none is known."""
TOGETHER = 2
"""Pools that a split is over at least."""


@dataclass(frozen=True, slots=True)
class Given:
    """One workload, its pools and what joins them.

    Args:
        workload: the job.
        sides: two or more.
        links: `links[a][b]` from side a to side b.
        unknown: why a link is None, one phrase each.
        variant: the workload with other sizes.
        seed: of the draws behind bands.
    """

    workload: Workload
    sides: tuple[Side, ...]
    links: Links
    unknown: tuple[str, ...]
    variant: Variant
    seed: int

    def without(self, mode: str, able: Sequence[int], said: str = "") -> Planned:
        """Return that there is no plan, with what the sides lack that cannot take part.

        Args:
            mode: of the plan.
            able: numbers of those that can.
            said: what they would need, one phrase; empty for nothing.
        """
        lacking = tuple(f"{side.name}: {side.missing}" for index, side in enumerate(self.sides) if index not in able)
        return Planned(mode, missing=lacking, said=said + "; ".join(lacking))

    def links_of(self, able: Sequence[int]) -> Links:
        """Return the links between some of the sides."""
        return tuple(tuple(None if a == b else self.links[a][b] for b in able) for a in able)

    def priced(
        self, step_s: float, busy: Sequence[tuple[Side, float]], evidence: str
    ) -> tuple[Quantity, Quantity | None, Quantity | None]:
        """Return a planned step with its band, and what the job costs and draws.

        Args:
            step_s: planned.
            busy: sides with a share, and their part of the step; the longest decides the band.
            evidence: where the step comes from.
        """
        parts = [
            Uncertain(seconds, side.sigma, side.alone.step_time_s.tier)
            for side, seconds in busy if side.alone is not None and side.alone.step_time_s is not None
        ]
        seconds, used = spread(step_s, parts, self.seed, evidence), [side for side, _ in busy]
        return seconds, cost_of_split(self.workload, used, seconds), energy_of_split(self.workload, used, seconds)
