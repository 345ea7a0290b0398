"""Price lists that are handed in: the own form, SkyPilot's form, and files that are refused line by line."""

from datetime import date

import pytest

from core.device import Price
from core.errors import BadInput
from intake import LeftOut, PriceOrigin, cloud_of_path, read_price_list
from intake.price_list import MOST_BYTES

TODAY = date(2026, 12, 1)
SKY = "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,Price,SpotPrice,Region,GpuInfo,AvailabilityZone\n"


def read(text: str | bytes, cloud: str = "") -> tuple[Price, ...]:
    return listed(text, cloud).prices


def listed(text: str | bytes, cloud: str = ""):
    data = text.encode() if isinstance(text, str) else text
    return read_price_list(data, PriceOrigin("list.csv", cloud, date(2026, 11, 20), TODAY))


def gpu(name: str, mib: int) -> str:
    return f"\"{{'Gpus': [{{'Name': '{name}', 'Count': 8, 'MemoryInfo': {{'SizeInMiB': {mib}}}}}]}}\""


def test_the_own_form_gives_prices_of_a_chip() -> None:
    text = (
        "accelerator,cloud,region,instance,terms,usd_per_h,usd_per_chip_h,chips_per_instance,source,source_date,vcpus,host_memory_gib\n"
        "h100-sxm,Acme,oslo,rack-8,committed-1y,16,,8,contract,2026-10-01,96,1024\n"
        "v5p-8,GCP,us-east5,,,16.8,,,,,,\n"
        "A100-80GB,Acme,oslo,,SPOT,,0.75,,,,,\n"
    )
    rack, pod, spot = read(text)
    assert (rack.usd_per_chip_h, rack.chips_per_instance, rack.terms, rack.source_date) == (2.0, 8, "committed-1y", "2026-10-01")
    assert (rack.vcpus, rack.host_memory_bytes, rack.source, rack.imported) == (96.0, 1024 * 2**30, "contract", True)
    assert (pod.accelerator, pod.chips_per_instance, pod.usd_per_chip_h) == ("tpu-v5p", 4, 4.2)
    assert (pod.instance, pod.terms, pod.source_date, pod.source) == ("v5p-8", "on-demand", "2026-11-20", "list.csv")
    assert (spot.accelerator, spot.terms, spot.usd_per_chip_h) == ("a100-80", "spot", 0.75)


def test_rows_without_a_cloud_take_that_of_the_list() -> None:
    (price,) = read("accelerator,usd_per_chip_h\nl4,0.5\n", "Acme")
    assert price.cloud == "Acme"


def test_skypilots_form_gives_on_demand_and_spot_for_a_chip_and_the_cheapest_zone() -> None:
    text = SKY + (
        "m5.large,,,2,8,0.096,0.03,us-east-1,,us-east-1a\n"
        f"p5.48xlarge,H100,8,192,2048,40,20,us-east-1,{gpu('H100', 81920)},us-east-1a\n"
        f"p5.48xlarge,H100,8,192,2048,40,16,us-east-1,{gpu('H100', 81920)},us-east-1b\n"
    )
    found = listed(text, "AWS")
    assert {(p.accelerator, p.terms, p.usd_per_chip_h, p.cloud) for p in found.prices} == {
        ("h100-sxm", "on-demand", 5.0, "AWS"), ("h100-sxm", "spot", 2.0, "AWS"),
    }  # fmt: skip
    assert (found.form, found.rows, found.skipped) == ("skypilot", 3, (LeftOut("machines without an accelerator", (2,)),))


def test_on_googles_list_a_gpu_and_its_machine_are_two_rows_and_one_price() -> None:
    text = SKY + (
        "a2-highgpu-1g,,,12,85,0.74,0.37,us-central1,,us-central1-a\n"
        f",A100,1,,,2.93,1.17,us-central1,{gpu('A100', 40960)},us-central1-a\n"
        ",L4,1,,,0.56,0.22,us-central1,L4,us-central1-a\n"
    )
    found = listed(text, "GCP")
    prices = {(p.accelerator, p.terms): (p.usd_per_chip_h, p.instance) for p in found.prices}
    assert prices["a100-40", "on-demand"] == (pytest.approx(3.67), "a2-highgpu-1g")
    assert prices["a100-40", "spot"] == (pytest.approx(1.54), "a2-highgpu-1g")
    assert prices["l4", "on-demand, without host"] == (0.56, "L4")


