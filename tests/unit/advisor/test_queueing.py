"""The queue model against closed forms of queueing theory and against a simulation of every step."""

import math

import pytest

from advisor.queueing import Latencies, Unstable, latencies, limit_per_s, most_arrivals
from bench.queueing import Server, percentile, simulate
from core.errors import BadInput

TOKENS = 1000
CHAT = Server("chat", 0.03, ((1, 0.012), (64, 0.030)), 200, 64)


def _solved(*arguments, **named) -> Latencies:
    said = latencies(*arguments, **named)
    assert isinstance(said, Latencies)
    return said


def _erlang_c(load: float, servers: int) -> float:
    offered = load * servers
    terms = [offered**k / math.factorial(k) for k in range(servers)]
    last = offered**servers / math.factorial(servers) / (1 - load)
    return last / (sum(terms) + last)


@pytest.mark.parametrize("load", [0.3, 0.8, 0.95])
def test_one_place_and_exponential_answers_are_m_m_1(load: float) -> None:
    said = _solved(load, 0.0, ((1, 1 / TOKENS),), TOKENS, 1, variation=1.0)
    assert said.total.mean_s == pytest.approx(1 / (1 - load), rel=1e-4)
    for share, value in ((0.5, said.total.p50_s), (0.95, said.total.p95_s), (0.99, said.total.p99_s)):
        assert value == pytest.approx(-math.log(1 - share) / (1 - load), rel=0.015)


@pytest.mark.parametrize("load", [0.2, 0.7, 0.9])
def test_one_place_and_equal_answers_have_the_mean_of_m_d_1(load: float) -> None:
    said = _solved(load, 0.25, ((1, 0.75 / TOKENS),), TOKENS, 1)
    assert said.total.mean_s == pytest.approx(1 + load / (2 * (1 - load)), rel=1e-6)
    assert said.waiting == pytest.approx(load)


@pytest.mark.parametrize(("load", "servers"), [(0.5, 2), (0.8, 8), (0.95, 32)])
def test_a_step_that_does_not_grow_is_m_m_c(load: float, servers: int) -> None:
    said = _solved(load * servers, 0.0, ((1, 1 / TOKENS), (servers, 1 / TOKENS)), TOKENS, servers, variation=1.0)
    waits = _erlang_c(load, servers)
    assert said.waiting == pytest.approx(waits, rel=1e-6)
    assert said.total.mean_s == pytest.approx(1 + waits / (servers * (1 - load)), abs=1.5 / TOKENS)
    first = 0.0 if waits < 0.05 else math.log(waits / 0.05) / (servers * (1 - load))
    assert said.first_token.p95_s == pytest.approx(first, abs=2 / TOKENS)
    assert said.in_flight == pytest.approx(load * servers, rel=1e-6)


def test_more_places_than_are_ever_taken_is_m_m_inf() -> None:
    said = _solved(20.0, 0.0, ((1, 1 / TOKENS), (400, 1 / TOKENS)), TOKENS, 400, variation=1.0)
    assert said.waiting == 0
    assert said.in_flight == pytest.approx(20, rel=1e-6)
    for share, value in ((0.5, said.total.p50_s), (0.95, said.total.p95_s), (0.99, said.total.p99_s)):
        assert value == pytest.approx(-math.log(1 - share), rel=0.025)


@pytest.mark.parametrize("variation", [0.0, 0.4, 1.0])
def test_a_step_in_proportion_to_its_sequences_is_processor_sharing(variation: float) -> None:
    points = ((1, 1 / TOKENS), (300, 300 / TOKENS))
    said = _solved(0.75, 0.0, points, TOKENS, 300, variation=variation)
    assert said.total.mean_s == pytest.approx(1 / (1 - 0.75), rel=0.01)


def test_the_mean_obeys_littles_law_where_steps_grow() -> None:
    said = _solved(6.0, 0.0, CHAT.step_points, 200, 64, variation=1.0)
    assert said.total.mean_s - said.first_token.mean_s == pytest.approx(said.in_flight / 6.0, rel=0.005)


def test_a_request_alone_takes_prompt_and_steps() -> None:
    said = _solved(1e-6, 0.03, CHAT.step_points, 200, 64)
    assert said.first_token.p99_s == pytest.approx(0.03, rel=1e-3)
    assert said.per_token.p50_s == pytest.approx(0.012, rel=1e-3)
    assert said.total.p50_s == pytest.approx(0.03 + 200 * 0.012, rel=1e-3)


@pytest.mark.parametrize("server", [
    CHAT,
    Server("few places", 0.05, ((1, 0.02), (8, 0.022)), 100, 8),
    Server("long prompts", 0.4, ((1, 0.015), (32, 0.020)), 150, 32),
    Server("spread", 0.03, ((1, 0.012), (64, 0.030)), 120, 64, 1.0),
], ids=lambda server: server.name)
@pytest.mark.parametrize("load", [0.3, 0.6])
def test_percentiles_are_near_those_of_a_simulation_of_every_step(server: Server, load: float) -> None:
    rate = load * limit_per_s(server.prefill_s, server.step_points, server.output_tokens, server.most)
    first, last = simulate(server, rate, 6000, 5)
    said = _solved(rate, server.prefill_s, server.step_points, server.output_tokens, server.most, variation=server.variation)
    for share, value in ((0.5, said.total.p50_s), (0.95, said.total.p95_s), (0.99, said.total.p99_s)):
        assert value == pytest.approx(percentile(last, share), rel=0.2)
    assert said.first_token.p50_s == pytest.approx(percentile(first, 0.5), rel=0.1, abs=server.step_points[-1][1])


def test_more_arrivals_never_make_it_faster() -> None:
    limit = limit_per_s(0.03, CHAT.step_points, 200, 64)
    p99 = [_solved(share * limit, 0.03, CHAT.step_points, 200, 64).total.p99_s for share in (0.1, 0.3, 0.5, 0.7, 0.9, 0.99)]
    assert p99 == sorted(p99)


def test_more_than_can_be_served_says_how_much_can() -> None:
    said = latencies(9.0, 0.03, CHAT.step_points, 200, 64)
    assert said == Unstable(pytest.approx(1 / (0.03 + 200 * 0.030 / 64)))


def test_the_most_arrivals_are_just_accepted() -> None:
    rate = most_arrivals(0.03, CHAT.step_points, 200, 64, lambda said: said.total.p99_s <= 4.0)
    assert _solved(rate, 0.03, CHAT.step_points, 200, 64).total.p99_s <= 4.0
    assert _solved(1.02 * rate, 0.03, CHAT.step_points, 200, 64).total.p99_s > 4.0


def test_a_target_below_the_least_time_accepts_nothing() -> None:
    assert most_arrivals(0.03, CHAT.step_points, 200, 64, lambda said: said.total.p50_s <= 1.0) == 0


@pytest.mark.parametrize("changed", [
    {"arrivals_per_s": 0.0}, {"prefill_s": -1.0}, {"step_points": ()}, {"step_points": ((2, 1.0), (1, 2.0))},
    {"output_tokens": 0.0}, {"most": 0}, {"variation": -1.0}, {"arrivals_per_s": float("nan")},
])
def test_a_number_out_of_its_range_is_told_in_one_line(changed: dict) -> None:
    given = {"arrivals_per_s": 1.0, "prefill_s": 0.1, "step_points": ((1, 0.01),), "output_tokens": 10.0, "most": 4}
    with pytest.raises(BadInput, match=r"got .*; expected .*; .+"):
        latencies(**(given | changed))
