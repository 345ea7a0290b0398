"""How old facts are, and which price counts when a user has lists of his own."""

from dataclasses import replace
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog import age_of, cheapest, price_age, prices
from core.device import Price
from core.workload import Where

TODAY = date(2026, 12, 1)


@pytest.mark.parametrize(
    ("source_date", "days", "stale", "words"),
    [
        ("2026-11-09", 22, False, "from 2026-11-09, 22 days old"),
        ("2026-09-02", 90, False, "from 2026-09-02, 90 days old"),
        ("2026-09-01", 91, True, "from 2026-09-01, 91 days old, past its 90 days"),
        ("2026-08", 122, True, "from 2026-08, up to 122 days old, past its 90 days"),
        ("2026", 334, True, "from 2026, up to 334 days old, past its 90 days"),
        ("someday", None, True, "of unknown date"),
        ("2026-13-01", None, True, "of unknown date"),
        ("2027-01-01", 0, False, "from 2027-01-01, 0 days old"),
    ],
)
def test_a_price_is_as_old_as_its_date_may_be(source_date: str, days: int | None, *, stale: bool, words: str) -> None:
    age = price_age("on-demand", source_date, TODAY)
    assert (age.days, age.stale, age.words) == (days, stale, words)


def test_what_may_be_taken_away_ages_sooner_and_hardware_later() -> None:
    assert price_age("spot", "2026-10-31", TODAY).stale
    assert price_age("community", "2026-10-31", TODAY).stale
    assert not price_age("committed-1y", "2026-10-31", TODAY).stale
    assert not age_of("2025-01", "hardware", TODAY).stale
    assert age_of("2024-11", "hardware", TODAY).stale


def listed(usd: float, terms: str = "on-demand", key: str = "h100-sxm") -> Price:
    return Price(key, "Acme", "rack", "here", terms, usd, 8, "list", "2026-12-01", "high", imported=True)


def test_a_list_of_the_user_is_preferred_even_when_it_is_dearer() -> None:
    shipped = cheapest("h100-sxm", Where())
    assert shipped is not None
    mine = listed(shipped.usd_per_chip_h * 3)
    assert cheapest("h100-sxm", Where(), (mine,)) == mine
    assert prices("h100-sxm", (mine,))[0] == mine


def test_a_list_that_does_not_fit_the_wish_leaves_the_catalog_in_force() -> None:
    mine = (listed(1.0), listed(0.5, "spot"), listed(0.1, key="l4"))
    assert cheapest("h100-sxm", Where(clouds=("gcp",)), mine) == cheapest("h100-sxm", Where(clouds=("gcp",)))
    assert cheapest("h100-sxm", Where(), mine) == mine[0]
    assert cheapest("h100-sxm", Where(spot=True), mine) == mine[1]
    assert cheapest("h100-sxm", Where(own_only=True), mine) is None


@given(st.lists(st.floats(0.01, 1000), min_size=1, max_size=5), st.floats(0.1, 10))
def test_the_cheapest_price_scales_with_the_prices(amounts: list[float], factor: float) -> None:
    known = [listed(usd) for usd in amounts]
    best = cheapest("h100-sxm", Where(), known)
    scaled = cheapest("h100-sxm", Where(), [replace(price, usd_per_chip_h=price.usd_per_chip_h * factor) for price in known])
    assert best is not None
    assert scaled is not None
    assert scaled.usd_per_chip_h == pytest.approx(best.usd_per_chip_h * factor)
