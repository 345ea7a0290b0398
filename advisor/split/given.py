"""What every planner of a workload's split is given."""

from dataclasses import dataclass
from typing import TypeAlias

from advisor.split.sides import Side, Variant
from core.device import Link
from core.workload import Workload

Links: TypeAlias = tuple[tuple[Link | None, ...], ...]
"""Between each pair of sides; None on the diagonal and where none is known."""


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
