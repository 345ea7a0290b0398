"""Estimates of one workload whose number of requests at once is left open: each replica takes as many as serve it best.

More at once only ever raises the rate that a place can serve, until its memory is full: those in flight are as many as come. So
the count with the highest rate is taken of those that fit almost surely, and the least among equal ones. Replicas answer
requests on their own, so nothing but a replica has to divide anything, and a pool serves what its replicas do together. Latencies
are then told by the queue at the asked rate.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from math import exp

from advisor.datasheet import Datasheets
from advisor.spare import chips_used, copies
from core.advice import SURE, Candidate, Estimate
from core.device import Accelerator, Pool
from core.probe import Runtime
from core.quantity import Quantity
from core.sketching import output_of
from core.workload import Workload

WORTH_IT = 1.02
"""Times the rate by which more requests at once are to raise it to be taken."""
_FAR = 2.0
"""Standard deviations from which on a replica is surely too late."""


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
        self._chips = {chip.key: chip for _, chip in every}
        self._workload, self._tokens = workloads[0], output_of(workloads[0]) or 1.0
        self._batches = [one.batch for one in workloads]
        if any(first >= second for first, second in pairwise(self._batches)):
            raise ValueError(f"got batches {self._batches}; expected ascending ones")
        self._sheets = [Datasheets(one, every, compiled_here, each=len(workloads) > 1) for one in workloads]

    def estimate(self, runtime: Runtime, pool: Pool, chip: Accelerator, ways: int = 0) -> Estimate | str:
        """Return the estimate of one runtime on one pool at its best batch, or in one phrase why there is none.

        Args:
            runtime, pool, chip, ways: as for `Datasheets.estimate`.
        """
        if len(self._sheets) == 1:
            return self._sheets[0].estimate(runtime, pool, chip, ways)
        place = self._best_place(runtime, pool, chip, ways)
        found = self._sheets[place].estimate(runtime, pool, chip, ways)
        if isinstance(found, str):
            return found
        requests = self._batches[place] * copies(found.candidate.plan)
        asked = replace(found, candidate=replace(found.candidate, requests=requests))
        return self._sheets[place].served(asked, fully=False)

    def sooner(self, estimate: Estimate, within_s: float) -> Iterator[Estimate]:
        """Yield the same runtime on the same pool with replicas of more chips, which answer sooner though they serve less in all.

        Args:
            estimate: one of these that keeps up, of a workload whose number of requests at once is open; else there are none.
            within_s: what surely takes longer for a request that meets no other is left out.
        """
        candidate, pool = estimate.candidate, estimate.candidate.pools[0]
        if candidate.requests is None or estimate.served is None or estimate.served.utilisation >= 1:
            return
        each = chips_used(candidate.plan) // copies(candidate.plan)
        for ways in (1 << power for power in range(pool.count.bit_length())):
            if each < ways <= pool.count:
                found = self.estimate(Runtime(candidate.runtime, "", ""), pool, self._chips[pool.accelerator], ways)
                alone = None if isinstance(found, str) else self._sheets[0].pace(found.candidate)
                if isinstance(found, str) or alone is None or found.step_time_s is None:
                    continue
                if self._tokens * alone[1] < within_s * exp(_FAR * found.step_time_s.sigma):
                    yield replace(found, penalty=estimate.penalty)

    def _best_place(self, runtime: Runtime, pool: Pool, chip: Accelerator, ways: int) -> int:
        """Return the place of the batch that serves best; of the first where none has a plan."""
        best, most, roomy = 0, 0.0, 0
        for place, sheets in enumerate(self._sheets):
            seen = sheets.glance(runtime, pool, chip, ways)
            if isinstance(seen, str):
                continue
            room, rate = _room(seen[0]), seen[1]
            if room == 0 and roomy > 0:
                break  # no plan holds so many at once, and more need no less memory
            if room > roomy or most == 0 or (room == roomy > 0 and rate > WORTH_IT * most):
                best, most, roomy = place, rate, room
        return best

    def served(self, estimate: Estimate) -> Estimate:
        """Return an estimate with what requests meet, latencies among it, as `Datasheets.served` tells it of its own batch."""
        sheets = self._of(estimate)
        if estimate.candidate.requests is None or (estimate.served is not None and estimate.served.utilisation >= 1):
            return sheets.served(estimate, fully=True)
        return sheets.served(estimate, fully=True, fewer=self._paces(estimate.candidate, self._sheets.index(sheets)))

    def _paces(self, candidate: Candidate, most: int) -> list[tuple[int, float]]:
        """Return the paces of its replicas with fewer requests at once than in place `most`, up to twice those in flight."""
        rate = (self._workload.targets.requests_per_s or 0.0) / copies(candidate.plan)
        paces: list[tuple[int, float]] = []
        for one in self._sheets[:most]:
            pace = one.pace(candidate)
            paces += [] if pace is None else [pace]
            if pace is not None and pace[0] > 2 * rate * self._tokens * pace[1]:
                break
        return paces

    def in_blocks(self, estimate: Estimate) -> Estimate:
        """Return an estimate told by block, as `Datasheets.in_blocks` tells it of its own batch."""
        return self._of(estimate).in_blocks(estimate)

    def _of(self, estimate: Estimate) -> Datasheets:
        candidate = estimate.candidate
        if candidate.requests is None:
            return self._sheets[0]
        return self._sheets[self._batches.index(candidate.requests // copies(candidate.plan))]


def _room(chance: float) -> int:
    """Return how far it fits by its chance: 0 not, 1 perhaps, 2 almost surely."""
    return 0 if chance == 0 else 1 if chance < SURE else 2
