"""What a plan spreads over its chips beyond the ways it names: states that plain replicas share, and embedding tables."""

from core.advice import Plan
from core.workload import Workload


def spread_words(plan: Plan, workload: Workload, chips: int) -> tuple[str, ...]:
    """Return what memory is counted with, one phrase each, as `advisor.search.room` divides it.

    Args:
        plan: of a candidate.
        workload: the job.
        chips: of its pool.
    """
    shares = workload.trains and workload.optimizer != "none" and plan.fsdp == 1 and plan.data > 1
    tables = chips > 1 and any(block.kind == "embedding_bag" for block in workload.blocks)
    return (
        *(("optimizer states sharded (ZeRO-1)",) if shares else ()),
        *(("embedding tables spread over all chips",) if tables else ()),
    )
