"""Steps of parts and of actor and learner from made-up measurements."""

import pytest

from core.device import Link
from probes.split.words import Calibrated, Cost
from services.split_measured_parts import learning_alone_s, piece_s, plan_learning_step, plan_parts

SENDS = ((1000, 0.11), (2000, 0.12))
"""0.1 s and 100,000 bytes a second."""
Times = dict[str, tuple[float, float]]


def costs(times: Times, rows: int = 8) -> tuple[Cost, ...]:
    """Return costs of pieces, (alone, beside the other)."""
    return tuple(Cost(what, rows, loaded, (pair[loaded],)) for what, pair in times.items() for loaded in (False, True))


def found(first: Times, second: Times) -> Calibrated:
    return Calibrated((costs(first), costs(second)), (), SENDS, 1000, 1000)


def passes(forward: float, backward: float, update: float, slower: float = 1.0) -> Times:
    return {
        "forward": (forward, slower * forward), "backward": (backward, slower * backward),
        "flatten": (0.0, 0.0), "update": (update, slower * update),
    }


def test_a_piece_is_taken_between_alone_and_beside() -> None:
    told = found(passes(1.0, 2.0, 0.5, slower=3.0), passes(1.0, 2.0, 0.5))
    assert [piece_s(told, 0, "forward", 8, beside) for beside in (0.0, 0.25, 1.0)] == pytest.approx([1.0, 1.5, 3.0])


def test_a_piece_that_was_measured_one_way_is_that() -> None:
    told = Calibrated(((Cost("forward", 8, True, (2.0,)),), ()), (), SENDS, 0)
    assert piece_s(told, 0, "forward", 8, 0.0) == 2.0
    assert piece_s(told, 1, "forward", 8, 0.0) == 0.0


def test_running_ahead_is_chosen_where_both_sides_have_as_much_to_do() -> None:
    told = plan_parts(found(passes(1.0, 2.0, 0.0), passes(1.0, 3.0, 0.0)), ("a", "b"), 8)
    assert told is not None
    assert told.ahead == 1
    assert told.course.seconds == pytest.approx(max(1 + 1 + 2, 1 + 3, (1 + 0.11 + 4 + 0.11 + 2) / 2))
    assert told.link == Link(pytest.approx(0.1), pytest.approx(1e5))
    assert told.fractions == (pytest.approx(0.5), pytest.approx(0.5))


def test_both_in_turn_is_chosen_where_side_by_side_they_hold_each_other_up() -> None:
    told = plan_parts(found(passes(1.0, 2.0, 0.0, slower=4.0), passes(1.0, 3.0, 0.0, slower=4.0)), ("a", "b"), 8)
    assert told is not None
    assert told.ahead == 0
    assert told.course.seconds == pytest.approx(1 + 0.11 + 1 + 3 + 0.11 + 2)


def test_a_side_is_slowed_only_while_the_other_works() -> None:
    """The first side works 0.4 s of a step, so the second is slowed for a part of its time, which fixes the step."""
    told = plan_parts(found(passes(0.1, 0.2, 0.0), passes(4.0, 6.0, 0.0, slower=2.0)), ("a", "b"), 8, aheads=(1,))
    assert told is not None
    step_s = told.course.seconds
    assert step_s == pytest.approx(10.0 * (1.0 + 0.4 / step_s), rel=1e-3)


@pytest.mark.parametrize("missing", ["forward", "backward", "update"])
def test_without_a_piece_there_is_no_plan(missing: str) -> None:
    less = {what: pair for what, pair in passes(1.0, 1.0, 1.0).items() if what != missing}
    assert plan_parts(found(passes(1.0, 1.0, 1.0), less), ("a", "b"), 8) is None


def test_without_two_sizes_on_the_link_there_is_no_plan() -> None:
    told = Calibrated((costs(passes(1.0, 1.0, 1.0)), costs(passes(1.0, 1.0, 1.0))), (), ((10, 1.0),), 0, 10)
    assert plan_parts(told, ("a", "b"), 8) is None


def test_rollouts_a_step_ahead_are_bound_by_the_longer_side() -> None:
    actor: Times = {"rollout": (5.0, 5.0), "load": (0.2, 0.2)}
    learner: Times = {"train": (2.0, 2.0), "update": (0.3, 0.3), "push": (0.1, 0.1)}
    told = plan_learning_step(found(actor, learner), ("a", "b"), 8, sample_bytes=500.0)
    assert told is not None
    assert (told.ahead, told.course.seconds) == (1, pytest.approx(5.2))
    in_turn = plan_learning_step(found(actor, learner), ("a", "b"), 8, sample_bytes=500.0, aheads=(0,))
    assert in_turn is not None
    assert in_turn.course.seconds == pytest.approx(5.0 + 0.105 + 2.0 + 0.3 + 0.1 + 0.11 + 0.2)
    assert told.fractions[0] == pytest.approx(5.2 / 7.6)


def test_who_samples_and_who_learns_changes_nothing_but_the_places() -> None:
    actor: Times = {"rollout": (5.0, 6.0), "load": (0.2, 0.2)}
    learner: Times = {"train": (2.0, 2.5), "update": (0.3, 0.3), "push": (0.1, 0.1)}
    first = plan_learning_step(found(actor, learner), ("a", "b"), 8, sample_bytes=500.0)
    second = plan_learning_step(found(learner, actor), ("b", "a"), 8, sample_bytes=500.0, actor=1)
    assert first is not None
    assert second is not None
    assert second.course.seconds == pytest.approx(first.course.seconds)
    assert second.fractions == pytest.approx(first.fractions[::-1])
    assert {(bar.lane, bar.what) for bar in second.course.bars} == {(bar.lane, bar.what) for bar in first.course.bars}
    assert plan_learning_step(found(learner, actor), ("b", "a"), 8, sample_bytes=500.0) is None


def test_one_side_alone_samples_learns_and_pushes_nothing() -> None:
    acting = found({"rollout": (5.0, 9.0), "load": (0.2, 0.2)}, {})
    learning = found({"train": (2.0, 4.0), "update": (0.3, 0.9), "push": (1.0, 1.0)}, {})
    assert learning_alone_s(acting, learning, 0, 8) == pytest.approx(7.3)
    assert learning_alone_s(acting, learning, 1, 8) is None
