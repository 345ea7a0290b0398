"""How many chips of a pool a plan uses, and what is said of those that it leaves idle.

Replicas that answer requests need not use a pool up: five chips hold two replicas of two, and one is over.
"""

from core.advice import Plan


def copies(plan: Plan) -> int:
    """Return the replicas of a plan, whether each holds the weights whole or a part of them."""
    return plan.data * plan.fsdp


def chips_used(plan: Plan) -> int:
    """Return the chips that a plan gives work to; experts are spread over its replicas."""
    return copies(plan) * plan.tensor * plan.pipeline * plan.context


def spare_words(plan: Plan, chips: int) -> tuple[str, ...]:
    """Return how many chips of a pool are used where some are idle, as one phrase; none where all are.

    Args:
        plan: of the pool.
        chips: that it has.
    """
    used = chips_used(plan)
    return (f"{used} of {chips} chips used",) if used < chips else ()
