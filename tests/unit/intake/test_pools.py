"""Pools of a document: any name of an accelerator, counts in chips, and what own hardware costs."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

import catalog
import intake
from core.errors import BadInput
from core.workload import PoolRequest, Workload
from intake.ownership import ownership_of


def understood(*pools: object) -> Workload:
    return intake.read_document({"task": "train", "batch": 8, "model": {"preset": "mlp"}, "pools": list(pools)})


@pytest.mark.parametrize(
    ("entry", "request_"),
    [
        ({"accelerator": "v5p-8"}, PoolRequest("tpu-v5p", 4)),
        ({"accelerator": "v5p-8", "count": 4}, PoolRequest("tpu-v5p", 4)),
        ({"accelerator": "tpu-v5p-8", "count": 1}, PoolRequest("tpu-v5p", 4)),
        ("v6e-8", PoolRequest("tpu-v6e", 8)),
        ("A100-80GB:8", PoolRequest("a100-80", 8)),
        ({"accelerator": "TPU v5 lite", "count": 16, "price_usd_per_h": 1.5}, PoolRequest("tpu-v5e", 16, 1.5)),
        ({"accelerator": "h100-sxm"}, PoolRequest("h100-sxm", 1, open=True)),
        ("p5.48xlarge", PoolRequest("h100-sxm", 8, machine="p5.48xlarge")),
        ({"accelerator": "gpu:0"}, PoolRequest("gpu:0", 1)),
        ({"accelerator": "tpu-v5p", "count": 64, "terms": "committed-1y"}, PoolRequest("tpu-v5p", 64, None, "committed-1y")),
    ],
)
def test_a_pool_is_a_key_and_chips_whatever_it_is_called(entry: object, request_: PoolRequest) -> None:
    assert understood(entry).pools == (request_,)


def test_what_a_name_was_understood_as_is_among_the_assumptions() -> None:
    assert "v5p-8 = 4 chips, 2x2x1, one host" in understood("v5p-8").assumptions
    assert "a3-highgpu-8g = 8 chips of h100-sxm, one host" in understood({"accelerator": "a3-highgpu-8g"}).assumptions
    plain = understood({"accelerator": "tpu-v6e", "count": 16}).assumptions
    assert plain == understood().assumptions


def test_a_count_of_gpus_that_no_machine_has_is_said() -> None:
    said = understood({"accelerator": "h100-sxm", "count": 5}).assumptions
    assert [phrase for phrase in said if "x h100-sxm) none has 5" in phrase]


@pytest.mark.parametrize(
    ("entry", "part"),
    [
        ("H100", "pools[0].accelerator: 'H100', which can mean 2 things"),
        ({"accelerator": "v5p-8", "count": 8}, "leave it out, or write tpu-v5p=N"),
        ({"accelerator": "v6e-12"}, "ask for v6e-8 or v6e-16"),
        ({"accelerator": "tpu-v9"}, "pools[0].accelerator: accelerator 'tpu-v9'"),
        ({"accelerator": "h100-sxm", "price": {"capital_usd": 1}}, "capital_usd and years"),
        ({"accelerator": "h100-sxm", "price": {"capital_usd": 1, "years": 0}}, "pools[0].price.years: 0"),
        ({"accelerator": "h100-sxm", "price": {"capital_usd": 1, "years": 3, "utilisation": 1.2}}, "utilisation: 1.2"),
        ({"accelerator": "h100-sxm", "price": {"capital_usd": 1, "years": 3, "utilization": 1}}, "did you mean 'utilisation'?"),
        ({"accelerator": "h100-sxm", "price": 3}, "pools[0].price: 3"),
        ({"accelerator": "h100-sxm", "price_usd_per_h": 2, "price": {"capital_usd": 1, "years": 3}}, "keep one of them"),
        ({"accelerator": "gpu:0", "price": {"capital_usd": 1, "years": 3}}, "price_usd_per_h for an attached device"),
        ({"accelerator": "h100-sxm", "terms": "comitted-1y"}, "did you mean 'committed-1y'?"),
        ({"accelerator": "h100-sxm", "terms": "spot", "price_usd_per_h": 2}, "price_usd_per_h and terms"),
        (7, "pools[0]: 7"),
    ],
)
def test_a_pool_that_cannot_be_used_is_one_line_that_names_it(entry: object, part: str) -> None:
    with pytest.raises(BadInput) as caught:
        understood(entry)
    assert part in str(caught.value)


def test_own_hardware_costs_capital_hosting_and_power_by_the_hour_of_a_chip() -> None:
    price = {"capital_usd": 280_512, "years": 4, "power_usd_per_kwh": 0.12, "utilisation": 0.5, "hosting_usd_per_h": 2}
    workload = understood({"accelerator": "h100-sxm", "count": 8, "price": price})
    (pool,) = workload.pools
    # 280,512 USD over 4 x 8,766 h is 8 USD an hour, with 2 of hosting 10; over 8 chips, half of the time at work, 2.50;
    # 0.7 kW at 0.12 add 0.084
    assert pool.price_usd_per_h == pytest.approx(2.584)
    (said,) = [phrase for phrase in workload.assumptions if "own hardware" in phrase]
    for part in ("280,512 USD over 4 years", "2 USD an hour of hosting", "8 chips", "50 %", "2.5 USD a chip-hour", "700 W"):
        assert part in said


def test_what_is_not_counted_is_said() -> None:
    chip = catalog.accelerator("tpu-v5e")
    said = ownership_of("price", {"capital_usd": 1000, "years": 1, "power_usd_per_kwh": 0.1}, chip, 1).words
    assert "does not know what a tpu-v5e draws" in said
    assert "since no utilisation was given" in said
    silent = ownership_of("price", {"capital_usd": 1000, "years": 1}, catalog.accelerator("t4"), 1).words
    assert "no price of it was given" in silent


@given(st.floats(1, 1e7), st.floats(0.5, 10), st.integers(1, 64), st.floats(1.01, 5))
def test_a_chip_hour_scales_with_capital_and_falls_with_years(capital: float, years: float, count: int, factor: float) -> None:
    chip = catalog.accelerator("h100-sxm")

    def cost(**changes: float) -> float:
        price: Mapping[str, float] = {"capital_usd": capital, "years": years, **changes}
        return ownership_of("price", price, chip, count).usd_per_chip_h

    assert cost(capital_usd=capital * factor) == pytest.approx(cost() * factor)
    assert cost(years=years * factor) == pytest.approx(cost() / factor)
    assert cost(utilisation=0.5) == pytest.approx(2 * cost())
