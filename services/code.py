"""A code base as a use case: what ties it to a device or a framework, how far it is from each target, what it says of a job."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core.errors import one_line
from core.finding import TARGETS, CodeFacts, Portability, Scan, TargetFinding
from intake.code import expand, facts, scores
from intake.code.kinds import is_wanted
from intake.existing import filled, scan_code
from services.context import context

TARGET_NAMES: dict[str, str] = {
    "jax-tpu": "TPU through JAX",
    "torch-tpu": "TPU through TorchTPU",
    "torch-xla": "TPU through PyTorch/XLA",
    "gpu-amd": "AMD GPU",
    "gpu-nvidia": "NVIDIA GPU",
    "framework": "another framework",
}
assert tuple(TARGET_NAMES) == TARGETS


@dataclass(frozen=True, slots=True)
class CodeReport:
    """What a scan of a code base says.

    Args:
        name: of what was scanned.
        scan: everything that was seen.
        scores: one for each target.
        facts: what it says of a workload, with the lines that say so.
    """

    name: str
    scan: Scan
    scores: tuple[Portability, ...]
    facts: CodeFacts


def looks_like_code(path: Path) -> bool:
    """Whether a path is code to be scanned: a folder, a zip, or a file of a kind that a scan reads."""
    if path.is_dir() or path.suffix.lower() == ".zip":
        return True
    return path.is_file() and is_wanted(path.name) and path.suffix.lower() not in {".yaml", ".yml"}


def scan(source: Path | bytes, name: str = "") -> CodeReport:
    """Scan a code base: a file, a folder or a zip. It is parsed in the sandbox and never run.

    Args:
        source: a path that the user may read, or the bytes of a file or zip.
        name: what it is called; the last part of the path when empty.

    Raises:
        BadInput: no code, or refused; one line.
    """
    found = scan_code(source, name, weak_sandbox=context().settings.weak_sandbox)
    shown = one_line(name or (source.resolve().name if isinstance(source, Path) else ""), 200) or "code"
    return CodeReport(shown, found, scores(found), facts(found))


def findings_on(report: CodeReport, target: str) -> tuple[TargetFinding, ...]:
    """Return what the findings mean on a target, worst first."""
    return expand(report.scan.findings, target)


def work_of(score: Portability) -> str:
    """Return the hours that a score stands for, `2 to 14 h`; less than half of one is no `0 to 0 h`."""
    if score.work_high_h == 0:
        return "none"
    return "under 1 h" if score.work_high_h < 1 else f"{score.work_low_h:.0f} to {score.work_high_h:.0f} h"


def existing_of(report: CodeReport) -> dict[str, Any]:
    """Return the `existing` section that the code fills in, for a workload's document."""
    return filled({}, report.scan)
