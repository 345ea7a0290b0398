"""How many requests are taken at once where a job serves a rate of them and nobody says it: each place takes what serves best."""

from core.workload import Total
from intake.fields import Section
from intake.sections import read_targets

AT_ONCE = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
"""Batches that are tried; servers of language models take 256 to 1,024 sequences at once where their memory allows it."""
USUAL_AT_ONCE = 32
"""Batch of rules and attached devices while it is open."""
REQUESTS_TOLD = 100_000
"""Requests that cost and energy are told for when the job has no total, since steps of unlike batches cannot be compared."""


def is_at_a_rate(top: Section, task: str) -> bool:
    """Return whether a document serves requests that come at a rate.

    Args:
        top: the document.
        task: one of `TASKS`.

    Raises:
        BadInput: a target that cannot be used.
    """
    return task == "serve" and read_targets(top).requests_per_s is not None


def is_open(top: Section, task: str) -> bool:
    """Return whether a document serves a rate of requests and leaves open how many at once.

    Args:
        top: the document.
        task: one of `TASKS`.

    Raises:
        BadInput: a target that cannot be used.
    """
    return not top.has("batch") and is_at_a_rate(top, task)


def batch_while_open(assumed: list[str]) -> int:
    """Return the batch that stands for an open one.

    Args:
        assumed: what Tandem filled in is added to it.
    """
    assumed.append(f"batch left open: each pool takes up to {AT_ONCE[-1]} requests at once, attached devices {USUAL_AT_ONCE}")
    return USUAL_AT_ONCE


def while_open(top: Section, total: Total, objective: str, assumed: list[str]) -> tuple[Total, str]:
    """Return how much cost is told for, and the objective, while the batch is open.

    Args:
        top: the document.
        total: as it says, or empty.
        objective: as it says, or as usual.
        assumed: what Tandem filled in is added to it.
    """
    if total == Total():
        total = Total(samples=REQUESTS_TOLD)
        assumed.append(f"cost is told for {REQUESTS_TOLD:,} requests, since no total was given")
    if not top.has("objective"):
        objective = "cost"
        assumed.append("the cheapest that keeps up is looked for, since a rate is asked for and no objective was given")
    return total, objective
