"""Reads a workflow of stages, or a team's portfolio: a YAML or JSON document becomes the words of `core.workflow`.

Names are checked here, so that a misspelt pool is one line and not a stage that can run nowhere. Workloads that a document names
stay text: whoever estimates them reads them.
"""

from collections.abc import Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import cast

from core.errors import BadInput
from core.workflow import (
    FormChange,
    Hand,
    Portfolio,
    StageForm,
    Workflow,
    WorkflowLink,
    WorkflowPool,
    WorkflowStage,
    WorkflowStore,
)
from core.workload import OBJECTIVES
from intake.fields import Section
from intake.pool_lists import mapping_of, name_of, once, requests_of
from intake.sections import read_total
from intake.syntax import parse
from intake.team import read_team
from intake.wording import fault, unknown

KEYS = ("schema", "workflow", "stages", "pools", "links", "store", "conversions", "objective", "deadline_h", "budget_usd",
        "most_pools")  # fmt: skip
STAGE_KEYS = ("name", "workload", "total", "seconds", "cannot", "after", "bytes", "streams", "form", "reads", "forms", "anywhere")
POOL_KEYS = ("name", "accelerator", "count", "price_usd_per_h", "price", "terms", "hours", "slots", "host", "host_of")
_FORM_KEYS = ("framework", "format", "dtype")
MOST_BYTES = 1024 * 1024
GBPS = 1e9 / 8
"""Bytes a second of one gigabit a second."""
_MOST_S, _MOST_USD, _MOST_SIZE = 1e12, 1e12, 1e18


def read_workflow_text(text: str) -> Workflow | Portfolio:
    """Understand a document: a workflow where it has the key `workflow`, a portfolio where it has `portfolio`.

    Args:
        text: YAML or JSON.

    Raises:
        BadInput: it cannot be used; one line that says what was got, what was expected and what to do.
    """
    document = parse(text)
    if document.get("schema", 1) != 1 or isinstance(document.get("schema"), bool):
        raise fault("schema", document["schema"], "1", "set schema: 1")
    if "portfolio" in document:
        return read_team(document)
    if "workflow" in document:
        return _workflow(document)
    raise BadInput("no key 'workflow' and no key 'portfolio'", "one of them, with a name", "write for example workflow: nightly")


def read_workflow_file(path: Path | str) -> Workflow | Portfolio:
    """Understand a file with a workflow or a portfolio.

    Raises:
        BadInput: it cannot be read or used.
    """
    place = Path(path)
    try:
        size = place.stat().st_size
        if not place.is_file() or size > MOST_BYTES:
            got = f"{place.name}: {size:,} bytes" if place.is_file() else f"{str(path)[-80:]!r} (no regular file)"
            raise BadInput(got, f"a file of at most {MOST_BYTES:,} bytes", "give the workflow file alone")
        text = place.read_text(encoding="utf-8")
    except OSError as error:
        raise BadInput(f"{str(path)[-80:]!r} ({error.strerror})", "a workflow or portfolio file", "correct the path") from None
    except ValueError:
        raise BadInput(f"{place.name}: bytes that are not UTF-8", "a YAML or JSON text in UTF-8", "save it as UTF-8") from None
    return read_workflow_text(text)


def _workflow(document: Mapping[str, object]) -> Workflow:
    top = Section("", document, KEYS)
    assumed: list[str] = []
    pools = _pools(top, assumed)
    names = tuple(pool.name for pool in pools)
    entries = top.items("stages", "a list of stages such as [{name: train, seconds: {tpu: 3600}}]")
    if not entries:
        raise BadInput("no stages", "a list of at least one", "write stages: [{name: train, seconds: {tpu: 3600}}]")
    sections = [Section(f"stages[{i}]", entry, STAGE_KEYS) for i, entry in enumerate(entries)]
    outputs = {
        section.text("name"): (section.number("bytes", 0, _MOST_SIZE) or 0.0, section.flag("streams")) for section in sections
    }
    stages = tuple(_stage(section, names, outputs) for section in sections)
    _check_stages(stages)
    return Workflow(
        name=top.text("workflow") or "workflow",
        stages=stages,
        pools=pools,
        links=tuple(_link(f"links[{i}]", one, names) for i, one in enumerate(top.items("links", "a list of links"))),
        store=_store(top, names),
        conversions=tuple(
            _conversion(f"conversions[{i}]", one) for i, one in enumerate(top.items("conversions", "a list of conversions"))
        ),
        objective=top.choice("objective", OBJECTIVES) or "time",
        deadline_h=top.number("deadline_h", 1e-6, 1e7),
        budget_usd=top.number("budget_usd", 0, _MOST_USD),
        most_pools=top.whole("most_pools", 1, 1000),
        assumptions=tuple(assumed),
    )


