"""`./tandem catalog`: the table in SkyPilot's words, one accelerator, its prices, and price lists in and out."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from catalog import accelerators
from cli.catalog import HEADINGS, catalog
from core.errors import BadInput

LIST = "accelerator,cloud,region,instance,usd_per_h,chips_per_instance\nh100-sxm,Acme,oslo,rack,10,8\n"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TANDEM_HOME", str(tmp_path / "home"))
    return tmp_path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(catalog, list(arguments), catch_exceptions=False)


def refused(*arguments: str) -> str:
    with pytest.raises(BadInput) as caught:
        run(*arguments)
    return str(caught.value)


def test_the_table_lists_every_accelerator_in_skypilots_words_and_order() -> None:
    lines = run().stdout.splitlines()
    assert lines[0].split() == [*HEADINGS, "AGE"]
    assert [line.split()[0] for line in lines[1 : 1 + len(accelerators())]] == list(accelerators())
    assert next(line for line in lines if line.startswith("tpu-8t")).split()[2] == "—"


def test_the_document_has_accelerators_and_offers_with_their_age() -> None:
    said = json.loads(run("--json", "--all", "--infra", "AWS").stdout)
    assert said["schema_version"] == 1
    assert len(said["accelerators"]) == len(accelerators())
    assert {offer["cloud"] for offer in said["offers"]} == {"AWS"}
    big = next(offer for offer in said["offers"] if offer["instance_type"] == "p5.48xlarge")
    assert (big["count"], big["vcpus"], big["stale"]) == (8, 192, True)


def test_all_regions_give_more_rows_than_the_cheapest_of_each_machine() -> None:
    few, many = (json.loads(run("--json", "--infra", "gcp", *more).stdout)["offers"] for more in (("--all",), ("--all-regions",)))
    assert len(many) > len(few) > 10


def test_one_accelerator_is_shown_by_any_name_with_source_age_and_slices() -> None:
    said = run("show", "v5p-8").stdout
    for part in ("tpu-v5p: Cloud TPU v5p", "understood: v5p-8 = 4 chips, 2x2x1, one host", "459 TFLOP/s", "from 2026-08-26",
                 "confidence high", "every axis"):  # fmt: skip
        assert part in said
    shown = json.loads(run("show", "tpu-v6e", "--json").stdout)
    assert (shown["key"], shown["flop_per_s"]["bf16"], shown["understood"]) == ("tpu-v6e", 918e12, "")
    assert [one["chips"] for one in shown["slices"]][:4] == [1, 4, 8, 16]


def test_prices_are_shown_with_terms_source_and_a_mark_when_old() -> None:
    said = json.loads(run("prices", "h100-sxm", "--infra", "aws", "--json").stdout)
    assert {price["cloud"] for price in said["prices"]} == {"AWS"}
    assert all(price["source"] for price in said["prices"])
    assert {price["stale"] for price in said["prices"] if price["source_date"] == "2026-01"} == {True}
    assert "look again" in run("prices", "h100-sxm").stdout
    assert "Import a list" in run("prices", "mi455x").stdout


def test_a_price_list_is_tried_taken_preferred_and_forgotten(home: Path) -> None:
    file = home / "mine.csv"
    file.write_text(LIST, encoding="utf-8")
    assert "would be taken" in run("import-prices", str(file), "--dry-run").stdout
    assert "imported" not in run("prices", "h100-sxm").stdout
    taken = json.loads(run("import-prices", str(file), "--json").stdout)
    assert (taken["form"], taken["kept"], taken["accelerators"]) == ("own", True, ["h100-sxm"])
    assert taken["prices"][0]["usd_per_chip_h"] == 1.25
    first = run("prices", "h100-sxm").stdout.splitlines()[1]
    assert "1.2500" in first
    assert "Acme (your list)" in first
    assert run("forget-prices", "--cloud", "acme").stdout == "1 imported prices are forgotten\n"
    assert "Acme" not in run("prices", "h100-sxm").stdout


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (("show", "H100"), "say which one is meant"), (("prices", "tpu-v6"), "did you mean 'tpu-v6e'?"),
        (("--infra", "acme"), "one of akash, aws"), (("import-prices", "/no/such.csv"), "No such file"),
        (("import-prices", "/"), "Is a directory"), (("--json", "show", "t4"), "./tandem catalog show ... --json"),
        (("forget-prices", "--cloud", "acme"), "a cloud with imported prices: none"),
    ],
)  # fmt: skip
def test_what_cannot_be_used_is_one_line(arguments: tuple[str, ...], part: str) -> None:
    assert part in refused(*arguments)
