"""Says what a way of acting and learning comes to: terms, shares, moves, a timeline of one step, and what to mind.

The log-probabilities with which rollouts were drawn are not those that the trainer computes when engines, number formats or chips
differ; how far apart they lie cannot be told from numbers here, so that it is said and not priced.
"""

from collections.abc import Sequence

from advisor.split.reinforcement_words import (
    Actors,
    Crew,
    Draft,
    Learner,
    LearningAlone,
    LearningPlan,
    LearningProblem,
)
from core.split import Bar, Move

MISMATCH = "On the Rollout-Training Mismatch in Modern RL Systems (openreview.net/forum?id=8MHqvb4lK9, 2025)"
"""Even with equal weights two engines give unlike probabilities, which makes on-policy learning off-policy; truncated importance
weights mend it, 8-bit rollouts included."""


def told(problem: LearningProblem, draft: Draft, singles: tuple[LearningAlone, ...]) -> LearningPlan:
    """Return a way in words.

    Args:
        problem: what was asked.
        draft: the way.
        singles: each pool alone.
    """
    rows = zip(draft.crew, draft.samples, draft.in_flight, draft.crew_s, strict=True)
    return LearningPlan(
        draft.mode, draft.seconds, draft.usd_per_step, draft.learner, tuple(Crew(*row) for row in rows), draft.staleness,
        draft.push_s, _fractions(problem, draft), _terms(draft), _moves(problem, draft), _timeline(problem, draft), singles,
        mismatch(draft.learner, draft.crew),
    )


def mismatch(learner: Learner, crew: Sequence[Actors]) -> tuple[str, ...]:
    """Return what differs between rollouts and training, one sentence each pool of actors.

    Args:
        learner, crew: who; what is not known differs in nothing.
    """
    found: list[str] = []
    for actors in crew:
        unlike = [
            f"{ours} and {theirs}"
            for ours, theirs in ((actors.kind, learner.kind), (actors.stack, learner.stack), (actors.dtype, learner.dtype))
            if ours and theirs and ours != theirs
        ]
        if unlike:
            found.append(
                f"log-probabilities of rollouts ({actors.pool}) and training ({learner.pool}) differ: {', '.join(unlike)}; "
                f"keep those of the rollouts and correct by truncated importance weights (R119; {MISMATCH})"
            )
    return tuple(found)


def _fractions(problem: LearningProblem, draft: Draft) -> tuple[tuple[str, float], ...]:
    """Return how the busy chip-seconds divide over the pools."""
    busy = dict.fromkeys((pool.name for pool in problem.pools), 0.0)
    busy[draft.learner.pool] += draft.learner.chips * draft.learn_s
    for actors, seconds in zip(draft.crew, draft.crew_s, strict=True):
        busy[actors.pool] += actors.chips * seconds
    whole = sum(busy.values())
    return tuple((name, value / whole) for name, value in busy.items())


def _terms(draft: Draft) -> tuple[tuple[str, float], ...]:
    """Return what a step's seconds go into; of steps into each other, who is busiest and what is waited for beside."""
    if draft.mode in ("together", "synchronous"):
        return (("rollout", draft.rollout_s), ("learn", draft.learn_s), ("push", draft.push_s))
    load_s = max(actors.load_s for actors in draft.crew)
    acting, learning = draft.rollout_s + load_s, draft.learn_s + draft.learner.gather_s
    if acting >= learning:
        return (("rollout", draft.rollout_s), ("load", load_s), ("wait", max(draft.seconds - acting, 0.0)))
    return (("learn", draft.learn_s), ("gather", draft.learner.gather_s), ("wait", max(draft.seconds - learning, 0.0)))


def _moves(problem: LearningProblem, draft: Draft) -> tuple[Move, ...]:
    """Return the weights to each pool of actors, and the rollouts back."""
    found: list[Move] = []
    waits = draft.mode == "synchronous"
    for actors, samples in zip(draft.crew, draft.samples, strict=True):
        if actors.pool == draft.learner.pool:
            continue
        there = problem.way_s(problem.weights_bytes, draft.learner.pool, actors.pool) or 0.0
        found.append(Move("weights", draft.learner.pool, actors.pool, problem.weights_bytes, there, there if waits else 0.0))
        if problem.sample_bytes:
            size = problem.sample_bytes * samples
            back = problem.way_s(size, actors.pool, draft.learner.pool) or 0.0
            found.append(Move("rollouts", actors.pool, draft.learner.pool, size, back, 0.0))
    return tuple(found)


def _timeline(problem: LearningProblem, draft: Draft) -> tuple[Bar, ...]:
    """Return one training step: in turn, or side by side where steps go into each other."""
    learner, end = draft.learner, draft.seconds
    names = {pool.name for pool in problem.pools}
    same = [actors.pool for actors in draft.crew if actors.pool == learner.pool and draft.mode != "together"]
    lane = f"{learner.pool} (learner)" if same and f"{learner.pool} (learner)" not in names else learner.pool
    beside = draft.mode in ("one-step-off", "asynchronous")
    begin = 0.0 if beside else draft.rollout_s
    bars = [Bar(actors.pool, 0.0, min(seconds, end), "compute", f"rolls out {samples:.4g} of {problem.samples}")
            for actors, samples, seconds in zip(draft.crew, draft.samples, draft.crew_s, strict=True)]
    clock = min(begin + draft.learn_s, end)
    bars.append(Bar(lane, begin, clock, "compute", "scores and learns"))
    gathered = min(clock + learner.gather_s, end)
    if gathered > clock:
        bars.append(Bar(lane, clock, gathered, "move", "gathers weights"))
    if draft.transfer_s and not beside:
        bars.append(Bar("link", gathered, gathered + draft.transfer_s, "move", "weights to the actors"))
    if draft.transfer_s and beside:
        bars.append(Bar("link", 0.0, min(draft.transfer_s, end), "move", "weights of the step before to the actors"))
    bars.extend(Bar(one.pool, end - one.load_s, end, "move", "loads weights") for one in draft.crew if one.load_s)
    return tuple(sorted([*bars, *_waits(bars, end)], key=lambda bar: (bar.lane, bar.start_s)))


def _waits(bars: Sequence[Bar], end: float) -> list[Bar]:
    """Return the stretches in which a lane stands still, but for the link."""
    found: list[Bar] = []
    for lane in dict.fromkeys(bar.lane for bar in bars if bar.lane != "link"):
        clock = 0.0
        for bar in sorted((bar for bar in bars if bar.lane == lane), key=lambda bar: bar.start_s):
            if bar.start_s > clock + 1e-9 * end:
                found.append(Bar(lane, clock, bar.start_s, "wait", "waits for the other side"))
            clock = max(clock, bar.stop_s)
        if end > clock + 1e-9 * end:
            found.append(Bar(lane, clock, end, "wait", "waits for the other side"))
    return found
