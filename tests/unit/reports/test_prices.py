"""What a pool costs, in words."""

from dataclasses import replace

from core.device import Offer, Ownership, Pool
from reports.prices import price_text
from tests.samples.parts import sample_workload

POOL = Pool("h100-sxm", 8, "gpu", 20.0, "AWS us-east-1, on-demand")


def test_what_serves_is_told_by_the_month_too() -> None:
    serving = replace(sample_workload(), task="serve")
    assert price_text(POOL, serving) == "$20.00 an hour ($14,610 a month), AWS us-east-1, on-demand"
    assert price_text(POOL, sample_workload()) == "$20.00 an hour, AWS us-east-1, on-demand"


def test_several_machines_are_counted() -> None:
    assert price_text(replace(POOL, hosts=3), sample_workload()).startswith("$20.00 an hour for 3 machines, AWS")


def test_terms_on_which_it_costs_less_follow() -> None:
    pool = replace(POOL, other_terms=(Offer("spot", 8.0, "GCP us-east5, spot, price from 2026"),))
    assert price_text(pool, sample_workload()).endswith("on-demand; on other terms spot $8.00 (GCP us-east5)")


def test_terms_whose_price_is_past_its_time_say_how_old_it_is() -> None:
    old = "AWS us-east-2, spot, price from 2026-01, up to 334 days old, past its 90 days"
    pool = replace(POOL, other_terms=(Offer("spot", 8.0, old),))
    assert price_text(pool, sample_workload()).endswith("spot $8.00 (AWS us-east-2, up to 334 days old)")


def test_own_hardware_is_told_with_its_arithmetic() -> None:
    pool = replace(POOL, where="own hardware", own=Ownership(1.0, 0.5, 0.5, "280,512 USD over 4 years"))
    assert price_text(pool, sample_workload()) == "$20.00 an hour of work, own hardware: 280,512 USD over 4 years"
