"""Two or more pools for one workload: planned at once, kept as a run, and run for real where both are attached."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import catalog
import intake
from advisor import Question
from advisor.split.compose import Mixed, compose, modes_to_plan
from advisor.split.sides import Asked
from core.advice import Recommendation
from core.device import Device, Pool
from core.errors import BadInput
from core.probe import Outcome, Runtime
from core.run import RunOptions
from core.split import MODES, Split, SplitOptions
from core.workload import OBJECTIVES, Where, Workload
from services import runs
from services.context import context
from services.fleet import devices_for
from services.pools import COUNT_RULE, SAID, obtainable, pools_for
from services.price_lists import imported_prices
from services.runtimes import known_runtimes

FEWEST, MOST = 2, 16
"""Pools that a split is over."""


def plan(document: Mapping[str, Any], options: SplitOptions, objective: str | None = None) -> Split:
    """Return the best way of sharing a workload over pools, and whether it is worth it.

    Args:
        document: of the workload.
        options: pools, link and mode.
        objective: None takes the workload's own.

    Raises:
        BadInput: the document, a pool, a runtime or the mode cannot be used.
    """
    here = context()
    attached = devices_for(options.pools)
    runtimes = known_runtimes(here.settings)
    stored = here.store.measurements(tuple(device.uuid for device in attached))
    return planned(document, options, objective, attached, runtimes, stored)[0]


def planned(
    document: Mapping[str, Any], options: SplitOptions, objective: str | None, devices: Sequence[Device],
    runtimes: Sequence[Runtime], outcomes: Sequence[Outcome],
) -> tuple[Split, Recommendation]:
    """Return the split and the recommendation over each pool alone.

    Args:
        document: of the workload.
        options: pools, link and mode.
        objective: None takes the workload's own.
        devices, runtimes, outcomes: what is attached, known and measured here.
    """
    workload = intake.read_document(document)
    if options.mode and options.mode not in MODES:
        raise BadInput(f"mode {options.mode!r}", f"one of {', '.join(MODES)}", "choose one of these, or none to try all")
    if objective is not None and objective not in OBJECTIVES:
        raise BadInput(f"objective {objective!r}", f"one of {', '.join(OBJECTIVES)}", "choose one of these")
    if not 0 <= options.least_saving < 1:
        raise BadInput(f"a least saving of {options.least_saving:g}", "a fraction from 0 to below 1", "correct it")
    asked = asked_pools(workload, options.pools, devices, runtimes)
    question = Question(
        workload, tuple(dict.fromkeys(one.pool for one in asked)), tuple(devices), tuple(runtimes), tuple(outcomes),
        objective or workload.objective, datetime.now(UTC).date().isoformat(), named=True,
    )

    def variant(changes: Mapping[str, object]) -> Workload:
        return intake.read_document({**document, **changes})

    found, alone = compose(Mixed(question, asked, variant, options))
    unheld = tuple(f"{what}: {why}" for what, why in workload.targets.unheld)
    return replace(found, missing=(*found.missing, *unheld)), alone


def asked_pools(
    workload: Workload, written: Sequence[str], devices: Sequence[Device], runtimes: Sequence[Runtime]
) -> tuple[Asked, ...]:
    """Return pools as typed, `KEY=N` or a device id, each perhaps with `@RUNTIME`.

    Each is priced where it is cheapest; joined, in one cloud where one sells them all, so that they share a network. A price or
    terms that the workload names for a chip hold for both. Without any pool written, those of the workload are taken.

    Args:
        workload: its `where` is kept to.
        written: two or more.
        devices: attached, or reached through Ray.
        runtimes: known.

    Raises:
        BadInput: too few or too many pools, an unknown name, or a count that no slice has.
    """
    written = written or tuple(f"{one.accelerator}={one.count}" for one in workload.pools)
    if not FEWEST <= len(written) <= MOST:
        raise BadInput(f"{len(written)} pools", f"{FEWEST} to {MOST}", "give --pool KEY=N once for each pool")
    known = {runtime.id for runtime in runtimes}
    parts = [text.partition("@") for text in written]
    for _, sign, runtime in parts:
        if sign and runtime not in known:
            raise BadInput(f"runtime {runtime!r}", f"one of {', '.join(sorted(known))}", "correct what follows the @")
    pools = [_priced(workload, text.strip(), devices) for text, _, _ in parts]
    _, impossible = obtainable(pools)
    if impossible:
        expected = "a count that a slice has" if impossible[0].rule == COUNT_RULE else "a pool that can be had there"
        raise BadInput(impossible[0].accelerator, expected, impossible[0].reason)
    joined = _in_one_cloud(workload, pools, devices)
    return tuple(
        Asked(pool, runtime, beside) for pool, beside, (_, _, runtime) in zip(pools, joined, parts, strict=True)
    )


def _priced(workload: Workload, text: str, devices: Sequence[Device]) -> Pool:
    """Return a pool as typed, at the price or on the terms that the workload names for its chips, else where it is cheapest."""
    pool = pools_for(workload, devices, text)[0]
    said = next((one for one in workload.pools if one.accelerator == pool.accelerator), None)
    if pool.attached or said is None or (said.price_usd_per_h is None and not said.terms and not said.machine):
        return pool
    return pools_for(replace(workload, pools=(replace(said, count=pool.count, open=False),)), devices, "all")[-1]


def _in_one_cloud(workload: Workload, pools: list[Pool], devices: Sequence[Device]) -> list[Pool]:
    """Return the same pools priced in the cheapest cloud that sells all of them, where there is one and none was asked for."""
    rented = [pool for pool in pools if not pool.attached and pool.price_usd_per_h is not None and pool.where not in SAID]
    sellers = [pool.where.lower() for pool in rented]  # what is the median of a market is of no cloud
    clouds = [cloud for cloud in catalog.clouds(imported_prices()) if any(one.startswith(cloud) for one in sellers)]
    if workload.where.clouds or len(clouds) < FEWEST:
        return pools
    best = pools
    least = float("inf")
    for cloud in clouds:
        where = Where((cloud,), workload.where.regions, workload.where.spot, workload.where.own_only)
        there = [
            pool if pool.attached or pool.where in SAID
            else pools_for(replace(workload, where=where), devices, f"{pool.accelerator}={pool.count}")[0]
            for pool in pools
        ]
        prices = [pool.price_usd_per_h for pool in there if not pool.attached]
        total = sum(price for price in prices if price is not None)
        if None not in prices and total < least:
            best, least = there, total
    return best


def start(document: Mapping[str, Any], options: SplitOptions, objective: str | None = None, owner: str = "") -> str:
    """Keep a split as a run and start its process, which plans it and, where it was asked, runs it.

    Returns:
        The id of the run: `services.runs` watches, cancels and opens it.

    Raises:
        BadInput: the document or the options cannot be used.
        StoreError: the run cannot be kept.
    """
    return runs.start(document, run_options(document, options, objective), owner)


def create(document: Mapping[str, Any], options: SplitOptions, objective: str | None = None, owner: str = "") -> str:
    """Keep a split as a run without starting a process: the caller does its work in the foreground."""
    return runs.create(document, run_options(document, options, objective), owner)


def run_options(document: Mapping[str, Any], options: SplitOptions, objective: str | None) -> RunOptions:
    """Return how a run is asked for that plans this split; refuses what cannot be planned.

    Raises:
        BadInput: the pools cannot be used.
    """
    attached = devices_for(options.pools)
    workload = intake.read_document(document)
    if options.verify:
        from services.split_run import check  # it imports this module

        check(document, options)
    modes_to_plan(workload, options)
    asked = asked_pools(workload, options.pools, attached, known_runtimes(context().settings))
    names = dict.fromkeys(f"{one.pool.accelerator}={one.pool.count}" for one in asked)
    return RunOptions("none", options.budget_s, (), ",".join(names), objective, options)
