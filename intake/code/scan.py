"""Scans the files of a code base: as data, within bounds, never running, importing or opening anything by path.

Meant to be called within the sandboxed worker; it holds no state and needs the standard library only.
"""

import re
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from core.finding import Finding, Import, Requirement, Scan
from intake.code import kinds
from intake.code.commands import scan_command, scan_container, scan_native, scan_settings, scan_shell
from intake.code.limits import DEFAULT, Limits
from intake.code.match.libraries import library_rule
from intake.code.notebook import cells_of
from intake.code.pins import conflicts, refuses_python, rules_of_requirement
from intake.code.python_text import IN_PARTS, parse
from intake.code.requirements import of_conda, of_lines, of_pyproject, of_setup_cfg, of_setup_py
from intake.code.rules import topics
from intake.code.source import SourceFile, text_of
from intake.code.view import View
from intake.code.walk import walk

SKIPPED = "skipped"
_CLOCK: Callable[[], float] = time.monotonic


@dataclass(slots=True)
class _Progress:
    """What was gathered so far."""

    findings: list[Finding] = field(default_factory=list[Finding])
    imports: list[Import] = field(default_factory=list[Import])
    requirements: list[Requirement] = field(default_factory=list[Requirement])
    notes: list[str] = field(default_factory=list[str])
    read: Counter[str] = field(default_factory=Counter[str])
    roots: set[str] = field(default_factory=set[str])
    packages: set[str] = field(default_factory=set[str])
    bytes_read: int = 0
    truncated: bool = False


def scan_tree(files: Iterable[SourceFile], limits: Limits = DEFAULT, clock: Callable[[], float] = _CLOCK) -> Scan:
    """Return what is found in the files of a folder, of an archive, or in a single one.

    Args:
        files: in any order; those that are not wanted by name are passed over.
        limits: how much is read.
        clock: seconds, for the limit of time.
    """
    progress = _Progress()
    began = clock()
    for number, one in enumerate(files):
        if number >= limits.files or len(progress.findings) >= limits.findings_all:
            progress.truncated = True
            progress.notes.append(f"stopped after {number} files: scan a part of the folder to see the rest")
            break
        if limits.seconds is not None and clock() - began > limits.seconds:
            progress.truncated = True
            progress.notes.append(f"stopped after {limits.seconds:.0f} s and {number} files: scan a part of the folder")
            break
        _scan_file(one, progress, limits)
    return _finished(progress, limits)


def _scan_file(one: SourceFile, progress: _Progress, limits: Limits) -> None:
    kind = kinds.kind_of(one.name)
    if kind is None:
        return
    if one.content is None:
        _skip(progress, limits, f"{one.name}: cannot be opened, not read")
        return
    size = len(one.content)
    if size > limits.bytes_each or progress.bytes_read + size > limits.bytes_all:
        _skip(progress, limits, f"{one.name}: {size} bytes, not read")
        return
    progress.bytes_read += size
    text = text_of(one.content)
    if text is None:
        _skip(progress, limits, f"{one.name}: no text, not read")
        return
    lines = text.split("\n")
    if len(text) > limits.line_characters and max(map(len, lines)) > limits.line_characters and kind != kinds.NOTEBOOK:
        _skip(progress, limits, f"{one.name}: a line of over {limits.line_characters} characters, taken for generated, not read")
        return
    view = View(one.name, lines, topics(), limits.findings_each)
    how = _READERS[kind](text, view, progress, limits)
    progress.read[how] += 1
    if view.full:
        progress.truncated = True
        _note(progress, limits, f"{one.name}: more than {limits.findings_each} findings, the rest is left out")
    progress.findings.extend(view.findings)
    progress.imports.extend(_first_of_each(view.imports))
    if kind == kinds.PYTHON:
        folder, _, base = one.name.rpartition("/")
        progress.roots.add(one.name.split("/", 1)[0].removesuffix(".py"))
        if base == "__init__.py" and folder:
            progress.packages.add(folder)


def _skip(progress: _Progress, limits: Limits, why: str) -> None:
    progress.read[SKIPPED] += 1
    _note(progress, limits, why)


def _note(progress: _Progress, limits: Limits, text: str) -> None:
    if len(progress.notes) < limits.notes:
        progress.notes.append(text)


def _python(text: str, view: View, progress: _Progress, limits: Limits) -> str:
    parsed = parse(text, limits.nesting)
    complete = True
    for part in parsed.parts:
        view.offset = part.offset
        complete = walk(part.tree, view) and complete
        if view.name.rsplit("/", 1)[-1] == "setup.py":
            wanted, python = of_setup_py(part.tree, view)
            _ask(wanted, view, progress)
            _python_version(python, view)
    if parsed.how == IN_PARTS:
        lost = f", {parsed.lost} lines could not be read" if parsed.lost else ""
        _note(progress, limits, f"{view.name}: does not parse as a whole, read in parts{lost}")
    if not complete:
        _note(progress, limits, f"{view.name}: nested too deeply in places, which are left out")
    return parsed.how


