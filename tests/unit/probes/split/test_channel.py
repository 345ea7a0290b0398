import os
import threading

import numpy as np
import pytest

from core.errors import WorkerError
from probes.split.channel import PACKET_BYTES, Bucket, TensorChannel, deliver
from probes.split.streams import MemoryStream, SharedMemory

RING = 2**16


class Clock:
    """Time that passes only by sleeping."""

    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds


class Recorder:
    def __init__(self, clock):
        self.clock, self.arrived = clock, []

    def write(self, data):
        self.arrived.append((round(self.clock() - 100.0, 9), len(data)))


def _streams():
    memory = SharedMemory(RING)
    streams = tuple(MemoryStream(i, tuple(os.dup(end) for end in memory.ends(i)), RING) for i in (0, 1))
    memory.close()
    return streams


@pytest.fixture
def channels():
    pair = tuple(TensorChannel(stream) for stream in _streams())
    yield pair
    for channel in pair:
        channel.close()


def test_a_packet_arrives_after_its_serialisation_and_the_latency() -> None:
    bucket = Bucket(1000.0, 0.25)
    assert bucket.due(5.0, 500) == 5.0 + 0.5 + 0.25


def test_packets_that_are_offered_together_share_the_rate_and_not_the_latency() -> None:
    bucket = Bucket(1000.0, 0.25)
    assert [bucket.due(5.0, 500) for _ in range(3)] == [5.75, 6.25, 6.75]


def test_an_idle_link_saves_nothing_up() -> None:
    bucket = Bucket(1000.0, 0.0)
    assert [bucket.due(0.0, 1000), bucket.due(10.0, 1000)] == [1.0, 11.0]


def test_a_link_without_a_rate_takes_its_latency_only() -> None:
    assert Bucket(None, 0.5).due(1.0, 10**9) == 1.5


@pytest.mark.parametrize(("rate", "latency"), [(1e6, 0.0), (2e6, 0.01), (1e3, 0.5)])
def test_the_last_byte_of_a_message_arrives_when_the_link_would_bring_it(rate, latency) -> None:
    clock = Clock()
    stream, data = Recorder(clock), memoryview(bytes(5000))
    deliver(stream, Bucket(rate, latency), [data[:10], data[10:]], clock(), clock, clock.sleep)
    assert sum(size for _, size in stream.arrived) == 5000
    assert stream.arrived[-1][0] == pytest.approx(5000 / rate + latency, abs=6e-5)


def test_a_message_that_waited_for_another_pays_no_latency_again() -> None:
    clock = Clock()
    stream, bucket, data = Recorder(clock), Bucket(1e4, 0.5), memoryview(bytes(1000))
    offered = clock()
    for _ in range(3):
        deliver(stream, bucket, [data], offered, clock, clock.sleep)
    ends = [at for (at, _) in stream.arrived]
    assert ends[-1] == pytest.approx(3 * 0.1 + 0.5)


@pytest.mark.parametrize("rate", [10.0, 1e5, 1e9, 1e12])
def test_packets_of_a_shaped_link_are_small(rate) -> None:
    assert 1 <= Bucket(rate).packet_bytes <= PACKET_BYTES


@pytest.mark.parametrize("count", [0, 1, RING // 4, RING, 3 * RING + 5])
def test_a_tensor_arrives_as_it_was_sent_however_it_fits_the_ring(channels, count) -> None:
    sent = np.random.default_rng(count).standard_normal(count, dtype=np.float32)
    channels[0].send("gradients", [sent, np.array([count], np.int64)], {"step": "3"})
    message = channels[1].receive("gradients", 20)
    assert np.array_equal(message.arrays[0], sent)
    assert message.arrays[1].tolist() == [count]
    assert message.note["step"] == "3"


def test_two_sides_that_send_more_than_fits_to_each_other_do_not_lock(channels) -> None:
    values = np.arange(5 * RING, dtype=np.float32)
    for channel in channels:
        channel.send("gradients", [values])
    for channel in channels:
        assert np.array_equal(channel.receive("gradients", 20).arrays[0], values)
        channel.flush()


def test_messages_of_a_kind_come_in_order_and_do_not_wait_for_other_kinds(channels) -> None:
    for number in range(3):
        channels[0].send("weights", [np.array([number], np.int32)])
    channels[0].send("ready", [])
    assert channels[1].receive("ready", 20).arrays == ()
    assert [int(channels[1].receive("weights", 20).arrays[0][0]) for _ in range(3)] == [0, 1, 2]


def test_what_was_received_belongs_to_the_receiver(channels) -> None:
    sent = np.ones(4, np.float32)
    channels[0].send("weights", [sent])
    channels[0].flush()
    sent[:] = 7
    got = channels[1].receive("weights", 20).arrays[0]
    got += 1
    assert got.tolist() == [2, 2, 2, 2]


def test_a_side_that_goes_wakes_one_that_waits(channels) -> None:
    told = []

    def wait():
        try:
            channels[1].receive("weights", 20)
        except WorkerError as error:
            told.append(str(error))

    waiter = threading.Thread(target=wait)
    waiter.start()
    channels[0].close()
    waiter.join(20)
    assert told == ["got the end of the channel; expected the other side to live; see how it ended"]


def test_a_side_that_went_leaves_what_it_had_sent(channels) -> None:
    channels[0].send("weights", [np.ones(3, np.float32)])
    channels[0].flush()
    channels[0].close()
    assert channels[1].receive("weights", 20).arrays[0].tolist() == [1, 1, 1]
    with pytest.raises(WorkerError, match="end of the channel"):
        channels[1].receive("weights", 20)


def test_nothing_of_a_kind_within_a_limit_is_told(channels) -> None:
    with pytest.raises(WorkerError, match=r"got no weights within 0\.01 s"):
        channels[1].receive("weights", 0.01)


def test_what_is_no_frame_ends_the_channel() -> None:
    one, other = _streams()
    channel = TensorChannel(other)
    one.write(memoryview(b"\xff" * 64))
    with pytest.raises(WorkerError, match="expected 2 to"):
        channel.receive("weights", 20)
    channel.close()
    one.close()


def test_many_small_messages_need_nobody_to_answer(channels) -> None:
    """More than the sockets between the two sides have room for, if each were acknowledged."""
    for number in range(2000):
        channels[0].send("ready", [np.array([number], np.int32)])
    assert [int(channels[1].receive("ready", 20).arrays[0][0]) for _ in range(2000)] == list(range(2000))


def test_what_is_left_of_an_earlier_task_is_dropped(channels) -> None:
    channels[0].send("weights", [np.zeros(1, np.float32)])
    channels[0].begin(1)
    channels[0].send("weights", [np.ones(1, np.float32)])
    channels[1].begin(1)
    assert channels[1].receive("weights", 20).arrays[0].tolist() == [1.0]
