"""Files as a reader sees them: each open one has a position of its own, and nothing but the list can be asked for."""

import io
import os
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from intake.sandbox.handed import HandedFile, HandedFolder
from intake.sandbox.offering import Offer, bytes_descriptor


@pytest.fixture
def handed(tmp_path: Path) -> Iterator[HandedFile]:
    """A file of ten bytes."""
    path = tmp_path / "ten"
    path.write_bytes(b"0123456789")
    descriptor = os.open(path, os.O_RDONLY)
    path.unlink()
    yield HandedFile("ten", descriptor)
    os.close(descriptor)


def test_two_open_files_do_not_move_each_other(handed: HandedFile) -> None:
    with handed.open() as first, handed.open() as second:
        assert first.read(4) == b"0123"
        assert second.read(2) == b"01"
        assert first.read() == b"456789"


@pytest.mark.parametrize(("offset", "whence", "expected"), [
    (3, io.SEEK_SET, b"3456789"), (-2, io.SEEK_END, b"89"), (20, io.SEEK_SET, b""), (0, io.SEEK_END, b""),
])  # fmt: skip
def test_a_position_may_be_chosen(handed: HandedFile, offset: int, whence: int, expected: bytes) -> None:
    with handed.open() as file:
        file.seek(offset, whence)
        assert file.read() == expected


def test_a_position_before_the_start_is_refused_as_a_file_does(handed: HandedFile) -> None:
    with handed.open() as file, pytest.raises(OSError, match="Invalid argument"):
        file.seek(-11, io.SEEK_END)


def test_a_file_has_no_names_and_opens_under_none(handed: HandedFile) -> None:
    assert handed.names() == ()
    with pytest.raises(KeyError):
        handed.open("ten")


def test_an_archive_is_read_from_a_handed_file() -> None:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as archive:
        archive.writestr("config.json", "{}")
    with HandedFile("a.zip", bytes_descriptor(held.getvalue())).open() as file, zipfile.ZipFile(file) as archive:
        assert archive.read("config.json") == b"{}"


def test_what_is_handed_over_cannot_be_written_to() -> None:
    descriptor = bytes_descriptor(b"given")
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.write(descriptor, b"taken")
    os.close(descriptor)


def test_a_folder_opens_what_is_on_its_list_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("first")
    given = Offer(tmp_path)
    assert given.broker is not None
    given.broker.setblocking(True)
    assert given.files == [("a", 5)]
    folder = HandedFolder("folder", given.files, os.dup(given.given))
    with pytest.raises(KeyError):
        folder.open("../a")
    assert (folder.names(), folder.size) == (("a",), 5)
    server = threading.Thread(target=given.serve)
    server.start()
    with folder.open("a") as file:
        assert file.read() == b"first"
    server.join()
    folder._socket.close()
    given.close()
