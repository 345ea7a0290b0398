"""NVIDIA GPUs as NVML and nvidia-smi tell them, played back: whole nodes, virtual machines, partitions, and every way to fail."""

from pathlib import Path

import psutil
import pynvml
import pytest

from core.device import Device
from core.hardware import Fault
from probes.devices import nvidia_smi
from probes.devices.names import catalog_key
from probes.devices.nvidia import by_nvml, without_driver
from probes.devices.nvidia_smi import LONG, SHORT, by_tool
from probes.inventory import nvidia_gpus
from tests.samples.devices import Nvml, lay_out, recorded

H100_ON_THE_BUS = {
    "sys/bus/pci/devices/0000:1b:00.0/vendor": "0x10de\n", "sys/bus/pci/devices/0000:1b:00.0/device": "0x2330\n",
    "sys/bus/pci/devices/0000:1b:00.0/class": "0x030200\n", "sys/bus/pci/devices/0000:1b:00.0/numa_node": "1\n",
    "sys/bus/pci/devices/0000:1b:00.1/vendor": "0x10de\n", "sys/bus/pci/devices/0000:1b:00.1/class": "0x040300\n",
    "proc/4242/cmdline": "python\0train.py\0",
}  # fmt: skip
LINE = (
    "0, GPU-5f1c, NVIDIA H200, 143771, 580.95.05, 4, 00000000:9B:00.0, 345, 1980, 3201, 3201, 76.52, 700.00, 29, "
    "0x0000000000000001, 5, 5, 16, 16, Disabled, 9.0"
)
VIRTUAL = (
    "0, GPU-77aa, NVIDIA A100-SXM4-80GB, 81920, 550.90.07, 4, 00000000:00:05.0, [N/A], [N/A], [N/A], [N/A], [N/A], [N/A], "
    "[N/A], [N/A], [N/A], [N/A], [N/A], [N/A], [N/A], 8.0"
)


def _found(told: tuple[Device, ...] | Fault | None) -> tuple[Device, ...]:
    assert isinstance(told, tuple)
    return told


def _nvml(name: str, root: Path) -> tuple[Device, ...]:
    return _found(by_nvml(root, lambda: Nvml(recorded(name))))


def test_a_node_is_told_whole_by_nvml(tmp_path: Path) -> None:
    first, _ = _nvml("nvml_h100_node", lay_out(tmp_path, H100_ON_THE_BUS))
    board = first.board
    assert board is not None
    assert (first.id, first.accelerator, first.memory_bytes) == ("gpu:0", "h100-sxm", 85520809984)
    assert (board.driver, board.driver_cuda, board.capability) == ("580.95.05", "13.0", "9.0")
    assert [(one.name, one.now_hz, one.max_hz) for one in board.clocks] == [("SM", 345e6, 1980e6), ("memory", 2619e6, 2619e6)]
    assert (board.power_w, board.power_limit_w, board.temperature_c) == (71.342, 700.0, 31.0)
    assert (board.slowdowns, board.partitioned, board.tenants, board.unread) == ((), False, (), ())


def test_the_slot_joins_what_nvml_and_the_kernel_know(tmp_path: Path) -> None:
    board = _nvml("nvml_h100_node", lay_out(tmp_path, H100_ON_THE_BUS))[0].board
    assert board is not None
    assert board.slot is not None
    assert (board.slot.address, board.slot.device_id, board.slot.numa_node) == ("0000:1b:00.0", "0x2330", 1)
    assert (board.slot.generation, board.slot.lanes) == (5, 16)


def test_a_gpu_in_use_says_by_whom_and_why_it_is_slow(tmp_path: Path) -> None:
    board = _nvml("nvml_h100_node", lay_out(tmp_path, H100_ON_THE_BUS))[1].board
    assert board is not None
    assert board.slowdowns == ("software power cap", "software thermal slowdown")
    assert board.tenants is not None
    told = [(one.pid, one.name, one.memory_bytes) for one in board.tenants]
    assert told == [(4242, "python train.py", 75900000000), (5150, "", None)]


def test_mig_instances_are_listed_below_their_gpu(tmp_path: Path) -> None:
    board = _nvml("nvml_mig", tmp_path)[0].board
    assert board is not None
    assert board.partitioned
    assert [part.name.rpartition(" ")[2] for part in board.partitions] == ["3g.40gb", "1g.10gb"]
    assert board.partitions[0].uuid.startswith("MIG-")
    assert board.tenants is None


