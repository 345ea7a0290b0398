"""One job at each number of requests that one replica may take at once, where its document leaves that open."""

from collections.abc import Mapping

from core.workload import Workload
from intake.at_once import AT_ONCE, REQUESTS_TOLD, USUAL_AT_ONCE, is_open
from intake.fields import Section
from intake.understand import KEYS, read_document


def leaves_batch_open(document: Mapping[str, object], task: str) -> bool:
    """Return whether a document serves a rate of requests and leaves open how many are taken at once.

    Args:
        document: as for `read_document`, which has understood it.
        task: of the workload.
    """
    return is_open(Section("", document, KEYS), task)


def batches_of(document: Mapping[str, object]) -> tuple[Workload, ...]:
    """Return the workload at every batch that a replica may take where it serves a rate and leaves open how many at once.

    Args:
        document: as for `read_document`.

    Returns:
        Workloads that differ in their batch alone, ascending; none where the batch is said or fixed by the model.

    Raises:
        BadInput: the document cannot be used.
    """
    top = Section("", document, KEYS)
    whole = read_document(document)
    if not is_open(top, whole.task) or whole.batch != USUAL_AT_ONCE:
        return ()
    said: dict[str, object] = {"total": {"samples": REQUESTS_TOLD}, **top.values}
    return tuple(read_document({**said, "batch": batch}) for batch in AT_ONCE)
