"""Bounds of a code scan: what it reads at most, so that a hostile folder or archive costs bounded time and memory."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """How much is read.

    Args:
        files: entries looked at; those after them are left out with a note.
        bytes_each: of one file; longer ones are left out.
        bytes_all: of all files that are read.
        line_characters: of one line; files with longer ones are taken for generated and only their start is read by line.
        nesting: brackets in brackets that are parsed; deeper files are read in parts.
        findings_each, findings_all: of one file and of all.
        notes: sentences about what was not read.
        seconds: of scanning; None for no limit. The caller's own time limit of the process comes on top.
        archive_entries, archive_bytes, archive_ratio: of a zip: entries, bytes when unpacked, unpacked over packed of one entry.
    """

    files: int = 20_000
    bytes_each: int = 4 << 20
    bytes_all: int = 256 << 20
    line_characters: int = 20_000
    nesting: int = 150
    findings_each: int = 2_000
    findings_all: int = 50_000
    notes: int = 200
    seconds: float | None = 120.0
    archive_entries: int = 20_000
    archive_bytes: int = 256 << 20
    archive_ratio: float = 200.0


DEFAULT = Limits()
