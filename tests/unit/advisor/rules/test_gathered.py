"""Verdicts that say the same in many places are told in few, and mean no more and no less than before."""

from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.screening import gathered
from core.advice import Verdict

RUNTIMES, CHIPS = ("jax", "torch", "tf"), ("tpu", "gpu", "cpu", "npu")
places = st.sets(st.tuples(st.sampled_from(RUNTIMES), st.sampled_from(CHIPS)), min_size=1)


def verdict(runtime: str, accelerator: str, reason: str = "so it is") -> Verdict:
    return Verdict("R001", "eol", "warn", reason, "a page", "2026-11-30", runtime, accelerator)


def meant(told: tuple[Verdict, ...], pairs: frozenset[tuple[str, str]]) -> set[tuple[str, str]]:
    return {(r, a) for r, a in pairs for one in told if one.runtime in ("", r) and one.accelerator in ("", a)}


@settings(max_examples=150, deadline=None)
@given(places, places)
def test_what_is_gathered_means_the_same_pairs_in_no_more_places(
    said: set[tuple[str, str]], silent: set[tuple[str, str]]
) -> None:
    pairs = frozenset(said | silent)
    told = gathered([verdict(*place) for place in sorted(said)], pairs)
    assert meant(told, pairs) == said
    assert len(told) <= len(said)


def test_what_all_of_a_vendor_say_in_all_their_runtimes_is_told_once_for_each_chip() -> None:
    pairs = frozenset((runtime, chip) for runtime in RUNTIMES for chip in CHIPS) | {("mxnet", "gpu")}
    said = [(runtime, "gpu") for runtime in (*RUNTIMES, "mxnet")] + [("jax", "cpu")]
    told = gathered([verdict(*place) for place in said], pairs)
    assert [(one.runtime, one.accelerator) for one in told] == [("", "gpu"), ("jax", "cpu")]


def test_what_is_said_everywhere_is_told_once() -> None:
    pairs = frozenset((runtime, chip) for runtime in RUNTIMES for chip in CHIPS)
    assert [(one.runtime, one.accelerator) for one in gathered([verdict(*pair) for pair in pairs], pairs)] == [("", "")]


def test_what_is_said_of_the_workload_or_of_two_pools_stays_as_it_is() -> None:
    pairs = frozenset({("jax", "tpu"), ("jax", "gpu")})
    told = gathered([verdict("", "", "of the job"), verdict("", "tpu + gpu", "of both")], pairs)
    assert [(one.runtime, one.accelerator) for one in told] == [("", ""), ("", "tpu + gpu")]


def test_one_pair_is_named_and_not_called_all() -> None:
    told = gathered([verdict("jax", "tpu")], frozenset({("jax", "tpu")}))
    assert [(one.runtime, one.accelerator) for one in told] == [("jax", "tpu")]
