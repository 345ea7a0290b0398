"""Reading what the kernel tells: small files that may be missing, PCI functions, and processes that hold a device file."""

import pwd
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from core.errors import one_line
from core.hardware import Slot, Tenant

_GENERATION = {"2.5": 1, "5": 2, "5.0": 2, "8": 3, "8.0": 3, "16": 4, "16.0": 4, "32": 5, "32.0": 5, "64": 6, "64.0": 6}
"""PCI Express generation of a lane's rate in GT/s, as the kernel writes it. Source: PCI Express Base Specification 6.0."""


def read(path: Path) -> str:
    """Return the text of a file without white space around it; empty when it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def whole(text: str) -> int | None:
    """Return a whole number from 0 up, or None."""
    return int(text) if text.isdigit() else None


def indexed(folder: Path, stem: str) -> Iterator[tuple[int, Path]]:
    """Yield the entries `stemN` of a folder with their numbers, in order of the numbers."""
    found = ((entry.name[len(stem) :], entry) for entry in folder.glob(f"{stem}[0-9]*"))
    yield from sorted((int(number), entry) for number, entry in found if number.isdigit())


def listed(text: str) -> frozenset[int]:
    """Return the numbers of a kernel list such as `0-3,8`."""
    found: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        if first.isdigit() and (not last or last.isdigit()):
            found.update(range(int(first), int(last or first) + 1))
    return frozenset(found)


def pci_functions(root: Path, vendor: str, classes: tuple[str, ...] = ("",)) -> tuple[Path, ...]:
    """Return the PCI functions of a vendor whose class begins with one of `classes`, in order of their addresses."""
    every = sorted((root / "sys/bus/pci/devices").glob("*"))
    return tuple(one for one in every if read(one / "vendor") == vendor and read(one / "class").startswith(classes))


def slot(function: Path) -> Slot:
    """Return where a PCI function sits."""
    node = read(function / "numa_node")
    return Slot(
        function.name,
        read(function / "device"),
        _GENERATION.get(read(function / "current_link_speed").partition(" ")[0]),
        _GENERATION.get(read(function / "max_link_speed").partition(" ")[0]),
        whole(read(function / "current_link_width")) or None,
        whole(read(function / "max_link_width")) or None,
        whole(node),
    )


def tenant(root: Path, pid: int, memory_bytes: int | None = None, name: str = "") -> Tenant:
    """Return a process with its program and owner, as far as they can be seen."""
    folder = root / f"proc/{pid}"
    command = _program(read(folder / "cmdline").split("\0")) or read(folder / "comm") or name
    user = ""
    with suppress(OSError, KeyError):
        user = pwd.getpwuid(folder.stat().st_uid).pw_name
    return Tenant(pid, one_line(command, 80), user, memory_bytes)


def _program(words: list[str]) -> str:
    """Return program and script of a command line, not its arguments: these may hold secrets, and devices are stored."""
    program = Path(words[0]).name
    if not program.startswith("python"):
        return program
    if "-m" in words[1:-1]:
        return f"{program} -m {words[words.index('-m') + 1]}"
    script = next((word for word in words[1:] if word and not word.startswith("-")), "")
    return f"{program} {Path(script).name}" if script and "-c" not in words else program


def holders(root: Path, paths: frozenset[str]) -> tuple[dict[str, tuple[int, ...]], int]:
    """Return which processes hold device files open, and how many processes may not be looked into.

    Args:
        root: where `/proc` is.
        paths: device files such as `/dev/vfio/0`.
    """
    found: dict[str, set[int]] = {}
    hidden = 0
    for pid, folder in indexed(root / "proc", ""):
        try:
            held = {str(entry.readlink()) for entry in (folder / "fd").iterdir()} & paths
        except PermissionError:
            hidden += 1
            continue
        except OSError:
            continue  # it ended meanwhile
        for path in held:
            found.setdefault(path, set()).add(pid)
    return {path: tuple(sorted(pids)) for path, pids in found.items()}, hidden