def _pools(top: Section, assumed: list[str]) -> tuple[WorkflowPool, ...]:
    entries = top.items("pools", "a list of pools such as [{name: tpu, accelerator: tpu-v6e, count: 16}]")
    if not entries:
        raise BadInput("no pools", "a list of at least one", "write pools: [{name: tpu, accelerator: tpu-v6e, count: 16}]")
    found: list[WorkflowPool] = []
    for index, request in enumerate(requests_of(entries, "pools", POOL_KEYS, assumed)):
        section = Section(f"pools[{index}]", mapping_of(entries[index]), POOL_KEYS)
        hours, slots = section.number("hours", 0, 1e7), section.whole("slots", 1, 10_000) or 1
        host_of = section.text("host_of") or ""
        found.append(
            WorkflowPool(name_of(section, request), request, hours, slots, section.flag("host") or bool(host_of), host_of)
        )
    names = [pool.name for pool in found]
    once("pools", names)
    for index, pool in enumerate(found):
        if pool.host_of and pool.host_of not in names:
            raise unknown(f"pools[{index}].host_of", "pool", pool.host_of, names)
    return tuple(found)


def _stage(section: Section, pools: tuple[str, ...], outputs: Mapping[str | None, tuple[float, bool]]) -> WorkflowStage:
    path, name = section.path, section.text("name")
    if name is None:
        raise fault(path, section.values, "a name", "add name: ...")
    seconds = _by_pool(section, "seconds", pools)
    cannot = _by_pool(section, "cannot", pools)
    workload = section.text("workload") or ""
    if not seconds and not workload:
        raise fault(path, name, "seconds on pools, or a workload to estimate them from", "write seconds: {POOL: 3600}")
    if section.has("total") and not workload:
        raise fault(f"{path}.total", section.values["total"], "a workload beside it", "add workload: ... or remove total")
    both = sorted({pool for pool, _ in seconds} & {pool for pool, _ in cannot})
    if both:
        raise fault(f"{path}.cannot", both[0], "a pool without seconds", "remove it from one of them")
    for pool, value in seconds:
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not number or not 0 <= cast("float", value) <= _MOST_S:
            raise fault(f"{path}.seconds.{pool}", value, f"a number from 0 to {_MOST_S:g}")
    for pool, value in cannot:
        if not isinstance(value, str) or not value.strip() or len(value) > 200:
            raise fault(f"{path}.cannot.{pool}", value, "the reason, one short line of text")
    return WorkflowStage(
        name=name,
        workload=workload,
        total=read_total(section),
        seconds=tuple((pool, float(cast("float", value))) for pool, value in seconds),
        cannot=tuple((pool, " ".join(cast("str", value).split())) for pool, value in cannot),
        after=tuple(
            _hand(f"{path}.after[{i}]", one, outputs) for i, one in enumerate(section.items("after", "a list of stages"))
        ),
        forms=_forms(section, pools),
        anywhere=section.flag("anywhere"),
    )


def _by_pool(section: Section, key: str, pools: tuple[str, ...]) -> tuple[tuple[str, object], ...]:
    """Return the items of a mapping whose keys are pools; null stands for absent."""
    found = section.section(key, pools)
    return () if found is None else tuple(found.values.items())


def _hand(path: str, entry: object, outputs: Mapping[str | None, tuple[float, bool]]) -> Hand:
    """Return what a stage takes from another: what the other says that it hands on, unless said here."""
    section = Section(path, {"stage": entry} if isinstance(entry, str) else entry, ("stage", "bytes", "streams"))
    source = section.text("stage")
    if source is None:
        raise fault(path, section.values, "the name of a stage", "write after: [NAME]")
    size, streams = outputs.get(source, (0.0, False))
    given = section.number("bytes", 0, _MOST_SIZE)
    return Hand(source, size if given is None else given, section.flag("streams", streams))


