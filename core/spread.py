"""What a plan spreads over its chips beyond the ways it names: states that plain replicas share, and embedding tables."""

from core.advice import Candidate
from core.workload import Workload


def spread_words(candidate: Candidate, workload: Workload) -> tuple[str, ...]:
    """Return what memory is counted with, one phrase each, as `advisor.search.room` divides it; nothing of attached devices.

    Args:
        candidate: of the workload.
        workload: the job.
    """
    pool, plan = candidate.pools[0], candidate.plan
    if pool.attached:
        return ()
    shares = workload.trains and workload.optimizer != "none" and plan.fsdp == 1 and plan.data > 1
    tables = pool.count > 1 and any(block.is_table for block in workload.blocks)
    return (
        *(("optimizer states sharded (ZeRO-1)",) if shares else ()),
        *(("embedding tables spread over all chips",) if tables else ()),
    )
