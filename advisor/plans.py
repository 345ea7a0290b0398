"""How a pool's chips may share one step: data parallel or fully sharded, in one go or in accumulated parts.

The simplest plan that fits is preferred: no recomputation before recomputation, few parts before many. Tensor, pipeline
and expert parallelism are not planned here.
"""

from dataclasses import dataclass

from advisor.memory import Layout, ModelBytes, memory_parts
from core.advice import Plan


@dataclass(frozen=True, slots=True)
class Division:
    """A plan with what it means for one chip.

    Args:
        plan: as it is shown.
        layout: what one chip holds.
        parts: accumulated parts of one step.
        memory: (name, bytes) of one chip.
        fits: whether that is within the capacity; None when the capacity is not known.
    """

    plan: Plan
    layout: Layout
    parts: int
    memory: tuple[tuple[str, float], ...]
    fits: bool | None

    @property
    def simple(self) -> bool:
        """Whether it is plain data parallelism in one go: taken whenever it fits."""
        return self.plan.fsdp == 1 and self.parts == 1 and not self.layout.remat

    @property
    def share(self) -> float:
        """Part of the global batch that one chip works on at once."""
        return self.layout.batch_share


def divisions_of(model: ModelBytes, batch: int, chips: int, kind: str, capacity_bytes: float | None) -> tuple[Division, ...]:
    """Return the legal plans of a pool: one data parallel, one fully sharded when there is more than one chip.

    Args:
        model: bytes of the workload.
        batch: global batch.
        chips: of the pool.
        kind: of the chips.
        capacity_bytes: of one chip.

    Returns:
        No plan at all when the batch cannot be divided over the chips.
    """
    if batch % chips != 0:
        return ()
    found = [_smallest(model, batch, chips, kind, capacity_bytes, False)]
    if chips > 1:
        found.append(_smallest(model, batch, chips, kind, capacity_bytes, True))
    return tuple(found)


def _smallest(
    model: ModelBytes, batch: int, chips: int, kind: str, capacity_bytes: float | None, sharded: bool
) -> Division:
    """Return the plan with the fewest changes that fits; the most frugal one when none does."""
    local = batch // chips
    fewest = _division(model, local, batch, chips, kind, capacity_bytes, sharded, 1, False)
    if fewest.fits is not False or not model.trains:
        return fewest
    again = fewest
    for remat in (False, True):
        for parts in _divisors(local):
            again = _division(model, local, batch, chips, kind, capacity_bytes, sharded, parts, remat)
            if again.fits:
                return again
    return again


def _division(
    model: ModelBytes, local: int, batch: int, chips: int, kind: str, capacity_bytes: float | None,
    sharded: bool, parts: int, remat: bool,
) -> Division:
    micro = local // parts
    layout = Layout(1 / chips if sharded else 1.0, micro / batch, chips if sharded else 1, remat)
    memory = memory_parts(model, layout, kind)
    fits = None if capacity_bytes is None else sum(size for _, size in memory) <= capacity_bytes
    plan = Plan(
        data=1 if sharded else chips, fsdp=chips if sharded else 1, micro_batch=micro if parts > 1 else None, remat=remat,
    )
    return Division(plan, layout, parts, memory, fits)


def _divisors(number: int) -> tuple[int, ...]:
    return tuple(part for part in range(1, min(number, 64) + 1) if number % part == 0) + ((number,) if number > 64 else ())
