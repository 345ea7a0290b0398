"""Pure parts of system probes: references, bisection, caps, settings, stopwatches."""

import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.codec import from_json
from core.errors import WorkerError
from core.probe import Timing
from probes.case import Program
from probes.collectives import COLLECTIVES, expected, floats_of_rank, reference, rows
from probes.environment import CPUS, MEMORY, PARTNER, Setting, setting_environment
from probes.rig import SystemWatch, must_equal, random_floats
from probes.system.memory_capacity import QUICK_CAP_BYTES, bisect, free_memory_bytes, resident_bytes, safe_cap


@given(true=st.integers(0, 4000), cap=st.integers(0, 3000))
def test_bisection_finds_what_fits_and_never_asks_beyond_the_cap(true: int, cap: int):
    asked: list[int] = []

    def fits(size: int) -> bool:
        asked.append(size)
        return size <= true

    found = bisect(fits, cap, 16)
    assert found == min(true, cap) // 16 * 16
    assert all(0 < size <= cap for size in asked)
    assert len(asked) <= 10


def test_a_cap_on_a_processor_is_a_quarter_of_what_is_free_and_half_of_what_the_worker_may_use():
    assert safe_cap(None, 8000, None, None) == 2000
    assert safe_cap(None, 8000, 3000, 1000) == 1000
    assert safe_cap(None, 8000, 500, 1000) == 0
    assert safe_cap(None, None, None, None) == QUICK_CAP_BYTES
    assert safe_cap(1000, 8000, 3000, 0) == 980


def test_free_memory_is_read_from_the_kernel_or_unknown(tmp_path: Path):
    facts = tmp_path / "meminfo"
    facts.write_text("MemTotal: 100 kB\nMemAvailable:   42 kB\n", encoding="ascii")
    assert free_memory_bytes(facts) == 42 * 1024
    assert free_memory_bytes(tmp_path / "none") is None
    assert resident_bytes(tmp_path / "none") is None


@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_collectives_conserve_what_was_put_in(ranks: int):
    put_in = rows(ranks, 12, 0)
    total = put_in.sum(axis=0)
    assert np.allclose(reference("all_reduce", put_in), total)
    assert np.allclose(reference("reduce_scatter", put_in).reshape(-1), total)
    assert reference("all_gather", put_in).shape == (ranks, ranks * 12)
    exchanged = reference("all_to_all", put_in)
    assert sorted(exchanged.reshape(-1)) == sorted(put_in.reshape(-1))
    assert np.array_equal(reference("all_to_all", exchanged), put_in)
    assert np.array_equal(reference("ring", put_in)[0], put_in[-1])
    with pytest.raises(ValueError, match="all_reduce"):
        reference("broadcast", put_in)


@pytest.mark.parametrize("name", [*COLLECTIVES, "ring"])
@pytest.mark.parametrize("ranks", [2, 3])
def test_what_one_rank_expects_is_its_row_of_the_reference(name: str, ranks: int):
    whole = reference(name, rows(ranks, 6 * ranks, 5))
    for rank in range(ranks):
        assert np.allclose(expected(name, rank, ranks, 6 * ranks, 5), whole[rank])


@pytest.mark.parametrize("name", [*COLLECTIVES, "ring"])
def test_a_message_is_as_large_as_was_asked_and_can_be_parted(name: str):
    count = floats_of_rank(name, 2**20, 4)
    assert count % 4 == 0
    assert count * 4 * (4 if name == "all_gather" else 1) == 2**20
    assert floats_of_rank(name, 1, 4) == 4


def test_random_data_is_random_and_the_same_for_the_same_seed():
    drawn = random_floats(1000, 3)
    assert np.array_equal(drawn, random_floats(1000, 3))
    assert len(np.unique(drawn)) > 990
    assert -1 <= drawn.min() < -0.9 < 0.9 < drawn.max() < 1


def test_an_answer_that_differs_is_refused():
    must_equal([1.0, 2.0], np.array([1.0, 2.0]), "a sum")
    for wrong in ([1.0, 2.1], [1.0], [1.0, float("nan")]):
        with pytest.raises(WorkerError, match="a sum"):
            must_equal(wrong, np.array([1.0, 2.0]), "a sum")


def test_a_setting_makes_devices_only_on_a_processor():
    assert setting_environment(Setting(devices=4), "cpu", "", 9)["XLA_FLAGS"].endswith("device_count=4")
    assert "XLA_FLAGS" not in setting_environment(Setting(devices=4), "gpu", "", 9)
    assert setting_environment(Setting(), "cpu", "", 9) == {MEMORY: "9"}
    limited = setting_environment(Setting(cpus=1, partner="jax"), "cpu", "/a/python", 9)
    assert (limited[CPUS], limited["OMP_NUM_THREADS"], limited[PARTNER]) == ("1", "1", "/a/python")


def test_what_is_done_before_a_call_is_not_timed():
    now = [0]

    def pass_ns(nanoseconds: int) -> None:
        now[0] += nanoseconds

    watch = SystemWatch(Program(lambda: pass_ns(7), False), 1, lambda: now[0], before=lambda: pass_ns(1000), loops=3)
    assert watch.sample() == 21
    assert watch.timing() == Timing(1, 3, (7,))


def test_a_watch_that_does_not_warm_keeps_its_first_call_apart():
    calls: list[int] = []
    watch = SystemWatch(Program(lambda: calls.append(1), False), 1, time.perf_counter_ns, warms=False, part="alone")
    watch.first_call()
    watch.warm_up()
    watch.rewarm()
    assert len(calls) == 1
    assert len(watch.timing().warm_ns) == 1
    assert watch.timing().part == "alone"


def test_timings_of_before_parts_can_still_be_read():
    assert from_json(Timing, '{"depth":1,"loops":2,"samples_ns":[5]}') == Timing(1, 2, (5,))
