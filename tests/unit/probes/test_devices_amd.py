"""AMD GPUs as amdsmi and the kernel tell them, played back, and every way to fail."""

from pathlib import Path

import pytest

from probes.devices.amd import amd_gpus
from tests.samples.devices import AmdSmi, lay_out, recorded

PCI = "sys/bus/pci/devices/0000:0c:00.0"
NODES = "sys/class/kfd/kfd/topology/nodes"
ON_THE_BUS = {
    f"{PCI}/vendor": "0x1002\n", f"{PCI}/device": "0x74a1\n", f"{PCI}/class": "0x120000\n", f"{PCI}/numa_node": "0\n",
    f"{PCI}/current_link_speed": "32.0 GT/s PCIe\n", f"{PCI}/current_link_width": "16\n", f"{PCI}/max_link_width": "16\n",
}  # fmt: skip
BY_THE_DRIVER = {
    **ON_THE_BUS,
    f"{NODES}/0/properties": "cpu_cores_count 96\nsimd_count 0\nvendor_id 0\n",
    f"{NODES}/1/properties": "cpu_cores_count 0\nsimd_count 1216\ngfx_target_version 90402\nvendor_id 4098\ndevice_id 29857\n"
    "location_id 3072\ndomain 0\nmax_engine_clk_fcompute 2100\nunique_id 7710022093124468539\n",
    f"{NODES}/1/mem_banks/0/properties": "heap_type 1\nsize_in_bytes 206141652992\n",
    f"{PCI}/mem_info_vram_total": "206141652992\n", f"{PCI}/mem_info_vram_used": "297000000\n",
    "sys/module/amdgpu/version": "6.12.12\n", "dev/kfd": "",
}  # fmt: skip


def _missing() -> AmdSmi:
    raise ImportError


def test_a_node_is_told_by_amdsmi(tmp_path: Path) -> None:
    first, second = amd_gpus(lay_out(tmp_path, ON_THE_BUS), lambda: AmdSmi(recorded("amdsmi_mi300x")))
    board = first.board
    assert board is not None
    assert (first.accelerator, first.memory_bytes) == ("mi300x", 196592 * 2**20)
    assert (board.capability, board.driver) == ("gfx942", "6.12.12")
    assert (board.power_w, board.power_limit_w, board.temperature_c, board.slowdowns) == (141.0, 750.0, 41.0, ("power cap",))
    assert [(clock.now_hz, clock.max_hz) for clock in board.clocks] == [(132e6, 2100e6), (900e6, 1300e6)]
    assert board.slot is not None
    assert (board.slot.generation, board.slot.lanes, board.slot.numa_node) == (5, 16, 0)
    assert board.tenants is not None
    assert (board.tenants[0].pid, board.tenants[0].name, board.tenants[0].memory_bytes) == (7171, "python3", 2**31)
    assert second.id == "gpu:1"


def test_what_amdsmi_may_not_give_is_a_reason(tmp_path: Path) -> None:
    board = amd_gpus(lay_out(tmp_path, ON_THE_BUS), lambda: AmdSmi(recorded("amdsmi_mi300x")))[1].board
    assert board is not None
    assert (board.power_w, board.tenants, board.temperature_c) == (None, None, None)
    why = {one.what: one.why for one in board.unread}
    assert (why["power"], why["temperature"]) == ("no permission", "not supported")


@pytest.mark.parametrize(("code", "reason", "remedy"), [
    (34, "amdgpu driver is not loaded", "sudo modprobe amdgpu"),
    (10, "may not open", "usermod -aG render"),
    (2, "does not support", "ROCm release"),
    (31, "finds no AMD GPU", "amd-smi list"),
    (6, "AMDSMI status 6", "amd-smi list"),
])  # fmt: skip
def test_amdsmi_that_does_not_start_is_the_fault_of_the_gpu(tmp_path: Path, code: int, reason: str, remedy: str) -> None:
    played = AmdSmi({"system": {"amdsmi_init": {"error": code}, "amdsmi_shut_down": None}, "devices": []})
    (device,) = amd_gpus(lay_out(tmp_path, ON_THE_BUS), lambda: played)
    assert device.fault is not None
    assert reason in device.fault.reason
    assert remedy in device.fault.remedy


def test_without_amdsmi_the_compute_driver_is_read(tmp_path: Path) -> None:
    (device,) = amd_gpus(lay_out(tmp_path, BY_THE_DRIVER), _missing)
    board = device.board
    assert board is not None
    assert (device.memory_bytes, board.capability) == (206141652992, "gfx942")
    assert device.uuid == f"GPU-{7710022093124468539:x}"
    assert (board.source, board.memory_used_bytes, board.clocks[0].max_hz) == ("kernel (kfd)", 297000000, 2100e6)
    assert board.slot is not None
    assert (board.slot.address, board.slot.generation, board.slot.lanes) == ("0000:0c:00.0", 5, 16)


def test_a_gpu_on_the_bus_without_a_driver_says_so(tmp_path: Path) -> None:
    (device,) = amd_gpus(lay_out(tmp_path, ON_THE_BUS), _missing)
    assert device.fault is not None
    assert device.fault.remedy == "sudo modprobe amdgpu"


def test_a_machine_without_amd_does_not_load_amdsmi(tmp_path: Path) -> None:
    def load() -> AmdSmi:
        raise AssertionError

    assert amd_gpus(tmp_path, load) == ()
