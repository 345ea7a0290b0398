"""Pairs of two harnesses: their order, their ratio, and STREAM's own answers."""

import json
import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from bench.compiled import build
from bench.foreign.cases import CACHES, CASES, LEAST_VECTOR_BYTES, Case, memory_cases
from bench.foreign.serve import HARNESSES
from bench.harnesses import Pair, Round, Row, in_turn, row_of, verdict_line
from bench.sides import ForeignSide, Stream, cut, environment_for, probe_of
from core.errors import BadInput, WorkerError
from core.probe import Timing
from probes.depths import depths_of
from probes.subjects import subject_of


def _row(*ratios: float) -> Row:
    return Row("dense", "jax", "loop", tuple(Pair(ratio, 1.0) for ratio in ratios), (), 0.0)


def test_sides_take_turns_first() -> None:
    order: list[str] = []
    in_turn(3, lambda: order.append("A"), lambda: order.append("B"))
    assert "".join(order) == "ABBAAB"


def test_the_median_of_pairs_decides_and_one_disturbed_pair_does_not() -> None:
    assert _row(1.01, 1.02, 1.9, 1.00, 1.01).holds
    assert not _row(1.04, 1.05, 1.04, 1.00, 1.05).holds
    assert not _row(0.96, 0.96, 0.95, 1.00, 0.96).holds


def test_the_verdict_names_what_falls_short() -> None:
    assert verdict_line([_row(1.0, 1.0, 1.0)]).startswith("HOLDS: 1 of 1 rows within 3%")
    assert verdict_line([_row(1.1, 1.1, 1.1)]).endswith("dense in jax by loop 1.100")
    assert verdict_line([]) == "FALLS SHORT: nothing was compared"


def test_rounds_of_new_processes_are_one_row() -> None:
    pair, other = Pair(1.0, 2.0), Pair(3.0, 2.0)
    row = row_of("dense", "jax", "loop", [Round((pair,), (("call", (pair,)),), 0.1), Round((other,), (("call", (other,)),), 0.2)])
    assert (row.pairs, row.beside, row.others) == ((pair, other), (("call", (pair, other)),), 0.2)


def test_vectors_are_four_caches_long() -> None:
    assert {one.side for one in memory_cases(300 * 2**20)} == {CACHES * 300 * 2**20}
    assert {one.side for one in memory_cases(2**20)} == {LEAST_VECTOR_BYTES}


def test_samples_of_one_request_are_cut_out_by_count() -> None:
    timings = (Timing(1, 1, (10, 11, 12, 13)), Timing(3, 1, (30, 31, 36, 37)))
    calls, copies = cut(timings, 2, 4)
    assert [round(value * 1e9) for value in calls] == [36, 37]
    assert [round(value * 1e9) for value in copies] == [12, 12]


@pytest.mark.parametrize("one", [*CASES, *memory_cases(0)], ids=lambda one: one.name)
def test_the_probe_of_every_case_can_be_built_from_its_sizes(one: Case) -> None:
    probe = probe_of(one, "jax")
    subject = subject_of(probe)
    assert subject.inputs(dict(probe.sizes))["x"].shape
    assert subject.forward is not None
    assert depths_of(subject, dict(probe.sizes), probe) == one.depths


def test_stream_gives_right_answers_and_counts_its_bytes(tmp_path: Path) -> None:
    program = build("stream.c", tmp_path, "-march=native", "-fopenmp")
    asked = "plain copy\nwide scale\nplain add\nwide triad\nplain triad\n"
    done = subprocess.run((str(program), "65536", "4"), input=asked, capture_output=True, text=True, check=True)
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert [one["wrong"] for one in told] == [0] * 5
    assert told[-1]["bytes"] == 3 * 4 * 65536
    assert all(0 < one["best_s"] <= one["median_s"] for one in told)


def test_stream_is_asked_again_and_again_and_says_when_it_ended(tmp_path: Path) -> None:
    with Stream(build("stream.c", tmp_path, "-march=native", "-fopenmp"), 65536, 4, os.environ) as stream:
        assert stream.best_s("plain", "triad") > 0
        assert stream.best_s("wide", "triad") > 0
        with pytest.raises(WorkerError, match="no answer from stream"):
            stream.best_s("plain", "no-such")


@pytest.mark.parametrize("one", memory_cases(0), ids=lambda one: one.name)
def test_a_pass_over_memory_is_the_same_to_the_foreign_harnesses(one: Case) -> None:
    short = replace(one, side=4096)
    for runtime in HARNESSES:
        with ForeignSide(runtime, environment_for(runtime)) as foreign:
            foreign.build(short)
            frame, copy = foreign.time(0.01)
            assert min(*frame, *copy) > 0


def test_a_source_that_does_not_compile_is_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="refused clock_jump"):
        build("clock_jump.c", tmp_path, "-std=no-such")
