"""Pools that a document names: the price of one chip becomes the price of the pool."""

from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

import pytest

import intake
from advisor.keeping_up import Fleet
from core.device import Device, Pool
from core.errors import BadInput
from core.workload import Workload
from intake.pools import UNCOUNTED
from services.pools import echoes, obtainable, pools_for, sized_pools, with_names_said
from services.price_lists import import_prices

NOTE = "of the machines known here (1, 2, 4, 8 x h100-sxm) none has 5: see that it can be rented, or take 4 or 8"
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


def understood(**keys: object) -> Workload:
    document: Mapping[str, object] = {"task": "train", "batch": 8, "model": {"preset": "mlp"}, **keys}
    return intake.read_document(document)


@pytest.mark.parametrize(
    ("asked", "pools"),
    [
        ("v5p-8", [("tpu-v5p", 4, 1)]), ("tpu-v6e=16, A100-80GB:8", [("tpu-v6e", 16, 4), ("a100-80", 8, 1)]),
        ("h100-sxm=1", [("h100-sxm", 1, 1)]), ("tpu-v6e=512", [("tpu-v6e", 512, 128)]), ("h100-sxm=16", [("h100-sxm", 16, 2)]),
        ("cpu:0,v6e-8", [("cpu:0", 1, 1), ("tpu-v6e", 8, 1)]),
    ],
)  # fmt: skip
def test_pools_are_asked_for_by_any_name_and_counted_in_chips(asked: str, pools: list[tuple[str, int, int]]) -> None:
    found = pools_for(understood(), (CPU,), asked)
    assert [(pool.accelerator, pool.count, pool.hosts) for pool in found] == pools


def test_what_names_were_understood_as_becomes_an_assumption() -> None:
    assert echoes("v5p-8,tpu-v6e=16,h100-sxm=5") == (
        "v5p-8 = 4 chips, 2x2x1, one host",
        NOTE,
    )
    assert echoes("all") == echoes("attached") == ()
    said = with_names_said(understood(), "v5p-8").assumptions
    assert said == (*understood().assumptions, "v5p-8 = 4 chips, 2x2x1, one host")


@pytest.mark.parametrize(
    ("asked", "part"),
    [("H100=8", "say which one is meant"), ("tpu-v6e=x", "tpu-v6e=x"), (",", "names and counts"), ("cpu:0=0", "cpu:0=0"),
     ("gpu:7", "an attached device: cpu:0"), ("tpu-v6=4", "did you mean 'tpu-v6e'?")],
)  # fmt: skip
def test_a_pool_that_cannot_be_understood_is_one_line(asked: str, part: str) -> None:
    with pytest.raises(BadInput) as caught:
        pools_for(understood(), (CPU,), asked)
    assert part in str(caught.value)


def test_a_count_that_no_slice_has_is_left_out_and_told() -> None:
    good, out = obtainable(pools_for(understood(), (CPU,), "tpu-v6e=12,tpu-v6e=16,h100-sxm=5,tpu-8i=3"))
    assert [(pool.accelerator, pool.count) for pool in good] == [("tpu-v6e", 16), ("h100-sxm", 5), ("tpu-8i", 3)]
    (told,) = out
    assert (told.accelerator, told.flag) == ("12 x tpu-v6e", "topology")
    assert told.reason.endswith("the nearest counts are 8 and 16")


def test_an_attached_pool_is_never_left_out_for_its_count() -> None:
    pool = Pool("tpu:0", 3, "tpu", None, "attached", attached=True)
    assert obtainable((pool,)) == ((pool,), ())


def test_every_pool_out_of_the_catalog_can_be_had() -> None:
    pools = [pool for pool in pools_for(understood(), (CPU,), "all") if not pool.attached]
    assert obtainable(pools)[1] == ()
    assert [(pool.count, pool.hosts) for pool in pools if pool.accelerator == "tpu-v4"] == [(4, 1)]


def test_a_price_past_its_time_is_marked_where_it_is_shown() -> None:
    (fresh,) = pools_for(understood(), (CPU,), "h100-pcie=1", date(2026, 11, 20))
    assert fresh.where == "RunPod global, on-demand"
    (old,) = pools_for(understood(), (CPU,), "h100-pcie=1", date(2027, 6, 1))
    assert old.where == "RunPod global, on-demand, price from 2026-11-09, 204 days old, past its 90 days"


