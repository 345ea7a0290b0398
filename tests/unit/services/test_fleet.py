"""Pools that can only be measured, those of a Ray cluster above all, from what is typed to a run; the cluster is real."""

import sys
from dataclasses import replace
from typing import Any

import pytest

from core.errors import BadInput
from core.run import Progress
from core.settings import Settings
from core.split import SplitOptions
from probes.split.words import Reach
from services import fleet, split, split_run
from services.context import make_context
from services.probing import Reporter
from services.runtimes import known_runtimes
from tests.here import RAY
from tests.unit.probes.split.ray_head import TOKEN, ray_head

RELU = {"activation": "relu", "last_activation": "relu"}
DOCUMENT: dict[str, Any] = {"schema": 1, "task": "train", "batch": 16, "dtype": "fp32", "optimizer": "sgd", "model": {"blocks": [
    {"kind": "dense_tower", "name": "low", "widths": [16, 64, 64], "first": True, **RELU},
    {"kind": "class_head", "name": "head", "inputs": 64, "classes": 5, "loss": "cross_entropy"},
]}}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "kind"),
    [("ray:GPU", "gpu"), ("ray:GPU:H100", "gpu"), ("ray:TPU:TPU-V6E", "tpu"), ("ray:TPU-v6e-8-head", "tpu"), ("ray:CPU", "cpu")],
)
def test_a_pool_of_a_cluster_is_a_device_of_the_kind_that_its_name_tells(name: str, kind: str) -> None:
    *attached, device = fleet.devices_for((f"{name}=2@jax", "cpu:0@jax"))
    assert (device.id, device.kind) == (name, kind)
    assert "cpu:0" in [one.id for one in attached]
    assert not any(fleet.is_reached(one.id) for one in attached)


def test_what_ray_is_asked_for(tmp_path: Any) -> None:
    settings = Settings(tmp_path, "", "", ray_address="head:6379")
    (device,) = (one for one in fleet.devices_for(("ray:TPU:TPU-V6E=4@jax",)) if fleet.is_reached(one.id))
    assert fleet.reach_of(device, 4, settings) == Reach("head:6379", "TPU", 4, "TPU-V6E")


def test_without_ray_the_remedy_is_told(tmp_path: Any) -> None:
    with pytest.raises(BadInput, match=r"runtimes install ray, or set TANDEM_PYTHON_RAY"):
        fleet.relay_interpreter(Settings(tmp_path, "", ""))
    named = Settings(tmp_path, "", "", interpreters=(("ray", "/opt/ray/bin/python"),))
    assert fleet.relay_interpreter(named) == "/opt/ray/bin/python"


@pytest.mark.parametrize("python", ["/nowhere/python", "/bin/true", "/bin/false", sys.executable])
def test_a_python_without_ray_is_told_before_anything_is_kept(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch, python: str
) -> None:
    monkeypatch.setattr(fleet, "check_head", lambda _address, _environ: None)
    settings = Settings(tmp_path, "", "", interpreters=(("ray", python),), ray_address="127.0.0.1:9")
    with pytest.raises(BadInput, match="which cannot import ray"):
        fleet.check_cluster(settings, [])


@pytest.mark.parametrize(
    ("pools", "line"),
    [
        (("ray:CPU", "cpu:0@jax"), "got ray:CPU without a runtime; expected one that is installed there"),
        (("ray:CPU@jax", "cpu:0@jax"), "got no TANDEM_RAY_ADDRESS; expected HOST:PORT of a Ray head"),
        (("ray:CPU@jaxx", "cpu:0@jax"), "got runtime 'jaxx'"),
        (("ray:@jax", "cpu:0@jax"), "got pool 'ray:'; expected ray:RESOURCE"),
        (("ray:GPU:@jax", "cpu:0@jax"), "got pool 'ray:GPU:'; expected ray:RESOURCE"),
        (("ray:GPU=@jax", "cpu:0@jax"), "got pool 'ray:GPU='; expected a device"),
        (("ray:memory@jax", "cpu:0@jax"), "got pool 'ray:memory'; expected ray:RESOURCE"),
        (("RAY:CPU@jax", "cpu:0@jax"), "got pool 'RAY:CPU'; expected ray:RESOURCE"),
        (("ray:CPU@mxnet", "cpu:0@jax"), "got mxnet as a side of a split; expected jax, torch or TensorFlow"),
        (("cpu:0@keras-jax", "cpu:0@jax"), "got keras-jax as a side of a split; expected jax, torch or TensorFlow"),
    ],
)
def test_pools_that_cannot_be_reached_are_one_line_before_anything_is_kept(pools: tuple[str, ...], line: str) -> None:
    with pytest.raises(BadInput) as caught:
        split.run_options(DOCUMENT, SplitOptions(pools, verify=True), None)
    assert str(caught.value).startswith(line)


def test_a_plan_over_what_is_not_measured_has_no_figure() -> None:
    told = split.plan(DOCUMENT, SplitOptions(("ray:GPU@jax", "cpu:0@jax")))
    assert told.seconds is None
    assert "0.0 GiB" not in repr(told)
    assert any("not measured in jax on ray:GPU" in one for one in told.missing)


@pytest.mark.slow
@pytest.mark.skipif(RAY is None, reason="no environment of Ray: ./tandem runtimes install ray")
@pytest.mark.parametrize("mode", ["data", "pipeline"])
def test_a_plan_is_run_on_a_node_and_here(tmp_path: Any, monkeypatch: pytest.MonkeyPatch, mode: str) -> None:
    monkeypatch.setenv("RAY_AUTH_TOKEN", TOKEN)
    told: list[Progress] = []
    with ray_head("token") as (address, _):
        here = make_context({"TANDEM_HOME": str(tmp_path), "TANDEM_RAY_ADDRESS": address, "TANDEM_PYTHON_RAY": str(RAY)})
        monkeypatch.setattr(split_run, "context", lambda: here)
        options = SplitOptions(("ray:CPU@jax", "cpu:0@torch-eager"), mode, verify=True, budget_s=2.0)
        split_run.check(DOCUMENT, options)
        with pytest.raises(BadInput, match=r"got a cluster without 64 CPU; expected some of what it has: 2 CPU, .*2 TPU"):
            split_run.check(DOCUMENT, replace(options, pools=("ray:CPU=64@jax", "cpu:0@torch-eager")))
        devices, runtimes = fleet.devices_for(options.pools), known_runtimes(here.settings)
        planned = replace(split.plan(DOCUMENT, options), mode=mode)
        reporter = Reporter(0, lambda _outcome: None, lambda progress, _outcome: told.append(progress), 2.0)
        found = split_run.verified(DOCUMENT, options, planned, devices, runtimes, here.settings, reporter, lambda: False)
    assert not found.ended
    assert found.checks
    assert all(one.holds for one in found.checks)
    assert sorted(found.sides) == ["cpu:0 (torch-eager)", "ray:CPU (jax)"]
    assert len(found.step_s) >= 5
    assert told[-1].stage == "the split was run"


def test_what_was_not_measured_is_neither_said_to_fit_nor_not() -> None:
    told = split.plan(DOCUMENT, SplitOptions(("cpu:0@jax", "cpu:0@torch-eager")))
    assert [one.feasible for one in told.singles] == [None, None]
    assert told.sentence.startswith("There is no figure yet, neither for one pool alone nor for both together: ")
    crowded = split.plan({"schema": 1, "task": "train", "model": {"preset": "llama-3-8b"}}, SplitOptions(("l4=1", "t4=1")))
    assert [one.feasible for one in crowded.singles] == [False, False]
    assert crowded.sentence.startswith("Neither pool alone nor both together will do: ")
