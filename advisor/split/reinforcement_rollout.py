"""How long rollouts take: a batch with its long tail, a batch over several pools, and a stream that never stops.

A batch thins out: the more rollouts have ended, the faster a step of the rest, until only the longest are left. Where more are
asked for than an engine holds, places are filled again as they fall free, at full speed, before the last ones thin out.
"""

from functools import lru_cache

from advisor.split.pace import Pace
from advisor.split.reinforcement_words import Actors, LearningProblem, Lengths

LEVELS = (1.0, 0.5, 0.25, 0.125)
"""Parts of an engine's places that a stream may keep filled: fewer make each rollout faster, and so less stale."""


def step_s(step: Pace, count: int, steps_per_s: float | None, overlapped: bool) -> float:
    """Return seconds of one step of an engine with so many rollouts in flight, environments included.

    Args:
        step: of the model.
        count: in flight.
        steps_per_s: of this engine's part of the environments; None without.
        overlapped: whether model and environments work at the same time.
    """
    model = step.at_once(count)
    if steps_per_s is None or count == 0:
        return model
    world = count / steps_per_s
    return max(model, world) if overlapped else model + world


def places(actors: Actors, samples: int) -> int:
    """Return how many rollouts one engine can have in flight."""
    most = actors.step.most
    return max(1, samples if most is None else most)


@lru_cache(maxsize=100_000)
def batch_s(
    step: Pace, most: int, lengths: Lengths, count: int, steps_per_s: float | None = None, overlapped: bool = True
) -> float:
    """Return seconds of a batch on one engine, from its first token to the last of its longest rollout.

    Args:
        step, steps_per_s, overlapped: as `step_s` has them.
        most: in flight at once.
        lengths: of rollouts.
        count: of the batch.
    """
    if count <= 0:
        return 0.0
    held = min(count, most)
    seconds, before = 0.0, 0.0
    for ended, length in enumerate(lengths.of(held)):
        if length > before:
            seconds += (length - before) * step_s(step, held - ended, steps_per_s, overlapped)
            before = length
    return seconds + (count - held) * lengths.cut_mean * step_s(step, most, steps_per_s, overlapped) / most


def crew_s(problem: LearningProblem, actors: Actors, count: int, engines: int, learner: str) -> float:
    """Return seconds in which actors roll out so many samples and the learner has them.

    Args:
        problem: lengths, environments and links.
        actors: who.
        count: samples, dealt out evenly to the engines.
        engines: of all actors, which share the environments evenly.
        learner: pool that the samples go to; there must be a way.
    """
    if count <= 0:
        return 0.0
    steps_per_s, overlapped = world_of(problem, engines)
    each = -(-count // actors.engines)
    rolled = batch_s(actors.step, places(actors, problem.samples), problem.lengths, each, steps_per_s, overlapped)
    sent = problem.way_s(problem.sample_bytes * count, actors.pool, learner)
    assert sent is not None, "there is no way to the learner"
    return max(rolled, sent)


def world_of(problem: LearningProblem, engines: int) -> tuple[float | None, bool]:
    """Return the steps a second that environments give each engine, and whether they overlap with the model."""
    world = problem.environments
    return (None, True) if world is None else (world.steps_per_s / engines, world.overlapped)


@lru_cache(maxsize=4096)
def dealt(problem: LearningProblem, crew: tuple[Actors, ...], learner: str) -> tuple[tuple[int, ...], float]:
    """Return how many samples each of the actors rolls out so that the last one ends first, and when that is.

    More samples never take less: the least end is one of theirs at some number, found by bisection for each.

    Args:
        problem: samples and lengths.
        crew: at least one.
        learner: pool that the samples go to.
    """
    engines = sum(actors.engines for actors in crew)
    total = problem.samples

    def seconds(index: int, count: int) -> float:
        return crew_s(problem, crew[index], count, engines, learner)

    def able(index: int, limit: float) -> int:
        low, high = 0, total
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if seconds(index, middle) <= limit else (low, middle - 1)
        return low

    best = min(seconds(index, total) for index in range(len(crew)))
    for index in range(len(crew)):
        low, high = 0, total
        while low < high:
            middle = (low + high) // 2
            limit = seconds(index, middle)
            enough = sum(able(other, limit) for other in range(len(crew))) >= total
            low, high = (low, middle) if enough else (middle + 1, high)
        best = min(best, seconds(index, low))
    counts: list[int] = []
    for index in range(len(crew)):
        counts.append(min(able(index, best), total - sum(counts)))
    return tuple(counts), max(seconds(index, count) for index, count in enumerate(counts))


def stream(problem: LearningProblem, crew: tuple[Actors, ...], level: float) -> tuple[tuple[float, ...], float, tuple[int, ...]]:
    """Return samples a second of each of the actors that never stop, seconds of the longest rollout, and rollouts on an engine.

    Args:
        problem: lengths and environments.
        crew: who.
        level: part of the places that is kept filled.
    """
    engines = sum(actors.engines for actors in crew)
    steps_per_s, overlapped = world_of(problem, engines)
    rates: list[float] = []
    filled: list[int] = []
    longest = 0.0
    last = problem.lengths.of(problem.samples)[-1]
    for actors in crew:
        count = max(1, int(places(actors, problem.samples) * level))
        each_s = step_s(actors.step, count, steps_per_s, overlapped)
        rates.append(actors.engines * count / (problem.lengths.cut_mean * each_s))
        filled.append(count)
        longest = max(longest, last * each_s)
    return tuple(rates), longest, tuple(filled)
