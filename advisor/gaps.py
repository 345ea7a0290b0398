"""Which probes would sharpen the choice most, dearest knowledge first, each with what it would cost in seconds."""

from advisor.attached import Reading
from advisor.ranking import Contender, chance_faster
from core.advice import Estimate, Gap
from core.quantity import TIERS
from core.workload import Workload

MOST = 24
_FROM = dict.fromkeys(TIERS, "not measured on it") | {
    "published": "taken from what others published", "datasheet": "computed from its datasheet",
}


def gaps_of(readings: tuple[Reading, ...], order: tuple[Contender, ...], fits: bool) -> tuple[Gap, ...]:
    """Return the gaps of attached candidates by how much they bear on the choice, then what only other machines can tell.

    Args:
        readings: attached candidates with their open probes.
        order: ranked candidates, best first.
        fits: whether anything is feasible at all; when not, every gap of a probe is told in the order of its candidate.
    """
    weighed: list[tuple[float, float, str, Gap]] = []
    by_estimate = {_key(c.estimate): c for c in order}
    for reading in readings:
        contender = by_estimate.get(_key(reading.estimate))
        stake = _stake(contender, order) if fits else 1.0
        for gap in reading.gaps:
            weight = stake * _width(reading.estimate, gap)
            weighed.append((-weight, gap.seconds or 0.0, gap.what, gap))
    weighed.sort(key=lambda item: item[:3])
    found = [gap for weight, _, _, gap in weighed if weight < 0]
    return tuple(dict.fromkeys(found))[:MOST] + _elsewhere(order)


def unheld(workload: Workload) -> tuple[Gap, ...]:
    """Return the targets that were asked for and that nothing can be held against, with what would tell.

    Args:
        workload: the job.
    """
    return tuple(Gap(what, None, None, remedy) for what, remedy in workload.targets.unheld)


def _key(estimate: Estimate) -> tuple[str, str, int]:
    pool = estimate.candidate.pools[0]
    return (estimate.candidate.runtime, pool.accelerator, pool.count)


def _stake(contender: Contender | None, order: tuple[Contender, ...]) -> float:
    """Return how likely it is that this candidate decides the choice; an unknown one may well be the best."""
    if contender is None or not order:
        return 0.5
    if contender is order[0]:
        return 0.5 if len(order) > 1 else 0.1
    return chance_faster(contender, order[0])


def _width(estimate: Estimate, gap: Gap) -> float:
    """Return the part of a step whose uncertainty the probe would remove; 1 when the step time is unknown."""
    step = estimate.step_time_s
    if step is None or step.mid <= 0:
        return 1.0
    block = gap.what.split(" in ")[0]
    doubt = sum(share.seconds.mid * share.seconds.sigma for share in estimate.breakdown if share.block == block)
    return doubt / step.mid


def _elsewhere(order: tuple[Contender, ...]) -> tuple[Gap, ...]:
    """Return what no probe here can tell: the leading chips that are not attached."""
    chips: dict[str, Contender] = {}
    for contender in order[:8]:
        if not contender.estimate.candidate.pools[0].attached:
            chips.setdefault(contender.device, contender)
    return tuple(
        Gap(
            f"step time on {key}", None, None,
            f"its figure is {_FROM[found.value.tier]}: run the same advice on one machine with {key} to measure it",
        )
        for key, found in list(chips.items())[:3]
    )
