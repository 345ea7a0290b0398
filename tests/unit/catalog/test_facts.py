"""Facts: every row has its source and date, keys are unique, units are sane, and reading them is quick."""

import re
import subprocess
import sys
from datetime import date
from pathlib import Path

import pytest

from catalog import (
    accelerator,
    accelerators,
    cheapest,
    clouds,
    family_of,
    preset,
    preset_names,
    prices,
    runtime_specs,
    support,
    support_of_family,
)
from catalog.offers import INDEX
from catalog.runtimes import FAMILIES, STATUSES
from catalog.tables import DATA_FOLDER, rows_of
from core.device import DEVICE_KINDS
from core.errors import NotFound
from core.ops import DTYPE_BYTES
from core.probe import RUNTIME_IDS
from core.workload import TASKS, Where

ROOT = Path(__file__).parents[3]
DATED = ("accelerators.csv", "prices.csv", "framework_support.csv")
DATE = re.compile(r"\d{4}(-\d\d(-\d\d)?)?")


@pytest.mark.parametrize("name", DATED)
def test_every_row_has_a_source_a_date_and_a_confidence(name: str) -> None:
    for row in rows_of(name):
        assert row["source"].strip(), row
        assert DATE.fullmatch(row["source_date"]), row
        assert 2015 <= int(row["source_date"][:4]) <= 2026
        assert row["confidence"] in ("high", "medium", "low")


@pytest.mark.parametrize("name", DATED)
def test_a_full_date_is_a_day_that_exists(name: str) -> None:
    for row in rows_of(name):
        if len(row["source_date"]) == 10:
            assert date.fromisoformat(row["source_date"])


@pytest.mark.parametrize("name", preset_names())
def test_every_preset_has_a_source_a_date_and_a_reference(name: str) -> None:
    known = preset(name)
    assert known.source
    assert known.reference
    assert DATE.fullmatch(known.source_date)
    assert set(known.tasks) <= set(TASKS)


def test_keys_are_unique() -> None:
    keys = [row["key"] for row in rows_of("accelerators.csv")]
    assert len(keys) == len(set(keys)) == len(accelerators())
    support_keys = [
        (runtime, row["family"], key)
        for row in rows_of("framework_support.csv")
        for runtime in row["runtimes"].split()
        for key in row["accelerators"].split() or ("",)
    ]
    assert len(support_keys) == len(set(support_keys))
    price_keys = [
        tuple(row[key] for key in ("accelerator", "cloud", "instance", "region", "terms")) for row in rows_of("prices.csv")
    ]
    assert len(price_keys) == len(set(price_keys))


@pytest.mark.parametrize("key", sorted(accelerators()))
def test_units_of_an_accelerator_are_sane(key: str) -> None:
    chip = accelerator(key)
    assert chip.kind in DEVICE_KINDS
    assert 8e9 <= chip.memory_bytes <= 1e12
    assert chip.memory_bytes_per_s is not None
    assert 1e11 <= chip.memory_bytes_per_s <= 5e13
    assert {dtype for dtype, _ in chip.flop_per_s} <= set(DTYPE_BYTES)
    assert all(1e11 <= peak <= 1e17 for _, peak in chip.flop_per_s)
    assert chip.link_bytes_per_s is None or 1e9 <= chip.link_bytes_per_s <= 3e12
    assert chip.host_bytes_per_s is None or 1e9 <= chip.host_bytes_per_s <= 1e12
    assert chip.internode_bytes_per_s is None or 1e9 <= chip.internode_bytes_per_s <= 1e12
    assert chip.power_w is None or 50 <= chip.power_w <= 2000
    assert chip.peak("none") is None


@pytest.mark.parametrize("key", sorted(accelerators()))
def test_a_narrower_float_is_never_slower(key: str) -> None:
    chip = accelerator(key)
    for wide, narrow in (("fp64", "fp32"), ("fp32", "bf16"), ("bf16", "fp8"), ("fp8", "fp4")):
        peaks = chip.peak(wide), chip.peak(narrow)
        if None not in peaks and not (key.startswith("tpu-8") and narrow == "fp8"):
            assert peaks[0] <= peaks[1], (wide, narrow)  # type: ignore[operator]


def test_a_data_sheet_becomes_si_units() -> None:
    h100 = accelerator("h100-sxm")
    assert (h100.memory_bytes, h100.memory_bytes_per_s, h100.peak("bf16")) == (79.1 * 2**30, 3.35e12, 989e12)
    assert (h100.link_bytes_per_s, h100.host_bytes_per_s, h100.internode_bytes_per_s) == (450e9, 63e9, 400e9)
    assert accelerator("tpu-v5p").memory_bytes == 95 * 2**30
    assert accelerator("b300").memory_bytes == 275040 * 2**20
    assert accelerator("tpu-v6e").link_bytes_per_s == 400e9
    assert accelerator("t4").peak("bf16") is None


def test_every_price_is_of_an_accelerator_and_is_sane() -> None:
    for row in rows_of("prices.csv"):
        assert row["accelerator"] in accelerators()
        assert 0.05 <= float(row["usd_per_chip_h"]) <= 40
        assert 1 <= int(row["chips_per_instance"]) <= 10_000


def test_prices_come_cheapest_first() -> None:
    found = [price.usd_per_chip_h for price in prices("h100-sxm")]
    assert len(found) > 10
    assert found == sorted(found)
    assert prices("rubin") == ()


