"""How many requests are taken at once where a job serves a rate of them and nobody says it: each place takes what serves best."""

from dataclasses import replace

from core.workload import Targets, Total
from intake.fields import Section
from intake.sections import read_targets
from intake.wording import fault

AT_ONCE = (1, 4, 16, 32, 48, 64, 96, 128, 192, 256, 384, 512)
"""Batches that are tried of one replica, up to what servers such as vLLM limit by `max_num_seqs` (prior)."""
NO_TOTAL, GIVE_TOTAL = "no total was given", "give total, as total: {steps: N}"
_ASKED = {"deadline_h": "the deadline of {} h", "budget_usd": "the budget of {} USD"}
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
    return task == "serve" and read_targets(top, task).requests_per_s is not None


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
    assumed.append(f"batch left open: each pool takes as many requests at once as serve best, attached devices {USUAL_AT_ONCE}")
    return USUAL_AT_ONCE


def while_open(top: Section, total: Total, objective: str, assumed: list[str]) -> tuple[Total, str]:
    """Return how much cost is told for, and the objective, while the batch is open.

    Args:
        top: the document.
        total: as it says, or empty.
        objective: as it says, or as usual.
        assumed: what Tandem filled in is added to it.

    Raises:
        BadInput: the total counts steps.
    """
    if total.steps is not None:
        remedy = "write total: {samples: N}, or a batch"
        raise fault("total.steps", total.steps, "samples, since pools take unlike batches", remedy)
    if total == Total():
        total = Total(samples=REQUESTS_TOLD)
        assumed.append(f"cost is told for {REQUESTS_TOLD:,} requests, since no total was given")
    if not top.has("objective"):
        objective = "cost"
        assumed.append("while a rate is asked for and no objective, the cheapest that keeps up is looked for")
    return total, objective


def held(targets: Targets, *, at_a_rate: bool, total: bool, assumed: list[str]) -> Targets:
    """Return the targets that mean something, and say which of them nothing can be held against.

    Args:
        targets: as the document says.
        at_a_rate: whether requests come at a rate: their work ends when they do, whatever serves them.
        total: whether the document gives one.
        assumed: what is held against nothing is added to it.
    """
    without = "" if total else NO_TOTAL
    reasons = {"deadline_h": "requests come at a rate" if at_a_rate else without, "budget_usd": without}
    unheld: list[tuple[str, str]] = []
    for name, why in reasons.items():
        value = getattr(targets, name)
        if why and value is not None:
            assumed.append(f"{name} is held against nothing, since {why}")
            remedy = GIVE_TOTAL if why == NO_TOTAL else f"remove targets.{name}"
            told = f"whether {_ASKED[name].format(f'{value:,.12g}')} is kept", f"not counted, since {why}: {remedy}"
            unheld.append(told)
            targets = replace(targets, **{name: None}) if at_a_rate else targets
    return replace(targets, unheld=tuple(unheld))
