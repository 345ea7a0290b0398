"""Rules about what can be rented, where, on which terms, and what has aged. Prices come from the catalog, with their dates."""

from dataclasses import replace
from functools import cache

from advisor.rules import Finding, job_rule, rule
from advisor.rules.ages import PLATFORM, PRICES, TPU_ONLY, facts
from advisor.rules.case import Case, Code
from catalog import accelerators, cheapest, prices, rents_in
from core.format import usd
from core.workload import Where

PRICED = "catalog/data/prices.csv"
MACHINES = "docs.cloud.google.com, TPU machines, 2026-08-26"
STAS = "stas00/ml-engineering (@744d01e, 2026-08-22)"
GOOGLE = ("gcp", "google", "google cloud", "colab", "kaggle")
UNFIRM_NETWORKS = ("runpod", "lambda", "vast.ai", "salad", "akash", "hyperstack", "tensorwave", "openrelay", "vultr")
"""Clouds whose machines are not joined by InfiniBand or RDMA unless a cluster is asked for."""
LEGACY = ("tpu-v2", "tpu-v3", "tpu-v4")
ANNOUNCED = ("tpu-8i", "tpu-8t", "rubin", "mi455x")
WEEK_H = 168.0


def _allows_google(code: Code) -> bool:
    where = code.workload.where
    clouds = tuple(GOOGLE[0] if cloud.lower() in GOOGLE else cloud for cloud in where.clouds)
    return rents_in(GOOGLE[0], replace(where, clouds=clouds))


def _saves(code: Code) -> bool:
    """Whether money decides: cost is the objective, or there is a budget."""
    return code.workload.objective == "cost" or code.workload.targets.budget_usd is not None


@cache
def _lowest(key: str, terms: str) -> tuple[float, str, str] | None:
    """Return the lowest price of a chip on some terms with its region and date; None when none is known."""
    found = [one for one in prices(key) if one.terms == terms and one.confidence != "low"]
    best = min(found, key=lambda one: one.usd_per_chip_h, default=None)
    return None if best is None else (best.usd_per_chip_h, f"{best.cloud} {best.region}".strip(), best.source_date)


@rule("R093", facts(
    "availability", "suggest", "lowest spot price against the lowest on demand; computed from the catalog",
    f"{PRICED}; {MACHINES}",
    PRICES, kinds=TPU_ONLY,
))
def spot_saves_what_may_be_interrupted(case: Case) -> Finding | None:
    """A job that may be interrupted is cheapest on spot TPUs, which give 30 seconds notice."""
    if case.key != "tpu-v6e" or not case.workload.where.spot or not _saves(case.code) or not _allows_google(case.code):
        return None
    spot, firm = _lowest(case.key, "spot"), _lowest(case.key, "on-demand")
    if spot is None or firm is None:
        return None
    return Finding(
        "suggest",
        f"spot v6e was {usd(spot[0])} for a chip hour in {spot[1]} ({spot[2]}) against {usd(firm[0])} on demand, with 30 s "
        "notice: save often, and check that there is capacity",
    )


@rule("R094", facts(
    "availability", "warn", "H100 6.57, H200 6.26 USD in 2026-09/10; they were about 3.4 and 4.7", PRICED, PRICES, kinds=("gpu",),
))
def old_spot_tables_are_too_cheap(case: Case) -> Finding | None:
    """Spot prices of H100 and H200 at Google nearly doubled: older tables are too cheap."""
    now = {"h100-sxm": "6.57", "h200": "6.26"}.get(case.key)
    if now is None or not case.workload.where.spot or not _allows_google(case.code):
        return None
    return Finding(
        "warn",
        f"spot {case.chip_name} at Google was {now} USD in 2026-10, nearly twice older tables: ask for today's price before you "
        "plan with it",
    )


@rule("R095", facts(
    "cost_per_result", "suggest", "H100 SXM from 2.69 to 12.29 USD; computed from the catalog", PRICED, PRICES, kinds=("gpu",),
))
def one_gpu_has_many_prices(case: Case) -> Finding | None:
    """The same GPU costs several times as much in one cloud as in another."""
    if not _saves(case.code) or case.attached or len(case.workload.where.clouds) == 1 or case.workload.where.own_only:
        return None
    priced = any(pool.accelerator == case.key and pool.price_usd_per_h is not None for pool in case.workload.pools)
    spread = None if priced else _spread(case.key)
    if spread is None or spread[1][0] < 2 * spread[0][0]:
        return None
    (low, where), (high, elsewhere) = spread
    return Finding(
        "suggest",
        f"{case.chip_name} costs {usd(low)} an hour at {where} and {usd(high)} at {elsewhere}, on demand: compare offers before "
        "chips",
    )


@cache
def _spread(key: str) -> tuple[tuple[float, str], tuple[float, str]] | None:
    """Return the lowest price of the cheapest and of the dearest cloud, on demand; None with fewer than two clouds."""
    lowest: dict[str, float] = {}
    for one in prices(key):
        if one.terms == "on-demand" and one.confidence != "low" and one.cloud != "market median":
            lowest[one.cloud] = min(one.usd_per_chip_h, lowest.get(one.cloud, one.usd_per_chip_h))
    ordered = sorted((price, cloud) for cloud, price in lowest.items())
    return (ordered[0], ordered[-1]) if len(ordered) > 1 else None