def _forms(section: Section, pools: tuple[str, ...]) -> tuple[StageForm, ...]:
    """Return the forms of a stage on every pool that has one."""
    writes, reads = read_form(section, "form"), read_form(section, "reads")
    own = section.section("forms", pools)
    found: list[StageForm] = []
    for pool in pools:
        here = read_form(own, pool) if own is not None else ""
        if here or reads or writes:
            found.append(StageForm(pool, here or reads, here or writes))
    return tuple(found)


def read_form(section: Section, key: str) -> str:
    """Return a form as one text: framework, format and dtype, as far as they are given; empty when absent."""
    value = section.values.get(key)
    if isinstance(value, str):
        return section.text(key) or ""
    form = section.section(key, _FORM_KEYS)
    return "" if form is None else "/".join(part for name in _FORM_KEYS if (part := form.text(name)))


def _check_stages(stages: tuple[WorkflowStage, ...]) -> None:
    """Refuse names that are twice or unknown, and stages that wait for each other."""
    names = [stage.name for stage in stages]
    once("stages", names)
    for index, stage in enumerate(stages):
        for place, hand in enumerate(stage.after):
            if hand.source not in names:
                raise unknown(f"stages[{index}].after[{place}]", "stage", hand.source, names)
        once(f"stages[{index}].after", [hand.source for hand in stage.after])
    try:
        tuple(TopologicalSorter({stage.name: {hand.source for hand in stage.after} for stage in stages}).static_order())
    except CycleError as error:
        cycle: list[str] = error.args[1]
        raise BadInput(f"stages that wait for each other: {' after '.join(cycle)}", "a workflow without a cycle",
                       "remove one of them from `after`") from None  # fmt: skip


def _link(path: str, entry: object, pools: tuple[str, ...]) -> WorkflowLink:
    section = Section(path, entry, ("between", "gbps", "latency_s", "usd_per_gb"))
    between = section.texts("between")
    for name in between:
        if name not in pools:
            raise unknown(f"{path}.between", "pool", name, pools)
    if len(between) != 2 or between[0] == between[1]:
        raise fault(f"{path}.between", list(between), "two pools", "write between: [A, B]")
    rate = section.number("gbps", 1e-9, 1e9)
    if rate is None:
        raise fault(path, section.values, "gbps, gigabits a second", "add gbps: 10")
    return WorkflowLink(
        (between[0], between[1]), rate * GBPS, section.number("latency_s", 0, 1e6) or 0.0,
        section.number("usd_per_gb", 0, 1e6) or 0.0,
    )  # fmt: skip


def _store(top: Section, pools: tuple[str, ...]) -> WorkflowStore | None:
    section = top.section("store", ("gbps_up", "gbps_down", "usd_per_gb", "latency_s", "pools"))
    if section is None:
        return None
    up, down = section.number("gbps_up", 1e-9, 1e9), section.number("gbps_down", 1e-9, 1e9)
    if up is None or down is None:
        raise fault("store", section.values, "gbps_up and gbps_down, gigabits a second", "add both")
    reach = section.texts("pools")
    for name in reach:
        if name not in pools:
            raise unknown("store.pools", "pool", name, pools)
    return WorkflowStore(
        up * GBPS, down * GBPS, section.number("usd_per_gb", 0, 1e6) or 0.0, section.number("latency_s", 0, 1e6) or 0.0, reach
    )


def _conversion(path: str, entry: object) -> FormChange:
    section = Section(path, entry, ("from", "to", "seconds", "bytes_per_s", "usd", "warning"))
    source, target = read_form(section, "from"), read_form(section, "to")
    if not source or not target:
        raise fault(path, section.values, "from and to, each a form", "write from: {framework: jax}, to: {framework: torch}")
    return FormChange(
        source, target, section.number("seconds", 0, _MOST_S) or 0.0, section.number("bytes_per_s", 1e-3, 1e18),
        section.number("usd", 0, _MOST_USD) or 0.0, section.text("warning") or "",
    )  # fmt: skip