def test_a_list_of_the_user_prices_the_pools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TANDEM_HOME", str(tmp_path))
    import_prices(b"accelerator,cloud,region,usd_per_chip_h\nh100-sxm,Acme,oslo,7.5\n", "mine.csv")
    (pool,) = pools_for(understood(), (CPU,), "h100-sxm=4")
    assert (pool.price_usd_per_h, pool.where) == (30.0, "Acme oslo, on-demand, your price list")


def test_a_pool_is_rented_on_the_terms_that_are_asked_for() -> None:
    asked = [{"accelerator": "tpu-v5p", "count": 4, "terms": terms} for terms in ("on-demand", "committed-3y")]
    asked.append({"accelerator": "rtx5090", "count": 1, "terms": "committed-3y"})
    firm, committed, unknown = pools_for(understood(pools=asked), (), "all")
    assert firm.price_usd_per_h is not None
    assert committed.price_usd_per_h is not None
    assert committed.price_usd_per_h < firm.price_usd_per_h
    assert ", committed-3y" in committed.where
    assert (unknown.price_usd_per_h, unknown.where) == (None, "no committed-3y price known")


def test_a_pool_without_a_count_is_each_count_that_the_job_may_use() -> None:
    big = intake.read_text("llama-3-8b:finetune").workload
    counts = [pool.count for pool in pools_for(big, (CPU,), "h100-sxm")]
    assert counts == [1, 2, 4, 8]
    hurried = understood(pools=["tpu-v6e"], total={"steps": 1e6}, targets={"deadline_h": 1})
    assert [pool.count for pool in pools_for(hurried, (), "all")] == [1, 4, 8, 16, 32, 64, 128, 256, 512, 1024]
    assert f"tpu-v6e: {UNCOUNTED}" in echoes("tpu-v6e")


def test_a_machine_by_name_costs_what_its_own_cloud_asks() -> None:
    (named,) = pools_for(understood(), (CPU,), "p5.48xlarge")
    (chips,) = pools_for(understood(), (CPU,), "h100-sxm=8")
    assert (named.count, named.price_usd_per_h, named.where.split(",")[0]) == (8, 8 * 6.88, "AWS us-east-1")
    assert chips.price_usd_per_h is not None
    assert chips.price_usd_per_h < 8 * 6.88
    (elsewhere,) = pools_for(understood(where={"clouds": ["gcp"]}), (CPU,), "p5.48xlarge")
    assert (elsewhere.price_usd_per_h, elsewhere.where) == (None, "no price of p5.48xlarge known in gcp")


def test_pools_of_as_many_chips_are_told_apart_by_their_seller_or_price() -> None:
    alike: list[dict[str, object]] = [
        {"accelerator": "h100-sxm", "count": 8, "terms": "spot"}, {"accelerator": "h100-sxm", "count": 8, "price_usd_per_h": 2},
        {"accelerator": "h100-sxm", "count": 8, "price_usd_per_h": 3}, {"accelerator": "h100-sxm", "count": 4},
    ]  # fmt: skip
    labels = [pool.label for pool in pools_for(understood(pools=alike), (), "all")]
    assert len(set(labels)) == 4
    assert "8 x h100-sxm (price given at 16 USD an hour)" in labels
    assert ", spot" in labels[0]
    assert labels[3] == "4 x h100-sxm"


def test_a_pool_knows_on_which_other_terms_it_costs_less() -> None:
    (pool,) = pools_for(understood(), (CPU,), "tpu-v6e=16")
    prices = [offer.usd_per_h for offer in pool.other_terms]
    assert {"spot", "committed-1y", "committed-3y"} <= {offer.terms for offer in pool.other_terms}
    assert prices == sorted(prices)
    assert pool.price_usd_per_h is not None
    assert prices[-1] < pool.price_usd_per_h
    assert all(offer.place.startswith("GCP") for offer in pool.other_terms)
    (given,) = pools_for(understood(pools=[{"accelerator": "tpu-v6e", "count": 16, "price_usd_per_h": 3}]), (), "all")
    assert given.other_terms == ()


def test_own_hardware_is_told_from_a_price_that_was_given() -> None:
    own = {"accelerator": "h100-sxm", "count": 8, "price": {"capital_usd": 280_512, "years": 4, "utilisation": 0.5}}
    (pool,) = pools_for(understood(pools=[own]), (), "all")
    assert pool.where == "own hardware"
    assert pool.own is not None
    assert pool.own.fixed_usd_per_chip_h == pytest.approx(1.0)
    assert pool.price_usd_per_h == pytest.approx(8 * 2.0)


