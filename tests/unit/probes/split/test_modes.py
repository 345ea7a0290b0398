import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from core.errors import BadInput
from probes.environment import ROOT
from probes.model import model_of
from probes.split.calibration import calibrate
from probes.split.modes.actors import Sampler, drawn, log_softmax, picked, pushes_due
from probes.split.modes.local_steps import Outer
from probes.split.run import run, verify
from probes.split.session import SplitSession
from probes.split.words import LinkSpec, Ran


@pytest.fixture(scope="module")
def ran(session, tasks):
    return {name: run(session, task, 0.05) for name, task in tasks.items()}


@pytest.mark.parametrize("mode", ["data", "local", "pipeline", "operators", "ahead", "rl"])
def test_a_split_step_equals_that_of_one_runtime(ran, mode) -> None:
    assert ran[mode].checks
    assert {check.what: check.difference for check in ran[mode].checks if not check.holds} == {}


@pytest.mark.parametrize("mode", ["data", "local", "pipeline", "operators", "ahead", "rl"])
def test_at_least_five_steps_are_timed_on_both_sides(ran, mode) -> None:
    assert len(ran[mode].step_s) >= 5
    assert all(taken > 0 for taken in ran[mode].step_s)


@pytest.mark.parametrize("mode", ["data", "local", "pipeline", "operators", "ahead", "rl"])
def test_the_bars_of_a_step_follow_each_other_within_it(ran, mode) -> None:
    for side in ran[mode].steps:
        for step in side:
            times = [step.start_s, *(at for bar in step.bars for at in bar[1:3]), step.stop_s]
            assert times == sorted(times)
            assert {kind for kind, *_ in step.bars} <= {"compute", "move", "wait", "update"}


@pytest.mark.parametrize("mode", ["data", "local", "pipeline", "operators", "ahead"])
def test_the_loss_falls(ran, mode) -> None:
    assert any("loss" in check.what and check.holds for check in ran[mode].checks)


def test_the_loss_of_a_divided_batch_is_that_of_the_whole(ran) -> None:
    """Data, pipeline and operators learn from the same batch with the same weights."""
    assert ran["data"].losses[0] == pytest.approx(ran["pipeline"].losses[0], rel=1e-5)
    assert ran["data"].losses[0] == pytest.approx(ran["operators"].losses[0], rel=1e-5)


def test_gradients_travel_both_ways_and_in_sixteen_bits_half_as_many_bytes(session, tasks, ran) -> None:
    session.shape(LinkSpec(sixteen_bit=True))
    half = run(session, tasks["data"], 0.0)
    session.shape(LinkSpec())
    whole = [side[0].sent_bytes for side in ran["data"].steps]
    assert whole[0] == pytest.approx(4 * ran["data"].parameter_count, rel=0.1)
    assert half.steps[0][0].sent_bytes == pytest.approx(2 * half.parameter_count, rel=0.2)
    assert half.holds


def test_a_side_without_rows_rests_and_nothing_is_exchanged(session, tasks) -> None:
    alone = run(session, replace(tasks["data"], rows=(12, 0), most=(0, 0)), 0.0)
    assert alone.steps[1] == ()
    assert alone.steps[0][0].sent_bytes == 0
    assert alone.holds


def test_samples_are_as_old_as_the_plan_says(ran) -> None:
    """Weights are pushed every second step and the actor is one step ahead: samples are one or two updates old."""
    assert {step.count for step in ran["rl"].steps[1]} == {1.0, 2.0}


def test_either_side_may_be_the_actor(session, tasks) -> None:
    told = run(session, replace(tasks["rl"], actor=1), 0.2)
    assert told.holds
    assert len(told.checks) >= 2
    assert {step.loss for step in told.steps[1]} == {None}
    assert {step.count for step in told.steps[0]} == {1.0, 2.0}


def test_the_reward_rises_as_the_learner_learns(session, tasks) -> None:
    rewards = [step.count for step in run(session, tasks["rl"], 0.5).steps[0]]
    assert np.mean(rewards[-10:]) > np.mean(rewards[:10])


