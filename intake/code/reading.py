"""The code scan as a reader of the sandbox: a file, a folder or a zip goes in, what was found comes out as plain values."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from core.codec import to_plain
from core.errors import BadInput, one_line
from intake.code.archives import open_archive
from intake.code.kinds import is_wanted
from intake.code.limits import DEFAULT
from intake.code.scan import scan_tree
from intake.code.source import SourceFile
from intake.source import Source

NEEDS: tuple[str, ...] = ()


def read(source: Source, options: Mapping[str, object]) -> object:
    """Return the scan of a code base as plain values of `core.finding.Scan`.

    Args:
        source: a file, a folder, or a zip.
        options: none is known.

    Raises:
        BadInput: nothing in it is code that is read, or the zip is damaged or too large.
    """
    del options
    scan = scan_tree(replace(one, name=_shown(one.name)) for one in _files(source))
    if not any(how != "skipped" for how, _ in scan.read):
        why = f" that can be read ({one_line(scan.notes[0], 160)})" if scan.notes else ""
        raise BadInput(f"{source.name[:80]}, in which there is no code{why}", "Python files, notebooks, requirements or scripts",
                       "give the folder, a zip or a file of the training code")  # fmt: skip
    return to_plain(scan)


def _files(source: Source) -> Iterator[SourceFile]:
    """Yield the files to be looked at; what is too large or of another kind is not opened."""
    names = source.names()
    if not names:
        with source.open() as file:
            if source.name.lower().endswith(".zip"):
                yield from open_archive(file.read(DEFAULT.archive_bytes + 1))
            else:
                yield SourceFile(source.name, file.read(DEFAULT.bytes_each + 1))
        return
    for name in names:
        if is_wanted(name):
            yield SourceFile(name, _content(source, name))


def _content(source: Source, name: str) -> bytes | None:
    """Return what a file of a folder begins with; None where it cannot be opened: the others are read all the same."""
    try:
        file = source.open(name)
    except BadInput:
        return None
    with file:
        return file.read(DEFAULT.bytes_each + 1)


def _shown(name: str) -> str:
    """Return a path that no terminal takes for a command, and no reader for two lines."""
    return "".join(one if one.isprintable() else "\ufffd" for one in name)