def test_a_slice_of_tpus_is_priced_by_the_chip_and_a_placeholder_is_no_price() -> None:
    text = SKY + (
        ",tpu-v5p-8,1,,,16.8,5.4,us-east5,tpu-v5p-8,us-east5-a\n"
        ",tpu-v6e-8,1,,,700.0,700.0,us-central2,tpu-v6e-8,us-central2-b\n"
        "TPU-VM,tpu-v6e-256,1,,,691.2,,us-east1,tpu-v6e-256,us-east1-d\n"
    )
    found = listed(text, "GCP")
    assert {(p.accelerator, p.terms, p.usd_per_chip_h, p.chips_per_instance) for p in found.prices} == {
        ("tpu-v5p", "on-demand", 4.2, 4), ("tpu-v5p", "spot", 1.35, 4), ("tpu-v6e", "on-demand", 2.7, 256),
    }  # fmt: skip
    assert [one.words for one in found.skipped] == ["1 row (line 3): no price"]


@pytest.mark.parametrize(
    ("name", "mib", "instance", "key"),
    [
        ("A100", 40960, "gpu_8x_a100", "a100-40"), ("A100", 81920, "gpu_8x_a100", "a100-80"),
        ("V100", 16384, "gpu_8x_v100", "v100-16"),
        ("V100", 32768, "other", "v100-32"), ("H100", 81920, "gpu_8x_h100_sxm5", "h100-sxm"),
        ("H100", 81920, "gpu_1x_h100_pcie", "h100-pcie"),
    ],
)  # fmt: skip
def test_an_open_name_is_settled_by_memory_or_form_factor(name: str, mib: int, instance: str, key: str) -> None:
    (price,) = read(f"{SKY}{instance},{name},8,92,448,8,,everywhere,{gpu(name, mib)},\n", "Lambda")
    assert (price.accelerator, price.usd_per_chip_h) == (key, 1.0)


def test_what_the_catalog_does_not_know_or_cannot_tell_apart_is_left_out_and_counted() -> None:
    text = SKY + (
        f"a,H100,1,8,64,3,,x,{gpu('H100', 81920)},\nb,K80,1,8,64,1,,x,,\nc,K80,1,8,64,1,,x,,\nd,L4,0.5,8,64,1,,x,,\n"
        "e,L4,1,8,64,0.0,,x,,\nf,L4,1,8,64,0.5,,x,,\n"
    )
    assert {one.reason: one.lines for one in listed(text, "Acme").skipped} == {
        "H100, where it is not said which one": (2,), "K80, which the catalog does not know": (3, 4),
        "parts of an accelerator": (5,), "no price": (6,),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("accelerator,usd_per_chip_h,cloud\nl4,0,x\n", "line 2: usd_per_chip_h '0'"),
        ("accelerator,usd_per_chip_h,cloud\nl4,1,x\nH100,2,x\n", "line 3: 'H100', which can mean 2 things"),
        ("accelerator,usd_per_chip_h,cloud\nl4,nan,x\n", "'nan' is no number"),
        ("accelerator,usd_per_chip_h,cloud\nl4,-1,x\n", "'-1' is no number"),
        ("accelerator,usd_per_chip_h,cloud\nl4,99999,x\n", "up to 10,000"),
        ("accelerator,usd_per_chip_h\nl4,1\n", "no cloud"),
        ("accelerator,usd_per_chip_h,cloud,terms\nl4,1,x,weekly\n", "terms 'weekly'"),
        ("accelerator,usd_per_chip_h,cloud,source_date\nl4,1,x,2026-12-02\n", "in the future"),
        ("accelerator,usd_per_chip_h,cloud,source_date\nl4,1,x,yesterday\n", "no day such as 2026-12-01"),
        ("accelerator,usd_per_chip_h,cloud,confidence\nl4,1,x,sure\n", "confidence 'sure'"),
        ("accelerator,usd_per_h,cloud,chips_per_instance\nv5p-8,1,x,8\n", "chips_per_instance 8 where v5p-8 = 4 chips"),
        ("accelerator,usd_per_h,cloud\nv5p-8,1,x\nh100-sxm,40,x\n", "line 3: usd_per_h without chips_per_instance"),
        ("accelerator,usd_per_h,cloud,instance\nh100-sxm,40,x,rack\n", "line 2: usd_per_h without chips_per_instance"),
        ("accelerator,usd_per_chip_h,cloud\nl4,2,x\nv5p-8,1,x\nl4,1,X\n", "lines 2 and 4: 2 and 1 USD a chip-hour for one"),
        ("accelerator,usd_per_chip_h,usd_per_h,cloud\nl4,,,x\n", "line 2: no price"),
        ("accelerator,usd_per_h,cloud\nl4,,x\n", "line 2: no price"),
        ("accelerator,usd_per_chip_h,cloud\nl4,1,x,9,9\n", "line 2 with more cells"),
        ("accelerator,prize\nl4,1\n", "column 'prize'"),
        ("accelerator,usd_per_chip_h,cloud,chips_per_instance\nl4,1,x,0.5\n", "chips_per_instance 0.5 is no whole number"),
        ("accelerator,usd_per_h,cloud,chips_per_instance\nl4,1e-323,x,1000000\n", "is below 1e-06"),
        ("accelerator,usd_per_chip_h,usd_per_h,cloud\nl4,1,2,x\n", "both usd_per_chip_h and usd_per_h"),
        ("accelerator,usd_per_chip_h,usd_per_chip_h,cloud\nl4,1,2,x\n", "'usd_per_chip_h' twice"),
        ("accelerator;cloud;usd_per_chip_h\nl4;x;1\n", "cells parted by semicolons"),
        ("accelerator,cloud\nl4,x\n", "usd_per_chip_h or usd_per_h"),
        ("accelerator,usd_per_chip_h,cloud\n", "no rows"),
        (SKY + "a,L4,1,8,64,1,,x,,\n", "does not say whose prices"),
        ("", "empty"),
        (b"\xff\xfe\x00", "UTF-8"),
    ],
)
def test_a_list_that_cannot_be_used_is_one_line_and_nothing_is_taken(text: str | bytes, part: str) -> None:
    with pytest.raises(BadInput) as caught:
        read(text)
    line = str(caught.value)
    assert part in line
    assert line.startswith("got ")
    assert line.isprintable()


