"""What a code scan finds: places in files, what they mean on each target, and the scores and facts that follow from them.

Data only. The rules behind a finding are declared in `intake/code/rules`; nothing here opens a file or knows a framework.
"""

from dataclasses import dataclass

TARGETS = ("jax-tpu", "torch-tpu", "torch-xla", "gpu-amd", "gpu-nvidia", "framework")
"""Where code may be wanted: TPU through JAX, through TorchTPU, through PyTorch/XLA; AMD and NVIDIA GPUs as it is; another
framework."""
SEVERITIES = ("none", "check", "work", "blocks")
"""Mildest first: nothing to do, to be looked at, to be changed, cannot run there until it is replaced."""
STEP, LOOP, ONCE = "step", "loop", "once"
"""Where a line runs: in every step (training loop, forward, jitted function), in another loop, or outside of loops."""


@dataclass(frozen=True, slots=True)
class Place:
    """A line of a file.

    Args:
        file: name as it was given to the scan.
        line: from 1; of a notebook within its cell.
        cell: number of the notebook's cell, from 1; None for other files.
    """

    file: str
    line: int
    cell: int | None = None

    def __str__(self) -> str:
        """`file:line`, or `file:cell N:line` in a notebook."""
        return f"{self.file}:{self.line}" if self.cell is None else f"{self.file}:cell {self.cell}:{self.line}"


@dataclass(frozen=True, slots=True)
class Finding:
    """One rule that applies to one line.

    Args:
        rule: its id.
        file, line, column: where; lines from 1, columns from 0.
        snippet: the line itself, stripped and shortened; untrusted text, escaped where it is shown.
        topic: of the rule.
        cell: of a notebook; None for other files.
        where: `STEP`, `LOOP` or `ONCE`.
        guarded: whether it only runs after a test for the device ("if torch.cuda.is_available()").
        periodic: whether it only runs every so many steps ("if step % 100 == 0").
    """

    rule: str
    file: str
    line: int
    column: int
    snippet: str
    topic: str
    cell: int | None = None
    where: str = ONCE
    guarded: bool = False
    periodic: bool = False

    @property
    def place(self) -> Place:
        """Where it is."""
        return Place(self.file, self.line, self.cell)


@dataclass(frozen=True, slots=True)
class TargetFinding:
    """What a finding means on one target.

    Args:
        file, line, rule, cell: of the finding.
        target: one of `TARGETS`.
        severity: one of `SEVERITIES`, after guards and place were considered.
        title: what was found.
        meaning: what it means there.
        remedy: what is usually done.
        source, as_of: where that comes from, and when it was read.
    """

    file: str
    line: int
    rule: str
    target: str
    severity: str
    title: str
    meaning: str
    remedy: str
    source: str
    as_of: str
    cell: int | None = None


@dataclass(frozen=True, slots=True)
class Requirement:
    """A distribution that the code asks for.

    Args:
        name: canonical (lower case, dashes).
        specifier: such as `==1.13.1+cu117`; empty when any version will do.
        extras: such as `cuda12`.
        place: the line that asks.
    """

    name: str
    specifier: str
    extras: tuple[str, ...]
    place: Place

    @property
    def pinned(self) -> str | None:
        """The exact version that is asked for, or None."""
        parts = [part.strip() for part in self.specifier.split(",")]
        exact = [part.lstrip("=").strip() for part in parts if part.startswith("=") and "*" not in part]
        return exact[0] if len(exact) == 1 and exact[0] else None


@dataclass(frozen=True, slots=True)
class Import:
    """A package that a file imports.

    Args:
        name: the dotted module as written, aliases resolved.
        place: the line.
        optional: whether it is in a `try` or behind a test, so that the code may do without.
    """

    name: str
    place: Place
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Scan:
    """What a scan saw.

    Args:
        findings: by file, line, rule.
        read: (how, files) by how they were read, such as ("python", 12), ("python 2, repaired", 1), ("skipped", 3).
        notes: what was not read or only in part, one sentence each; at most a few hundred.
        requirements: of requirement files, project files, notebooks and containers.
        imports: of frameworks and libraries, first line of each file and package.
        bytes_read: of all files.
        truncated: whether a limit stopped it, so that more may be there.
    """

    findings: tuple[Finding, ...]
    read: tuple[tuple[str, int], ...] = ()
    notes: tuple[str, ...] = ()
    requirements: tuple[Requirement, ...] = ()
    imports: tuple[Import, ...] = ()
    bytes_read: int = 0
    truncated: bool = False


@dataclass(frozen=True, slots=True)
class Portability:
    """How far code is from running on a target.

    Args:
        target: one of `TARGETS`.
        score: 0 (far) to 100 (nothing found).
        work_low_h, work_high_h: hours of a person who knows both sides.
        findings: those with a severity other than `none`, worst first.
    """

    target: str
    score: int
    work_low_h: float
    work_high_h: float
    findings: tuple[TargetFinding, ...]


@dataclass(frozen=True, slots=True)
class Fact:
    """A value that the code gives, and the lines that say so.

    Args:
        value: such as `torch`, `flash-attn` or `nonzero`.
        places: at most a few, in the order of the files.
    """

    value: str
    places: tuple[Place, ...]


@dataclass(frozen=True, slots=True)
class CodeFacts:
    """What of a workload's `existing` section the code gives.

    Args:
        framework: name as `existing.framework` takes it; None when no framework is imported.
        libraries, custom_kernels, ops: names as `existing` takes them.
        host_reads_per_step: lines in training steps that read values back in each step; None when no training step was found.
        host_reads: those lines.
        versions: exact pins, as `name==version`.
    """

    framework: Fact | None
    libraries: tuple[Fact, ...] = ()
    custom_kernels: tuple[Fact, ...] = ()
    ops: tuple[Fact, ...] = ()
    host_reads_per_step: int | None = None
    host_reads: tuple[Place, ...] = ()
    versions: tuple[Fact, ...] = ()
