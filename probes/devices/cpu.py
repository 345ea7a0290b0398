"""The processor as one device: what the machine has, and what this process may use of it.

Affinity, control group and machine are told apart, for a framework may see any of the three: XLA sizes its pool by affinity,
a quota of the control group then throttles it.
"""

import hashlib
import os
from pathlib import Path
from typing import TypeVar

from core.device import Device
from core.hardware import Cache, NumaNode, Processor
from probes.devices.files import indexed, listed, read, whole

_EXTENSIONS = (
    "avx2", "avx_vnni", "avx512f", "avx512_vnni", "avx512_bf16", "avx512_fp16", "amx_tile", "amx_bf16", "amx_int8", "amx_fp16",
    "asimd", "asimddp", "fphp", "sve", "sve2", "bf16", "i8mm",
)  # fmt: skip
Number = TypeVar("Number", int, float)
_UNITS = {"K": 2**10, "M": 2**20, "G": 2**30}


def cpu(root: Path = Path("/"), affinity: frozenset[int] | None = None) -> Device:
    """Return the processor with what this process may use of it.

    Args:
        root: where `/proc` and `/sys` are.
        affinity: numbers of the logical cores that may be used; those of this process unless given.
    """
    text = read(root / "proc/cpuinfo")
    name = _field(text, "model name") or _arm(text) or "CPU"
    cores = len(affinity) if affinity is not None else _allowed()
    facts = processor(root, text)
    detail = [f"{cores} cores usable"]
    if facts.quota_cores is not None and facts.quota_cores < cores:
        detail.append(f"limited to {facts.quota_cores:.1f} cores by its control group")
    total = _memory_total(root)
    limit = facts.group_memory_bytes
    memory = limit if limit is not None and limit < total else total
    identity = hashlib.sha256(f"{name} {cores} {read(root / 'etc/machine-id')}".encode()).hexdigest()[:16]
    last = facts.caches[-1].size_bytes if facts.caches else None
    return Device("cpu:0", "cpu", name, f"cpu-{identity}", memory, cores, None, last, tuple(detail), facts)


def processor(root: Path, cpuinfo: str = "") -> Processor:
    """Return the facts of the processor that do not depend on this process, and the limits of its control group."""
    folders = tuple(indexed(root / "sys/devices/system/cpu", "cpu"))
    places = {(read(place / "topology/physical_package_id"), read(place / "topology/core_id")) for _, place in folders}
    places = {place for place in places if all(place)}
    version, quota, memory = control_group(root)
    flags = frozenset((_field(cpuinfo, "flags") or _field(cpuinfo, "Features")).split())
    return Processor(
        machine_cores=len(listed(read(root / "sys/devices/system/cpu/online"))) or None,
        physical_cores=len(places) or None,
        sockets=len({package for package, _ in places}) or None,
        quota_cores=quota,
        group_memory_bytes=memory,
        control_group=version,
        caches=_caches([place for _, place in folders]),
        numa=_numa(root),
        extensions=tuple(name for name in _EXTENSIONS if name in flags),
    )


def _allowed() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)


def _field(cpuinfo: str, name: str) -> str:
    lines = (line.partition(":") for line in cpuinfo.splitlines())
    return next((value.strip() for key, _, value in lines if key.strip() == name), "")


def _arm(cpuinfo: str) -> str:
    part = _field(cpuinfo, "CPU part")
    return f"Arm CPU, implementer {_field(cpuinfo, 'CPU implementer')}, part {part}" if part else ""


def _memory_total(root: Path) -> int:
    total = _field(read(root / "proc/meminfo"), "MemTotal").split()
    return int(total[0]) * 1024 if total and total[0].isdigit() else 0


def control_group(root: Path) -> tuple[int | None, float | None, int | None]:
    """Return the version of the control groups, and the least limits of this process's group and all above it.

    Returns:
        1, 2 or None; processor seconds a second or None; bytes or None.

    Source: docs.kernel.org, admin-guide/cgroup-v2 (`cpu.max`, `memory.max`) and cgroup-v1 (`cpu.cfs_quota_us`,
    `memory.limit_in_bytes`).
    """
    base = root / "sys/fs/cgroup"
    own = [line.split(":", 2) for line in read(root / "proc/self/cgroup").splitlines() if line.count(":") >= 2]
    old = {name: path for _, names, path in own for name in names.split(",") if name}
    if (base / "memory").is_dir() or (base / "cpu").is_dir() or (base / "cpu,cpuacct").is_dir():
        cpu_base = next((base / name for name in ("cpu", "cpu,cpuacct") if (base / name).is_dir()), base / "cpu")
        quotas = [_old_quota(place) for place in _above(cpu_base, old.get("cpu", "/"))]
        limits = [whole(read(place / "memory.limit_in_bytes")) for place in _above(base / "memory", old.get("memory", "/"))]
        return 1, _least(quotas), _limited(_least(limits))
    path = next((path for _, names, path in own if not names), "/")
    places = _above(base, path)
    quota, limit = _least([_quota(place) for place in places]), _least([whole(read(place / "memory.max")) for place in places])
    known = (base / "cgroup.controllers").exists() or quota is not None or limit is not None
    return 2 if known else None, quota, limit


def _above(base: Path, path: str) -> list[Path]:
    """Return a group and all above it; in a container the path may be the host's, and only its mount is seen."""
    parts = [part for part in path.split("/") if part not in ("", "..")]
    return [base.joinpath(*parts[:depth]) for depth in range(len(parts) + 1)]


def _least(values: list[Number | None]) -> Number | None:
    return min((value for value in values if value is not None), default=None)


def _limited(value: int | None) -> int | None:
    """Return a limit of version 1, whose "none" is the largest multiple of a page in 63 bits."""
    return None if value is None or value >= 2**62 else value


def _quota(place: Path) -> float | None:
    parts = read(place / "cpu.max").split()
    return int(parts[0]) / int(parts[1]) if len(parts) == 2 and parts[0].isdigit() and parts[1].isdigit() else None


def _old_quota(place: Path) -> float | None:
    quota, period = whole(read(place / "cpu.cfs_quota_us")), whole(read(place / "cpu.cfs_period_us"))
    return quota / period if quota and period else None


def _caches(folders: list[Path]) -> tuple[Cache, ...]:
    found: dict[tuple[int, str], tuple[int, set[str]]] = {}
    for place in folders:
        for _, index in indexed(place / "cache", "index"):
            level, size = read(index / "level"), read(index / "size")
            if level.isdigit() and size[:-1].isdigit() and size[-1] in _UNITS:
                kind = read(index / "type").lower() or "unified"
                key = (int(level), kind)
                found.setdefault(key, (int(size[:-1]) * _UNITS[size[-1]], set()))[1].add(read(index / "shared_cpu_list"))
    return tuple(Cache(level, kind, size, len(shared)) for (level, kind), (size, shared) in sorted(found.items()))


def _numa(root: Path) -> tuple[NumaNode, ...]:
    nodes: list[NumaNode] = []
    for number, place in indexed(root / "sys/devices/system/node", "node"):
        line = next((line for line in read(place / "meminfo").splitlines() if "MemTotal:" in line), "")
        words = line.split()
        memory = int(words[3]) * 1024 if len(words) > 3 and words[3].isdigit() else None
        nodes.append(NumaNode(number, len(listed(read(place / "cpulist"))), memory))
    return tuple(nodes)