def _notebook(text: str, view: View, progress: _Progress, limits: Limits) -> str:
    cells = cells_of(text, limits.nesting)
    if cells is None:
        _note(progress, limits, f"{view.name}: no notebook, not read")
        return SKIPPED
    for cell in cells:
        view.cell, view.lines, view.offset = cell.number, cell.python.split("\n"), 0
        for part in parse(cell.python, limits.nesting).parts:
            view.offset = part.offset
            walk(part.tree, view)
        view.offset = 0
        for number, command in cell.commands:
            _ask(scan_command(command, number, view), view, progress)
    return kinds.NOTEBOOK


def _requirements(text: str, view: View, progress: _Progress, _: Limits) -> str:
    _ask(of_lines(text, view.name), view, progress)
    for number, line in enumerate(view.lines, 1):
        if re.match(r"\s*(-f|-i|--find-links|--index-url|--extra-index-url)\b.*(/cu\d{2,3}|cuda)", line[:500]):
            view.emit("pin-cuda-build", number)
    return kinds.REQUIREMENTS


def _project(text: str, view: View, progress: _Progress, _: Limits) -> str:
    wanted, python = of_pyproject(text, view.name)
    _ask(wanted, view, progress)
    _python_version(python, view)
    return kinds.PROJECT


def _setup_cfg(text: str, view: View, progress: _Progress, _: Limits) -> str:
    wanted, python = of_setup_cfg(text, view.name)
    _ask(wanted, view, progress)
    _python_version(python, view)
    return kinds.SETUP


def _conda(text: str, view: View, progress: _Progress, _: Limits) -> str:
    wanted = of_conda(text, view.name)
    _ask(wanted, view, progress)
    for one in wanted:
        if one.name == "python" and refuses_python(one.specifier):
            view.emit("pin-python", one.place.line)
    return kinds.CONDA


def _shell(text: str, view: View, progress: _Progress, _: Limits) -> str:
    _ask(scan_shell(text, view), view, progress)
    return kinds.SHELL


def _container(text: str, view: View, progress: _Progress, _: Limits) -> str:
    _ask(scan_container(text, view), view, progress)
    return kinds.CONTAINER


def _settings(text: str, view: View, _: _Progress, __: Limits) -> str:
    scan_settings(text, view)
    return kinds.SETTINGS


def _native(text: str, view: View, _: _Progress, __: Limits) -> str:
    scan_native(text, view)
    return kinds.NATIVE


_READERS: dict[str, Callable[[str, View, _Progress, Limits], str]] = {
    kinds.PYTHON: _python, kinds.NOTEBOOK: _notebook, kinds.REQUIREMENTS: _requirements, kinds.PROJECT: _project,
        kinds.SETUP: _setup_cfg,
    kinds.CONDA: _conda, kinds.SHELL: _shell, kinds.CONTAINER: _container, kinds.SETTINGS: _settings, kinds.NATIVE: _native,
}


def _ask(wanted: list[Requirement], view: View, progress: _Progress) -> None:
    """Keep what a file asks for, and report what its pins mean."""
    progress.requirements.extend(wanted)
    for one in wanted:
        for rule in rules_of_requirement(one):
            view.emit(rule, one.place.line - view.offset)
    for one, _ in conflicts(wanted):
        view.emit("pin-conflict", one.place.line - view.offset)


def _python_version(text: str, view: View) -> None:
    if text and refuses_python(text):
        at = next((number for number, line in enumerate(view.lines, 1) if text in line or "python_requires" in line), 1)
        view.emit("pin-python", at - view.offset)


def _first_of_each(imports: list[Import]) -> list[Import]:
    """Return the first import of each package, one that is not optional before one that is."""
    found: dict[str, Import] = {}
    for one in imports:
        root = one.name.split(".")[0]
        if root and (root not in found or (found[root].optional and not one.optional)):
            found[root] = one
    return list(found.values())


def _finished(progress: _Progress, limits: Limits) -> Scan:
    own = {rule for root in _own_packages(progress) if (rule := library_rule(root)) is not None}
    kept = [one for one in progress.findings if one.rule not in own]
    kept.sort(key=lambda one: (one.file, one.cell or 0, one.line, one.rule))
    if len(kept) > limits.findings_all:
        progress.truncated = True
        del kept[limits.findings_all :]
    return Scan(tuple(kept), tuple(sorted(progress.read.items())), tuple(progress.notes), tuple(progress.requirements),
                tuple(progress.imports), progress.bytes_read, progress.truncated)


def _own_packages(progress: _Progress) -> set[str]:
    """Return the packages that the code base itself holds, so that they are not taken for libraries."""
    inner = {folder for folder in progress.packages if folder.rpartition("/")[0] not in progress.packages}
    beside = {".".join(folder.rsplit("/", 2)[-2:]) for folder in inner}  # the lower part of a name that several packages share
    return progress.roots | beside | {folder.rpartition("/")[2] for folder in inner}
