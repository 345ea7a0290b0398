"""Every framework can be a side of a split, beside any other: each mode equals one runtime, on the same weights and batch."""

import os
import sys
from dataclasses import replace
from typing import Any

import pytest

from core.settings import settings_from
from probes.runtimes import installed_runtimes
from probes.split.calibration import calibrate
from probes.split.run import run, verify
from probes.split.session import SplitSession
from probes.split.words import LinkSpec, Ran, SideSpec, SplitTask

pytestmark = pytest.mark.slow
CORES = sorted(os.sched_getaffinity(0))
INTERPRETERS = {runtime.id: runtime.interpreter or sys.executable for runtime in installed_runtimes() if runtime.installed}


def _tower(*widths: int, first: bool = False) -> tuple[str, tuple[tuple[str, Any], ...], int]:
    sizes = {"activation": "relu", "batch": 1, "first": int(first), "last_activation": "relu", "widths": widths}
    return ("dense_tower", tuple(sizes.items()), 1)


def _head(inputs: int, classes: int) -> tuple[str, tuple[tuple[str, Any], ...], int]:
    return ("class_head", (("batch", 1), ("classes", classes), ("inputs", inputs), ("loss", "cross_entropy")), 1)


TOWERS = (_tower(12, 16, first=True), _tower(16, 16), _head(16, 5))
_ENDS = {"batch": 1, "length": 8, "width": 16, "vocabulary": 32, "positions": 8, "segments": 0, "embed_norm": 0,
         "final_norm": "layer", "transform": 0, "tied": 1, "head_bias": 0}  # fmt: skip
_LAYER = {"batch": 1, "length": 8, "width": 16, "heads": 2, "kv_heads": 2, "head_width": 8, "hidden": 32, "gated": 0,
          "activation": "gelu", "norm": "layer", "norm_first": 1, "bias": 1, "causal": 1, "rotary": 0, "cache": 0,
          "fused_qkv": 1}  # fmt: skip
TOKENS = (("token_ends", tuple(_ENDS.items()), 1), ("transformer_layer", tuple(_LAYER.items()), 1))
_STEM = {"activation": "relu", "batch": 1, "conv_bias": 0, "height": 8, "in_channels": 3, "kernel": 3, "out_channels": 8,
         "pool": 0, "stride": 1, "width": 8}  # fmt: skip
_POOLED = {"batch": 1, "height": 8, "width": 8, "in_channels": 8, "features": 0, "classes": 4}
IMAGES = (("conv_stem", tuple(_STEM.items()), 1), ("conv_head", tuple(_POOLED.items()), 1))

TASKS = {
    "data, a language model": SplitTask("data", TOKENS, 4, rows=(1, 3)),
    "data, batch norms": SplitTask("data", IMAGES, 4, rows=(3, 1), optimizer="momentum"),
    "local": SplitTask("local", TOWERS, 4, rows=(1, 3), inner_steps=(2, 3), optimizer="adam"),
    "pipeline": SplitTask("pipeline", IMAGES, 4, cut=1, micro_batches=2),
    "operators": SplitTask("operators", TOKENS, 4, cut=1, ahead=1),
    "rl": SplitTask("rl", TOKENS, 4, push_every=2, ahead=1, generate=2),
}


def _side(name: str, runtime: str, core: int) -> SideSpec:
    if runtime not in INTERPRETERS:
        pytest.skip(f"{runtime} is not installed here")
    return SideSpec(name, runtime, "cpu", INTERPRETERS[runtime], cores=(CORES[core % len(CORES)],))


@pytest.fixture(scope="module")
def settings(tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    return replace(settings_from({**os.environ, "TANDEM_HOME": str(home)}), leases=home / "leases")


@pytest.fixture(scope="module")
def session(settings):
    sides = (_side("torch", "torch-eager", 0), _side("jax", "jax", 1))  # the first side plays both: torch compiles nothing for it
    with SplitSession(sides, settings) as session:
        session.open(LinkSpec())
        yield session


@pytest.mark.parametrize("name", TASKS)
def test_a_step_split_over_jax_and_torch_equals_one_runtime(session, name) -> None:
    ran = run(session, TASKS[name], 0.0)
    assert {check.what: check.difference for check in ran.checks if not check.holds} == {}
    assert len(ran.checks) >= 3
    assert len(ran.step_s) >= 5


def test_bfloat16_agrees_within_its_precision(session) -> None:
    ran = run(session, replace(TASKS["pipeline"], layers=TOWERS, dtype="bf16"), 0.0)
    assert {check.what: check.difference for check in ran.checks if not check.holds and "loss" not in check.what} == {}


def test_both_frameworks_tell_their_paces(session) -> None:
    told = calibrate(session, SplitTask("data", TOWERS, 4, rows=(1, 3)), [(1, 3)], ([4], [4]), seconds=0.01, rounds=1)
    for side, rows in enumerate((1, 3)):
        assert [count for count, _ in told.pace(side, "compute", loaded=True)] == [rows]
        assert [count for count, _ in told.pace(side, "compute", loaded=False)] == [4]


@pytest.mark.parametrize("runtime", ["tf-graph", "torch-xla"])
def test_another_framework_can_be_the_other_side(settings, runtime) -> None:
    sides = (_side("torch", "torch-eager", 0), _side("other", runtime, 1))
    ran = verify(replace(TASKS["pipeline"], layers=TOWERS), sides, settings, 0.0)
    assert isinstance(ran, Ran), ran
    assert {check.what: check.difference for check in ran.checks if not check.holds} == {}
