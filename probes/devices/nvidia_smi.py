"""NVIDIA GPUs by the driver's own tool, for machines where NVML cannot be loaded into this process.

An older tool refuses the whole question for one field that it does not know; then only what every version knows is asked.
Source: `nvidia-smi --help-query-gpu`.
"""

import shutil
from collections.abc import Callable
from dataclasses import replace
from math import isfinite
from pathlib import Path

from core.device import Device
from core.hardware import Board, Clock, Fault, Partition, Slot, Tenant, Unread
from probes import asking
from probes.devices.files import slot, tenant
from probes.devices.names import catalog_key
from probes.devices.nvidia import fault_of, slowdowns

SHORT = ("index", "uuid", "name", "memory.total", "driver_version")
LONG = (
    *SHORT, "memory.used", "pci.bus_id", "clocks.sm", "clocks.max.sm", "clocks.mem", "clocks.max.mem", "power.draw",
    "power.limit", "temperature.gpu", "clocks_throttle_reasons.active", "pcie.link.gen.current", "pcie.link.gen.max",
    "pcie.link.width.current", "pcie.link.width.max", "mig.mode.current", "compute_cap",
)  # fmt: skip
LIMIT_S = 20.0
_SAID = (
    ("couldn't communicate with the NVIDIA driver", 9),
    ("could not communicate with the NVIDIA driver", 9),
    ("version mismatch", 18),
    ("Insufficient Permissions", 4),
    ("GPU is lost", 15),
    ("requires reset", 16),
    ("blocked by the operating system", 17),
)
Ask = Callable[[tuple[str, ...]], tuple[int, str] | None]
"""Takes arguments, gives exit code and what was written on both streams; None when there is no such tool."""
_GAVE_UP = 124
"""Exit code of `timeout`, for a tool that hung or flooded: it is not asked again."""