def test_the_cheapest_offer_respects_place_and_terms() -> None:
    anywhere = cheapest("h100-sxm", Where())
    spot = cheapest("h100-sxm", Where(clouds=("aws",), spot=True))
    firm = cheapest("h100-sxm", Where(clouds=("aws",)))
    there = cheapest("h100-sxm", Where(clouds=("aws",), regions=("eu-north-1",)))
    assert anywhere is not None
    assert spot is not None
    assert firm is not None
    assert there is not None
    assert anywhere.terms == firm.terms == there.terms == "on-demand"
    assert (firm.cloud, spot.terms, there.region) == ("AWS", "spot", "eu-north-1")
    assert spot.usd_per_chip_h < firm.usd_per_chip_h < there.usd_per_chip_h
    assert anywhere.cloud != INDEX


def test_an_index_counts_only_where_there_is_no_offer() -> None:
    index = cheapest("mi300x", Where())
    assert index is not None
    assert index.cloud == INDEX
    assert cheapest("mi300x", Where(clouds=("azure",))) is None


def test_what_cannot_be_rented_as_a_whole_machine_now_never_counts() -> None:
    for key in accelerators():
        for where in (Where(), Where(spot=True)):
            price = cheapest(key, where)
            assert price is None or price.terms in ("on-demand", "spot", "community")
    assert cheapest("tpu-v6e", Where(own_only=True)) is None


def test_clouds_are_those_with_offers() -> None:
    assert {"gcp", "aws", "azure", "lambda"} <= set(clouds())
    assert INDEX not in clouds()


def test_there_is_a_spec_for_every_runtime_and_no_other() -> None:
    assert tuple(runtime_specs()) == RUNTIME_IDS
    for spec in runtime_specs().values():
        assert spec.distributions
        assert spec.modules
        assert {name for name, _ in spec.alternatives} <= set(spec.distributions)
        assert spec.title


def test_support_is_stated_for_every_runtime_on_every_accelerator() -> None:
    assert {family_of(chip) for chip in accelerators().values()} == set(FAMILIES)
    for runtime in RUNTIME_IDS:
        for chip in accelerators().values():
            found = support(runtime, chip)
            assert found.status in STATUSES
            assert found.confidence != "low"
            if found.status == "unsupported":
                assert found.restrictions


@pytest.mark.parametrize(
    ("runtime", "key", "status"),
    [
        ("jax", "tpu-v6e", "first-class"),
        ("jax", "h100-sxm", "first-class"),
        ("jax", "mi300x", "supported"),
        ("jax", "v100-16", "supported"),
        ("torch-eager", "mi300x", "first-class"),
        ("torch-compile", "tpu-v6e", "unsupported"),
        ("torch-tpu", "tpu-v6e", "supported"),
        ("torch-tpu", "tpu-v3", "unsupported"),
        ("torch-tpu", "h100-sxm", "unsupported"),
        ("torch-xla", "tpu-v5e", "deprecated"),
        ("torch-xla", "h100-sxm", "unsupported"),
        ("tf-xla", "tpu-v6e", "deprecated"),
        ("tf-graph", "tpu-v7", "unsupported"),
        ("tf-graph", "mi300x", "community"),
        ("keras-jax", "tpu-v7", "first-class"),
        ("keras-tensorflow", "tpu-v7", "unsupported"),
        ("keras-torch", "tpu-v6e", "unsupported"),
        ("keras-torch", "mi300x", "supported"),
        ("mxnet", "tpu-v4", "unsupported"),
        ("mxnet", "a100-40", "deprecated"),
        ("mxnet", "mi210", "unsupported"),
        ("jax", "gaudi3", "unsupported"),
        ("torch-eager", "trainium2", "unsupported"),
        ("torch-eager", "cpu-genoa-96c", "first-class"),
    ],
)
def test_support_is_as_published(runtime: str, key: str, status: str) -> None:
    assert support(runtime, accelerator(key)).status == status


def test_a_family_that_nothing_is_known_of_is_unsupported() -> None:
    found = support_of_family("jax", "Imaginary GPU")
    assert (found.status, found.confidence) == ("unsupported", "low")


def test_a_name_that_is_misspelt_is_answered_with_the_nearest() -> None:
    for call in (lambda: accelerator("h100-smx"), lambda: preset("resnet50"), lambda: support("jaxx", accelerator("t4"))):
        with pytest.raises(NotFound):
            call()
    with pytest.raises(NotFound, match="did you mean 'h100-sxm'"):
        accelerator("h100-smx")
    with pytest.raises(NotFound, match="list them"):
        accelerator("quantum")
    with pytest.raises(NotFound, match="did you mean 'resnet-50'"):
        preset("resnet50")


def test_presets_of_the_contract_are_there() -> None:
    assert {
        "gpt2-small",
        "llama-3-8b",
        "bert-base",
        "resnet-50",
        "mobilenet-v2",
        "vit-b16",
        "lstm-lm",
        "dlrm-small",
        "mlp",
        "unet",
    } <= set(preset_names())


def test_each_table_is_read_once_however_often_it_is_asked_for() -> None:
    code = (
        "import sys, catalog; read = []; sys.addaudithook(lambda e, a: e == 'open' and '/catalog/data/' in str(a[0]) and "
        "read.append(str(a[0])))\n"
        "for _ in range(3):\n"
        "    catalog.accelerators(); catalog.prices('t4'); catalog.runtime_specs(); catalog.preset_names()\n"
        "    catalog.support('jax', catalog.accelerator('t4'))\n"
        "print(*read, sep='\\n')"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    opened = done.stdout.split("\n")[:-1]
    assert len(opened) >= 5
    assert len(set(opened)) == len(opened)


def test_facts_are_text_files_of_this_folder() -> None:
    # the covariances of the fitted coefficients are numbers that a program wrote; what they belong to is in the JSON beside them
    assert {path.suffix for path in DATA_FOLDER.iterdir() if path.name != "coefficients.npz"} == {".csv", ".json"}