def test_what_a_virtual_machine_does_not_give_is_a_reason_not_a_crash(tmp_path: Path) -> None:
    device = _nvml("nvml_vm", tmp_path)[0]
    board = device.board
    assert board is not None
    assert device.memory_bytes == 42949672960
    assert (board.power_w, board.temperature_c, board.slowdowns, board.partitioned, board.tenants) == (None,) * 5
    why = {one.what: one.why for one in board.unread}
    assert why["power"] == "Not Supported"
    assert why["compute processes"] == "Insufficient Permissions"


def test_bytes_and_missing_functions_of_older_versions_are_read(tmp_path: Path) -> None:
    device = _nvml("nvml_bytes", tmp_path)[0]
    board = device.board
    assert board is not None
    assert (device.name, device.accelerator, board.driver) == ("Tesla V100-SXM2-16GB", "v100-16", "470.57.02")
    assert device.uuid == "GPU-9d1b7a40-5e2f-8c31-77aa-1f0c9d2e3b4a"
    assert board.slot is not None
    assert board.slot.address == "0000:00:1e.0"
    assert board.slowdowns == ("hardware thermal slowdown",)
    assert "this version of nvidia-ml-py does not know it" in [one.why for one in board.unread]


@pytest.mark.parametrize(("code", "reason", "remedy"), [
    (pynvml.NVML_ERROR_DRIVER_NOT_LOADED, "driver is not loaded", "sudo modprobe nvidia"),
    (pynvml.NVML_ERROR_LIBRARY_NOT_FOUND, "libnvidia-ml was not found", "install the NVIDIA driver"),
    (pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH, "different versions", "sudo reboot"),
    (pynvml.NVML_ERROR_NO_PERMISSION, "may not open", "usermod"),
    (pynvml.NVML_ERROR_OPERATING_SYSTEM, "blocks", "--gpus all"),
    (pynvml.NVML_ERROR_UNKNOWN, "Unknown Error", "nvidia-smi -q"),
])  # fmt: skip
def test_a_library_that_does_not_start_is_the_fault_of_the_gpu(tmp_path: Path, code: int, reason: str, remedy: str) -> None:
    said = recorded("nvml_h100_node")
    said["system"]["nvmlInit"] = {"error": code}
    root = lay_out(tmp_path, H100_ON_THE_BUS)
    (device,) = nvidia_gpus(root, lambda place: by_nvml(place, lambda: Nvml(said)), lambda _: None)
    assert device.fault is not None
    assert reason in device.fault.reason
    assert remedy in device.fault.remedy
    assert device.uuid == "0000:1b:00.0"


def test_a_gpu_that_is_lost_does_not_hide_the_others(tmp_path: Path) -> None:
    said = recorded("nvml_h100_node")
    said["devices"][0] = {"error": pynvml.NVML_ERROR_GPU_IS_LOST}
    lost, fine = _found(by_nvml(tmp_path, lambda: Nvml(said)))
    assert lost.fault is not None
    assert "fallen off the bus" in lost.fault.reason
    assert fine.fault is None


def test_nvml_is_shut_down_again(tmp_path: Path) -> None:
    played = Nvml(recorded("nvml_vm"))
    by_nvml(tmp_path, lambda: played)
    assert played.shut_down == 1


def test_without_nvml_the_drivers_tool_is_asked(tmp_path: Path) -> None:
    def missing() -> Nvml:
        raise ImportError

    def tool(arguments: tuple[str, ...]) -> tuple[int, str]:
        return (0, f"{LINE}\n") if "query-gpu" in arguments[0] else (0, "GPU-5f1c, 4242, /usr/bin/python3, 4000\n")

    (device,) = nvidia_gpus(tmp_path, lambda place: by_nvml(place, missing), lambda place: by_tool(place, tool))
    board = device.board
    assert board is not None
    assert (device.accelerator, board.source, board.capability, board.partitioned) == ("h200", "nvidia-smi", "9.0", False)
    assert (board.power_w, board.clocks[0].max_hz, board.slowdowns) == (76.52, 1980e6, ())
    assert board.tenants is not None
    assert (board.tenants[0].pid, board.tenants[0].memory_bytes) == (4242, 4000 * 2**20)


def test_what_the_tool_does_not_give_is_unread(tmp_path: Path) -> None:
    (device,) = _found(by_tool(tmp_path, lambda _: (0, VIRTUAL)))
    assert device.board is not None
    assert (device.board.power_w, device.board.partitioned, device.board.slowdowns) == (None, None, None)
    assert "power.draw" in [one.what for one in device.board.unread]


