"""Sides of a split: each pool alone, its pace by batch, and the link between two of them."""

from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

import catalog
import intake
from advisor.question import Question
from advisor.split.between import BETWEEN_CLOUDS, BETWEEN_REGIONS, link_between
from advisor.split.sides import Asked, Side, sides_of
from core.device import Link, Pool
from core.workload import Workload

MODEL = {"preset": "llama-3-8b"}
TRAIN = {"schema": 1, "name": "8B", "task": "train", "model": MODEL, "batch": 64, "length": 4096, "dtype": "bf16"}
GPU = Pool("h100-sxm", 8, "gpu", 20.0, "GCP us-central1", hosts=1)
TPU = Pool("tpu-v6e", 16, "tpu", 43.2, "GCP us-central1", hosts=2)


def workload(document: dict[str, object]) -> tuple[Workload, Callable[[Mapping[str, object]], Workload]]:
    return intake.read_document(document), lambda changes: intake.read_document({**document, **changes})


def sides(*asked: Asked, document: dict[str, object] = TRAIN) -> tuple[Side, ...]:
    job, variant = workload(document)
    question = Question(job, tuple(dict.fromkeys(one.pool for one in asked)), (), (), (), "time", "2026-12-02", named=True)
    return sides_of(question, asked, variant)[0]


def test_each_pool_is_estimated_alone_with_its_pace() -> None:
    gpu, tpu = sides(Asked(GPU), Asked(TPU))
    assert gpu.name == "8 x h100-sxm"
    assert gpu.fits
    assert gpu.alone is not None
    assert gpu.alone.step_time_s is not None
    assert gpu.pace is not None
    assert gpu.pace.seconds(64) == pytest.approx(gpu.alone.step_time_s.mid, rel=1e-6)
    assert tpu.pace is not None
    assert 0 < tpu.pace.seconds(16) < tpu.pace.seconds(32) < tpu.pace.seconds(64)
    assert all(batch % tpu.pace.grain == 0 for batch, _ in tpu.pace.points)


def test_the_order_of_pools_changes_only_the_order_of_sides() -> None:
    assert sides(Asked(GPU), Asked(TPU)) == sides(Asked(TPU), Asked(GPU))[::-1]


def test_a_runtime_that_was_asked_for_is_kept() -> None:
    gpu, _ = sides(Asked(GPU, "torch-eager"), Asked(TPU))
    assert gpu.runtime == "torch-eager"
    assert gpu.alone is not None
    assert gpu.alone.candidate.runtime == "torch-eager"


def test_a_runtime_that_does_not_run_there_leaves_a_reason() -> None:
    _, tpu = sides(Asked(GPU), Asked(TPU, "mxnet"))
    assert tpu.alone is None
    assert "MXNet" in tpu.missing
    assert not tpu.single.feasible


def test_a_pool_that_is_too_small_for_the_whole_is_told_with_its_need() -> None:
    small, _ = sides(Asked(replace(GPU, count=1)), Asked(TPU))
    assert not small.fits
    assert small.alone is not None, "parts of the model may still lie there"
    assert "needs" in small.missing
    assert not small.single.feasible


def test_two_equal_pools_have_names_of_their_own() -> None:
    first, second = sides(Asked(GPU, "jax"), Asked(GPU, "jax"))
    assert first.name != second.name


def test_the_link_is_what_the_hosts_of_the_slower_side_send() -> None:
    gpu, tpu = sides(Asked(GPU), Asked(TPU))
    found = link_between(gpu, tpu, None)
    assert not isinstance(found, str)
    assert (catalog.accelerator("h100-sxm").internode_bytes_per_s or 0.0) > 50e9  # a network for GPUs alone, which no TPU is in
    assert found[0].bytes_per_s == 50e9
    assert "assumed" in found[1]


def test_between_two_regions_of_a_cloud_it_is_far() -> None:
    gpu, tpu = sides(Asked(GPU, joined=replace(GPU, where="GCP us-east4, on-demand")), Asked(TPU))
    found = link_between(gpu, tpu, None)
    assert not isinstance(found, str)
    assert found[0] == BETWEEN_REGIONS
    assert "us-east4" in found[1]


def test_between_two_clouds_the_link_is_what_the_rule_says() -> None:
    gpu, tpu = sides(Asked(replace(GPU, where="Lambda us-west-1")), Asked(TPU))
    found = link_between(gpu, tpu, None)
    assert not isinstance(found, str)
    assert found[0] == BETWEEN_CLOUDS
    assert "R107" in found[1]


def test_a_link_that_is_given_is_taken() -> None:
    gpu, tpu = sides(Asked(GPU), Asked(TPU))
    given = Link(0.01, 1e9)
    assert link_between(gpu, tpu, given)[0] == given
