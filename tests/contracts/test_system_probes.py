"""Every system probe, tiny, in real workers: answers are proved, samples are raw, nothing is left behind."""

import os
from itertools import pairwise
from pathlib import Path
from typing import Any

import psutil
import pytest

from core.codec import from_json, to_json
from core.device import Device
from core.probe import Measurement, Outcome, Probe
from core.settings import Settings, settings_from
from probes.accounting import Spent, totals
from probes.environment import Setting, setting_environment, worker_environment
from probes.inventory import devices
from probes.launcher import Limits, WorkerHandle
from probes.messages import Open, Prepare, Prepared, Ready
from probes.plan import Planned
from probes.runtimes import installed_runtimes
from probes.session import Answered, run_probes
from probes.suite import system_probes
from probes.system import setting_of, system_modules

CPU: Device = next(device for device in devices() if device.kind == "cpu")
HERE = {runtime.id: runtime for runtime in installed_runtimes() if runtime.installed}
TINY: dict[str, tuple[dict[str, Any], ...]] = {
    "host_device": tuple({"bytes": 2**14, "way": way, "memory": "pageable"} for way in ("to_device", "to_host", "both")),
    "device_device": ({"devices": 2, "bytes": 2**12},),
    "collective": tuple(
        {"collective": name, "devices": 2, "bytes": 2**12}
        for name in ("all_reduce", "all_gather", "reduce_scatter", "all_to_all")
    ),
    "compile_cost": tuple({"what": what, "layers": 1} for what in ("first", "new_shape", "cached", "dynamic")),
    "sustained_load": ({"phase": "sustained", "n": 64}, {"phase": "burst", "n": 64}),
    "cpu_scaling": (
        {"kernel": "matmul_chain", "n": 64, "cores": 1, "of": 2},
        {"kernel": "memory_triad", "bytes": 2**14, "cores": 1, "of": 1},
    ),
    "hand_off": ({"to": "torch-eager", "bytes": 2**12}, {"to": "jax", "bytes": 2**12}),
    "overlap": tuple({"with": what, "n": 64, "bytes": 2**12, "devices": 2} for what in ("copy", "all_reduce")),
    "memory_capacity": ({"cap_bytes": 2**25},),
}
"""Smallest sizes of every probe; of a runtime, those that it can be asked."""


def asked_of(runtime: str) -> tuple[Planned, ...]:
    """Return every tiny probe that a runtime can be asked, in the order that the suite would have them."""
    planned: list[Planned] = []
    for name, module in system_modules().items():
        for sizes in TINY[name] if runtime in module.RUNTIMES else ():
            if name == "hand_off" and sizes["to"] == runtime:
                continue
            if name == "compile_cost" and sizes["what"] not in module.WAYS[runtime]:
                continue
            probe = Probe(name, "system", tuple(sorted(sizes.items())), "fp32", runtime, CPU.id)
            planned.append(Planned(probe, module.flop(sizes), module.traffic(sizes)))
    return tuple(sorted(planned, key=lambda one: repr(setting_of(one.probe))))


@pytest.fixture
def quickened(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take few samples: what is tested is that they are right, not that they are steady."""
    for module in system_modules().values():
        monkeypatch.setattr(module, "seconds", lambda _sizes, _tier: 0.01)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return settings_from({"TANDEM_HOME": str(tmp_path / "home"), "TANDEM_LEASES": str(tmp_path / "leases")})


def test_every_system_probe_has_a_tiny_size_here():
    assert TINY.keys() == system_modules().keys()


@pytest.mark.slow
@pytest.mark.parametrize("runtime", ["jax", "torch-eager", "tf-graph"])
def test_every_system_probe_is_answered_in_real_workers(runtime: str, settings: Settings, quickened: None):
    planned = asked_of(runtime)
    outcomes: list[Outcome] = []
    spent: list[Spent] = []
    before = psutil.Process().children(recursive=True)  # of other tests of this process

    def hear(event: object) -> None:
        if isinstance(event, Answered):
            outcomes.append(event.outcome)
        if isinstance(event, Spent):
            spent.append(event)

    run_probes(planned, (CPU,), tuple(HERE.values()), settings, hear, lambda: False, 300.0)
    assert [one for one in outcomes if not isinstance(one, Measurement)] == []
    measured = [one for one in outcomes if isinstance(one, Measurement)]
    assert {one.probe for one in measured} == {one.probe for one in planned}
    for one in measured:
        assert one.median_s > 0
        assert len(one.samples_s) >= 3 or one.probe.subject == "sustained_load"
        assert from_json(Measurement, to_json(one)) == one
    overlaps = [one for one in measured if one.probe.subject == "overlap"]
    assert all(len(one.part_s("product")) == len(one.part_s("beside")) == len(one.samples_s) for one in overlaps)
    capacity = next(one for one in measured if one.probe.subject == "memory_capacity")
    assert 2**24 <= dict(capacity.counts)["largest_bytes"] <= 2**25
    assert totals(spent)["samples"] > 0
    left = [child for child in psutil.Process().children(recursive=True) if child not in before]
    assert not [child for child in left if "probes." in " ".join(child.cmdline())]


@pytest.mark.slow
def test_the_processes_of_a_group_end_with_a_worker_that_is_killed(tmp_path: Path):
    runtime = HERE["torch-eager"]
    sizes = TINY["collective"][0]
    environment = worker_environment(runtime.id, "cpu", os.environ, tmp_path, "")
    environment |= setting_environment(Setting(devices=2), "cpu", "", 2**33)
    handle = WorkerHandle(runtime.interpreter, environment, Limits())
    assert isinstance(handle.ask(Open(runtime.id, "cpu"), 180), Ready)
    probe = Probe("collective", "system", tuple(sorted(sizes.items())), "fp32", runtime.id, CPU.id)
    assert isinstance(handle.ask(Prepare(probe), 180), Prepared)
    partners = psutil.Process(handle.process.pid).children(recursive=True)
    assert [one for one in partners if "probes.partner" in one.cmdline()]
    handle.process.kill()
    assert psutil.wait_procs(partners, timeout=30)[1] == []
    handle.close()


@pytest.mark.parametrize("tier", ["quick", "full"])
def test_a_plan_asks_each_runtime_only_what_it_can_answer(tier: str):
    planned = system_probes(tuple(HERE.values()), CPU, tier)
    assert len({one.probe for one in planned}) == len(planned)
    for one in planned:
        assert one.probe.runtime in system_modules()[one.probe.subject].RUNTIMES
    left_out = {"hand_off", "overlap"} if tier == "quick" else set[str]()
    assert {one.probe.subject for one in planned} == system_modules().keys() - left_out


def test_probes_that_need_the_same_worker_stand_together():
    planned = system_probes(tuple(HERE.values()), CPU, "full")
    settings = [setting_of(one.probe) for one in planned if one.probe.subject not in ("memory_capacity", "sustained_load")]
    changes = sum(a != b for a, b in pairwise(settings))
    assert changes == len(set(settings)) - 1
    assert planned[0].probe.subject == "memory_capacity"
    assert planned[-1].probe.subject == "sustained_load"


def test_a_probe_can_be_asked_for_by_name():
    assert {one.probe.subject for one in system_probes(tuple(HERE.values()), CPU, "full", "overlap")} == {"overlap"}
    assert system_probes(tuple(HERE.values()), CPU, "quick", "matmul_chain") == ()
