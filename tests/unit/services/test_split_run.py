"""Every mode run for real on two small numpy sides, and what is refused before anything is started."""

import os
import sys
from typing import Any

import psutil
import pytest

import intake
from core.errors import BadInput
from core.run import Progress
from core.settings import Settings
from core.split import SplitOptions, Verified
from core.workload import Workload
from probes.split.session import SplitSession
from probes.split.words import MODES, LinkSpec, SideSpec
from services import split_run
from services.context import Context
from services.probing import Reporter
from services.split_run_bench import Bench
from services.split_run_modes import check_mode, first_cut, task_for

CORES = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else [0]
RELU = {"activation": "relu", "last_activation": "relu"}
TOWERS: dict[str, Any] = {"blocks": [
    {"kind": "dense_tower", "name": "low", "widths": [16, 32, 24], **RELU, "first": True},
    {"kind": "dense_tower", "name": "high", "widths": [24, 24], **RELU},
    {"kind": "class_head", "name": "head", "inputs": 24, "classes": 5, "loss": "cross_entropy"},
]}  # fmt: skip


def workload(model: dict[str, Any] = TOWERS, **changes: object) -> Workload:
    given = {"schema": 1, "task": "train", "batch": 12, "dtype": "fp32", "optimizer": "sgd", "model": model, **changes}
    return intake.read_document({name: value for name, value in given.items() if value is not None})


def side(index: int, models: str = "tests.unit.probes.split.numpy_models") -> SideSpec:
    return SideSpec(f"side {index}", "none", "cpu", sys.executable, (CORES[index % len(CORES)],), models=models)


class Heard:
    """What a run tells of its progress; stops it once a stage begins with a word."""

    def __init__(self, stop_at: str = "nowhere") -> None:
        self.stop_at = stop_at
        self.told: list[Progress] = []
        self.reporter = Reporter(0, lambda _outcome: None, lambda progress, _outcome: self.told.append(progress), 1.0)

    def should_stop(self) -> bool:
        return any(progress.stage.startswith(self.stop_at) for progress in self.told)


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    home = tmp_path_factory.mktemp("home")
    return Settings(home, "", "", leases=home / "leases")


def run_one(
    settings: Settings, mode: str, heard: Heard, sides: tuple[SideSpec, SideSpec] | None = None
) -> Verified:
    job = workload(task="rl") if mode == "rl" else workload()
    return split_run.run_sides(
        job, sides or (side(0), side(1)), mode, LinkSpec(), 0.2, settings, heard.reporter, heard.should_stop
    )


@pytest.fixture(scope="module", params=MODES)
def came(request: pytest.FixtureRequest, settings: Settings) -> tuple[str, Heard, Verified]:
    heard = Heard()
    return request.param, heard, run_one(settings, request.param, heard)


def test_each_mode_is_planned_run_and_equal_to_one_side_alone(came: tuple[str, Heard, Verified]) -> None:
    mode, _, found = came
    assert found.ended == ""
    assert found.mode == mode
    assert found.planned_s is not None
    assert found.planned_s.tier == "measured"
    assert len(found.step_s) >= 5
    assert found.checks
    assert [check for check in found.checks if not check.holds] == []
    assert sorted(found.sides) == ["side 0", "side 1"]


def test_each_mode_tells_shares_losses_and_both_timelines(came: tuple[str, Heard, Verified]) -> None:
    _, _, found = came
    assert sum(found.shares) == pytest.approx(1.0)
    assert len(found.losses) >= 5
    for bars in (found.timeline, found.planned_timeline):
        assert set(found.sides) <= {bar.lane for bar in bars}
        assert all(0 <= bar.start_s <= bar.stop_s for bar in bars)
    assert found.link is not None
    assert found.link.bytes_per_s > 0


def test_each_mode_is_held_against_each_side_alone(came: tuple[str, Heard, Verified]) -> None:
    _, _, found = came
    assert all(seconds is not None and seconds > 0 for seconds in found.single_s)


def test_each_mode_tells_how_far_it_is(came: tuple[str, Heard, Verified]) -> None:
    _, heard, _ = came
    stages = [progress.stage for progress in heard.told]
    assert stages[0] == "starting both sides"
    assert any(stage.startswith("measuring") for stage in stages)
    assert any(stage.startswith("running the plan") for stage in stages)
    done = [progress.done for progress in heard.told]
    assert done == sorted(done)
    assert done[-1] == heard.told[-1].total > max(done[:-1])


@pytest.mark.parametrize("stop_at", ["starting", "measuring", "running"])
def test_a_run_that_is_stopped_tells_when(settings: Settings, stop_at: str) -> None:
    found = run_one(settings, "rl", Heard(stop_at))
    assert "stopped" in found.ended
    assert (found.planned_s is not None) == (stop_at == "running")
    assert found.checks == ()


def test_a_side_that_is_killed_ends_both_and_is_told_with_what_was_planned(settings: Settings) -> None:
    heard = Heard()
    killed: list[int] = []
    before = {child.pid for child in psutil.Process().children()}

    def kill() -> bool:
        if not killed and any(progress.stage.startswith("running") for progress in heard.told):
            begun = [child for child in psutil.Process().children() if child.pid not in before]
            first = min(begun, key=lambda child: (child.create_time(), child.pid))
            killed.extend(child.pid for child in begun)
            first.kill()
        return False

    found = split_run.run_sides(workload(), (side(0), side(1)), "data", LinkSpec(), 2.0, settings, heard.reporter, kill)
    assert found.ended.startswith("side 0: ")
    assert found.planned_s is not None
    assert len(killed) == 2
    assert not [child for child in psutil.Process().children() if child.pid in killed]


