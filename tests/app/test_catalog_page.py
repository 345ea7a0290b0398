"""The catalog page: filters in the address, one accelerator in full, and price lists that are seen before they are taken."""

from catalog import accelerators
from services import price_lists
from tests.app.conftest import Opener, words_of

LIST = b"accelerator,cloud,region,usd_per_chip_h\nh100-sxm,Acme,oslo,1.25\n"


def keys(page) -> list[str]:
    return list(page.dataframe[0].value["Accelerator"])


def test_every_accelerator_is_listed_and_what_is_not_known_is_no_number(open_page: Opener) -> None:
    page = open_page("catalog")
    assert not page.exception
    assert keys(page) == list(accelerators())
    shown = page.dataframe[0].value.set_index("Accelerator")
    assert shown["Chip-hour"].isna()["tpu-8t"]
    assert "look again" in shown["Price from"]["l40s"]


def test_filters_come_from_the_address(open_page: Opener) -> None:
    page = open_page("catalog", kind="tpu", find="v5")
    assert keys(page) == ["tpu-v5e", "tpu-v5p"]
    assert keys(open_page("catalog", vendor="Intel", kind="other")) == ["gaudi2", "gaudi3"]


def test_a_slice_that_is_looked_for_is_said_back_in_chips_and_shown_in_full(open_page: Opener) -> None:
    page = open_page("catalog", find="v5p-8")
    assert not page.exception
    assert keys(page) == ["tpu-v5p"]
    said = words_of(page).replace("\\", "")
    assert "v5p-8 = 4 chips, 2x2x1, one host" in said
    assert "from 2026-08-26" in said
    assert any("4x4x4" in str(table.value) for table in page.table)


def test_an_open_name_is_asked_about_and_a_bad_link_is_named(open_page: Opener) -> None:
    page = open_page("catalog", find="H100:8")
    assert not page.exception
    assert any("say which one is meant" in warning.value.replace("\\", "") for warning in page.warning)
    bad = open_page("catalog", chip="warp-drive", kind="gpu")
    assert any("warp" in warning.value for warning in bad.warning)


def test_prices_of_one_accelerator_have_terms_source_and_age(open_page: Opener) -> None:
    page = open_page("catalog", chip="h100-sxm")
    assert not page.exception
    prices = page.dataframe[1].value
    assert {"spot", "on-demand", "flex-start"} <= set(prices["Terms"])
    assert all(prices["Source"])
    assert any(read.endswith("look again") for read in prices["Read"])


def test_a_price_list_is_previewed_taken_and_forgotten(open_page: Opener) -> None:
    page = open_page("catalog", chip="h100-sxm")
    page.file_uploader(key="price_list").set_value(("mine.csv", LIST, "text/csv"))
    page.run()
    assert not page.exception
    assert price_lists.imported_prices() == ()
    next(button for button in page.button if button.label == "Import these prices").click()
    page.run()
    assert [price.usd_per_chip_h for price in price_lists.imported_prices()] == [1.25]
    assert page.dataframe[1].value["Cloud"][0] == "Acme (your list)"
    next(button for button in page.button if button.label == "Forget imported prices").click()
    page.run()
    assert not page.exception
    assert price_lists.imported_prices() == ()


def test_a_list_that_cannot_be_used_says_which_line(open_page: Opener) -> None:
    page = open_page("catalog")
    page.file_uploader(key="price_list").set_value(("bad.csv", LIST + b"l4,Acme,oslo,0\n", "text/csv"))
    page.run()
    assert not page.exception
    assert any("line 3" in error.value.replace("\\", "") for error in page.error)


def test_the_field_for_pools_says_back_what_a_name_means(open_page: Opener) -> None:
    page = open_page(workload="mlp:train", pools="v5p-8,A100-80GB:8")
    assert not page.exception
    said = [caption.value.replace("\\", "") for caption in page.caption]
    assert "v5p-8 = 4 chips, 2x2x1, one host" in said
    assert "A100-80GB = 8 chips of a100-80, one host" in said
