"""The devices page on recorded machines: faults, tenants, partitions and slices are said in the card, facts one click away."""

from pathlib import Path

import pytest

from core.device import Device
from core.hardware import Board, Fault, Tenant, TpuSlice
from probes.devices.nvidia import by_nvml
from probes.inventory import cpu
from probes.runtimes import installed_runtimes
from services import devices as service
from tests.app.conftest import Opener, words_of
from tests.samples.devices import Nvml, recorded

SLICE, OWNER = TpuSlice("v6e-8", "2x4", "1", "GKE"), Tenant(77, "python serve.py", "ben")
TPU = Device("tpu:0", "tpu", "Cloud TPU v6e", "0000:00:04.0", 32 * 10**9, None, "tpu-v6e", board=Board(
    "Google", "PCI bus", path="/dev/vfio/0", tenants=(OWNER,), group=SLICE))  # fmt: skip
BROKEN = Device("gpu:9", "gpu", "AMD GPU (PCI 0x74a1)", "0000:0c:00.0", 0, board=Board("AMD", "PCI bus"),
                fault=Fault("the amdgpu driver is not loaded", "sudo modprobe amdgpu"))  # fmt: skip


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    node, mig = (by_nvml(tmp_path, lambda name=name: Nvml(recorded(name))) for name in ("nvml_h100_node", "nvml_mig"))
    assert isinstance(node, tuple)
    assert isinstance(mig, tuple)
    attached = (cpu(), *node, *mig, BROKEN, TPU)
    monkeypatch.setattr(service, "survey", lambda: attached)


def test_what_one_must_see_at_once_is_on_the_card(machine: None, open_page: Opener) -> None:
    page = open_page("devices")
    assert not page.exception
    said = " ".join(element.value for element in (*page.warning, *page.error)).replace("\\", "")
    for words in ("Clocks are held down: software power cap", "In use by process 4242", "MIG mode is on, 2 instances",
                  "amdgpu driver is not loaded", "In use by process 77 (python serve.py, user ben)"):  # fmt: skip
        assert words in said


def test_each_no_has_its_command(machine: None, open_page: Opener) -> None:
    page = open_page("devices")
    commands = [element.value for element in page.code]
    for part in ("sudo modprobe amdgpu", "-mig 0", "runtimes install jax-cuda13", "kill 77"):
        assert any(part in command for command in commands), part


def test_details_name_the_source_of_every_fact(machine: None, open_page: Opener) -> None:
    page = open_page("devices")
    shown = " ".join(str(table.value) for table in page.table).replace("\\", "")
    for part in ("NVML 13.580.95.05", "up to CUDA 13.0", "generation 5 of 5", "v6e-8 2x4, worker 1, GKE", "71 W of 700 W"):
        assert part in shown


def test_asking_shows_what_each_framework_says_itself(monkeypatch: pytest.MonkeyPatch, open_page: Opener) -> None:
    only = tuple(runtime for runtime in installed_runtimes() if runtime.id == "jax")
    monkeypatch.setattr(service, "survey", lambda: (cpu(),))
    monkeypatch.setattr(service, "known_runtimes", lambda _settings, _attached: only)
    page = open_page("devices")
    next(button for button in page.button if button.label == "Ask every framework").click().run(timeout=120)
    assert not page.exception
    assert "What each framework says itself" in [element.value for element in page.subheader]
    assert "cpu" in words_of(page)