@pytest.mark.parametrize("bytes_per_s", [2e5, 1e6])
def test_a_slow_link_takes_as_long_as_its_bytes(session, tasks, bytes_per_s) -> None:
    session.shape(LinkSpec(bytes_per_s=bytes_per_s))
    shaped = run(session, tasks["data"], 0.0, fresh=False, prove=False)
    session.shape(LinkSpec())
    assert min(shaped.step_s) >= 0.95 * 4 * shaped.parameter_count / bytes_per_s


def test_a_split_over_grpc_equals_one_runtime(sides, settings, tasks) -> None:
    ran = verify(tasks["data"], sides, settings, 0.0, LinkSpec(transport="grpc"))
    assert isinstance(ran, Ran)
    assert ran.holds


def test_calibration_tells_every_piece_of_a_step_alone_and_together(session, tasks) -> None:
    told = calibrate(session, tasks["data"], [(5, 7)], ([12], [12]), seconds=0.01, rounds=2)
    assert {(cost.what, cost.rows, cost.loaded) for cost in told.costs[0]} == {
        (what, rows, loaded) for what in ("compute", "flatten", "reduce", "update") for rows, loaded in ((5, True), (12, False))
    }
    assert all(cost.samples_s and cost.seconds >= 0 for side in told.costs for cost in side)
    assert told.gradient_bytes == 4 * (16 * 32 + 32 + 32 * 24 + 24 + 24 * 24 + 24 + 24 * 5 + 5)
    assert {size for size, _ in told.exchanges} == {4096, told.gradient_bytes}
    assert all(taken > 0 for _, taken in (*told.exchanges, *told.sends))


def test_calibration_of_a_cut_model_tells_forward_and_backward_and_what_crosses(session, tasks) -> None:
    told = calibrate(session, tasks["pipeline"], [(3, 3)], ([], []), seconds=0.01, rounds=1)
    assert {cost.what for cost in told.costs[1]} == {"forward", "backward", "flatten", "update"}
    assert told.activation_bytes == 4 * 12 * 24
    assert told.exchanges == ()


def test_calibration_sees_the_rate_of_a_shaped_link(session, tasks) -> None:
    session.shape(LinkSpec(bytes_per_s=1e6, latency_s=0.002))
    told = calibrate(session, tasks["data"], [], ([], []), sizes=[4000, 40000], rounds=1)
    session.shape(LinkSpec())
    both = {size: min(taken for got, taken in told.exchanges if got == size) for size in (4000, 40000)}
    one_way = {size: min(taken for got, taken in told.sends if got == size) for size in (4000, 40000)}
    assert (40000 - 4000) / (both[40000] - both[4000]) == pytest.approx(1e6, rel=0.2)
    assert one_way[4000] == pytest.approx(0.002 + 0.004, rel=0.4)


@pytest.mark.parametrize(
    ("mode", "change", "words"),
    [
        ("pipeline", {"cut": 9}, "cut behind 9 of 3 layers"),
        ("data", {"layers": (("abacus", (), 1),)}, "block of kind abacus"),
        ("data", {"optimizer": "magic"}, "optimizer magic"),
        ("rl", {"dtype": "fp4"}, "fp4"),
        ("rl", {"actor": 2}, "side 2 as the actor"),
    ],
)
def test_what_cannot_be_run_is_refused_before_a_side_is_started(sides, settings, tasks, mode, change, words) -> None:
    nowhere = tuple(replace(side, interpreter="/nowhere/python") for side in sides)
    with pytest.raises(BadInput, match=words):
        verify(replace(tasks[mode], **change), nowhere, settings, 0.0)


def test_two_sides_of_one_name_are_refused(sides, settings) -> None:
    with pytest.raises(BadInput, match="two names"):
        SplitSession((sides[0], sides[0]), settings)


def test_the_outer_optimizer_is_sgd_with_nesterov_momentum() -> None:
    outer, change = Outer(np.array([1.0], np.float32)), np.array([0.1], np.float32)
    assert outer.meet(change) == pytest.approx(1 - 0.7 * (0.1 + 0.9 * 0.1))
    first = float(outer.weights[0])
    assert outer.meet(change) == pytest.approx(first - 0.7 * (0.1 + 0.9 * (0.9 * 0.1 + 0.1)))


