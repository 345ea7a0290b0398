"""One batch of a workload over the pools of a split: from estimates to a problem of shares, and from its plan to an answer."""

from dataclasses import replace

from advisor.split.bandwidth import bandwidth_of
from advisor.split.data_parallel import plan_data, why_no_shares
from advisor.split.data_parallel_curves import break_even_batch, share_curve, with_bandwidth
from advisor.split.data_parallel_words import DataPlan, DataPool, DataProblem
from advisor.split.given import TOGETHER, Given
from advisor.split.judgement import Curves, Planned
from advisor.split.sides import Side
from core import format as fmt
from core.device import Link
from core.ops import DTYPE_BYTES
from core.split import Curve, Share, pool_words
from core.workload import Workload

NO_LINK = Link(0.0, 1e18)
"""Between pools that exchange nothing: requests of a batch that is only inferred know nothing of each other."""
POINTS = 21


def data_of(given: Given) -> Planned:
    """Return the best uneven sharing of each batch over at least two of the pools."""
    workload, sides, links = given.workload, given.sides, given.links
    able = [index for index, side in enumerate(sides) if side.pace is not None and side.fits]
    if len(able) < TOGETHER:
        return given.without("data", able, "the whole model must fit on each pool: ")
    used = tuple(sides[index] for index in able)
    ways = tuple(tuple(_way(workload, links[a][b], same=a == b) for b in able) for a in able)
    if any(way is None for a, row in enumerate(ways) for b, way in enumerate(row) if a != b):
        return Planned("data", missing=given.unknown, said="the link between the pools is not known")
    pools = tuple(_pool(side) for side in used)
    problem = DataProblem(pools, workload.batch, exchanged_bytes(workload), ways, least_pools=TOGETHER)
    found = plan_data(problem)
    if found is None:
        reasons = why_no_shares(problem)
        return Planned("data", missing=reasons, said="; ".join(reasons))
    return _planned(given, used, problem, found)


def exchanged_bytes(workload: Workload) -> float:
    """Return bytes of all gradients as they go over the link, in the compute dtype; nothing where nothing is trained."""
    return float(workload.trained_parameter_count * DTYPE_BYTES[workload.dtype]) if workload.trains else 0.0


def _way(workload: Workload, link: Link | None, *, same: bool) -> Link | None:
    return None if same else link if workload.trains else NO_LINK


def _pool(side: Side) -> DataPool:
    """Return what the planner knows of a pool; its pace holds its own sums and its update already."""
    assert side.pace is not None
    return DataPool(side.name, side.pace)


def _planned(given: Given, used: tuple[Side, ...], problem: DataProblem, found: DataPlan) -> Planned:
    by_name = {share.pool: share for share in found.shares}
    working = [side for side in used if by_name[side.name].samples]
    shares = tuple(
        Share(side.joined, side.runtime, share.weight, float(share.samples), "samples", share.busy_s, share.wait_s,
              side.memory_bytes, f"{share.turns} turns" if share.turns > 1 else "")
        for side in used for share in (by_name[side.name],)
    )  # fmt: skip
    said = ", ".join(f"{fmt.percent(by_name[side.name].weight)} of each batch on {pool_words(side.pool)}" for side in working)
    priced = given.priced(
        found.seconds, [(side, by_name[side.name].busy_s) for side in working],
        f"shares of {problem.batch} samples, each pool's time by its share",
    )
    return Planned(
        "data", *priced, found.terms, shares, found.moves, found.timeline, curves=lambda: _curves(problem, found), said=said,
    )


def _curves(problem: DataProblem, found: DataPlan) -> Curves:
    """Return the step against the first pool's share and against the link's rate, and where the best pool alone is as fast."""
    single = found.best_single
    if single is None or single.seconds is None:
        return (), ()
    points = tuple(share_curve(problem, POINTS))
    best = min(points, key=lambda point: point[1])[0] if points else None
    share = Curve("share", points, found.shares[0].weight, best, None, single.seconds)
    rates = [link.bytes_per_s for row in problem.links for link in row if link is not None and link != NO_LINK]
    if not rates:
        return (share,), ()

    def seconds(rate: float) -> float:
        plan = plan_data(replace(problem, links=with_bandwidth(problem.links, rate)))
        return plan.seconds if plan is not None else float("inf")

    curves, turns = bandwidth_of(seconds, min(rates), single.seconds)
    return (share, *curves), (*turns, break_even_batch(problem))
