"""`./tandem split --verify` says what came of a run, and refuses in one line what cannot be run before anything is kept."""

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from cli import split as command
from cli.main import BAD_INPUT, DONE, FINDING, tandem
from core.split import Check, SplitRun
from services import runs
from services.context import context
from tests.samples.splits import sample_split, sample_verified

ROOT = Path(__file__).resolve().parents[3]
TOWERS = """
schema: 1
task: train
batch: 12
dtype: fp32
optimizer: sgd
model:
  blocks:
    - {kind: dense_tower, name: low, widths: [16, 24], activation: relu, last_activation: relu, first: true}
    - {kind: class_head, name: head, inputs: 24, classes: 5, loss: cross_entropy}
"""
TWO = ("--pool", "cpu:0@torch-eager", "--pool", "cpu:0@torch-eager")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("TANDEM_HOME", str(tmp_path / "home"))
    context.cache_clear()
    (tmp_path / "towers.yaml").write_text(TOWERS)
    (tmp_path / "headless.yaml").write_text(TOWERS.replace("class_head", "dense_tower").replace(
        "inputs: 24, classes: 5, loss: cross_entropy", "widths: [24, 5], activation: relu, last_activation: none"
    ))
    yield tmp_path
    context.cache_clear()


def called(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int | str | None, str, str]:
    """Return exit code, output and errors of a call."""
    with pytest.raises(SystemExit) as stopped:
        tandem.main(["split", *arguments], prog_name="./tandem")
    shown = capsys.readouterr()
    return stopped.value.code, shown.out, shown.err


@pytest.mark.parametrize(("document", "arguments", "line"), [
    ("towers", ("--pool", "cpu:0@jax"), "got 1 pools; expected 2 to 16"),
    ("towers", (*TWO, "--pool", "cpu:0"), "got 3 pools with --verify; expected two attached devices"),
    ("towers", ("--pool", "cpu:0@jax", "--pool", "h100-sxm=8"), "got h100-sxm, not attached with --verify"),
    ("towers", ("--pool", "cpu:0@jax", "--pool", "cpu:0@torch-tpu"), "got runtime torch-tpu to run"),
    ("towers", (*TWO, "--mode", "serving"), "got mode serving with --verify; expected one of data, local, pipeline"),
    ("towers", (*TWO, "--mode", "rl"), "got mode rl for task train; expected one of data, local, pipeline, operators"),
    ("towers", (*TWO, "--mode", "sideways"), "got --mode 'sideways'; expected one of data, local"),
    ("towers", (*TWO, "--budget-s", "0"), "got --budget-s '0.0'; expected a number from 1 to 86400"),
    ("headless", TWO, "got a model that ends with dense_tower; expected a head with a loss at the end"),
])
def test_what_cannot_be_run_is_one_line_and_nothing_is_kept(
    home: Path, capsys: pytest.CaptureFixture[str], document: str, arguments: tuple[str, ...], line: str
) -> None:
    code, out, err = called(capsys, str(home / f"{document}.yaml"), *arguments, "--verify")
    assert (code, out) == (BAD_INPUT, "")
    assert err.startswith(f"tandem: {line}")
    assert err.count("\n") == 1
    assert runs.history() == ()


def test_a_run_that_is_equal_to_one_side_alone_is_done_and_any_other_a_finding() -> None:
    found = replace(sample_verified(), checks=(Check("weights", 0.5, 1.0),))
    unequal = replace(found, checks=(*found.checks, Check("loss", 2.0, 1.0)))
    told = [
        command._code(SplitRun(sample_split(), one), verify=True)
        for one in (found, unequal, replace(found, ended="side 1: steps: killed"), None)
    ]
    assert told == [DONE, FINDING, FINDING, FINDING]


def test_without_running_it_a_plan_is_done_and_none_at_all_a_finding() -> None:
    nothing = replace(sample_split(), seconds=None, best_single=None)
    assert [command._code(SplitRun(one), verify=False) for one in (sample_split(), nothing)] == [DONE, FINDING]


def test_what_came_of_a_run_is_written_behind_the_plan(home: Path) -> None:
    """In a process of its own: a run marks the one that it works in."""
    call = [sys.executable, "-m", "cli", "split", str(home / "towers.yaml"), *TWO, "--verify", "--budget-s", "1"]
    done = subprocess.run([*call, "--mode", "operators"], cwd=ROOT, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == DONE, done.stderr
    behind = done.stdout.partition("Run for real, mode operators, planned from ")[2]
    assert "comparisons hold" in behind
    assert "cpu:0 (torch-eager) 1 alone" in behind
    assert "[5/5] the split was run" in done.stderr
    split = runs.open_run(done.stdout.rpartition("./tandem show ")[2].partition(";")[0]).split
    assert split is not None
    assert split.verified is not None
    assert split.verified.planned_s is not None
    assert len(split.verified.step_s) >= 5
