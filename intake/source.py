"""What a reader is given: bytes under a name, or a folder of them; never a path, so that it can open nothing else."""

from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import BinaryIO, Protocol


class Source(Protocol):
    """A file, or a folder of files, that somebody handed in."""

    @property
    def name(self) -> str:
        """Its name, without folders."""
        ...

    @property
    def size(self) -> int:
        """Bytes of the file, or of all files of the folder."""
        ...

    def names(self) -> tuple[str, ...]:
        """Paths of the files of a folder, with `/`, sorted; empty for a file."""
        ...

    def open(self, name: str = "") -> BinaryIO:
        """Return the file, or one of the folder, open for reading; the reader closes it. Raises KeyError for an unknown name."""
        ...


class BytesSource:
    """Bytes in memory."""

    def __init__(self, name: str, data: bytes | Mapping[str, bytes]) -> None:
        self.name = name
        self._files = dict(data) if isinstance(data, Mapping) else {"": data}
        self._folder = isinstance(data, Mapping)

    @property
    def size(self) -> int:
        """Bytes in all."""
        return sum(map(len, self._files.values()))

    def names(self) -> tuple[str, ...]:
        """Names of the files of a folder."""
        return tuple(sorted(self._files)) if self._folder else ()

    def open(self, name: str = "") -> BinaryIO:
        """Return one of them, open for reading."""
        return BytesIO(self._files[name])


class PathSource:
    """A file, or the regular files below a folder; links are left out."""

    def __init__(self, path: Path) -> None:
        self.name = path.name
        self._path = path
        found = sorted(one for one in path.rglob("*") if one.is_file() and not one.is_symlink()) if path.is_dir() else []
        self._files = {one.relative_to(path).as_posix(): one for one in found} if path.is_dir() else {"": path}

    @property
    def size(self) -> int:
        """Bytes in all."""
        return sum(one.stat().st_size for one in self._files.values())

    def names(self) -> tuple[str, ...]:
        """Names of the files of a folder."""
        return tuple(self._files) if self._path.is_dir() else ()

    def open(self, name: str = "") -> BinaryIO:
        """Return one of them, open for reading."""
        return self._files[name].open("rb")