def test_a_machine_that_the_catalog_knows_tells_its_chips() -> None:
    (price,) = read("accelerator,usd_per_h,cloud,instance\nh100-sxm,40,AWS,p5.48xlarge\n")
    assert (price.chips_per_instance, price.usd_per_chip_h) == (8, 5.0)


def test_the_same_price_twice_is_one() -> None:
    assert len(read("accelerator,usd_per_chip_h,cloud\nl4,1,x\nl4,1,x\n")) == 1


def test_several_slices_in_one_row_are_refused_since_a_slice_is_priced_as_it_is() -> None:
    with pytest.raises(BadInput, match="line 3: AcceleratorCount 8 where tpu-v5p-8 = 4 chips"):
        read(SKY + "x,tpu-v5p-8,1,208,,16.8,,us-east5,,\nx,tpu-v5p-8,8,208,,16.8,,us-east5,,\n", "GCP")


def test_rows_that_price_one_machine_of_a_zone_twice_are_told_with_their_lines() -> None:
    found = listed(SKY + "m,L4,1,8,64,2,,x,,x1\nm,L4,1,8,64,1,,x,,x1\nm,L4,1,8,64,1.5,,x,,x2\n", "Acme")
    assert [one.usd_per_chip_h for one in found.prices] == [1.0]
    assert [one.words for one in found.skipped] == [
        "1 row (line 3): another price than a line before of the same machine, zone and terms; the lower counts",
    ]


def test_many_rows_that_are_left_out_are_counted_and_the_first_are_named() -> None:
    said = LeftOut("no price", tuple(range(2, 1502))).words
    assert said == "1,500 rows (lines 2, 3, 4, 5, 6, 7, 8, 9 and 1,492 more): no price"


def test_many_faults_are_counted_and_the_first_are_named() -> None:
    with pytest.raises(BadInput) as caught:
        read("accelerator,usd_per_chip_h,cloud\n" + "l4,0,x\n" * 30)
    assert "line 6:" in str(caught.value)
    assert "and 25 more" in str(caught.value)


def test_a_list_without_a_usable_price_says_why() -> None:
    with pytest.raises(BadInput) as caught:
        read(SKY + "a,K80,1,8,64,1,,x,,\n", "AWS")
    assert "1 row (line 2): K80, which the catalog does not know" in str(caught.value)


def test_a_list_over_the_bound_is_refused_unread() -> None:
    with pytest.raises(BadInput) as caught:
        read(b"x" * (MOST_BYTES + 1))
    assert "at most 33,554,432" in str(caught.value)


def test_cells_become_one_printable_line() -> None:
    (price,) = read('accelerator,usd_per_chip_h,cloud,region\nl4,1,"Ac\nme","<b>\x07north</b>"\n')
    assert (price.cloud, price.region) == ("Ac me", "<b> north</b>")


@pytest.mark.parametrize(
    ("path", "cloud"), [("catalogs/v8/aws/vms.csv", "AWS"), ("x\\gcp\\vms.csv", "GCP"), ("vms.csv", ""), ("mine/vms.csv", "")]
)
def test_the_folder_of_skypilots_catalog_names_the_cloud(path: str, cloud: str) -> None:
    assert cloud_of_path(path) == cloud


def test_one_chip_and_eight_of_a_seller_are_two_prices() -> None:
    found = read_price_list(
        b"accelerator,cloud,usd_per_chip_h,chips_per_instance\nh100-sxm,Mine,3,1\nh100-sxm,Mine,2,8\n",
        PriceOrigin("mine.csv", "", date(2026, 12, 1), date(2026, 12, 1)),
    )
    assert {(price.chips_per_instance, price.usd_per_chip_h) for price in found.prices} == {(1, 3.0), (8, 2.0)}
