"""Copies of a workload's model that meet every so many steps: from estimates to a problem, and from its plan to an answer."""

from dataclasses import replace

from advisor.split.bandwidth import bandwidth_of
from advisor.split.data_parallel import MOST_SETS
from advisor.split.data_parallel_curves import with_bandwidth
from advisor.split.given import TOGETHER, Given
from advisor.split.judgement import Curves, Planned
from advisor.split.local import plan_local
from advisor.split.local_words import LocalPlan, LocalPool, LocalProblem, LocalShare
from advisor.split.sides import Side
from core.ops import DTYPE_BYTES
from core.split import Share, pool_words
from core.workload import Workload

OTHER_TRAINING = 0.1
"""It is not the training that was asked for: it has to be so much faster than one that is."""
MEETINGS = 10
"""A job is to meet so many times at least: fewer are no training together."""


def local_of(given: Given) -> Planned:
    """Return the best plan of copies that meet seldom, over at least two of the pools."""
    workload = given.workload
    able = [index for index, side in enumerate(given.sides) if side.pace is not None and side.fits]
    if len(able) < TOGETHER:
        return given.without("local", able, "the whole model must fit on each pool: ")
    if any(given.links[a][b] is None for a in able for b in able if a != b):
        return Planned("local", missing=given.unknown, said="the link between the pools is not known")
    used = tuple(given.sides[index] for index in able)
    if len(used) > MOST_SETS:
        return Planned("local", missing=(f"copies are planned over at most {MOST_SETS} pools",))
    steps = _inner_steps(workload)
    if not steps:
        return Planned("local", missing=(f"a job of {workload.total_steps:g} steps is too short for copies that meet seldom",))
    problem = LocalProblem(
        tuple(LocalPool(side.name, side.pace) for side in used if side.pace is not None), workload.batch,
        float(workload.trained_parameter_count * DTYPE_BYTES[workload.dtype]), round(8 * DTYPE_BYTES[workload.dtype]),
        given.links_of(able), steps, least_pools=TOGETHER,
        total_steps=None if workload.total_steps is None else int(workload.total_steps),
    )
    found = plan_local(problem)
    if found is None:
        return Planned("local", missing=(f"a batch of {workload.batch} cannot be shared by the pools",))
    return _planned(given, used, problem, found)


def _inner_steps(workload: Workload) -> tuple[int, ...]:
    """Return allowed steps between two meetings: from twenty on, so that it is another way than meeting in every step."""
    most = float("inf") if workload.total_steps is None else workload.total_steps / MEETINGS
    return tuple(steps for steps in (20, 50, 100, 200, 500) if steps <= most)


def _planned(given: Given, used: tuple[Side, ...], problem: LocalProblem, found: LocalPlan) -> Planned:
    by_name = {share.pool: share for share in found.shares}
    working = [side for side in used if by_name[side.name].samples]
    priced = given.priced(
        found.seconds, [(side, by_name[side.name].busy_s / found.inner_steps) for side in working],
        f"{found.variant} meetings every {found.inner_steps} steps",
    )
    whole = sum(share.weight for share in found.shares) or 1.0
    shares = tuple(_share(side, by_name[side.name], found, whole) for side in used)
    names = " and ".join(pool_words(side.pool) for side in working)
    said = f"copies on {names} that meet every {found.inner_steps} steps ({found.variant} DiLoCo, not the synchronous training)"
    cost = f"meetings cost {1 - found.utilisation:.0%} of the time even every {found.inner_steps} steps"
    return Planned(
        "local", *priced, found.terms, shares, found.moves, found.timeline, curves=lambda: _curves(problem, found), said=said,
        caution=OTHER_TRAINING,
        missing=(*(() if found.within else (cost,)), found.note),
    )


def _share(side: Side, share: LocalShare, found: LocalPlan, whole: float) -> Share:
    detail = f"{share.steps:g} steps of {share.samples} samples between meetings" if share.samples else "left out"
    return Share(
        side.joined, side.runtime, share.weight / whole, float(share.samples), "samples", share.busy_s / found.inner_steps,
        share.wait_s / found.inner_steps, side.memory_bytes, detail,
    )


def _curves(problem: LocalProblem, found: LocalPlan) -> Curves:
    """Return the step against the links' rate, planned again at each with the same steps between meetings."""
    rates = [link.bytes_per_s for row in problem.links for link in row if link is not None]
    single = found.best_single
    if not rates or single is None:
        return (), ()
    kept = replace(problem, inner_steps=(found.inner_steps,))

    def seconds(rate: float) -> float:
        plan = plan_local(replace(kept, links=with_bandwidth(kept.links, rate)))
        return plan.seconds if plan is not None else float("inf")

    return bandwidth_of(seconds, min(rates), single[1])
