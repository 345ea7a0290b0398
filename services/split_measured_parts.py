"""Steps of parts on sides of their own, and of actor and learner, told from what was measured of each piece.

What a side takes hangs on how much of the time the other works beside it: it is measured alone and beside a side that never
rests, and taken between the two by the part of the time that the other really works.
"""

from collections.abc import Callable
from dataclasses import dataclass

from core.device import Link
from probes.split.words import Calibrated
from services.split_measured import link_of
from services.split_measured_course import Course, Do, Give, Program, Take, course

ROUNDS = 6
"""How often the part of the time in which the other side works is put in anew; it changes less each time."""
ACTOR, LEARNER = ("rollout", "load"), ("train", "update", "push")
"""Pieces of each one's work."""
Stock = tuple[dict[str, int], dict[str, int]]
Seconds = Callable[[int, str], float]


@dataclass(frozen=True, slots=True)
class Told:
    """A step as it is planned from its pieces.

    Args:
        ahead: steps that the first side runs ahead.
        course: how steps follow each other.
        link: as measured.
        fractions: part of the work of each side.
    """

    ahead: int
    course: Course
    link: Link
    fractions: tuple[float, float]


def piece_s(found: Calibrated, side: int, what: str, rows: int, beside: float) -> float:
    """Return the median seconds of a piece of a side's work; 0 for one that it has not.

    Args:
        found: calibration.
        side: 0 or 1.
        what: name of the piece.
        rows: that it was measured on.
        beside: part of the time in which the other side works.
    """
    alone = dict(found.pace(side, what, loaded=False)).get(rows)
    loaded = dict(found.pace(side, what, loaded=True)).get(rows)
    if alone is None or loaded is None:
        return alone or loaded or 0.0
    return alone + (loaded - alone) * beside


def measured(found: Calibrated, side: int, whats: tuple[str, ...], rows: int) -> bool:
    """Return whether all pieces of a side's work were measured on so many rows."""
    return all(
        rows in dict(found.pace(side, what, loaded=True)) or rows in dict(found.pace(side, what, loaded=False)) for what in whats
    )


def plan_parts(found: Calibrated, names: tuple[str, str], batch: int, aheads: tuple[int, ...] = (0, 1)) -> Told | None:
    """Return the quicker way of working on a model that is cut in two, without micro-batches; None without measurements.

    Args:
        found: calibration in `operators` with the whole batch.
        names: of the sides.
        batch: samples of a step.
        aheads: steps that the first side may run ahead; of ways that are as quick the first.
    """
    if not all(measured(found, side, ("forward", "backward", "flatten", "update"), batch) for side in (0, 1)):
        return None
    size_bytes = float(found.activation_bytes)

    def programs(ahead: int, seconds: Seconds) -> tuple[Program, Program]:
        return parts_programs(seconds, size_bytes, ahead)

    return _quickest(found, names, batch, aheads, programs, lambda ahead: ({}, {"activations": ahead}))


def parts_programs(seconds: Seconds, size_bytes: float, ahead: int) -> tuple[Program, Program]:
    """Return what both sides do in a step; a side that is ahead goes forward twice, since its weights have changed meanwhile.

    Args:
        seconds: of a piece of a side's work.
        size_bytes: of activations, and of their gradients.
        ahead: 0 or 1.
    """
    forward = (Do("compute", "forward, a step ahead" if ahead else "forward", seconds(0, "forward")),
               Give("activations", size_bytes))
    again = (Do("compute", "forward again", seconds(0, "forward")),) if ahead else ()
    backward = (Take("gradients"), Do("compute", "backward", seconds(0, "backward")))
    first = (*forward, *again, *backward, Do("update", "update", seconds(0, "flatten") + seconds(0, "update")))
    second = (
        Take("activations"), Do("compute", "forward", seconds(1, "forward")), Do("compute", "backward", seconds(1, "backward")),
        Give("gradients", size_bytes), Do("update", "update", seconds(1, "flatten") + seconds(1, "update")),
    )
    return first, second


