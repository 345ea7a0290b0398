"""What feeds the chips: how long the input of a step takes, on whose processors, and what is not counted."""

from dataclasses import replace
from typing import Any

import pytest

import intake
from advisor import advise
from advisor.datasheet import Datasheets
from advisor.feeding import COMPRESSED_BYTES_PER_S, RAW_BYTES_PER_S, decoding_of, input_seconds, input_words
from advisor.question import Question
from catalog import accelerator, machine_named
from core.advice import Estimate
from core.device import Pool
from core.probe import Runtime
from core.workload import DataPipeline, Total

V5P = Pool("tpu-v5p", 8, "tpu", hosts=2)
JPEG = DataPipeline(bytes_per_sample=110_000, decode="jpeg")


def pictures(**data: Any) -> Any:
    return intake.read_document({"task": "train", "model": {"preset": "resnet-50"}, "batch": 512, "data": data})


def test_processors_are_those_of_the_machines_that_a_slice_is_made_of() -> None:
    machine = machine_named("ct5p-hightpu-4t")
    found = decoding_of(JPEG, "tpu-v5p", 8, 2)
    assert machine is not None
    assert machine.vcpus is not None
    assert found is not None
    assert found.processors == 2 * machine.vcpus
    assert machine.name in found.words


def test_gpus_have_what_their_machines_have_for_each_of_them() -> None:
    found = decoding_of(JPEG, "h100-sxm", 4, 1)
    assert found is not None
    assert 12 * 4 <= found.processors <= 28 * 4  # clouds differ between 96 and 224 processors for eight


def test_what_the_workload_says_of_one_host_comes_before_what_a_machine_has() -> None:
    told = decoding_of(replace(JPEG, host_vcpus=32), "tpu-v5p", 8, 2, vcpus=999)
    named = decoding_of(JPEG, "l4", 2, 1, vcpus=8)
    assert told is not None
    assert named is not None
    assert (told.processors, named.processors) == (64, 8)


def test_the_input_of_a_step_is_decoded_at_the_rate_of_all_processors() -> None:
    workload = pictures(bytes_per_sample=110_000, decode="jpeg")
    found = decoding_of(workload.data, "tpu-v5p", 8, 2)
    assert found is not None
    assert input_seconds(workload, V5P) == pytest.approx(512 * 110_000 / (COMPRESSED_BYTES_PER_S * found.processors))
    assert input_seconds(workload, replace(V5P, count=16, hosts=4)) == pytest.approx(input_seconds(workload, V5P) / 2)
    assert "ct5p-hightpu-4t" in input_words(workload, V5P)


def test_pictures_have_their_usual_size_and_pixels_their_own_rate() -> None:
    usual, raw = decoding_of(DataPipeline(decode="jpeg"), "l4", 1, 1), decoding_of(replace(JPEG, decode="raw crop"), "l4", 1, 1)
    assert usual is not None
    assert raw is not None
    assert (usual.each_bytes, raw.bytes_per_s) == (110e3, RAW_BYTES_PER_S)


@pytest.mark.parametrize("decode", ["tokenise", "jpeg by nvJPEG", "DALI jpeg", None])
def test_what_has_no_rate_or_is_decoded_on_the_chip_takes_no_processor(decode: str | None) -> None:
    workload = pictures(bytes_per_sample=110_000, **({} if decode is None else {"decode": decode}))
    assert input_seconds(workload, V5P) == 0


def test_a_slow_source_is_what_a_step_waits_for() -> None:
    workload = pictures(bytes_per_sample=110_000, decode="jpeg", source_bytes_per_s=1e7)
    assert input_seconds(workload, V5P) == pytest.approx(512 * 110_000 / 1e7)
    assert input_words(workload, V5P) == "read at 10 MB/s"


def test_hosts_that_nobody_knows_are_not_counted() -> None:
    assert decoding_of(JPEG, "", 1, 1) is None
    found = decoding_of(replace(JPEG, host_vcpus=4), "", 1, 1)
    assert found is not None
    assert found.processors == 4


def test_eight_chips_have_twice_the_processors_of_four_whatever_larger_machines_there_are() -> None:
    four, eight = decoding_of(JPEG, "a100-40", 4, 1), decoding_of(JPEG, "a100-40", 8, 1)
    assert four is not None
    assert eight is not None
    assert (four.processors, eight.processors) == (48, 96)  # the machine of sixteen has no more than that of eight


def test_work_on_the_pixels_of_pictures_does_not_make_them_sooner_there() -> None:
    plain, more = decoding_of(JPEG, "l4", 1, 1), decoding_of(replace(JPEG, decode="jpeg, resize, crop"), "l4", 1, 1)
    assert plain is not None
    assert more is not None
    assert more.seconds(100) >= plain.seconds(100)


def test_a_picture_is_read_with_the_size_that_it_is_decoded_with_and_nothing_takes_no_time() -> None:
    assert input_seconds(pictures(decode="jpeg", source_bytes_per_s=1e6), V5P) == pytest.approx(512 * 110e3 / 1e6)
    assert input_seconds(pictures(decode="jpeg", bytes_per_sample=0), V5P) == 0


def test_no_step_is_sooner_than_its_input() -> None:
    workload = replace(pictures(decode="jpeg", host_vcpus=2), total=Total(steps=1000))
    chip, torch = accelerator("h100-sxm"), Runtime("torch-compile", "torch", "compile")
    pool = Pool("h100-sxm", 1, "gpu", 3.0)
    told = Datasheets(workload, [(pool, chip)]).estimate(torch, pool, chip)
    assert isinstance(told, Estimate)
    assert told.step_time_s is not None
    assert told.fed is not None
    assert told.step_time_s.mid == told.fed.input_s.mid == pytest.approx(input_seconds(workload, pool))
    assert told.step_time_s.low == pytest.approx(told.fed.input_s.low)
    assert told.step_time_s.tier == told.fed.input_s.tier == "published"
    assert sum(share.seconds.mid for share in told.breakdown) == pytest.approx(told.step_time_s.mid)
    assert told.job_s is not None
    assert told.cost_usd is not None
    assert told.job_s.low >= 1000 * told.fed.input_s.low * 0.999999
    assert told.cost_usd.low >= 1000 * told.fed.input_s.low * 0.999999 * 3.0 / 3600
    assert any("2 processors" in one for one in told.step_time_s.evidence)


@pytest.mark.parametrize(("pool", "vcpus"), [(Pool("l4", 1, "gpu", 0.8, hosts=1, vcpus=4), 4), (Pool("l4", 4, "gpu", 3.2), 48)])
def test_the_rule_counts_the_processors_that_the_step_waits_for(pool: Pool, vcpus: int) -> None:
    workload = intake.read_document(
        {"task": "infer", "model": {"preset": "resnet-50"}, "batch": 512, "dtype": "bf16", "data": {"decode": "jpeg"}}
    )
    asked = Question(workload, (pool,), (), (Runtime("torch-compile", "torch", "compile"),), (), "time", "2026-12-03", named=True)
    answer = advise(asked)
    assert answer.best is not None
    assert answer.best.step_time_s is not None
    words = input_words(workload, pool)
    assert f"by {vcpus} processors" in words
    assert words in answer.best.step_time_s.evidence
    (said,) = (one.reason for one in answer.verdicts if one.rule == "R206")
    assert said.startswith(words)
