"""NVIDIA GPUs by NVML, by `nvidia-smi` where NVML cannot be loaded, and by their PCI functions where the driver does not answer.

NVML needs no CUDA context, so nothing is initialised and no memory is taken. It raises for each value that a virtual machine
or a partition does not give; that is a line in `Board.unread`, never the loss of the device. Source of names and codes:
docs.nvidia.com/deploy/nvml-api.
"""

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from core.device import Device
from core.errors import one_line
from core.hardware import Board, Clock, Fault, Partition, Slot, Tenant, Unread
from probes.devices.files import pci_functions, slot, tenant
from probes.devices.names import catalog_key

VENDOR = "0x10de"
_DISPLAY = ("0x0300", "0x0302")
_SLOWDOWNS = (
    (0x4, "software power cap"),
    (0x8, "hardware slowdown"),
    (0x20, "software thermal slowdown"),
    (0x40, "hardware thermal slowdown"),
    (0x80, "hardware power brake"),
    (0x2, "clocks set by an administrator"),
    (0x10, "sync boost with slower GPUs"),
    (0x100, "clocks set for a display"),
)
"""Bits of the clock event reasons that hold a clock down; 1 is idle and says nothing."""
LIBRARY_MISSING, NOT_FOUND, LOST = 12, 6, 15
_FAULTS = {
    4: Fault("this user may not open the NVIDIA device files", "ls -l /dev/nvidia*; sudo usermod -aG video,render $USER"),
    9: Fault("the NVIDIA driver is not loaded", "sudo modprobe nvidia"),
    12: Fault("the NVIDIA driver is not installed here: libnvidia-ml was not found", "install the NVIDIA driver, or start the "
              "container with --gpus all"),
    15: Fault("the GPU has fallen off the bus", "sudo nvidia-smi --gpu-reset, and if it stays lost, sudo reboot"),
    16: Fault("the GPU must be reset", "sudo nvidia-smi --gpu-reset"),
    17: Fault("the operating system blocks the NVIDIA device files", "start the container with --gpus all"),
    18: Fault("the driver's library and its kernel module have different versions, as after an update", "sudo reboot"),
}  # fmt: skip


def fault_of(code: int, text: str = "") -> Fault:
    """Return reason and remedy for an NVML error code."""
    return _FAULTS.get(code) or Fault(one_line(f"NVML failed: {text or f'code {code}'}", 160), "nvidia-smi -q")


def load_nvml() -> Any:
    """Return the NVML module; raises ImportError when it is not installed."""
    return importlib.import_module("pynvml")


def by_nvml(root: Path, load: Callable[[], Any] = load_nvml) -> tuple[Device, ...] | Fault:
    """Return the GPUs that NVML tells, or why it does not answer.

    Args:
        root: where `/proc` and `/sys` are.
        load: returns the module `pynvml` of the distribution nvidia-ml-py.
    """
    try:
        nvml = load()
    except (ImportError, OSError):
        return fault_of(LIBRARY_MISSING)
    try:
        nvml.nvmlInit()
    except nvml.NVMLError as error:
        return fault_of(error.value, str(error))
    try:
        return tuple(_device(nvml, index, root) for index in range(nvml.nvmlDeviceGetCount()))
    except nvml.NVMLError as error:
        return fault_of(error.value, str(error))
    finally:
        nvml.nvmlShutdown()


def without_driver(root: Path, fault: Fault) -> tuple[Device, ...]:
    """Return the GPUs that sit on the PCI bus while nothing answers for them, each with the reason."""
    found: list[Device] = []
    for function in pci_functions(root, VENDOR, _DISPLAY):
        place = slot(function)
        board = Board("NVIDIA", "PCI bus", slot=place)
        name = f"NVIDIA GPU (PCI {place.device_id})"
        found.append(Device(f"gpu:{len(found)}", "gpu", name, place.address, 0, board=board, fault=fault))
    return tuple(found)


class _Asked:
    """Asks NVML value by value and keeps why a value was not given."""

    def __init__(self, nvml: Any) -> None:
        self.nvml, self.unread = nvml, list[Unread]()

    def get(self, what: str, name: str, *arguments: Any, needed: bool = False) -> Any:
        """Return what a function of NVML gives, or None; `needed` lets its error pass."""
        call = getattr(self.nvml, name, None)
        if call is None:
            self.unread.append(Unread(what, "this version of nvidia-ml-py does not know it"))
            return None
        try:
            return call(*arguments)
        except self.nvml.NVMLError as error:
            if needed:
                raise
            self.unread.append(Unread(what, one_line(str(error), 80)))
            return None

    def text(self, what: str, name: str, *arguments: Any, needed: bool = False) -> str:
        """Return a text; versions before 12 give bytes."""
        value = self.get(what, name, *arguments, needed=needed)
        return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value or "")

    def number(self, what: str, name: str, *arguments: Any) -> int | None:
        """Return a whole number, or None."""
        value = self.get(what, name, *arguments)
        return int(value) if value is not None else None