def test_a_side_that_cannot_be_started_is_told(settings: Settings) -> None:
    found = run_one(settings, "data", Heard(), (side(0), side(1, "no.such.module")))
    assert "side 1" in found.ended
    assert found.step_s == ()


def test_sides_change_places(settings: Settings) -> None:
    opened: list[SplitSession] = []
    told: list[str] = []

    def start(swapped: bool) -> SplitSession:
        sides = (side(1), side(0)) if swapped else (side(0), side(1))
        opened.append(SplitSession(sides, settings))
        opened[-1].open(LinkSpec())
        return opened[-1]

    bench = Bench(start, ("side 0", "side 1"), workload(), 0.1, told.append)
    bench.swap()
    task = task_for(workload(), "data")
    found = bench.measure(task, [(6, 6)], ((), ()), windows=1)
    opened[-1].close()
    assert bench.names == ("side 1", "side 0") == tuple(one.name for one in opened[1].sides)
    assert {cost.what for cost in found.costs[0]} == {"compute", "flatten", "reduce", "update"}
    assert told == ["starting both sides the other way round"]


@pytest.mark.parametrize(("changes", "mode", "line"), [
    ({}, "serving", "got mode serving with --verify; expected one of data, local, pipeline, operators, rl;"),
    ({}, "stages", "got mode stages with --verify;"),
    ({}, "rl", "got mode rl for task train; expected one of data, local, pipeline, operators;"),
    ({"task": "rl"}, "data", "got mode data for task rl; expected one of rl;"),
    ({"task": "infer", "optimizer": None}, "data", "got a workload of task infer with --verify; expected one that trains;"),
    ({"batch": 1}, "data", "got a batch of 1 to be shared by two sides; expected 2 samples at least;"),
    ({"batch": 1}, "local", "got a batch of 1 to be shared by two sides;"),
    ({"model": {"blocks": TOWERS["blocks"][:2]}}, "data", "got a model that ends with dense_tower; expected a head"),
    ({"model": {"blocks": TOWERS["blocks"][2:]}}, "operators", "got a model of 1 piece; expected one that can be cut in two;"),
    ({"model": {"preset": "unet"}}, "pipeline", "expected one that can be cut in two; choose --mode data"),
    ({"model": {"preset": "bert-base"}, "task": "rl"}, "rl", "expected a causal one, which can write on;"),
])
def test_what_cannot_be_run_is_one_line(changes: dict[str, Any], mode: str, line: str) -> None:
    with pytest.raises(BadInput) as refused:
        check_mode(workload(**changes), mode)
    assert line in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(("model", "pieces"), [({"preset": "gpt2-demo"}, 1), ({"preset": "dlrm-small"}, 1), (TOWERS, 1)])
def test_tables_or_what_takes_the_data_in_are_parted_from_the_rest(model: dict[str, Any], pieces: int) -> None:
    task = task_for(workload(model), "operators")
    assert task.cut == first_cut(task) == pieces


@pytest.mark.parametrize(("asked", "planned", "mode"), [
    ("local", "pipeline", "local"), ("", "pipeline", "pipeline"), ("", "serving", "data"), ("", "", "data"),
])
def test_the_mode_is_the_asked_one_else_that_of_the_plan_else_the_first(asked: str, planned: str, mode: str) -> None:
    assert split_run.mode_to_run(workload(), asked, planned) == mode


def test_the_mode_of_a_plan_that_cannot_be_run_is_passed_over() -> None:
    assert split_run.mode_to_run(workload({"preset": "unet"}), "", "pipeline") == "data"
    assert split_run.mode_to_run(workload({"blocks": TOWERS["blocks"][2:]}), "", "operators") == "data"
    assert split_run.mode_to_run(workload(task="rl"), "", "") == "rl"


@pytest.mark.parametrize(("pools", "mode", "line"), [
    (("cpu:0@jax",), "", "got 1 pools; expected 2 to 16;"),
    (("cpu:0@jax", "cpu:0@torch-eager", "cpu:0"), "", "got 3 pools with --verify; expected two attached devices"),
    (("cpu:0@jax", "h100-sxm=8"), "", "got h100-sxm, not attached with --verify; expected two attached devices"),
    (("cpu:0@jax", "cpu:0@nothing"), "", "got runtime 'nothing'; expected one of"),
    (("cpu:0@jax", "cpu:0@torch-tpu"), "", "got runtime torch-tpu to run"),
    (("cpu:0@jax", "cpu:0@torch-eager"), "portfolio", "got mode portfolio with --verify;"),
])
def test_pools_that_cannot_be_run_are_one_line(
    here: Context, monkeypatch: pytest.MonkeyPatch, pools: tuple[str, ...], mode: str, line: str
) -> None:
    monkeypatch.setattr(split_run, "context", lambda: here)
    document = {"schema": 1, "task": "train", "batch": 12, "dtype": "fp32", "optimizer": "sgd", "model": TOWERS}
    with pytest.raises(BadInput) as refused:
        split_run.check(document, SplitOptions(pools, mode, verify=True))
    assert line in str(refused.value)
