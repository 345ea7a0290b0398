"""What a code base says of a workload: the fields of `existing` that nobody filled in, each with the line that says so."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from core.codec import from_plain
from core.finding import Fact, Scan
from intake.code import facts
from intake.files import require_sandbox
from intake.sandbox import Limits, read_in_sandbox

LIMITS = Limits(memory_bytes=3 * 2**30, cpu_s=240, wall_s=300.0, result_bytes=128 * 2**20)
LISTED = {"libraries": "library", "custom_kernels": "custom kernel", "ops": "operation"}


def scan_code(source: Path | bytes, name: str = "", *, weak_sandbox: bool = False) -> Scan:
    """Scan a code base in the sandbox: a file, a folder, or a zip; it is parsed and never run.

    Args:
        source: a path that the user may read, or the bytes of a file or zip.
        name: what it is called; the last part of the path when empty.
        weak_sandbox: whether an administrator accepts a sandbox below the minimum.

    Raises:
        BadInput: no code, or refused; one line.
    """
    require_sandbox(weak_sandbox)
    return from_plain(Scan, read_in_sandbox("reading", source, LIMITS, name=name, package="intake.code"))


def filled(existing: Mapping[str, Any], scan: Scan) -> dict[str, Any]:
    """Return an `existing` section with what a scan says put where nothing was said.

    Args:
        existing: as the document has it; what it says stands.
        scan: of the code.
    """
    found = facts(scan)
    result = {key: value for key, value in existing.items() if value is not None}
    told: list[str] = []
    if found.framework is not None and "framework" not in result:
        result["framework"] = found.framework.value
        told.append(_told("framework", found.framework))
    for key, singular in LISTED.items():
        values: tuple[Fact, ...] = getattr(found, key)
        if values and key not in result:
            result[key] = [one.value for one in values]
            told += [_told(singular, one) for one in values]
    if found.host_reads_per_step is not None and "host_reads_per_step" not in result:
        result["host_reads_per_step"] = found.host_reads_per_step
        told.append(f"{found.host_reads_per_step} host reads a step" + _places([str(one) for one in found.host_reads]))
    if found.versions and "versions" not in result:
        result["versions"] = dict(one.value.split("==", 1) for one in found.versions)
        told += [_told("version", one) for one in found.versions]
    return result | ({"evidence": told[:60]} if told else {})


def with_code(existing: Mapping[str, Any], folder: Path, weak_sandbox: bool) -> dict[str, Any]:
    """Return an `existing` section with what its `code` says, where that is a file or folder that is there.

    Args:
        existing: with a path at `code`, from `folder`, or without; another text there, such as an address, is left alone.
        folder: of the workload file.
        weak_sandbox: as in `scan_code`.

    Raises:
        BadInput: there is no code in it, or it is refused.
    """
    code = existing.get("code")
    if not isinstance(code, str):
        return dict(existing)
    if not _is_there(folder / code):
        return {**existing, "evidence": [f"nothing: {code[:120]} is not there, so it was not scanned"]}
    return filled(existing, scan_code(folder / code, weak_sandbox=weak_sandbox))


def _is_there(place: Path) -> bool:
    """Whether a path is there; a text that can be none, such as one that is too long, is not."""
    try:
        return place.exists()
    except (OSError, ValueError):
        return False


def _told(what: str, fact: Fact) -> str:
    return f"{what} {fact.value}" + _places([str(one) for one in fact.places])


def _places(places: list[str]) -> str:
    return f": {', '.join(places[:2])}" + (f" and {len(places) - 2} more" if len(places) > 2 else "") if places else ""