def plan_learning_step(
    found: Calibrated, names: tuple[str, str], batch: int, sample_bytes: float, actor: int = 0, aheads: tuple[int, ...] = (0, 1)
) -> Told | None:
    """Return the quicker way of taking turns of actor and learner; None without measurements.

    Args:
        found: calibration in `rl` with the whole batch and this actor.
        names: of the sides.
        batch: samples of a rollout.
        sample_bytes: of all samples of a rollout.
        actor: the side that samples.
        aheads: steps that the actor may run ahead.
    """
    if not (measured(found, actor, ACTOR, batch) and measured(found, 1 - actor, LEARNER, batch)):
        return None
    weights_bytes, in_order = float(found.gradient_bytes), actor == 0

    def programs(_ahead: int, seconds: Seconds) -> tuple[Program, Program]:
        acts, learns = learning_programs(seconds, weights_bytes, sample_bytes, actor)
        return (acts, learns) if in_order else (learns, acts)

    def stock(ahead: int) -> Stock:
        there: dict[str, int] = {"weights": ahead + 1}
        return (there, {}) if in_order else ({}, there)

    return _quickest(found, names, batch, aheads, programs, stock)


def learning_alone_s(acting: Calibrated, learning: Calibrated, side: int, batch: int) -> float | None:
    """Return the seconds of rollout, training and update on one side, with no weights to be pushed; None without measurements.

    Args:
        acting, learning: calibrations in which this side was the actor, and the learner.
        side: 0 or 1.
        batch: samples of a rollout.
    """
    rollout = dict(acting.pace(side, "rollout", loaded=False)).get(batch)
    learned = [dict(learning.pace(side, what, loaded=False)).get(batch) for what in ("train", "update")]
    parts = [part for part in (rollout, *learned) if part is not None]
    return sum(parts) if len(parts) == 1 + len(learned) else None


def learning_programs(seconds: Seconds, weights_bytes: float, sample_bytes: float, actor: int = 0) -> tuple[Program, Program]:
    """Return what actor and learner do in a step; the learner pushes after each, and waits until the weights are gone.

    Args:
        seconds: of a piece of a side's work.
        weights_bytes, sample_bytes: of a push and of a rollout.
        actor: the side that samples.
    """
    learner = 1 - actor
    acts = (
        Take("weights"), Do("update", "load weights", seconds(actor, "load")),
        Do("compute", "rollout", seconds(actor, "rollout")), Give("samples", sample_bytes),
    )
    learns = (
        Take("samples"), Do("compute", "learn", seconds(learner, "train")), Do("update", "update", seconds(learner, "update")),
        Do("move", "weights to the host", seconds(learner, "push")), Give("weights", weights_bytes, waits=True),
    )
    return acts, learns


def _quickest(
    found: Calibrated, names: tuple[str, str], batch: int, aheads: tuple[int, ...],
    programs: Callable[[int, Seconds], tuple[Program, Program]], stock: Callable[[int], Stock],
) -> Told | None:
    link = link_of(found.sends)
    if link is None:
        return None

    def told(ahead: int, busy: tuple[float, float]) -> Told:
        def seconds(side: int, what: str) -> float:
            return piece_s(found, side, what, batch, busy[1 - side])

        played = programs(ahead, seconds)
        works = [sum(one.seconds for one in side if isinstance(one, Do)) for side in played]
        whole = sum(works) or 1.0
        return Told(ahead, course(played, names, link, stock(ahead)), link, (works[0] / whole, works[1] / whole))

    ways: list[Told] = []
    for ahead in aheads:
        way = told(ahead, (0.0, 0.0))  # in turn they never work side by side
        for _ in range(ROUNDS if ahead else 0):
            way = told(ahead, way.course.busy)
        ways.append(way)
    return min(ways, key=lambda way: way.course.seconds)
