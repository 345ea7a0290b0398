"""Google TPU chips by their PCI functions, their device files and who holds these; no lock is taken and libtpu is not loaded.

One process owns a chip at a time, and libtpu's own message does not always name it; the open files of `/proc` do.
Source of ids and paths: AI-Hypercomputer/cloud-accelerator-diagnostics, tpu_info/device.py; jax-ml/jax, hardware_utils.py.
"""

import os
from collections.abc import Mapping
from pathlib import Path

from catalog import accelerators
from core.device import Device
from core.hardware import Board, Slot, TpuSlice, Unread
from probes.devices.files import holders, pci_functions, read, slot, tenant
from probes.devices.metadata import LIMIT_S, SERVER, looks_like_google, tpu_slice

VENDOR = "0x1ae0"
_KEYS = {"0x005e": "tpu-v4", "0x0063": "tpu-v5e", "0x0062": "tpu-v5p", "0x006f": "tpu-v6e", "0x0076": "tpu-v7"}
_OLD = {("0x0027", "0x004e"): "tpu-v2", ("0x0027", "0x004f"): "tpu-v3"}
_BY_ACCELERATOR = (
    ("v5lite", "tpu-v5e"), ("v5p", "tpu-v5p"), ("v6e", "tpu-v6e"), ("tpu7x", "tpu-v7"), ("v4", "tpu-v4")
)  # fmt: skip
LOCK_FILE = "tmp/libtpu_lockfile"


def tpus(
    root: Path = Path("/"),
    environ: Mapping[str, str] | None = None,
    server: tuple[str, int] = SERVER,
    limit_s: float = LIMIT_S,
) -> tuple[Device, ...]:
    """Return the TPU chips of this host.

    Args:
        root: where `/proc`, `/sys`, `/dev` and `/tmp` are.
        environ: variables as in `os.environ`; none unless given.
        server, limit_s: Google's metadata server, and seconds that it may take; asked only when a chip may be there.
    """
    environ = environ or {}
    chips = _on_the_bus(root)
    nodes = _device_files(root)
    if not chips and not (nodes and (looks_like_google(root) or environ.get("TPU_ACCELERATOR_TYPE"))):
        return ()
    group = tpu_slice(environ, server, limit_s)
    if not chips:
        chips = _hidden_bus(nodes, group)
    paths = {index: _path(root, index, place, nodes) for index, (_, place) in enumerate(chips)}
    held, hidden = holders(root, frozenset(path for path in paths.values() if path))
    lock = f"/{LOCK_FILE}" if (root / LOCK_FILE).exists() and not held and not hidden else None
    unread = [Unread("clocks, power, temperature", "Google publishes none for TPUs")]
    if hidden:
        why = f"{hidden} processes of other users may not be looked into; run it with sudo to see them"
        unread.append(Unread("owner", why))
    if isinstance(group, str):
        unread.append(Unread("slice", group))
    found: list[Device] = []
    for index, (key, place) in enumerate(chips):
        path = paths[index]
        owners = tuple(tenant(root, pid) for pid in held.get(path or "", ()))
        board = Board(
            "Google", "PCI bus" if place.device_id else "device files", slot=place, path=path, locked_by=lock,
            tenants=owners if owners or not hidden else None, reachable=_reachable(root, path),
            group=group if isinstance(group, TpuSlice) else None, unread=tuple(unread),
        )  # fmt: skip
        chip = accelerators()[key]
        detail = (f"PCI {place.address}",) if place.device_id else ()
        found.append(
            Device(f"tpu:{index}", "tpu", chip.name, place.address, int(chip.memory_bytes), None, key, None, detail, board=board)
        )
    return tuple(found)


def _on_the_bus(root: Path) -> list[tuple[str, Slot]]:
    found: list[tuple[str, Slot]] = []
    for function in pci_functions(root, VENDOR):
        kind = read(function / "device")
        key = _KEYS.get(kind) or _OLD.get((kind, read(function / "subsystem_device")))
        if key:
            found.append((key, slot(function)))
    return found


def _device_files(root: Path) -> tuple[str, ...]:
    accel = sorted(path.name for path in (root / "dev").glob("accel[0-9]*"))
    vfio = sorted((path.name for path in (root / "dev/vfio").glob("[0-9]*")), key=lambda name: (len(name), name))
    return (*(f"/dev/{name}" for name in accel), *(f"/dev/vfio/{name}" for name in vfio))


def _hidden_bus(nodes: tuple[str, ...], group: TpuSlice | str) -> list[tuple[str, Slot]]:
    """Return chips by their device files alone, for containers that do not see the bus; their kind is what the slice says."""
    said = group.accelerator_type.lower() if isinstance(group, TpuSlice) else ""
    key = next((key for part, key in _BY_ACCELERATOR if part in said), None)
    return [(key, Slot(node.removeprefix("/dev/"))) for node in nodes] if key else []


def _path(root: Path, index: int, place: Slot, nodes: tuple[str, ...]) -> str | None:
    """Return the device file of a chip: that of its IOMMU group, or the one of its number."""
    number = index
    try:
        number = int((root / "sys/bus/pci/devices" / place.address / "iommu_group").readlink().name)
    except (OSError, ValueError):
        number = index
    wanted = (f"/dev/{place.address}", f"/dev/vfio/{number}", f"/dev/vfio/{index}", f"/dev/accel{index}")
    return next((path for path in wanted if path in nodes), None)


def _reachable(root: Path, path: str | None) -> bool | None:
    return None if path is None else os.access(root / path.lstrip("/"), os.R_OK | os.W_OK)
