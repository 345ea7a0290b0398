"""The queue model against closed forms of queueing theory and against a simulation of every step."""

import math

import pytest

from advisor.queueing import Latencies, Limits, Unstable, keeps, latencies, limit_per_s, mean_total_s, most_arrivals
from bench.queueing import Server, percentile, simulate
from core.errors import BadInput

TOKENS = 1000
CHAT = Server("chat", 0.03, ((1, 0.012), (64, 0.030)), 200, 64)
FEW = Server("few places", 0.05, ((1, 0.02), (8, 0.022)), 100, 8)
SPREAD = Server("spread", 0.03, ((1, 0.012), (64, 0.030)), 120, 64, 1.0)
ALIKE = Server("no step grows", 0.01, ((1, 0.02), (16, 0.02)), 50, 16)


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
    CHAT, FEW, Server("long prompts", 0.4, ((1, 0.015), (32, 0.020)), 150, 32), SPREAD,
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


def _asked(server: Server) -> dict:
    return {"prefill_s": server.prefill_s, "step_points": server.step_points, "output_tokens": server.output_tokens,
            "most": server.most, "variation": server.variation}


@pytest.mark.parametrize("latency", ["first_token", "per_token", "total"])
@pytest.mark.parametrize("server", [CHAT, FEW, SPREAD, ALIKE], ids=lambda server: server.name)
def test_a_limit_is_kept_exactly_where_the_told_percentile_keeps_it(server: Server, latency: str) -> None:
    asked = _asked(server)
    for load in (0.2, 0.8, 0.95):
        rate = load * limit_per_s(server.prefill_s, server.step_points, server.output_tokens, server.most)
        said = getattr(_solved(rate, **asked), latency)
        for share, value in ((0.5, said.p50_s), (0.95, said.p95_s), (0.99, said.p99_s)):
            assert keeps(rate, **asked, limits=Limits(share, **{f"{latency}_s": value * 1.003}))
            assert not keeps(rate, **asked, limits=Limits(share, **{f"{latency}_s": value * 0.99}))


def test_of_several_limits_each_has_to_be_kept() -> None:
    asked = _asked(CHAT)
    loose = {"first_token_s": 10.0, "per_token_s": 1.0, "total_s": 100.0}
    assert keeps(3.0, **asked, limits=Limits(0.99, **loose))
    for name, tight in (("first_token_s", 0.001), ("per_token_s", 0.001), ("total_s", 1.0)):
        assert not keeps(3.0, **asked, limits=Limits(0.99, **{**loose, name: tight}))


def test_more_than_can_be_served_keeps_no_limit_and_takes_for_ever() -> None:
    assert not keeps(9.0, **_asked(CHAT), limits=Limits())
    assert mean_total_s(9.0, **_asked(CHAT)) == math.inf


@pytest.mark.parametrize("server", [CHAT, SPREAD], ids=lambda server: server.name)
def test_the_mean_alone_is_that_of_all_latencies(server: Server) -> None:
    assert mean_total_s(2.0, **_asked(server)) == pytest.approx(_solved(2.0, **_asked(server)).total.mean_s, rel=1e-12)


@pytest.mark.parametrize("tolerance", [0.005, 0.02])
def test_the_most_arrivals_are_just_accepted(tolerance: float) -> None:
    rate = most_arrivals(0.03, CHAT.step_points, 200, 64, Limits(total_s=4.0), tolerance=tolerance)
    assert _solved(rate, 0.03, CHAT.step_points, 200, 64).total.p99_s <= 4.0
    assert _solved((1 + 2 * tolerance) * rate, 0.03, CHAT.step_points, 200, 64).total.p99_s > 4.0


def test_without_limits_the_most_arrivals_are_all_that_can_be_served() -> None:
    limit = 1 / (0.03 + 200 * 0.030 / 64)
    assert most_arrivals(0.03, CHAT.step_points, 200, 64, Limits()) == pytest.approx(limit, rel=0.006)


def test_a_target_below_the_least_time_accepts_nothing() -> None:
    assert most_arrivals(0.03, CHAT.step_points, 200, 64, Limits(0.5, total_s=1.0)) == 0


@pytest.mark.parametrize("share", [0.0, 1.0, -0.5, math.nan])
def test_a_share_that_is_none_is_refused_in_one_line(share: float) -> None:
    with pytest.raises(BadInput, match=r"got .*; expected .*; .+"):
        Limits(share)


@pytest.mark.parametrize("changed", [
    {"arrivals_per_s": 0.0}, {"prefill_s": -1.0}, {"step_points": ()}, {"step_points": ((2, 1.0), (1, 2.0))},
    {"output_tokens": 0.0}, {"most": 0}, {"variation": -1.0}, {"arrivals_per_s": float("nan")},
])
def test_a_number_out_of_its_range_is_told_in_one_line(changed: dict) -> None:
    given = {"arrivals_per_s": 1.0, "prefill_s": 0.1, "step_points": ((1, 0.01),), "output_tokens": 10.0, "most": 4}
    with pytest.raises(BadInput, match=r"got .*; expected .*; .+"):
        latencies(**(given | changed))
