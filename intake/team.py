"""Reads a team's portfolio: its workloads, the chips that it owns, and those that it may rent."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from typing import cast

from core.errors import BadInput
from core.workflow import Portfolio, TeamOption, TeamPoolRequest, TeamWork
from core.workload import OBJECTIVES
from intake.fields import Section
from intake.pool_lists import mapping_of, name_of, once, requests_of
from intake.sections import read_total
from intake.wording import fault, unknown

KEYS = ("schema", "portfolio", "workloads", "owned", "rented", "objective", "budget_usd")
WORK_KEYS = ("name", "workload", "total", "options", "hours", "release_h", "deadline_h", "priority", "interruptible")
POOL_KEYS = ("name", "accelerator", "count", "price_usd_per_h", "price", "terms", "windows_h", "chip_hours", "spot")
OPTION_KEYS = ("pool", "chips", "hours")
_MOST_H = 1e7


def read_team(document: Mapping[str, object]) -> Portfolio:
    """Return the portfolio that a document describes.

    Args:
        document: by the keys of `KEYS`; null stands for absent.

    Raises:
        BadInput: it cannot be used; one line that names the fault.
    """
    top = Section("", document, KEYS)
    assumed: list[str] = []
    pools = (*_pools(top, "owned", assumed), *_pools(top, "rented", assumed))
    if not pools:
        raise BadInput("no pools", "a list owned, a list rented, or both", "write owned: [{accelerator: h100-sxm, count: 8}]")
    once("owned and rented", [pool.name for pool in pools])
    entries = top.items("workloads", "a list of workloads such as [{workload: gpt2-small:train, deadline_h: 24}]")
    if not entries:
        raise BadInput("no workloads", "a list of at least one", "write workloads: [{workload: gpt2-small:train}]")
    works = tuple(_work(f"workloads[{i}]", entry, pools) for i, entry in enumerate(entries))
    once("workloads", [work.name for work in works])
    return Portfolio(
        top.text("portfolio") or "portfolio", works, pools, top.choice("objective", OBJECTIVES) or "cost",
        top.number("budget_usd", 0, 1e12), tuple(assumed),
    )  # fmt: skip


def _pools(top: Section, key: str, assumed: list[str]) -> tuple[TeamPoolRequest, ...]:
    entries = top.items(key, "a list of pools such as [{name: ours, accelerator: h100-sxm, count: 8}]")
    found: list[TeamPoolRequest] = []
    for index, request in enumerate(requests_of(entries, key, POOL_KEYS, assumed)):
        section = Section(f"{key}[{index}]", mapping_of(entries[index]), POOL_KEYS)
        owned = key == "owned"
        priced = request.price_usd_per_h is not None or bool(request.terms)
        asked = replace(request, price_usd_per_h=0.0) if owned and not priced else request
        spot = section.flag("spot", request.terms == "spot")
        chip_hours = section.number("chip_hours", 0, 1e12)
        found.append(TeamPoolRequest(name_of(section, request), asked, owned, _windows(section), chip_hours, spot))
    return tuple(found)


def _windows(section: Section) -> tuple[tuple[float, float], ...]:
    """Return (start, stop) in hours, ascending and apart."""
    found: list[tuple[float, float]] = []
    for index, item in enumerate(section.items("windows_h", "a list of [start, stop] in hours")):
        path = f"{section.at('windows_h')}[{index}]"
        pair: list[object] = cast("list[object]", item) if isinstance(item, list) else []
        if len(pair) != 2:
            raise fault(path, cast("object", item), "[start, stop] in hours", "write it as [0, 12]")
        span = Section(path, {"start": pair[0], "stop": pair[1]}, ("start", "stop"))
        start, stop = span.number("start", 0, _MOST_H), span.number("stop", 0, _MOST_H)
        if start is None or stop is None or stop <= start:
            raise fault(path, pair, "a stop after its start", "write it as [0, 12]")
        found.append((start, stop))
    for (_, stop), (start, _) in pairwise(found):
        if start < stop:
            raise fault(
                section.at("windows_h"), [list(pair) for pair in found], "windows that ascend and are apart", "put them in order"
            )
    return tuple(found)


def _work(path: str, entry: object, pools: tuple[TeamPoolRequest, ...]) -> TeamWork:
    section = Section(path, entry, WORK_KEYS)
    workload = section.text("workload") or ""
    name = section.text("name") or workload
    if not name:
        raise fault(path, section.values, "a workload or a name", "write workload: gpt2-small:train")
    options = (*_hours(section, pools), *_options(section, pools))
    if not workload and (not options or any(option.hours is None for option in options)):
        raise fault(path, name, "hours for every option, or a workload to estimate them from", "write hours: {POOL: 12}")
    if section.has("total") and not workload:
        raise fault(f"{path}.total", section.values["total"], "a workload beside it", "add workload: ... or remove total")
    once(f"{path}.options", [f"{option.chips} chips of {option.pool}" for option in options])
    release, deadline = section.number("release_h", 0, _MOST_H) or 0.0, section.number("deadline_h", 1e-6, _MOST_H)
    if deadline is not None and deadline <= release:
        raise fault(f"{path}.deadline_h", deadline, f"more than its release_h of {release:g}", "correct one of them")
    return TeamWork(
        name, workload, read_total(section), options, release, deadline, section.whole("priority", 1, 1000) or 1,
        section.flag("interruptible"),
    )  # fmt: skip


def _hours(section: Section, pools: tuple[TeamPoolRequest, ...]) -> tuple[TeamOption, ...]:
    """Return an option with all chips for every pool whose hours are given."""
    by_name = {pool.name: pool for pool in pools}
    given = section.section("hours", by_name)
    if given is None:
        return ()
    found: list[TeamOption] = []
    for name in given.values:
        hours = given.number(name, 0, _MOST_H)
        found.append(TeamOption(name, by_name[name].request.count, hours))
    return tuple(found)


def _options(section: Section, pools: tuple[TeamPoolRequest, ...]) -> tuple[TeamOption, ...]:
    by_name = {pool.name: pool for pool in pools}
    found: list[TeamOption] = []
    for index, entry in enumerate(section.items("options", "a list of options such as [{pool: ours, chips: 4, hours: 12}]")):
        one = Section(f"{section.at('options')}[{index}]", entry, OPTION_KEYS)
        pool = one.text("pool")
        if pool is None:
            raise fault(one.path, one.values, "a pool", "add pool: NAME")
        if pool not in by_name:
            raise unknown(f"{one.path}.pool", "pool", pool, by_name)
        chips = one.whole("chips", 1, 10**6) or by_name[pool].request.count
        found.append(TeamOption(pool, chips, one.number("hours", 0, _MOST_H)))
    return tuple(found)
