"""Every second of a session is counted once."""

import pytest

from core.codec import from_json, to_json
from probes.accounting import SPENDING, Account, Laps, Spent, productive_share, totals
from probes.messages import Sampled, read_reply, write


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_parts_and_the_rest_add_up_to_the_wall():
    clock, told = Clock(), list[Spent]()
    account = Account(told.append, clock)
    account.add((("compile", 2.0), ("samples", 5.0)), "jax")
    clock.now = 10.0
    account.close()
    assert totals(told) == {**dict.fromkeys(SPENDING, 0.0), "compile": 2.0, "samples": 5.0, "other": 3.0}
    assert sum(totals(told).values()) == pytest.approx(10.0)


def test_an_account_that_is_closed_twice_tells_nothing_twice():
    clock, told = Clock(), list[Spent]()
    account = Account(told.append, clock)
    clock.now = 4.0
    account.close()
    account.close()
    assert told == [Spent("other", 4.0)]


def test_laps_cut_time_without_a_gap():
    clock = Clock()
    laps = Laps(clock)
    clock.now = 1.0
    laps.lap("agree")
    clock.now = 4.0
    laps.lap("compile")
    clock.now = 4.5
    laps.lap("agree")
    assert laps.seconds() == (("agree", 1.5), ("compile", 3.0))


def test_seconds_that_are_moved_between_stages_stay_as_many():
    clock = Clock()
    laps = Laps(clock)
    clock.now = 5.0
    laps.lap("agree")
    laps.move("agree", "compile", 2.0)
    assert dict(laps.seconds()) == {"agree": 3.0, "compile": 2.0}
    laps.move("agree", "compile", 9.0)
    assert dict(laps.seconds()) == {"agree": 0.0, "compile": 5.0}


def test_the_productive_share_is_compiling_warming_and_sampling():
    assert productive_share({"import": 2.0, "compile": 1.0, "warm-up": 2.0, "samples": 4.0, "other": 1.0}) == pytest.approx(0.7)
    assert productive_share({}) is None


def test_a_reply_carries_its_seconds_and_may_lack_them():
    reply = Sampled(3, (("samples", 0.25),))
    assert read_reply(write(reply)) == reply
    assert from_json(Sampled, '{"samples": 3}') == Sampled(3)
    assert "spent" in to_json(reply)
