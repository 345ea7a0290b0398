"""Pools that a document names: the price of one chip becomes the price of the pool."""

import intake
from core.device import Device
from services.pools import pools_for

CPU = Device("cpu:0", "cpu", "test", "cpu-test", 16 * 2**30, 2)


def test_a_price_that_is_given_is_of_one_chip() -> None:
    workload = intake.read_document(
        {
            "schema": 1,
            "task": "train",
            "batch": 8,
            "model": {"preset": "mlp"},
            "pools": [{"accelerator": "h100-sxm", "count": 8, "price_usd_per_h": 2.5}, {"accelerator": "h100-sxm", "count": 4}],
        }
    )
    here, given, listed = pools_for(workload, (CPU,), "all")
    assert (here.accelerator, here.attached) == ("cpu:0", True)
    assert (given.price_usd_per_h, given.where) == (20.0, "price given")
    (alone,) = pools_for(workload, (CPU,), "h100-sxm=1")
    assert alone.price_usd_per_h is not None
    assert listed.price_usd_per_h == 4 * alone.price_usd_per_h


def test_an_offer_without_a_region_leaves_no_gap() -> None:
    workload = intake.read_text("mlp:train").workload
    places = [pool.where for pool in pools_for(workload, (CPU,), "all")]
    assert places
    assert not [place for place in places if " ," in place or place.startswith(",")]
