"""AMD GPUs by amdsmi, which ships with ROCm, else by what the kernel's compute driver tells in `/sys/class/kfd`.

amdsmi raises for each value that a virtual machine does not give, or writes "N/A"; both are lines in `Board.unread`.
Source of names and codes: rocm.docs.amd.com/projects/amdsmi (py-interface, `amdsmi_status_t`).
"""

import importlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

from core.device import Device
from core.errors import one_line
from core.hardware import Board, Clock, Fault, Slot, Tenant, Unread
from probes.devices.files import indexed, pci_functions, read, slot, tenant, whole
from probes.devices.names import catalog_key

VENDOR = "0x1002"
_DISPLAY = ("0x0300", "0x0302", "0x0380", "0x1200")
_DRIVER_MISSING = Fault("the amdgpu driver is not loaded", "sudo modprobe amdgpu")
_FAULTS = {
    2: Fault("amdsmi does not support this GPU", "use a ROCm release that lists it; amd-smi version tells yours"),
    10: Fault("this user may not open the AMD device files", "sudo usermod -aG render,video $USER, then log in anew"),
    31: Fault("amdsmi finds no AMD GPU", "amd-smi list"),
    32: Fault("amdsmi could not be initialised", "amd-smi list"),
    34: _DRIVER_MISSING,
}
"""By `amdsmi_status_t`: NOT_SUPPORTED, NO_PERM, NOT_FOUND, NOT_INIT, DRIVER_NOT_LOADED."""
_NAMES = {2: "not supported", 3: "not implemented yet", 10: "no permission", 34: "driver not loaded", 40: "no data"}
_SLOWDOWNS = (
    ("active_prochot_thrm", "hardware thermal slowdown"),
    ("active_ppt_pwr", "power cap"),
    ("active_socket_thrm", "socket thermal slowdown"),
    ("active_vr_thrm", "voltage regulator thermal slowdown"),
    ("active_hbm_thrm", "memory thermal slowdown"),
)
_MB = 2**20


def load_amdsmi() -> Any:
    """Return the module amdsmi.

    Raises:
        ImportError: it is not installed for this Python.
        OSError: its library cannot be loaded.
    """
    return importlib.import_module("amdsmi")


def amd_gpus(root: Path = Path("/"), load: Callable[[], Any] | None = load_amdsmi) -> tuple[Device, ...]:
    """Return the AMD GPUs, by the best source that answers.

    Args:
        root: where `/proc`, `/sys` and `/dev` are.
        load: returns amdsmi; None to read the files of the kernel only.
    """
    functions = pci_functions(root, VENDOR, _DISPLAY)
    told = by_amdsmi(root, load) if load is not None and (functions or (root / "dev/kfd").exists()) else None
    if isinstance(told, tuple) and told:
        return told
    seen = _by_driver(root)
    if seen:
        return seen
    fault = told if isinstance(told, Fault) else _DRIVER_MISSING
    return tuple(_bare(index, function, fault) for index, function in enumerate(functions))


def by_amdsmi(root: Path, load: Callable[[], Any]) -> tuple[Device, ...] | Fault | None:
    """Return what amdsmi tells, why it fails, or None when it is not there."""
    try:
        smi = load()
    except (ImportError, OSError, KeyError):  # KeyError: it looks for ROCm's folder among the variables
        return None
    try:
        smi.amdsmi_init()
    except smi.AmdSmiLibraryException as error:
        return fault_of(error)
    try:
        return tuple(_device(smi, index, handle, root) for index, handle in enumerate(smi.amdsmi_get_processor_handles()))
    except smi.AmdSmiLibraryException as error:
        return fault_of(error)
    finally:
        smi.amdsmi_shut_down()


def fault_of(error: Any) -> Fault:
    """Return reason and remedy for an exception of amdsmi."""
    code = int(error.get_error_code())
    return _FAULTS.get(code) or Fault(one_line(f"amdsmi failed: {error.get_error_info()}", 160), "amd-smi list")