def test_single_chips_and_pods_do_not_make_a_cluster() -> None:
    (host,), (cluster,) = (pools_for(understood(), (CPU,), f"h100-sxm={count}") for count in (8, 64))
    assert host.price_usd_per_h is not None
    assert cluster.price_usd_per_h is not None
    assert cluster.price_usd_per_h > 8 * host.price_usd_per_h
    assert cluster.where.startswith("Lambda")


def test_replicas_on_chips_without_a_fast_link_stand_in_machines_of_their_own() -> None:
    serving = intake.read_document({"task": "serve", "model": {"preset": "llama-3-8b"}, "batch": 8, "prompt": 64, "output": 8})
    (alone,), (many,), (trained,) = (
        pools_for(job, (CPU,), f"l4={count}") for job, count in ((serving, 1), (serving, 16), (understood(), 16))
    )
    assert alone.price_usd_per_h is not None
    assert many.price_usd_per_h == pytest.approx(16 * alone.price_usd_per_h)
    assert many.price_usd_per_h is not None
    assert trained.price_usd_per_h is not None
    assert trained.price_usd_per_h > many.price_usd_per_h


def test_a_part_of_a_machine_costs_the_whole_machine() -> None:
    (pool,) = pools_for(understood(where={"clouds": ["aws"]}), (CPU,), "h200=2")
    assert pool.price_usd_per_h == pytest.approx(8 * 7.912)
    assert pool.where.endswith("8 chips in whole machines paid")


def test_offers_without_a_region_count_where_their_cloud_is_asked_for() -> None:
    (aws,) = pools_for(understood(where={"regions": ["us-east-1"]}), (CPU,), "h100-sxm=8")
    assert aws.where.startswith("AWS us-east-1")
    both = {"regions": ["us-east-1"], "clouds": ["lambda", "aws"]}
    assert pools_for(understood(where=both), (CPU,), "h100-sxm=8")[0].where.startswith("Lambda")


@pytest.mark.parametrize(
    ("where", "named", "said"),
    [
        ({"clouds": ["gcp"]}, "p5.48xlarge", "p5.48xlarge is a machine of AWS, and gcp is asked for"),
        ({"regions": ["us-central1"]}, "p5.48xlarge", "p5.48xlarge is a machine of AWS, and us-central1 is asked for"),
        ({"regions": ["us-east-1"]}, "a3-highgpu-8g", "a3-highgpu-8g is a machine of GCP, and us-east-1 is asked for"),
        ({"clouds": ["gcp", "aws"], "regions": ["us-east-1"]}, "p5.48xlarge", ""), ({}, "p5.48xlarge", ""),
        ({"own_only": True, "clouds": ["gcp"]}, "p5.48xlarge", ""), ({"clouds": ["gcp"]}, "h100-sxm=8", ""),
    ],
)  # fmt: skip
def test_a_machine_of_another_cloud_than_is_asked_for_cannot_be_had(where: dict[str, Any], named: str, said: str) -> None:
    good, out = obtainable(pools_for(understood(where=where), (CPU,), named))
    assert [fault.reason for fault in out] == ([said] if said else [])
    assert len(good) == (0 if said else 1)


@pytest.mark.parametrize(
    ("where", "part"),
    [({"regions": ["us-eest-1"]}, "did you mean 'us-east-1'?"), ({"clouds": ["azur"]}, "did you mean 'azure'?")],
)
def test_a_place_where_nothing_is_sold_is_refused(where: dict[str, list[str]], part: str) -> None:
    with pytest.raises(BadInput, match=r"where\..*unknown") as caught:
        pools_for(understood(where=where), (CPU,), "all")
    assert part in str(caught.value)


def test_clouds_have_other_names_and_those_of_a_list_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert understood(where={"clouds": ["Google", "oracle"]}).where.clouds == ("gcp", "oci")
    monkeypatch.setenv("TANDEM_HOME", str(tmp_path))
    import_prices(b"accelerator,cloud,region,usd_per_chip_h\nh100-sxm,Acme,oslo,0.05\n", "mine.csv")
    (pool,) = pools_for(understood(where={"clouds": ["acme"], "regions": ["oslo"]}), (CPU,), "h100-sxm=4")
    assert pool.price_usd_per_h == pytest.approx(0.2)
    (doubted,) = pools_for(understood(), (CPU,), "h100-sxm=4")
    assert doubted.where.endswith("times less than the lowest known elsewhere, so check it")


