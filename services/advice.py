"""Advice at once: from the catalog and from what was measured before, without a run."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import intake
from advisor import Question, advise
from advisor.keeping_up import fleets_of
from core.advice import Recommendation
from core.device import Device, Pool
from core.probe import Outcome, Runtime
from core.run import RunOptions
from core.workload import Workload
from probes.inventory import devices as attached_devices
from services.context import context
from services.pools import KEYWORDS, obtainable, pools_for, sized_pools
from services.runtimes import known_runtimes


def instant(document: Mapping[str, Any], options: RunOptions) -> Recommendation:
    """Answer from stored measurements of the attached devices and from the catalog.

    Raises:
        BadInput: the document or the pools cannot be used.
    """
    here = context()
    attached = attached_devices()
    runtimes = known_runtimes(here.settings, attached)
    stored = here.store.measurements(tuple(device.uuid for device in attached))
    return answer(intake.read_document(document), options, attached, runtimes, stored, intake.batches_of(document))


def answer(
    workload: Workload, options: RunOptions, devices: Sequence[Device], runtimes: Sequence[Runtime], outcomes: Sequence[Outcome],
    batches: tuple[Workload, ...] = (),
) -> Recommendation:
    """Ask the advisor, with today's date and the pools that the options name; counts that no slice has are told as excluded.

    Args:
        workload: the job.
        options: pools, runtimes and objective.
        devices, runtimes, outcomes: what is here and what is known of it.
        batches: from `intake.batches_of`: the same job at each batch that is tried; none where it has one.
    """
    chosen = tuple(r for r in runtimes if not options.runtimes or r.id in options.runtimes)
    pools, impossible = obtainable(pools_for(workload, devices, options.pools))
    question = Question(
        workload,
        pools,
        tuple(devices),
        chosen,
        tuple(outcomes),
        options.objective or workload.objective,
        datetime.now(UTC).date().isoformat(),
        named=options.pools not in KEYWORDS,
        batches=batches,
    )
    found = advise(question)
    if batches:
        tried = {(pool.accelerator, pool.count) for pool in pools}
        sized = sized_pools(workload, options.pools, fleets_of(found.ranked))
        more = tuple(pool for pool in sized if (pool.accelerator, pool.count) not in tried)
        found = advise(replace(question, pools=(*pools, *more))) if more else found
    if found.best is None and options.pools == "all" and workload.pools:
        found = replace(found, why=found.why + _beside(workload, pools, found))
    if not impossible:
        return found
    found = replace(found, excluded=(*impossible, *found.excluded))
    fault = f"Nothing can be recommended: no pool can be had as asked for, {impossible[0].reason}."
    nothing = not pools or (found.best is None and all(pool.attached for pool in pools))
    return replace(found, sentence=fault) if nothing else found


def _beside(workload: Workload, pools: Sequence[Pool], found: Recommendation) -> str:
    """Return what is said of attached devices that the workload does not name, where nothing is left; empty without any."""
    named = {request.accelerator for request in workload.pools}
    here = tuple(dict.fromkeys(pool.accelerator for pool in pools if pool.attached and pool.accelerator not in named))
    count = len({(one.runtime, one.accelerator) for one in found.excluded if one.accelerator in here})
    said = f" {count} of them are on {', '.join(here)}, attached here and looked at beside the pools that the workload names."
    return said if here else ""