def ask_tool(arguments: tuple[str, ...]) -> tuple[int, str] | None:
    """Run `nvidia-smi`; None when it is not there or cannot run."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return None
    try:
        done = asking.ask((tool, *arguments), LIMIT_S, errors=True)
    except OSError:
        return None
    return (_GAVE_UP, f"nvidia-smi {done.obstacle}") if done.obstacle else (done.code, done.text)


def by_tool(root: Path, ask: Ask = ask_tool) -> tuple[Device, ...] | Fault | None:
    """Return the GPUs that the tool tells, why it fails, or None when there is no tool."""
    for fields in (LONG, SHORT):
        answer = ask((f"--query-gpu={','.join(fields)}", "--format=csv,noheader,nounits"))
        if answer is None:
            return None
        code, text = answer
        if code == 0:
            return _with_tenants(parse_nvidia(text, root), root, ask)
        known = next((number for words, number in _SAID if words in text), None)
        if known is not None:
            return fault_of(known)
        if code == _GAVE_UP:
            break
    return () if "No devices were found" in text else fault_of(999, text)


def parse_nvidia(text: str, root: Path = Path("/")) -> tuple[Device, ...]:
    """Return the devices of one answer with the fields `LONG` or `SHORT`; lines that the tool could not fill are passed over."""
    found: list[Device] = []
    for line in text.splitlines():
        parts = [part.strip() for part in line.split(",")]
        fields = LONG if len(parts) == len(LONG) else SHORT
        if len(parts) == len(fields) and parts[0].isdigit() and parts[3].isdigit():
            values = {name: value for name, value in zip(fields, parts, strict=True) if _given(value)}
            found.append(_device(values, root))
    return tuple(found)


def _given(value: str) -> bool:
    return bool(value) and not value.startswith("[")


def _device(values: dict[str, str], root: Path) -> Device:
    used, mode = _number(values, "memory.used"), values.get("mig.mode.current")
    bits = _mask(values, "clocks_throttle_reasons.active")
    board = Board(
        "NVIDIA",
        "nvidia-smi",
        values.get("driver_version"),
        None,
        values.get("compute_cap"),
        _slot(values, root),
        tuple(
            Clock(title, _scaled(values, f"clocks.{name}", 1e6), _scaled(values, f"clocks.max.{name}", 1e6))
            for title, name in (("SM", "sm"), ("memory", "mem"))
        ),
        _number(values, "power.draw"),
        _number(values, "power.limit"),
        _number(values, "temperature.gpu"),
        None if bits is None else slowdowns(bits),
        None if used is None else int(used * 2**20),
        None if mode is None else mode == "Enabled",
        unread=tuple(Unread(name, "nvidia-smi does not give it") for name in LONG if name not in values),
    )
    name = values.get("name", "NVIDIA GPU")
    detail = (f"driver {board.driver}",) if board.driver else ()
    index, uuid, total = values["index"], values.get("uuid", ""), int(values["memory.total"]) * 2**20
    return Device(f"gpu:{index}", "gpu", name, uuid, total, None, catalog_key(name), None, detail, board=board)


def _number(values: dict[str, str], name: str) -> float | None:
    try:
        value = float(values[name])
    except (KeyError, ValueError):
        return None
    return value if isfinite(value) else None


def _mask(values: dict[str, str], name: str) -> int | None:
    try:
        return int(values[name], 16)
    except (KeyError, ValueError):
        return None


def _scaled(values: dict[str, str], name: str, factor: float) -> float | None:
    value = _number(values, name)
    return None if value is None else value * factor


def _slot(values: dict[str, str], root: Path) -> Slot | None:
    if "pci.bus_id" not in values:
        return None
    domain, _, rest = values["pci.bus_id"].lower().partition(":")
    seen = slot(root / "sys/bus/pci/devices" / f"{domain[-4:]}:{rest}")
    link = (_number(values, f"pcie.link.{name}") for name in ("gen.current", "gen.max", "width.current", "width.max"))
    generation, generation_max, lanes, lanes_max = (None if value is None else int(value) for value in link)
    return Slot(seen.address, seen.device_id, generation, generation_max, lanes, lanes_max, seen.numa_node)


def _with_tenants(devices: tuple[Device, ...], root: Path, ask: Ask) -> tuple[Device, ...]:
    """Return the devices with the processes on them and their MIG instances, which are questions of their own."""
    answer = ask(("--query-compute-apps=gpu_uuid,pid,process_name,used_memory", "--format=csv,noheader,nounits"))
    if answer is None or answer[0]:
        return devices
    on: dict[str, list[Tenant]] = {}
    for line in answer[1].splitlines():
        parts = [part.strip() for part in line.split(",")]
        if len(parts) == 4 and parts[1].isdigit():
            used = int(parts[3]) * 2**20 if parts[3].isdigit() else None
            on.setdefault(parts[0], []).append(tenant(root, int(parts[1]), used, parts[2]))
    split = any(device.board and device.board.partitioned for device in devices)
    parts_of = _partitions(ask) if split else {}
    return tuple(
        replace(one, board=replace(one.board, tenants=tuple(on.get(one.uuid, ())), partitions=parts_of.get(one.uuid, ())))
        if one.board
        else one
        for one in devices
    )


def _partitions(ask: Ask) -> dict[str, tuple[Partition, ...]]:
    """Return the MIG instances of each GPU out of `nvidia-smi -L`, whose lines are indented below their GPU's."""
    found: dict[str, tuple[Partition, ...]] = {}
    gpu = ""
    answer = ask(("-L",))
    for line in (answer[1] if answer and not answer[0] else "").splitlines():
        head, _, rest = line.strip().partition("(UUID: ")
        uuid = rest.rstrip(")")
        if line.startswith("GPU "):
            gpu = uuid
        elif head.startswith("MIG") and uuid:
            name = head.partition("Device")[0].strip()
            found[gpu] = (*found.get(gpu, ()), Partition(uuid, name))
    return found
