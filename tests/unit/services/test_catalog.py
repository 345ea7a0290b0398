"""The catalog as it is asked for: offers in SkyPilot's terms, chips by any name, figures with what is not known as a dash."""

from pathlib import Path

import pytest

import catalog
from core.errors import BadInput
from services import catalog as service
from services import price_lists


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TANDEM_HOME", str(tmp_path))


def test_each_accelerator_has_one_row_with_its_cheapest_offer_on_demand() -> None:
    rows = service.offers(service.chips())
    assert [row.accelerator for row in rows] == list(catalog.accelerators())
    by_key = {row.accelerator: row for row in rows}
    for key, row in by_key.items():
        firm = [p.usd_per_chip_h for p in catalog.prices(key) if p.terms == "on-demand" and p.cloud != catalog.INDEX]
        if firm:
            assert row.usd_per_chip_h == pytest.approx(min(firm))
    assert (by_key["tpu-8i"].usd_per_h, by_key["tpu-8i"].cloud) == (None, "")


def test_prices_of_a_row_are_of_the_whole_machine() -> None:
    (row,) = [
        row for row in service.offers([service.chip("h100-sxm")], everything=True, cloud="aws", all_regions=True)
        if (row.instance, row.region) == ("p5.48xlarge", "us-east-1")
    ]  # fmt: skip
    chip = {p.terms: p.usd_per_chip_h for p in catalog.prices("h100-sxm") if (p.instance, p.region) == (row.instance, row.region)}
    assert row.usd_per_h == pytest.approx(8 * chip["on-demand"])
    assert row.spot_usd_per_h == pytest.approx(8 * chip["spot"])
    assert (row.chips, row.vcpus, row.host_memory_bytes) == (8, 192, 2048 * 2**30)


def test_a_list_of_the_user_is_what_is_offered_first() -> None:
    price_lists.import_prices(b"accelerator,cloud,usd_per_h,chips_per_instance\nl4,Acme,99,4\n", "mine.csv")
    (row,) = service.offers([service.chip("l4")])
    assert (row.cloud, row.usd_per_h, row.chips, row.imported) == ("Acme", 99.0, 4, True)
    assert service.prices(service.chip("l4"))[0].imported
    assert "acme" in service.clouds()


def test_chips_are_found_by_key_name_and_other_names() -> None:
    assert [one.key for one in service.chips("trillium")] == ["tpu-v6e"]
    assert [one.key for one in service.chips("a3-mega")] == ["h100-sxm"]
    assert {one.vendor for one in service.chips(vendor="AMD", kind="gpu")} == {"AMD"}
    assert service.chips("no such thing") == ()
    assert service.chip("TPU v5 lite").key == "tpu-v5e"
    with pytest.raises(BadInput):
        service.chip("H100")


@pytest.mark.parametrize("key", sorted(catalog.accelerators()))
def test_every_accelerator_has_figures_and_a_dash_for_what_is_not_known(key: str) -> None:
    one = catalog.accelerator(key)
    figures = dict(service.figures(one))
    assert (figures["board power"] == "—") == (one.power_w is None)
    assert (figures["chips of a host"] == "—") == (one.chips_per_host is None)
    assert all(value for value in figures.values())
    assert service.hardware_age(one).limit_days == 730


def test_slices_are_those_of_the_catalog() -> None:
    assert [known.chips for known in service.slices(service.chip("tpu-v6e"), 64)] == [1, 4, 8, 16, 32, 64]
    assert service.machines(service.chip("b200"))[0].name == "a4-highgpu-8g"
