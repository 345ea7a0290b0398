"""Which choice renting on other terms would make: spot, a queued start, a commitment of a year or three.

Terms are one decision for all pools, so each is tried on all that are sold so. What a cloud may take back takes longer by its
interruptions; that a commitment has to be used for its whole time is left to the reader.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from advisor.charges import job_of
from advisor.interruptions import saved_bytes
from advisor.ranking import Contender
from core.advice import Flip
from core.device import Offer, Pool
from core.quantity import Quantity
from core.workload import Workload

_HOUR_S = 3600.0


@dataclass(frozen=True, slots=True)
class _Paid:
    """A contender at the price that it would have, and the offer of those terms; None where it is not sold on them."""

    one: Contender
    offer: Offer | None
    score: float


def terms_flips(order: tuple[Contender, ...], workload: Workload) -> tuple[Flip, ...]:
    """Return for each of the other terms on which another pool becomes the cheapest, what it costs then.

    Args:
        order: ranked by cost, best first; those that miss a target are left out.
        workload: the job.
    """
    if order[0].score <= 0:
        return ()
    leading: dict[Pool, Contender] = {}
    for one in order:
        if not one.late and one.score > 0:
            leading.setdefault(one.estimate.candidate.pools[0], one)
    known = {offer.terms: None for pool in leading for offer in pool.other_terms}
    found = (_flip(terms, leading.values(), order[0], workload) for terms in known)
    return tuple(flip for flip in found if flip is not None)


def _flip(terms: str, leading: Iterable[Contender], best: Contender, workload: Workload) -> Flip | None:
    paid = min((_paid(one, terms, workload) for one in leading), key=lambda one: one.score)
    pool = paid.one.estimate.candidate.pools[0]
    if paid.offer is None or pool.price_usd_per_h is None or pool == best.estimate.candidate.pools[0]:
        return None
    what = f"all on {terms} terms: price of {pool.count} x {pool.accelerator} ({paid.offer.place})"
    return Flip(what, pool.price_usd_per_h, paid.offer.usd_per_h, "USD per hour", paid.one.estimate.candidate.label)


def _paid(one: Contender, terms: str, workload: Workload) -> _Paid:
    pool = one.estimate.candidate.pools[0]
    offer = next((offer for offer in pool.other_terms if offer.terms == terms), None)
    if offer is None or not pool.price_usd_per_h:
        return _Paid(one, None, one.score)
    longer = _longer(one, replace(pool, price_usd_per_h=offer.usd_per_h, where=offer.where), workload)
    if longer is None:
        return _Paid(one, None, one.score)
    return _Paid(one, offer, one.score * longer * offer.usd_per_h / pool.price_usd_per_h)


def _longer(one: Contender, pool: Pool, workload: Workload) -> float | None:
    """Return how many times as long the job takes on a pool of other terms; None where it then misses its deadline."""
    estimate, deadline_h = one.estimate, workload.targets.deadline_h
    job: Quantity | None = estimate.job_s
    if job is None or estimate.step_time_s is None or job.mid <= 0:
        return 1.0
    then = job_of(workload, pool, estimate.step_time_s, estimate.compile_s, saved_bytes(workload))
    if then is None:
        return 1.0
    return None if deadline_h is not None and then.mid > deadline_h * _HOUR_S else then.mid / job.mid
