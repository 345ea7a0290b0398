"""Price lists of a user: kept in his data directory, preferred, replaced by cloud, and forgotten."""

from datetime import date
from pathlib import Path

import pytest

from core.errors import BadInput
from services import price_lists

MINE = (
    b"accelerator,cloud,region,instance,usd_per_chip_h,chips_per_instance\n"
    b"h100-sxm,Acme,oslo,rack,1.25,8\nl4,Acme,oslo,box,0.3,1\n"
)
OTHER = b"accelerator,cloud,region,instance,usd_per_chip_h\nh100-sxm,Beta,rome,rack,9\n"


def test_what_was_imported_is_read_again_the_same(tmp_path: Path) -> None:
    taken = price_lists.import_prices(MINE, "prices.csv", home=tmp_path)
    assert (taken.form, taken.rows, taken.replaced) == ("own", 2, 0)
    assert (taken.clouds, taken.accelerators) == (("Acme",), ("h100-sxm", "l4"))
    assert price_lists.imported_prices(tmp_path) == taken.prices
    assert taken.prices[0].source_date == date.fromisoformat(taken.prices[0].source_date).isoformat()


def test_a_list_replaces_what_was_imported_of_its_clouds_and_leaves_others(tmp_path: Path) -> None:
    price_lists.import_prices(MINE, "a.csv", home=tmp_path)
    price_lists.import_prices(OTHER, "b.csv", home=tmp_path)
    again = price_lists.import_prices(b"accelerator,cloud,usd_per_chip_h\nl4,Acme,0.25\n", "c.csv", home=tmp_path)
    assert (again.replaced, again.kept) == (2, 1)
    assert {(p.cloud, p.accelerator, p.usd_per_chip_h) for p in price_lists.imported_prices(tmp_path)} == {
        ("Beta", "h100-sxm", 9.0), ("Acme", "l4", 0.25),
    }  # fmt: skip


def test_a_preview_keeps_nothing(tmp_path: Path) -> None:
    assert len(price_lists.preview_prices(MINE, "a.csv", home=tmp_path).prices) == 2
    assert price_lists.imported_prices(tmp_path) == ()
    assert list(tmp_path.iterdir()) == []


def test_a_list_that_is_refused_changes_nothing(tmp_path: Path) -> None:
    before = price_lists.import_prices(MINE, "a.csv", home=tmp_path).prices
    with pytest.raises(BadInput):
        price_lists.import_prices(b"accelerator,cloud,usd_per_chip_h\nl4,Acme,0\n", "b.csv", home=tmp_path)
    assert price_lists.imported_prices(tmp_path) == before
    assert [path.name for path in tmp_path.iterdir()] == [price_lists.FILE]


def test_prices_are_forgotten_by_cloud_or_all(tmp_path: Path) -> None:
    price_lists.import_prices(MINE, "a.csv", home=tmp_path)
    price_lists.import_prices(OTHER, "b.csv", home=tmp_path)
    with pytest.raises(BadInput) as caught:
        price_lists.forget_prices("Gamma", home=tmp_path)
    assert "Acme, Beta" in str(caught.value)
    assert price_lists.forget_prices("acme", home=tmp_path) == 2
    assert price_lists.forget_prices(home=tmp_path) == 1
    assert price_lists.forget_prices(home=tmp_path) == 0
    assert price_lists.imported_prices(tmp_path) == ()


def test_a_file_spoilt_by_hand_is_told_and_can_be_forgotten(tmp_path: Path) -> None:
    price_lists.import_prices(MINE, "a.csv", home=tmp_path)
    (tmp_path / price_lists.FILE).write_text("accelerator,usd_per_chip_h,cloud\nl4,free,Acme\n", encoding="utf-8")
    with pytest.raises(BadInput) as caught:
        price_lists.imported_prices(tmp_path)
    assert "forget-prices" in str(caught.value)
    price_lists.forget_prices(home=tmp_path)
    assert price_lists.imported_prices(tmp_path) == ()


def test_a_skypilot_list_takes_its_cloud_from_its_folder_and_its_date_as_told(tmp_path: Path) -> None:
    text = b"InstanceType,AcceleratorName,AcceleratorCount,Price,Region\np5.48xlarge,H100,8,40,us-east-1\n"
    found = price_lists.preview_prices(text, "/data/catalogs/v8/aws/vms.csv", "", "2026-01-31", home=tmp_path)
    (price,) = found.prices
    assert (price.cloud, price.source_date, price.source, price.usd_per_chip_h) == ("AWS", "2026-01-31", "vms.csv", 5.0)


@pytest.mark.parametrize(("day", "part"), [("31.1.2026", "a day such as"), ("9999-01-01", "in the future")])
def test_a_date_that_cannot_be_is_refused(day: str, part: str, tmp_path: Path) -> None:
    with pytest.raises(BadInput) as caught:
        price_lists.preview_prices(MINE, "a.csv", "", day, home=tmp_path)
    assert part in str(caught.value)


def test_a_cloud_is_one_however_its_letters_are_written(tmp_path: Path) -> None:
    for cloud, usd in (("AWS", 3), ("aws", 5)):
        content = f"accelerator,cloud,usd_per_chip_h\nh100-sxm,{cloud},{usd}\n".encode()
        price_lists.import_prices(content, "mine.csv", home=tmp_path)
    assert [price.usd_per_chip_h for price in price_lists.imported_prices(tmp_path)] == [5.0]