@rule("R096", facts(
    "interconnect", "warn", "no InfiniBand or RDMA between community machines", PRICED, PLATFORM, kinds=("gpu",),
))
def cheap_clouds_may_lack_a_network(case: Case) -> Finding | None:
    """Training over several machines of a cheap cloud needs its InfiniBand or RDMA."""
    each = None if case.chip is None else case.chip.chips_per_host
    wanted = [cloud for cloud in case.workload.where.clouds if cloud.lower() in UNFIRM_NETWORKS]
    if each is None or case.most <= each or not wanted or not case.workload.trains:
        return None
    return Finding(
        "warn",
        f"{case.most} GPUs are {-(-case.most // each)} machines: check that {', '.join(wanted)} joins them by InfiniBand or "
        "RDMA; community machines have neither",
    )


@rule("R097", facts("availability", "warn", "no on-demand capacity without reservation", MACHINES, PLATFORM, kinds=TPU_ONLY))
def tpu7x_wants_a_reservation(case: Case) -> Finding | None:
    """TPU7x without a reservation is had by allowlist only: spot, flex-start or calendar."""
    if case.key != "tpu-v7" or case.attached:
        return None
    return Finding(
        "warn",
        "TPU7x without a reservation is had by allowlist only (spot, flex-start, calendar): ask for capacity before you plan",
    )


@rule("R098", facts(
    "cost_per_result", "suggest", "about half of the price on demand; computed from the catalog", PRICED, PRICES, kinds=TPU_ONLY,
))
def flexible_starts_halve_the_price(case: Case) -> Finding | None:
    """A job of at most seven days that may wait for its start costs half on flex-start."""
    deadline = case.workload.targets.deadline_h
    if case.key != "tpu-v6e" or not _saves(case.code) or not _allows_google(case.code):
        return None
    if deadline is not None and deadline < 48:
        return None
    flexible, firm = _lowest(case.key, "flex-start"), _lowest(case.key, "on-demand")
    if flexible is None or firm is None:
        return None
    return Finding(
        "suggest",
        f"flex-start v6e was {usd(flexible[0])} for a chip hour ({flexible[2]}) against {usd(firm[0])} on demand, for jobs of "
        "at most 7 days that may wait for their start",
    )


@rule("R099", facts("availability", "penalise", "rank x 0.8", f"{MACHINES}; {PRICED}", PLATFORM, kinds=TPU_ONLY))
def old_tpus_are_on_their_way_out(case: Case) -> Finding | None:
    """TPU v2, v3 and v4 are legacy and no longer offered through Compute Engine."""
    if case.key not in LEGACY or case.attached:
        return None
    place = "v4 is in us-central2 only" if case.key == "tpu-v4" else "few places are left"
    return Finding("penalise", f"{case.chip_name} is legacy and not offered through Compute Engine: {place}", 0.8)


@rule("R100", facts(
    "eol", "warn", "bug and security fixes only", "docs.cloud.google.com/tpu/docs/runtimes (2026)", PLATFORM, kinds=TPU_ONLY,
))
def cloud_tpu_api_is_frozen(case: Case) -> Finding | None:
    """The Cloud TPU API is in maintenance: new automation uses Compute Engine or GKE."""
    found = case.needs("google-cloud-tpu", "cloud-tpu-client", "cloud-tpu-api")
    if not found:
        return None
    also = " and does not know TPU7x" if case.key == "tpu-v7" else ""
    return Finding("warn", f"{', '.join(found)} drives the Cloud TPU API, which gets fixes only{also}: use Compute Engine or GKE")


@job_rule("R101", facts(
    "cost_per_result", "suggest", "TFLOP/s for a USD hour; computed from the catalog", f"{PRICED}; accelerator table", PRICES,
))
def peaks_for_a_dollar(code: Code) -> Finding | None:
    """What a dollar buys of peak arithmetic differs by factors between chips."""
    if code.workload.objective != "cost" or not code.workload.trains or code.asked:
        return None
    best = _bargains(code.workload.where)
    if len(best) < 3:
        return None
    shares = ", ".join(f"{key} {value:.0f}" for value, key in best)
    return Finding("suggest", f"most peak bf16 TFLOP/s for a dollar an hour at known prices: {shares}")


@cache
def _bargains(where: Where) -> tuple[tuple[float, str], ...]:
    found = [
        ((chip.peak("bf16") or 0.0) / 1e12 / offer.usd_per_chip_h, key)
        for key, chip in accelerators().items()
        if chip.kind in ("gpu", "tpu") and (offer := cheapest(key, where)) is not None and offer.usd_per_chip_h > 0
    ]
    return tuple(sorted(found, reverse=True)[:5])


@rule("R102", facts("availability", "warn exclude", "no price and no date", f"{STAS}; jax 0.12.0.1 tpu_info", PLATFORM))
def announced_is_not_available(case: Case) -> Finding | None:
    """Chips that were announced but cannot be confirmed to be available are for information only."""
    if case.key not in ANNOUNCED:
        return None
    reason = f"{case.chip_name} is announced, nobody confirms that it can be had"
    named = any(wanted == case.key for wanted, _ in case.code.asked)
    return Finding("warn", reason) if named else Finding("exclude", f"{reason}: name it among the pools to see it")


@rule("R103", facts("availability", "exclude", "rented at Google only", STAS, PLATFORM, kinds=TPU_ONLY))
def tpus_are_rented_at_google(case: Case) -> Finding | None:
    """TPUs are only rented, and only at Google."""
    if case.attached or _allows_google(case.code):
        return None
    where = case.workload.where
    wanted = "own machines" if where.own_only else ", ".join((*where.clouds, *where.regions))
    return Finding("exclude", f"TPUs are rented at Google only, and {wanted} is asked for")