def test_the_price_of_a_pool_scales_with_its_chips() -> None:
    one, many = (pools_for(understood(), (CPU,), f"tpu-v6e={count}")[0].price_usd_per_h for count in (1, 64))
    assert one is not None
    assert many == pytest.approx(64 * one)


def test_an_own_price_of_an_attached_device_stays() -> None:
    priced = understood(pools=[{"accelerator": "cpu:0", "price_usd_per_h": 5}, {"accelerator": "h100-sxm", "count": 1}])
    here, rented = pools_for(priced, (CPU,), "all")
    assert (here.attached, here.price_usd_per_h) == (True, 5.0)
    assert rented.accelerator == "h100-sxm"


def test_prices_that_round_alike_are_told_apart() -> None:
    alike = [{"accelerator": "h100-sxm", "count": 1, "price_usd_per_h": usd} for usd in (2.501, 2.504)]
    assert len({pool.label for pool in pools_for(understood(pools=alike), (), "all")}) == 2


def test_a_machine_has_no_price_of_another_machine() -> None:
    (small,) = pools_for(understood(), (CPU,), "a3-highgpu-1g")
    assert (small.count, small.price_usd_per_h, small.where) == (1, None, "no price of a3-highgpu-1g known")
    (slices,) = pools_for(understood(), (CPU,), "ct5lp-hightpu-4t")
    assert slices.where.startswith("GCP")


def test_sized_pools_are_whole_machines_or_slices_of_chips_that_were_left_open() -> None:
    fleets = (Fleet("h100-sxm", 83, 1), Fleet("tpu-v5e", 300, 8))
    gpus, slices = sized_pools(understood(), "all", fleets)
    assert (gpus.accelerator, gpus.count, gpus.hosts) == ("h100-sxm", 88, 11)
    assert slices.count >= 300
    assert slices.price_usd_per_h is not None
    assert [pool.accelerator for pool in sized_pools(understood(), "tpu-v5e", fleets)] == ["tpu-v5e"]
    for asked in ("tpu-v5e=8", "attached"):
        assert sized_pools(understood(), asked, fleets) == ()


def test_a_fleet_is_priced_as_a_pool_of_as_many_that_was_named() -> None:
    serving = intake.read_document({"task": "serve", "model": {"preset": "llama-3-8b"}, "batch": 8, "prompt": 64, "output": 8})
    (sized,) = sized_pools(serving, "all", (Fleet("h100-sxm", 83, 1),))
    assert (sized,) == pools_for(serving, (), "h100-sxm=88")


def test_replicas_need_no_cluster_and_a_model_larger_than_a_host_does() -> None:
    def priced(layers: int) -> Pool:
        model = {"preset": "llama-3-8b", "layers": layers, "width": 8192, "heads": 64, "hidden": 28672}
        serving = intake.read_document({"task": "serve", "model": model, "batch": 8, "prompt": 64, "output": 8})
        (pool,) = pools_for(serving, (CPU,), "h100-sxm=64")
        return pool

    small, large = priced(40).price_usd_per_h, priced(600).price_usd_per_h
    assert small is not None
    assert large is not None
    assert small < large


def test_a_pool_has_the_processors_of_the_machines_that_are_paid() -> None:
    job = intake.read_document({"task": "train", "model": {"preset": "resnet-50"}})
    (named,), (alone,) = (pools_for(job, (), asked) for asked in ("g6.xlarge", "l4=1"))
    assert (named.hosts, named.vcpus) == (1, 4)
    assert (alone.price_usd_per_h, alone.vcpus) == (named.price_usd_per_h, 4)  # the same offer
    (four,) = pools_for(job, (), "p5.48xlarge")
    assert (four.hosts, four.vcpus) == (1, 192)


def test_a_fleet_that_nobody_has_is_not_listed() -> None:
    job = intake.read_document({"task": "serve", "model": {"preset": "llama-3-8b"}, "prompt": 10, "output": 10,
                                "targets": {"requests_per_s": 1e12}, "pools": ["h100-sxm"]})  # fmt: skip
    assert sized_pools(job, "all", [Fleet("h100-sxm", 10**12, 8)]) == ()