@pytest.mark.parametrize(
    ("ahead", "push_every", "expected"), [(0, 1, [0, 1, 2, 3]), (1, 1, [0, 0, 1, 2]), (0, 2, [0, 0, 1, 1]), (1, 2, [0, 0, 0, 1])]
)
def test_pushes_are_due_by_the_number_of_the_rollout(tasks, ahead, push_every, expected) -> None:
    task = replace(tasks["rl"], ahead=ahead, push_every=push_every)
    assert [pushes_due(number, task) for number in range(4)] == expected


def test_log_probabilities_are_those_of_a_softmax() -> None:
    logits = np.array([[0.0, 1.0, 2.0]], np.float32)
    chances = np.exp(log_softmax(logits))[0]
    assert chances == pytest.approx(np.exp([0, 1, 2]) / np.exp([0, 1, 2]).sum())


def test_one_logit_is_that_of_the_second_of_two_answers() -> None:
    assert np.exp(log_softmax(np.array([[2.0]], np.float32)))[0, 1] == pytest.approx(1 / (1 + np.exp(-2.0)))


def test_what_is_drawn_follows_the_distribution() -> None:
    chances = np.array([0.1, 0.6, 0.3])
    many = drawn(np.log(np.tile(chances, (20000, 1))), np.random.default_rng(0))
    assert np.bincount(many) / 20000 == pytest.approx(chances, abs=0.015)


def test_the_log_probability_of_what_was_drawn_is_picked() -> None:
    assert picked(np.log(np.array([[0.25, 0.75]])), np.array([1], np.int32)) == pytest.approx(np.log(0.75))


class Parrot:
    """A language model that gives the token after the last one, with certainty."""

    def __init__(self, vocabulary):
        self.vocabulary, self.calls = vocabulary, 0

    def infer(self, inputs):
        self.calls += 1
        return 50.0 * np.eye(self.vocabulary, dtype=np.float32)[(inputs["x"] + 1) % self.vocabulary]


def _language_model(causal):
    ends = {
        "batch": 1,
        "length": 8,
        "width": 4,
        "vocabulary": 20,
        "positions": 8,
        "segments": 0,
        "embed_norm": 0,
        "final_norm": "layer",
        "transform": 0,
        "tied": 1,
        "head_bias": 0,
    }
    layer = {
        "batch": 1,
        "length": 8,
        "width": 4,
        "heads": 1,
        "kv_heads": 1,
        "head_width": 4,
        "hidden": 8,
        "gated": 0,
        "activation": "gelu",
        "norm": "layer",
        "norm_first": 1,
        "bias": 1,
        "causal": causal,
        "rotary": 0,
        "cache": 0,
        "fused_qkv": 1,
    }
    return model_of((("token_ends", ends, 1), ("transformer_layer", layer, 1)), 3)


def test_a_language_model_writes_on_token_by_token(tasks) -> None:
    sampler, parrot = Sampler(_language_model(1), replace(tasks["rl"], batch=3, generate=4)), Parrot(20)
    inputs, told = sampler.rollout(parrot, 0)
    x, labels = inputs["x"], inputs[sampler.labels]
    assert np.array_equal(labels[:, :-1], x[:, 1:])
    assert np.array_equal(labels[:, 4:], (x[:, 4:] + 1) % 20)
    assert parrot.calls == 4
    assert told == pytest.approx(np.zeros((3, 4)), abs=1e-6)
    assert sampler.log_probabilities(parrot, inputs) == pytest.approx(told)


def test_a_language_model_that_sees_ahead_cannot_write_on(tasks) -> None:
    with pytest.raises(BadInput, match="a causal one"):
        Sampler(_language_model(0), tasks["rl"])


def test_the_better_half_has_the_greater_rewards(tasks) -> None:
    sampler = Sampler(model_of(tasks["rl"].layers, 4), tasks["rl"])
    inputs = {"x": np.arange(8.0).reshape(4, 2), sampler.labels: np.array([1, 2, 3, 4], np.int32)}
    assert sampler.better_half(inputs)[sampler.labels].tolist() == [2, 4]


def test_a_side_needs_nothing_but_the_standard_library_numpy_and_its_framework() -> None:
    code = "import sys; before = set(sys.modules); import probes.split.side, numpy; print(*(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    loaded = {name.split(".")[0] for name in done.stdout.split()}
    assert loaded - set(sys.stdlib_module_names) - {"__mp_main__"} == {"core", "numpy", "probes"}
