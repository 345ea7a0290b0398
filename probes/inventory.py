"""What is attached, found without initialising a framework: files of the kernel, and `nvidia-smi` where there is one."""

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

from core.device import Device

_NVIDIA_FIELDS = "index,uuid,name,memory.total,driver_version"
_GOOGLE_PCI_VENDOR = "0x1ae0"
_CATALOG_NAMES = (
    ("h100 pcie", "h100-pcie"),
    ("h100", "h100-sxm"),
    ("h200", "h200"),
    ("gh200", "gh200"),
    ("b200", "b200"),
    ("b300", "b300"),
    ("a100-sxm4-80gb", "a100-80"),
    ("a100 80gb", "a100-80"),
    ("a100", "a100-40"),
    ("a10g", "a10g"),
    ("l40s", "l40s"),
    ("l4", "l4"),
    ("t4", "t4"),
    ("v100-sxm2-32gb", "v100-32"),
    ("v100", "v100-16"),
    ("rtx 4090", "rtx4090"),
    ("rtx 5090", "rtx5090"),
    ("rtx pro 6000", "rtxpro6000"),
)
"""Parts of the names that NVIDIA's driver reports, most telling first, with their catalog keys."""


def devices(root: Path = Path("/")) -> tuple[Device, ...]:
    """Return the attached devices: CPUs first, then GPUs, then TPUs.

    Args:
        root: where `/proc` and `/sys` are looked for; tests give a folder of recorded files.
    """
    return (cpu(root), *nvidia_gpus(), *tpus(root))


def cpu(root: Path = Path("/")) -> Device:
    """Return the processor as one device, with what this process may use of it."""
    text = _read(root / "proc/cpuinfo")
    name = next((line.partition(":")[2].strip() for line in text.splitlines() if line.startswith("model name")), "CPU")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)
    quota = _cgroup_cores(root)
    detail = [f"{cores} cores usable"]
    if quota is not None and quota < cores:
        detail.append(f"limited to {quota:.1f} cores by its control group")
    memory = _memory_bytes(root)
    cache = _cache_bytes(root)
    identity = hashlib.sha256(f"{name} {cores} {_read(root / 'etc/machine-id').strip()}".encode()).hexdigest()[:16]
    return Device("cpu:0", "cpu", name, f"cpu-{identity}", memory, cores, None, cache, tuple(detail))


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _memory_bytes(root: Path) -> int:
    """Return the memory that this process may use: the machine's, or its control group's if that is less."""
    total = next(
        (int(line.split()[1]) * 1024 for line in _read(root / "proc/meminfo").splitlines() if line.startswith("MemTotal:")), 0
    )
    for name in ("sys/fs/cgroup/memory.max", "sys/fs/cgroup/memory/memory.limit_in_bytes"):
        limit = _read(root / name).strip()
        if limit.isdigit() and 0 < int(limit) < total:
            return int(limit)
    return total


def _cgroup_cores(root: Path) -> float | None:
    parts = _read(root / "sys/fs/cgroup/cpu.max").split()
    return int(parts[0]) / int(parts[1]) if len(parts) == 2 and parts[0].isdigit() else None


def _cache_bytes(root: Path) -> int | None:
    """Return the size of the last-level cache, or None when the kernel does not tell."""
    sizes: list[tuple[int, int]] = []
    for index in (root / "sys/devices/system/cpu/cpu0/cache").glob("index*"):
        level, size = _read(index / "level").strip(), _read(index / "size").strip()
        if level.isdigit() and size[:-1].isdigit():
            sizes.append((int(level), int(size[:-1]) * (2**10 if size.endswith("K") else 2**20)))
    return max(sizes)[1] if sizes else None


def nvidia_gpus() -> tuple[Device, ...]:
    """Return NVIDIA GPUs as the driver's own tool tells them; none when the tool or the driver is not there."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return ()
    command = [tool, f"--query-gpu={_NVIDIA_FIELDS}", "--format=csv,noheader,nounits"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)  # noqa: S603 - fixed command
    except (OSError, subprocess.TimeoutExpired):
        return ()
    return parse_nvidia(answer.stdout) if answer.returncode == 0 else ()


def parse_nvidia(text: str) -> tuple[Device, ...]:
    """Return the devices of one answer of `nvidia-smi --query-gpu`; lines that it could not fill are passed over."""
    found: list[Device] = []
    for line in text.splitlines():
        parts = [part.strip() for part in line.split(",")]
        if len(parts) != 5 or not parts[0].isdigit() or not parts[3].isdigit():
            continue
        index, uuid, name, mebibytes, driver = parts
        key = next((k for part, k in _CATALOG_NAMES if part in name.lower()), None)
        found.append(Device(f"gpu:{index}", "gpu", name, uuid, int(mebibytes) * 2**20, None, key, None, (f"driver {driver}",)))
    return tuple(found)


def tpus(root: Path = Path("/")) -> tuple[Device, ...]:
    """Return Google TPU chips by their PCI vendor; takes no lock on them."""
    kinds = {"0x005e": "tpu-v4", "0x0063": "tpu-v5e", "0x0062": "tpu-v5p", "0x006f": "tpu-v6e", "0x0076": "tpu-v7"}
    memory = {"tpu-v4": 32, "tpu-v5e": 16, "tpu-v5p": 95, "tpu-v6e": 32, "tpu-v7": 192}
    found: list[Device] = []
    for path in sorted((root / "sys/bus/pci/devices").glob("*")):
        key = kinds.get(_read(path / "device").strip())
        if _read(path / "vendor").strip() == _GOOGLE_PCI_VENDOR and key:
            found.append(
                Device(f"tpu:{len(found)}", "tpu", key, path.name, memory[key] * 10**9, None, key, None, (f"PCI {path.name}",))
            )
    return tuple(found)