def _device(nvml: Any, index: int, root: Path) -> Device:
    asked = _Asked(nvml)
    device_id = f"gpu:{index}"
    try:
        handle = nvml.nvmlDeviceGetHandleByIndex(index)
        name = asked.text("name", "nvmlDeviceGetName", handle, needed=True)
        uuid = asked.text("UUID", "nvmlDeviceGetUUID", handle, needed=True)
    except nvml.NVMLError as error:
        board = Board("NVIDIA", "NVML", unread=tuple(asked.unread))
        return Device(device_id, "gpu", "NVIDIA GPU", f"nvml-{index}", 0, board=board, fault=fault_of(error.value, str(error)))
    memory = asked.get("memory", "nvmlDeviceGetMemoryInfo", handle)
    driver = asked.text("driver", "nvmlSystemGetDriverVersion") or None
    partitioned, partitions = _partitions(asked, handle)
    capability = asked.get("compute capability", "nvmlDeviceGetCudaComputeCapability", handle)
    limit = asked.number("power limit", "nvmlDeviceGetEnforcedPowerLimit", handle)
    power = asked.number("power", "nvmlDeviceGetPowerUsage", handle)
    degrees = asked.number("temperature", "nvmlDeviceGetTemperature", handle, 0)
    board = Board(
        "NVIDIA",
        f"NVML {asked.text('NVML version', 'nvmlSystemGetNVMLVersion')}".strip(),
        driver,
        _cuda(asked.number("CUDA of the driver", "nvmlSystemGetCudaDriverVersion_v2")),
        ".".join(str(part) for part in capability) if capability else None,
        _slot(asked, handle, root),
        tuple(_clock(asked, handle, title, number) for title, number in (("SM", 1), ("memory", 2))),
        None if power is None else power / 1000,
        None if limit is None else limit / 1000,
        None if degrees is None else float(degrees),
        _slowdowns(asked, handle),
        None if memory is None else int(memory.used),
        partitioned,
        partitions,
        _tenants(asked, handle, root),
        unread=tuple(asked.unread),
    )
    detail = (f"driver {driver}",) if driver else ()
    total = 0 if memory is None else int(memory.total)
    return Device(device_id, "gpu", name, uuid, total, None, catalog_key(name), None, detail, board=board)


def _cuda(version: int | None) -> str | None:
    return None if version is None else f"{version // 1000}.{version % 1000 // 10}"


def _clock(asked: _Asked, handle: Any, title: str, number: int) -> Clock:
    now = asked.number(f"{title} clock", "nvmlDeviceGetClockInfo", handle, number)
    most = asked.number(f"highest {title} clock", "nvmlDeviceGetMaxClockInfo", handle, number)
    return Clock(title, None if now is None else now * 1e6, None if most is None else most * 1e6)


def _slowdowns(asked: _Asked, handle: Any) -> tuple[str, ...] | None:
    names = ("nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons")
    known = next((name for name in names if hasattr(asked.nvml, name)), names[0])
    return slowdowns(asked.number("clock event reasons", known, handle))


def slowdowns(bits: int | None) -> tuple[str, ...] | None:
    """Return in words what holds the clocks down; empty when nothing does, None when it is not known."""
    return None if bits is None else tuple(words for bit, words in _SLOWDOWNS if bits & bit)


def _slot(asked: _Asked, handle: Any, root: Path) -> Slot | None:
    place = asked.get("PCI address", "nvmlDeviceGetPciInfo", handle)
    if place is None:
        return None
    raw = place.busId.decode("ascii", "replace") if isinstance(place.busId, bytes) else str(place.busId)
    domain, _, rest = raw.lower().partition(":")
    address = f"{domain[-4:]}:{rest}"  # NVML writes the domain with eight digits, the kernel with four
    seen = slot(root / "sys/bus/pci/devices" / address)
    return Slot(
        address,
        seen.device_id,
        asked.number("PCIe generation", "nvmlDeviceGetCurrPcieLinkGeneration", handle),
        asked.number("highest PCIe generation", "nvmlDeviceGetMaxPcieLinkGeneration", handle),
        asked.number("PCIe lanes", "nvmlDeviceGetCurrPcieLinkWidth", handle),
        asked.number("most PCIe lanes", "nvmlDeviceGetMaxPcieLinkWidth", handle),
        seen.numa_node,
    )


def _partitions(asked: _Asked, handle: Any) -> tuple[bool | None, tuple[Partition, ...]]:
    mode = asked.get("MIG mode", "nvmlDeviceGetMigMode", handle)
    if mode is None:
        return None, ()
    if not int(mode[0]):
        return False, ()
    found: list[Partition] = []
    for index in range(asked.number("MIG instances", "nvmlDeviceGetMaxMigDeviceCount", handle) or 0):
        try:
            part = asked.nvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, index)
        except asked.nvml.NVMLError:
            continue  # NOT_FOUND: fewer instances than there may be
        memory = asked.get("memory of a MIG instance", "nvmlDeviceGetMemoryInfo", part)
        uuid = asked.text("UUID of a MIG instance", "nvmlDeviceGetUUID", part)
        name = asked.text("name of a MIG instance", "nvmlDeviceGetName", part)
        found.append(Partition(uuid, name, None if memory is None else int(memory.total)))
    return True, tuple(found)


def _tenants(asked: _Asked, handle: Any, root: Path) -> tuple[Tenant, ...] | None:
    found: dict[int, Tenant] = {}
    answered = False
    for kind in ("Compute", "Graphics"):
        listed = asked.get(f"{kind.lower()} processes", f"nvmlDeviceGet{kind}RunningProcesses", handle)
        answered = answered or listed is not None
        for one in listed or ():
            used = None if one.usedGpuMemory is None else int(one.usedGpuMemory)
            found[int(one.pid)] = tenant(root, int(one.pid), used)
    return tuple(found[pid] for pid in sorted(found)) if answered else None
