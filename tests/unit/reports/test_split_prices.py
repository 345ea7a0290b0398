"""A pool that costs less alone than beside the other says so."""

from dataclasses import replace

import pytest

from core.split import SplitOptions
from reports.split_prices import price_note
from services import split

DOCUMENT = {"schema": 1, "task": "finetune", "model": {"preset": "llama-3-8b"}}


@pytest.fixture(scope="module")
def planned() -> split.Split:
    return split.plan(DOCUMENT, SplitOptions(("h100-sxm=8", "tpu-v6e=16")))


def test_a_pool_that_is_cheaper_alone_is_told_with_both_prices(planned: split.Split) -> None:
    alone = {one.pool.accelerator: one.pool for one in planned.singles}
    beside = {share.pool.accelerator: share.pool for share in planned.shares}
    apart = [key for key, pool in beside.items() if pool.price_usd_per_h != alone[key].price_usd_per_h]
    assert apart == ["h100-sxm"], "no cloud of the catalog sells both at the cheapest price of each"
    said = price_note(planned)
    for pool in (alone["h100-sxm"], beside["h100-sxm"]):
        assert f"${pool.price_usd_per_h:.2f} an hour" in said
        assert pool.where in said
    assert "tpu-v6e" not in said


def test_one_price_is_not_mentioned(planned: split.Split) -> None:
    beside = {share.pool.accelerator: share.pool for share in planned.shares}
    same = tuple(replace(one, pool=beside[one.pool.accelerator]) for one in planned.singles)
    assert price_note(replace(planned, singles=same)) == ""
