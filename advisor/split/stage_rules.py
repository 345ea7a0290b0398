"""What the rules say of a placed workflow: of every hand-over between unlike pools, by the workload that crosses."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from advisor.rules.case import code_of
from advisor.rules.split_case import SplitCase, side_of
from advisor.screening import overall, split_verdicts
from advisor.split.stages_words import Edge, PlacedStage, StagesProblem
from core.advice import Verdict
from core.device import Pool
from core.workload import PoolRequest, Workload

PORTABILITY = "export_portability"
"""Flag of rules about files that are written here and read there."""


def stage_verdicts(
    problem: StagesProblem, placed: Sequence[PlacedStage], pools: Mapping[str, Pool], workloads: Mapping[str, Workload],
    today: str,
) -> tuple[Verdict, ...]:
    """Return verdicts, each rule once for each pair of pools.

    Args:
        problem: its edges are looked at.
        placed: stages with their pools.
        pools: by name.
        workloads: of the stages that name one; a hand-over of which neither end has one tells no rule anything.
        today: ISO date against which the age of rules is told.
    """
    where = {one.stage: one for one in placed}
    edges = problem.edges if where else ()
    found: dict[tuple[str, str], Verdict] = {}
    for edge in edges:
        case = _case(problem, edge, where, pools, workloads, today)
        for verdict in (*(() if case is None else split_verdicts(case)), *_of_counts(edge, where, pools, workloads, today)):
            found.setdefault((verdict.rule, verdict.accelerator), verdict)
    return tuple(found[key] for key in sorted(found))


def _of_counts(
    edge: Edge, where: Mapping[str, PlacedStage], pools: Mapping[str, Pool], workloads: Mapping[str, Workload], today: str
) -> tuple[Verdict, ...]:
    """Return what is said of files that so many chips write and another number of the same read."""
    ends = [pools[where[stage].pool] for stage in (edge.source, edge.target)]
    workload = workloads.get(edge.source) or workloads.get(edge.target)
    if workload is None or ends[0].accelerator != ends[1].accelerator or ends[0].count == ends[1].count:
        return ()
    named = replace(workload, pools=tuple(PoolRequest(pool.accelerator, pool.count) for pool in ends))
    place = " + ".join(f"{pool.count} x {pool.accelerator}" for pool in ends)
    return tuple(replace(one, accelerator=place) for one in overall(code_of(named, today)) if one.flag == PORTABILITY)


def _case(
    problem: StagesProblem, edge: Edge, where: Mapping[str, PlacedStage], pools: Mapping[str, Pool],
    workloads: Mapping[str, Workload], today: str,
) -> SplitCase | None:
    """Return a hand-over as rules see it, or None where its pools are alike or no workload is known."""
    source, target = where[edge.source], where[edge.target]
    first, second = (side_of(pools[one.pool].accelerator, pools[one.pool].count) for one in (source, target))
    workload = workloads.get(edge.source) or workloads.get(edge.target)
    if workload is None or first.family == second.family:
        return None
    link = next((wire.link for wire in problem.wires if set(wire.pools) == {source.pool, target.pool}), None)
    receiver = workloads.get(edge.target)
    return SplitCase(
        code_of(workload, today), (first, second), synchronous=False, handed_over=True, one_program=False,
        link_bytes_per_s=None if link is None else link.bytes_per_s, link_latency_s=None if link is None else link.latency_s,
        transfer_bytes=edge.size_bytes or None, stage_s=target.busy_s or None,
        serves_second=workload.trains and (receiver is None or not receiver.trains),
    )
