"""`./tandem devices`: the document only grows, and says what a recorded machine has."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from cli.devices import devices
from probes.devices.nvidia import by_nvml
from probes.inventory import cpu
from probes.runtimes import installed_runtimes
from services import devices as service
from tests.samples.devices import Nvml, recorded


@pytest.fixture
def node(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found = by_nvml(tmp_path, lambda: Nvml(recorded("nvml_h100_node")))
    assert isinstance(found, tuple)
    only = tuple(runtime for runtime in installed_runtimes() if runtime.id in ("jax", "torch-eager"))
    monkeypatch.setattr(service, "survey", lambda: (cpu(), *found))
    monkeypatch.setattr(service, "known_runtimes", lambda _settings, _attached: only)


def test_the_document_has_the_facts_and_no_views_unless_asked(node: None) -> None:
    done = CliRunner().invoke(devices, ["--json"], catch_exceptions=False)
    said = json.loads(done.stdout)
    gpu = said["devices"][1]
    assert (gpu["board"]["driver"], gpu["board"]["power_limit_w"], gpu["fault"]) == ("580.95.05", 700.0, None)
    assert {pair["runtime"] for pair in gpu["usable_by"]} == {"jax", "torch-eager"}
    assert said["devices"][0]["processor"]["machine_cores"] >= 1
    assert said["views"] == []


def test_the_text_names_facts_reasons_and_commands(node: None) -> None:
    said = CliRunner().invoke(devices, [], catch_exceptions=False).stdout
    for part in ("NVIDIA H100 80GB HBM3", "held down by: software power cap", "processes: process 4242", "told by: NVML"):
        assert part in said


def test_frameworks_are_asked_when_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    only = tuple(runtime for runtime in installed_runtimes() if runtime.id == "jax")
    monkeypatch.setattr(service, "survey", lambda: (cpu(),))
    monkeypatch.setattr(service, "known_runtimes", lambda _settings, _attached: only)
    said = json.loads(CliRunner().invoke(devices, ["--json", "--ask-runtimes"], catch_exceptions=False).stdout)
    assert [(view["runtime"], view["kind"], view["ok"]) for view in said["views"]] == [("jax", "cpu", True)]
