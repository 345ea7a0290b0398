"""Two hosts' clocks begin anywhere: after tuning they say the same, as nearly as messages tell."""

import os
import threading
import time

import pytest

from probes.split.channel import TensorChannel
from probes.split.clocks import HostClock, tune
from probes.split.streams import MemoryStream, SharedMemory

RING = 2**16


@pytest.fixture
def channels():
    memory = SharedMemory(RING)
    streams = [MemoryStream(index, tuple(os.dup(end) for end in memory.ends(index)), RING) for index in (0, 1)]
    memory.close()
    ends = [TensorChannel(stream) for stream in streams]
    yield ends
    for end in ends:
        end.close()


def _tuned(channels, apart_s):
    clocks = HostClock(), HostClock(apart_s)
    other = threading.Thread(target=tune, args=(clocks[0], channels[0], 0, 20))
    other.start()
    tune(clocks[1], channels[1], 1, 20)
    other.join()
    return clocks


@pytest.mark.parametrize("apart_s", [-86_400.0, -1.0, 3.5, 1e6])
def test_the_second_clock_follows_the_first(channels, apart_s) -> None:
    first, second = _tuned(channels, apart_s)
    assert first.ahead_s == 0.0
    assert abs(second.ahead_s) < 0.1


def test_a_host_that_both_share_keeps_its_one_clock(channels) -> None:
    first, second = _tuned(channels, 0.0)
    assert (first.ahead_s, second.ahead_s) == (0.0, 0.0)
    start = time.perf_counter()
    assert start <= second() <= time.perf_counter()
