"""How steps of two sides follow each other, held to what can be told by hand and to the planner of reinforcement learning."""

import pytest

from advisor.split.pace import Pace
from advisor.split.reinforcement import plan_learning
from advisor.split.reinforcement_words import Actors, ChipPool, Learner, LearningPlan, LearningProblem, Lengths
from core.device import Link
from services.split_measured_course import Do, Give, Program, Take, course
from services.split_measured_parts import learning_programs, parts_programs

NAMES = ("here", "there")
LINK = Link(0.5, 100.0)
CROSSING_S = 1.5
"""Of 100 bytes."""


def passes(first: tuple[float, float, float], second: tuple[float, float, float], ahead: int) -> tuple[Program, Program]:
    """Return programs of forward, backward and update seconds of both sides; 100 bytes cross each way."""
    names = ("forward", "backward", "update", "flatten")
    both = enumerate((first, second))
    table = {(side, name): one for side, times in both for name, one in zip(names, (*times, 0.0), strict=True)}
    return parts_programs(lambda side, what: table[side, what], 100.0, ahead)


def turns(rollout: float, load: float, train: float, update: float, push: float, link_bytes: float) -> tuple[Program, Program]:
    table = {"rollout": rollout, "load": load, "train": train, "update": update, "push": push}
    return learning_programs(lambda _side, what: table[what], link_bytes, 0.0)


def test_parts_in_turn_take_the_way_there_and_back() -> None:
    found = course(passes((1.0, 2.0, 0.25), (3.0, 4.0, 0.5), 0), NAMES, LINK)
    assert found.seconds == pytest.approx(1 + CROSSING_S + 3 + 4 + CROSSING_S + 2 + 0.25)


def test_the_update_of_the_second_side_is_hidden_unless_it_is_longer_than_all_else() -> None:
    found = course(passes((1.0, 2.0, 0.25), (3.0, 4.0, 50.0), 0), NAMES, LINK)
    assert found.seconds == pytest.approx(3 + 4 + 50)


@pytest.mark.parametrize(("first", "second", "seconds"), [
    ((4.0, 5.0, 1.0), (1.0, 1.0, 0.5), 2 * 4 + 5 + 1),
    ((1.0, 1.0, 0.5), (4.0, 6.0, 2.0), 4 + 6 + 2),
    ((1.0, 1.0, 0.5), (1.0, 1.0, 0.5), (1 + CROSSING_S + 1 + 1 + CROSSING_S + 1 + 0.5) / 2),
], ids=["first side", "second side", "the way round in two steps"])
def test_a_side_that_is_a_step_ahead_leaves_what_is_longest(
    first: tuple[float, float, float], second: tuple[float, float, float], seconds: float
) -> None:
    found = course(passes(first, second, 1), NAMES, LINK, ({}, {"activations": 1}))
    assert found.seconds == pytest.approx(seconds)


def test_actor_and_learner_in_turn_take_the_whole_way() -> None:
    found = course(turns(5.0, 0.25, 3.0, 0.5, 0.75, 100.0), NAMES, LINK, ({"weights": 1}, {}))
    assert found.seconds == pytest.approx(5 + LINK.latency_s + 3 + 0.5 + 0.75 + CROSSING_S + 0.25)


@pytest.mark.parametrize(("rollout", "train", "seconds"), [
    (20.0, 3.0, 20 + 0.25),
    (5.0, 30.0, 30 + 0.5 + 0.75 + CROSSING_S),
], ids=["actor", "learner, which waits until the weights are gone"])
def test_rollouts_a_step_ahead_leave_the_longer_side(rollout: float, train: float, seconds: float) -> None:
    found = course(turns(rollout, 0.25, train, 0.5, 0.75, 100.0), NAMES, LINK, ({"weights": 2}, {}))
    assert found.seconds == pytest.approx(seconds)


@pytest.mark.parametrize("rollout", [0.5, 3.0, 4.5, 9.0])
@pytest.mark.parametrize("ahead", [0, 1])
def test_turns_without_a_link_are_those_of_the_planner(rollout: float, ahead: int) -> None:
    load, train, push = 0.5, 4.0, 1.0
    problem = LearningProblem(
        (ChipPool("a", 1), ChipPool("b", 1)), (Actors("a", 1, 1, Pace(((8, rollout),)), load),),
        (Learner("b", 1, Pace(((8, train),)), None, push),), 8, Lengths(1.0), 0.0, most_stale=ahead, least_pools=2,
    )
    plan = plan_learning(problem)
    assert isinstance(plan, LearningPlan)
    found = course(turns(rollout, load, train, 0.0, push, 0.0), NAMES, Link(0.0, 1e9), ({"weights": ahead + 1}, {}))
    assert found.seconds == pytest.approx(plan.seconds)


def test_a_link_carries_one_message_at_a_time() -> None:
    first: Program = (Give("a", 100.0), Give("b", 100.0), Take("back"))
    second: Program = (Take("b"), Take("a"), Give("back", 0.0))
    assert course((first, second), NAMES, LINK).seconds == pytest.approx(1 + 1 + 0.5 + 0.5)


def test_the_bars_of_a_step_are_its_work_its_messages_and_its_waits() -> None:
    found = course(passes((1.0, 2.0, 0.25), (3.0, 4.0, 0.5), 0), NAMES, LINK)
    told = {(bar.lane, bar.kind, bar.what): bar.stop_s - bar.start_s for bar in found.bars}
    assert told["here", "compute", "forward"] == pytest.approx(1)
    assert told["here to there", "move", "activations"] == pytest.approx(CROSSING_S)
    assert told["here", "wait", "waits for gradients"] == pytest.approx(CROSSING_S + 3 + 4 + CROSSING_S)
    assert min(bar.start_s for bar in found.bars) == 0
    assert found.busy == (pytest.approx(3.25 / 13.25), pytest.approx(7.5 / 13.25))


def test_two_sides_that_wait_for_each_other_are_a_fault() -> None:
    first: Program = (Take("a"), Give("b", 1.0))
    with pytest.raises(ValueError, match="expected that not both sides wait"):
        course((first, (Take("b"), Give("a", 1.0))), NAMES, LINK)


def test_a_step_of_nothing_takes_nothing() -> None:
    assert course(((Do("compute", "x", 0.0),), (Do("compute", "y", 0.0),)), NAMES, LINK).seconds == 0