def test_an_older_tool_is_asked_for_less(tmp_path: Path) -> None:
    asked: list[str] = []

    def tool(arguments: tuple[str, ...]) -> tuple[int, str]:
        asked.append(arguments[0])
        known = "compute_cap" not in arguments[0]
        return (0, "0, GPU-1, Tesla T4, 15109, 418.87.01") if known else (2, 'Field "compute_cap" is not a valid field to query.')

    (device,) = _found(by_tool(tmp_path, tool))
    assert (device.accelerator, device.detail) == ("t4", ("driver 418.87.01",))
    assert ",".join(LONG) in asked[0]


@pytest.mark.parametrize(("code", "text", "reason"), [
    (9, "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.", "driver is not loaded"),
    (18, "Failed to initialize NVML: Driver/library version mismatch", "different versions"),
    (4, "Failed to initialize NVML: Insufficient Permissions", "may not open"),
    (1, "Segmentation fault", "Segmentation fault"),
])  # fmt: skip
def test_the_tool_that_fails_is_the_reason(tmp_path: Path, code: int, text: str, reason: str) -> None:
    told = by_tool(tmp_path, lambda _: (code, text))
    assert isinstance(told, Fault)
    assert reason in told.reason


def test_no_gpu_is_no_fault(tmp_path: Path) -> None:
    assert by_tool(tmp_path, lambda _: (6, "No devices were found")) == ()
    assert without_driver(tmp_path, Fault("x", "y")) == ()


def test_the_tool_lists_mig_instances(tmp_path: Path) -> None:
    listing = "GPU 0: NVIDIA H200 (UUID: GPU-5f1c)\n  MIG 1g.18gb     Device  0: (UUID: MIG-c0ffee)\n"
    line = LINE.replace("Disabled", "Enabled")
    answers = {"--query-gpu": line, "--query-com": "", "-L": listing}
    (device,) = _found(by_tool(tmp_path, lambda arguments: (0, answers[arguments[0][:11]])))
    assert device.board is not None
    assert [(part.name, part.uuid) for part in device.board.partitions] == [("MIG 1g.18gb", "MIG-c0ffee")]


@pytest.mark.parametrize(("name", "key"), [
    ("NVIDIA GH200 480GB", "gh200"), ("NVIDIA H200", "h200"), ("NVIDIA H200 NVL", None), ("NVIDIA H100 PCIe", "h100-pcie"),
    ("NVIDIA H100 NVL", None), ("NVIDIA L40", None), ("NVIDIA L4", "l4"), ("NVIDIA GB200", "gb200"),
    ("NVIDIA A100 80GB PCIe", "a100-80"),
    ("GRID A100-10C", None), ("NVIDIA A100-4-20C", None), ("NVIDIA GeForce RTX 4090 Laptop GPU", None),
    ("NVIDIA GeForce RTX 4090 D", None), ("NVIDIA GeForce RTX 4090", "rtx4090"), ("AMD Instinct MI300X", "mi300x"),
    ("NVIDIA A100-SXM4-40GB", "a100-40"),
])  # fmt: skip
def test_only_whole_boards_of_the_catalog_get_its_key(name: str, key: str | None) -> None:
    assert catalog_key(name) == key


@pytest.mark.parametrize("odd", ["inf", "nan", "0xZZ", "-1e400"])
def test_a_number_that_is_none_is_left_unread(odd: str, tmp_path: Path) -> None:
    known = LINE.split(", ")[: len(SHORT)]
    parts = [*known, *([odd] * (len(LONG) - len(known)))]
    (device,) = _found(by_tool(tmp_path, lambda _: (0, ", ".join(parts))))
    assert device.board is not None
    assert device.board.memory_used_bytes is None


def test_a_tool_that_hangs_floods_or_babbles_is_a_fault_and_is_asked_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = tmp_path / "nvidia-smi"
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(nvidia_smi, "LIMIT_S", 1.0)
    bodies = {"sleep 986.5": "did not answer within 1 s", "yes": "wrote over 1 MiB", "printf '\\377\\376'; exit 3": ""}
    for body, said in bodies.items():
        tool.write_text(f"#!/bin/sh\necho asked >> {tmp_path}/asked\n{body}\n", encoding="utf-8")
        tool.chmod(0o755)
        (tmp_path / "asked").write_text("", encoding="utf-8")
        fault = by_tool(tmp_path)
        assert isinstance(fault, Fault)
        assert said in str(fault)
        if said:
            assert (tmp_path / "asked").read_text(encoding="utf-8").count("asked") == 1
    assert not [one for one in psutil.process_iter(["cmdline"]) if one.info["cmdline"] == ["sleep", "986.5"]]
