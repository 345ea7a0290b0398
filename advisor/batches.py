"""Estimates of one workload whose number of requests at once is left open: each replica takes as many as serve it best.

More at once only ever raises the rate that a place can serve, until its memory is full: those in flight are as many as come. So
the count with the highest rate is taken of those that fit almost surely, and the least among equal ones. Replicas answer
requests on their own, so nothing but a replica has to divide anything, and a pool serves what its replicas do together. Latencies
are then told by the queue at the asked rate.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from advisor.datasheet import Datasheets
from advisor.spare import copies
from core.advice import SURE, Estimate
from core.device import Accelerator, Pool
from core.probe import Runtime
from core.quantity import Quantity
from core.workload import Workload

WORTH_IT = 1.02
"""Times the rate by which more requests at once are to raise it to be taken."""


class Batches:
    """The same calls as `Datasheets`, over one workload or the same one with other batches."""

    def __init__(
        self, workloads: Sequence[Workload], pools: Iterable[tuple[Pool, Accelerator]],
        compiled_here: Mapping[str, Quantity] | None = None,
    ) -> None:
        """Prepare.

        Args:
            workloads: one, or several that differ in their batch alone, ascending: what one replica takes at once.
            pools: of catalog chips, each with its accelerator.
            compiled_here: as for `Datasheets`.
        """
        every = list(pools)
        self._batches = [one.batch for one in workloads]
        if any(first >= second for first, second in pairwise(self._batches)):
            raise ValueError(f"got batches {self._batches}; expected ascending ones")
        self._sheets = [Datasheets(one, every, compiled_here, each=len(workloads) > 1) for one in workloads]

    def estimate(self, runtime: Runtime, pool: Pool, chip: Accelerator) -> Estimate | str:
        """Return the estimate of one runtime on one pool at its best batch, or in one phrase why there is none.

        Args:
            runtime, pool, chip: as for `Datasheets.estimate`.
        """
        if len(self._sheets) == 1:
            return self._sheets[0].estimate(runtime, pool, chip)
        best: Estimate | None = None
        first: Estimate | str = ""
        for batch, sheets in zip(self._batches, self._sheets, strict=True):
            found = sheets.estimate(runtime, pool, chip)
            first = first or found
            if isinstance(found, str):
                continue
            if best is not None and best.fits and not found.fits:
                break  # no plan holds so many at once, and more need no less memory
            if best is not None and _room(found) < _room(best):
                continue
            requests = batch * copies(found.candidate.plan)
            one = sheets.served(replace(found, candidate=replace(found.candidate, requests=requests)), fully=False)
            if best is None or _room(one) > _room(best) or _rate(one) > WORTH_IT * _rate(best):
                best = one
        return first if best is None else best

    def served(self, estimate: Estimate) -> Estimate:
        """Return an estimate with what requests meet, latencies among it, as `Datasheets.served` tells it of its own batch."""
        return self._of(estimate).served(estimate, fully=True)

    def in_blocks(self, estimate: Estimate) -> Estimate:
        """Return an estimate told by block, as `Datasheets.in_blocks` tells it of its own batch."""
        return self._of(estimate).in_blocks(estimate)

    def _of(self, estimate: Estimate) -> Datasheets:
        candidate = estimate.candidate
        if candidate.requests is None:
            return self._sheets[0]
        return self._sheets[self._batches.index(candidate.requests // copies(candidate.plan))]


def _room(estimate: Estimate) -> int:
    """Return whether it fits: 0 does not, 1 may, 2 does almost surely."""
    return 0 if estimate.fits is False else 1 if (estimate.fit_chance or 1.0) < SURE else 2


def _rate(estimate: Estimate) -> float:
    return 0.0 if estimate.served is None else estimate.served.limit_per_s
