"""Neighbours: what others used is told apart from what was timed."""

import os

from probes.contention import Bystanders, Usage, usage


def test_a_quiet_machine_is_not_flagged() -> None:
    watch = Bystanders()
    watch.add(Usage(100.0, 50.0, 0.0), Usage(102.0, 51.95, 1.0))
    assert watch.warning(2) == ""


def test_a_neighbour_that_takes_a_core_is_flagged_with_its_share() -> None:
    watch = Bystanders()
    watch.add(Usage(100.0, 50.0, 0.0), Usage(104.0, 52.0, 2.0))
    assert "used 50% of the machine" in watch.warning(2)


def test_rounds_add_up_before_they_are_judged() -> None:
    watch = Bystanders()
    watch.add(Usage(0.0, 0.0, 0.0), Usage(1.0, 0.7, 1.0))
    watch.add(Usage(5.0, 0.7, 9.0), Usage(14.0, 9.7, 18.0))
    assert watch.warning(1) == ""


def test_clocks_that_disagree_by_a_tick_never_give_a_negative_share() -> None:
    watch = Bystanders()
    watch.add(Usage(1.0, 1.0, 0.0), Usage(1.5, 1.51, 1.0))
    assert watch.others_s == 0.0


def test_nothing_sampled_is_nothing_said() -> None:
    assert Bystanders().warning(2) == ""


def test_a_worker_that_has_ended_counts_nothing() -> None:
    own = usage(os.getpid())
    gone = usage(2**22 - 1)
    assert own.own_s >= gone.own_s > 0
