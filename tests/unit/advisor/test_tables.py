"""Embedding tables on chips that are not attached: time, memory and breakdown are of the rows that a step looks up."""

from dataclasses import replace
from functools import cache

import pytest

import intake
from advisor.datasheet import SPARSE_UPDATE, Datasheets
from advisor.interruptions import saved_bytes
from advisor.memory import Layout, chip_room_bytes, memory_parts, model_bytes, parameter_bytes
from advisor.work import update_work
from core.advice import Estimate
from core.low_rank import LowRank
from core.workload import Workload
from tests.unit.advisor.cases import GPU, pool, runtime

BATCH, TABLES, WIDTH = 1024, 26, 128
TOWER = 1024 * 1024 + 1024 * 512 + 512 * 256 + 256 + 1024 + 512 + 256 + 1


@cache
def recommender(rows: int, per_bag: int = 1) -> Workload:
    blocks = [
        {"name": "tables", "kind": "embedding_bag", "tables": TABLES, "rows": rows, "width": WIDTH, "per_bag": per_bag},
        {"name": "top", "kind": "dense_tower", "widths": [1024, 1024, 512, 256, 1], "activation": "relu"},
    ]
    job = {"schema": 1, "name": "x", "task": "train", "batch": BATCH, "dtype": "fp32", "optimizer": "adamw"}
    return intake.read_document({**job, "model": {"blocks": blocks}})


def told(rows: int) -> Estimate:
    asked = pool("h100-sxm", 8)
    sheets = Datasheets(recommender(rows), [(asked, GPU)])
    found = sheets.estimate(runtime("torch-compile"), asked, GPU)
    assert isinstance(found, Estimate), found
    return sheets.in_blocks(found)


@pytest.mark.parametrize("rows", [100_000, 10_000_000])
def test_the_step_and_its_slices_do_not_change_with_rows_that_nobody_looks_up(rows: int) -> None:
    few, many = (
        {(share.term, share.block): share.seconds.mid for share in told(size).breakdown} for size in (BATCH * TABLES, rows)
    )
    assert few == pytest.approx(many, rel=1e-6)
    assert few["compute", "top"] > 50 * few["compute", "optimizer update"]


def test_gradients_are_of_the_rows_that_are_looked_up_and_states_of_all() -> None:
    model, rows = model_bytes(recommender(1_000_000)), BATCH * TABLES * WIDTH
    whole = TABLES * 1_000_000 * WIDTH + TOWER
    assert (model.row_gradients, model.gradients) == (4 * rows, 4 * (rows + TOWER))
    assert (model.weights, model.states) == (4 * whole, 8 * whole)
    assert parameter_bytes(recommender(1_000_000)) * whole == pytest.approx(12 * whole + 4 * (rows + TOWER))
    assert saved_bytes(recommender(1_000_000)) == 12 * whole
    assert dict(memory_parts(model, Layout(), "gpu"))["gradients"] == model.gradients


def test_no_more_rows_have_gradients_than_there_are() -> None:
    assert recommender(10, per_bag=8).updated_parameter_count == TABLES * 10 * WIDTH + TOWER
    assert recommender(100_000, per_bag=8).updated_parameter_count == 8 * BATCH * TABLES * WIDTH + TOWER
    adapted = replace(recommender(10), lora=LowRank(4, 1000))
    assert (adapted.updated_parameter_count, model_bytes(adapted).row_gradients) == (1000, 0)


def test_each_chip_has_gradients_of_its_tables_rows_beside_those_of_all_that_replicas_share() -> None:
    found = told(10_000_000)
    assert (found.candidate.plan.data, found.fits) == (8, True)
    assert dict(found.memory_parts)["gradients"] == pytest.approx(4 * (TOWER + BATCH * TABLES * WIDTH / 8))
    assert found.step_time_s is not None
    assert SPARSE_UPDATE in found.step_time_s.evidence


def test_the_update_moves_weights_gradients_and_states_of_touched_rows() -> None:
    touched = BATCH * TABLES * WIDTH + TOWER
    assert update_work(recommender(10_000_000)).traffic_bytes == touched * 4 * 7


def test_what_is_measured_here_has_gradients_of_whole_tables() -> None:
    measured = model_bytes(recommender(1_000_000), whole_tables=True)
    assert (measured.gradients, measured.row_gradients) == (4 * (TABLES * 1_000_000 * WIDTH + TOWER), 0)


def test_tables_are_never_gathered_so_that_the_room_of_a_chip_does_not_depend_on_their_rows() -> None:
    few, many = (chip_room_bytes(recommender(rows), 80e9, "gpu", 8, 0.0) for rows in (1_000, 10_000_000))
    assert few == many > 70e9
    assert model_bytes(recommender(10_000_000)).largest_layer == TOWER * 4
