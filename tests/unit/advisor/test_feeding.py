"""What feeds the chips: how long the input of a step takes, on whose processors, and what is not counted."""

from dataclasses import replace
from typing import Any

import pytest

import intake
from advisor.feeding import COMPRESSED_BYTES_PER_S, RAW_BYTES_PER_S, decoding_of, input_seconds, input_words
from catalog import machine_named
from core.device import Pool
from core.workload import DataPipeline

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
