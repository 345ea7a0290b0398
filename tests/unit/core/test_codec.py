"""The codec: what goes out comes back equal, and everything else is refused with its path."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.codec import from_json, from_plain, parse_json, to_json, to_plain
from core.errors import BadInput
from core.ops import DIMS, DTYPE_BYTES, Op
from core.probe import Measurement, Outcome, Probe, ProbeFailure, Timing
from core.quantity import TIERS, Quantity
from core.workload import Block, Workload

NAMES = st.text(max_size=20)
COUNTS = st.integers(0, 2**62)
SIZES = st.one_of(COUNTS, st.floats(allow_nan=False, allow_infinity=False), NAMES, st.tuples(COUNTS, COUNTS))
OPS = st.sampled_from(sorted(DIMS)).flatmap(
    lambda kind: st.builds(
        Op, st.just(kind), st.tuples(*[st.integers(1, 9)] * len(DIMS[kind])), st.sampled_from(sorted(DTYPE_BYTES))
    )
)
PROBES = st.builds(Probe, NAMES, NAMES, st.lists(st.tuples(NAMES, SIZES), max_size=4).map(tuple), NAMES, NAMES, NAMES)
TIMINGS = st.builds(Timing, st.integers(0, 9), st.integers(1, 9), st.lists(COUNTS, max_size=5).map(tuple))
MEASUREMENTS = st.builds(
    Measurement,
    PROBES,
    st.lists(TIMINGS, max_size=2).map(tuple),
    NAMES,
    COUNTS,
    COUNTS,
    st.none() | COUNTS,
    st.lists(NAMES, max_size=2).map(tuple),
    st.booleans(),
    st.just(()),
    NAMES,
    NAMES,
)
FAILURES = st.builds(ProbeFailure, PROBES, NAMES, NAMES, st.none() | st.integers(-64, 255), NAMES, NAMES)
BLOCKS = st.builds(
    Block,
    NAMES,
    NAMES,
    st.just((("batch", 1),)),
    st.integers(1, 9),
    st.lists(OPS, max_size=3).map(tuple),
    st.just(()),
    COUNTS,
    COUNTS,
)


@given(st.one_of(MEASUREMENTS, FAILURES))
def test_an_outcome_comes_back_equal_and_as_the_same_kind(outcome: Outcome) -> None:
    back = from_json(Outcome, to_json(outcome))  # type: ignore[arg-type]
    assert back == outcome
    assert type(back) is type(outcome)


@given(st.lists(BLOCKS, max_size=3))
def test_a_workload_comes_back_equal(blocks: list[Block]) -> None:
    workload = Workload("x", "train", tuple(blocks), 1, "samples", 1.0, "fp32", "sgd")
    assert from_json(Workload, to_json(workload)) == workload


def test_every_fault_is_named_with_its_path_at_once() -> None:
    with pytest.raises(BadInput) as caught:
        from_plain(Quantity, {"low": "1", "mid": True, "hihg": 3, "high": 3, "tier": 5})
    message = str(caught.value)
    for part in ("low: '1' instead of a number", "mid: True", "hihg: unknown, did you mean 'high'", "tier: 5 instead of text"):
        assert part in message
    assert "\n" not in message


def test_a_value_that_the_word_itself_refuses_is_a_fault_with_its_path() -> None:
    with pytest.raises(BadInput, match="got band 3"):
        from_plain(Quantity, {"low": 3, "mid": 2, "high": 1, "tier": TIERS[0], "evidence": []})


@pytest.mark.parametrize("text", ['{"a": 1, "a": 2}', '{"a": NaN}', '{"a": Infinity}', "{", "", "[" * 100_000])
def test_json_that_is_not_plain_json_is_refused(text: str) -> None:
    with pytest.raises(BadInput):
        parse_json(text)


def test_numbers_that_are_not_finite_never_leave() -> None:
    with pytest.raises(ValueError, match="JSON"):
        to_json(Timing(1, 1, (), (), math.nan))


def test_what_is_no_word_is_not_encoded() -> None:
    with pytest.raises(TypeError, match="expected a dataclass"):
        to_plain({1, 2})


def test_a_whole_number_serves_where_a_fraction_is_due_but_not_the_other_way() -> None:
    assert from_plain(Timing, {"depth": 1, "loops": 1, "samples_ns": [], "compile_s": 2}).compile_s == 2.0
    with pytest.raises(BadInput, match=r"depth: 1\.5"):
        from_plain(Timing, {"depth": 1.5, "loops": 1, "samples_ns": []})


def test_a_tuple_of_fixed_length_is_held_to_it() -> None:
    with pytest.raises(BadInput, match="3 items instead of 2"):
        from_plain(Measurement, {**to_plain(_measurement()), "versions": [["a", "b", "c"]]})


def _measurement() -> Measurement:
    return Measurement(Probe("a", "block", (), "fp32", "jax", "cpu:0"), (), "slope", 0, 0, None, (), True, (), "u", "t")