class _Asked:
    """Asks amdsmi value by value and keeps why a value was not given."""

    def __init__(self, smi: Any) -> None:
        self.smi, self.unread = smi, list[Unread]()

    def get(self, what: str, name: str, *arguments: Any) -> Any:
        """Return what a function gives, or None."""
        call = getattr(self.smi, name, None)
        if call is None:
            self.unread.append(Unread(what, "this version of amdsmi does not know it"))
            return None
        try:
            return call(*arguments)
        except self.smi.AmdSmiException as error:
            code = error.get_error_code() if hasattr(error, "get_error_code") else 0
            self.unread.append(Unread(what, _NAMES.get(int(code)) or one_line(str(error), 80)))
            return None

    def part(self, what: str, whole_answer: Any, name: str) -> float | None:
        """Return one number of an answer, or None when it is not there or "N/A"."""
        if whole_answer is None:
            return None
        value = _mapping(whole_answer).get(name)
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return float(value)
        self.unread.append(Unread(what, "not given"))
        return None


def _mapping(answer: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", answer) if isinstance(answer, dict) else {}


def _device(smi: Any, index: int, handle: Any, root: Path) -> Device:
    asked = _Asked(smi)
    asic = _mapping(asked.get("name", "amdsmi_get_gpu_asic_info", handle))
    memory = asked.get("memory", "amdsmi_get_gpu_vram_usage", handle)
    total, used = asked.part("memory", memory, "vram_total"), asked.part("memory in use", memory, "vram_used")
    driver = _mapping(asked.get("driver", "amdsmi_get_gpu_driver_info", handle))
    address = str(asked.get("PCI address", "amdsmi_get_gpu_device_bdf", handle) or "").lower()
    power = asked.get("power", "amdsmi_get_power_info", handle)
    name = str(asic.get("market_name") or "AMD GPU")
    uuid = str(asked.get("UUID", "amdsmi_get_gpu_device_uuid", handle) or address or f"amd-{index}")
    version = str(driver.get("driver_version") or "") or None
    celsius = asked.get(
        "temperature", "amdsmi_get_temp_metric", handle, smi.AmdSmiTemperatureType.HOTSPOT, smi.AmdSmiTemperatureMetric.CURRENT
    )
    limit = asked.part("power limit", power, "power_limit")
    board = Board(
        "AMD", "amdsmi", version,
        capability=str(asic.get("target_graphics_version") or "") or None,
        slot=_slot(asked, handle, root, address),
        clocks=(_clock(asked, handle, "graphics", smi.AmdSmiClkType.GFX), _clock(asked, handle, "memory", smi.AmdSmiClkType.MEM)),
        power_w=_first(asked, power, "current_socket_power", "average_socket_power"),
        power_limit_w=None if limit is None else limit / (1e6 if limit > 1e5 else 1),  # microwatts since ROCm 6
        temperature_c=None if celsius is None else float(celsius),
        slowdowns=_slowdowns(asked.get("slowdowns", "amdsmi_get_violation_status", handle)),
        memory_used_bytes=None if used is None else int(used * _MB),
        tenants=_tenants(asked, handle, root),
        unread=tuple(asked.unread),
    )  # fmt: skip
    detail = (f"driver {version}",) if version else ()
    size = 0 if total is None else int(total * _MB)
    return Device(f"gpu:{index}", "gpu", name, uuid, size, None, catalog_key(name), None, detail, board=board)


def _first(asked: _Asked, answer: Any, *names: str) -> float | None:
    values = _mapping(answer)
    numbers = [float(values[name]) for name in names if isinstance(values.get(name), (int, float))]
    return numbers[0] if numbers else asked.part("power", answer, names[0])


def _clock(asked: _Asked, handle: Any, title: str, kind: Any) -> Clock:
    told = asked.get(f"{title} clock", "amdsmi_get_clock_info", handle, kind)
    now, most = asked.part(f"{title} clock", told, "clk"), asked.part(f"highest {title} clock", told, "max_clk")
    return Clock(title, None if now is None else now * 1e6, None if most is None else most * 1e6)


def _slowdowns(told: Any) -> tuple[str, ...] | None:
    if told is None:
        return None
    values = _mapping(told)
    if not any(isinstance(values.get(name), (bool, int)) for name, _ in _SLOWDOWNS):
        return None
    return tuple(words for name, words in _SLOWDOWNS if values.get(name) in (True, 1))


def _slot(asked: _Asked, handle: Any, root: Path, address: str) -> Slot | None:
    if not address:
        return None
    seen = slot(root / "sys/bus/pci/devices" / address)
    link = _mapping(asked.get("PCIe link", "amdsmi_get_pcie_info", handle))
    fixed, now = _mapping(link.get("pcie_static")), _mapping(link.get("pcie_metric"))
    lanes, lanes_max, generation = now.get("pcie_width"), fixed.get("max_pcie_width"), fixed.get("pcie_interface_version")
    return Slot(
        address,
        seen.device_id,
        seen.generation,
        seen.generation_max or (generation if isinstance(generation, int) else None),
        lanes if isinstance(lanes, int) else seen.lanes,
        lanes_max if isinstance(lanes_max, int) else seen.lanes_max,
        seen.numa_node,
    )


def _tenants(asked: _Asked, handle: Any, root: Path) -> tuple[Tenant, ...] | None:
    listed = asked.get("processes", "amdsmi_get_gpu_process_list", handle)
    if listed is None:
        return None
    rows = [_mapping(row) for row in listed]
    return tuple(
        tenant(root, int(row["pid"]), int(row["mem"]) if isinstance(row.get("mem"), int) else None, str(row.get("name") or ""))
        for row in rows if isinstance(row.get("pid"), int)
    )  # fmt: skip


def _by_driver(root: Path) -> tuple[Device, ...]:
    """Return the GPUs among the nodes of the compute driver; a node without a SIMD unit is a processor."""
    found: list[Device] = []
    for _, node in indexed(root / "sys/class/kfd/kfd/topology/nodes", ""):
        pairs = (line.split() for line in read(node / "properties").splitlines())
        values = {pair[0]: pair[1] for pair in pairs if len(pair) == 2}
        if not whole(values.get("simd_count", "")) or values.get("vendor_id") != "4098":
            continue
        found.append(_node(root, len(found), node, values))
    return tuple(found)


def _node(root: Path, index: int, node: Path, values: dict[str, str]) -> Device:
    place = int(values.get("location_id", "0"))
    domain = int(values.get("domain", "0"))
    address = f"{domain:04x}:{place >> 8 & 0xFF:02x}:{place >> 3 & 0x1F:02x}.{place & 7}"
    function = root / "sys/bus/pci/devices" / address
    target = int(values.get("gfx_target_version", "0"))
    capability = f"gfx{target // 10000}{target // 100 % 100:x}{target % 100:x}" if target else None
    name = read(function / "product_name") or f"AMD GPU {capability or address}"
    banks = sum(_bank(bank / "properties") for _, bank in indexed(node / "mem_banks", ""))
    total = whole(read(function / "mem_info_vram_total")) or banks
    version = read(root / "sys/module/amdgpu/version") or None
    unique = values.get("unique_id", "0")
    uuid = f"GPU-{int(unique):x}" if unique.isdigit() and int(unique) else address
    highest = whole(values.get("max_engine_clk_fcompute", ""))
    reachable = os.access(root / "dev/kfd", os.R_OK | os.W_OK) if (root / "dev/kfd").exists() else None
    board = Board(
        "AMD", "kernel (kfd)", version, capability=capability, slot=slot(function),
        clocks=(Clock("graphics", None, highest * 1e6),) if highest else (),
        memory_used_bytes=whole(read(function / "mem_info_vram_used")),
        path="/dev/kfd", reachable=reachable,
        unread=(Unread("power, temperature, slowdowns, processes", "amdsmi, which comes with ROCm, is not in this Python"),),
    )  # fmt: skip
    detail = (f"driver {version}",) if version else ()
    return Device(f"gpu:{index}", "gpu", name, uuid, total, None, catalog_key(name), None, detail, board=board)


def _bank(path: Path) -> int:
    line = next((line for line in read(path).splitlines() if line.startswith("size_in_bytes")), "")
    return whole(line.rpartition(" ")[2]) or 0


def _bare(index: int, function: Path, fault: Fault) -> Device:
    place = slot(function)
    board = Board("AMD", "PCI bus", slot=place)
    return Device(f"gpu:{index}", "gpu", f"AMD GPU (PCI {place.device_id})", place.address, 0, board=board, fault=fault)
