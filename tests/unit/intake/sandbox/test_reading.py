"""An honest reader in the sandbox sees all of the input that was handed over, and nothing else of the machine."""

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from core.errors import BadInput
from intake.sandbox import Limits, Sandbox, Stopped, read_in_sandbox
from intake.sandbox.handed import HandedFolder
from intake.sandbox.limits import WITH_LIBRARIES
from intake.sandbox.offering import Offer

READERS = "tests.samples.hostile_readers"


def _echo(source: Path | bytes, **named: object) -> dict[str, object]:
    found = read_in_sandbox("echo", source, package=READERS, **named)  # type: ignore[arg-type]
    assert isinstance(found, dict)
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with files, and with what must not be followed."""
    (tmp_path / "secret").write_text("of the user")
    inside = tmp_path / "model"
    (inside / "variables").mkdir(parents=True)
    (inside / "saved_model.pb").write_text("graph")
    (inside / "variables" / "data").write_text("weights")
    (inside / "out").symlink_to(tmp_path / "secret")
    (inside / "up").symlink_to(tmp_path)
    os.mkfifo(inside / "pipe")
    return inside


def test_bytes_are_read_and_the_answer_comes_back_as_it_was() -> None:
    found = _echo("tä\x00st".encode(), options={"a": [1, None, True, 0.5, "é"]}, name="model.bin")
    assert found == {
        "name": "model.bin",
        "size": 6,
        "names": [],
        "options": {"a": [1, None, True, 0.5, "é"]},
        "content": ["tä\x00st"],
    }


def test_a_file_is_read_under_its_own_name(tmp_path: Path) -> None:
    path = tmp_path / "weights.bin"
    path.write_bytes(b"x" * 100_000)
    found = _echo(path)
    assert (found["name"], found["size"], found["content"]) == ("weights.bin", 100_000, ["x" * 100_000])


def test_of_a_folder_the_regular_files_are_read_and_links_and_pipes_left_out(folder: Path) -> None:
    found = _echo(folder)
    assert found["names"] == ["saved_model.pb", "variables/data"]
    assert found["content"] == ["graph", "weights"]
    assert found["size"] == 12


def test_a_folder_of_more_files_than_may_be_open_at_once_is_read(tmp_path: Path) -> None:
    for number in range(400):
        (tmp_path / f"{number:03}.py").write_text(str(number))
    assert _echo(tmp_path)["content"] == [str(number) for number in range(400)]


@pytest.mark.parametrize("options", [{"number": 2}, {"number": 2**32 - 1}, {"request": "0000000000"}, {"request": "80"}])
def test_a_reader_gets_no_file_that_is_not_on_the_list(folder: Path, options: dict[str, object]) -> None:
    found = read_in_sandbox("asks_files", folder, Limits(wall_s=20), options=options, package=READERS)  # type: ignore[arg-type]
    assert isinstance(found, list)
    assert found[1] == 0


def test_a_file_on_the_list_is_handed_over(folder: Path) -> None:
    assert read_in_sandbox("asks_files", folder, options={"number": 1}, package=READERS) == ["+", 1]


def test_a_file_of_a_folder_that_is_gone_when_it_is_wanted_is_refused_in_one_line(folder: Path) -> None:
    offer = Offer(folder)
    assert offer.files is not None
    handed = HandedFolder("model", offer.files, os.dup(offer.given))
    (folder / "saved_model.pb").unlink()
    handed._socket.send((0).to_bytes(4, "little"))
    assert offer.serve()
    with pytest.raises(BadInput, match="cannot be opened"):
        handed.open("saved_model.pb")
    handed._socket.close()
    offer.close()


@pytest.mark.parametrize("swap", ["variables/data", "variables"])
def test_a_file_that_became_a_link_after_it_was_listed_is_not_handed_over(folder: Path, tmp_path: Path, swap: str) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "data").write_text("of the user")
    offer = Offer(folder)
    (folder / swap).rename(tmp_path / "moved")
    (folder / swap).symlink_to(tmp_path / "elsewhere" / ("data" if swap.endswith("data") else ""))
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, fileno=os.dup(offer.given)) as reader:
        reader.send((1).to_bytes(4, "little"))
        assert offer.serve()
        assert socket.recv_fds(reader, 1, 1)[:2] == (b"-", [])
    offer.close()


@pytest.mark.parametrize("name", ["../../etc/passwd", "a\nb", "x" * 5000, "nul\x00", "right\u202eleft", "con", "\udcff"])
def test_a_name_of_any_kind_is_shown_in_one_printable_line(name: str) -> None:
    with pytest.raises(BadInput) as raised:
        read_in_sandbox("acts", b"", options={"act": "exit_7"}, name=name, package=READERS)
    assert str(raised.value).isprintable()
    assert len(str(raised.value)) <= 400
    assert "exit code 7" in str(raised.value)


@pytest.mark.parametrize(("path", "said"), [("missing", "not there"), ("nul\0", "cannot be opened"), ("pipe", "a device, a")])
def test_a_path_that_is_no_file_and_no_folder_is_refused_before_anything_starts(tmp_path: Path, path: str, said: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    with Sandbox("echo", package=READERS) as sandbox:
        with pytest.raises(BadInput, match=said):
            sandbox.read(tmp_path / path)
        assert sandbox.leader is None


def _nothing(folder: Path) -> None:
    pass


def _link_alone(folder: Path) -> None:
    (folder / "link").symlink_to("/etc")


def _sparse_giant(folder: Path) -> None:
    (folder / "sparse").touch()
    os.truncate(folder / "sparse", 2**40 + 1)


def _deep(folder: Path) -> None:
    (folder / "/".join(["d"] * 70)).mkdir(parents=True)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (_nothing, "without files"),
        (_link_alone, "without files"),
        (_sparse_giant, "of more; expected at most 1024 GiB"),
        (_deep, "64 folders deep"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_folder_with_nothing_or_too_much_in_it_is_refused(tmp_path: Path, make: Callable[[Path], None], said: str) -> None:
    make(tmp_path)
    with pytest.raises(BadInput, match=said):
        Offer(tmp_path)


def test_a_library_works_after_the_sandbox_was_closed_and_its_limits_are_wider() -> None:
    with Sandbox("with_library", package=READERS) as sandbox:
        assert sandbox.limits == WITH_LIBRARIES
        assert sandbox.read(b"", {"size": 50}) == 50.0**3


def test_a_library_may_be_imported_once_for_many_inputs() -> None:
    with Sandbox("with_library", package=READERS, preload=True) as sandbox:
        assert [sandbox.read(b"", {"size": size}) for size in (2, 3)] == [8.0, 27.0]


def test_inputs_are_read_one_after_the_other_by_processes_that_know_nothing_of_each_other() -> None:
    with Sandbox("acts", package=READERS) as sandbox:
        leaders = set()
        for _ in range(3):
            assert sandbox.read(b"", {"act": "use_scratch"}) == "kept for a while"
            leaders.add(sandbox.leader)
        assert len(leaders) == 1


def test_the_same_input_gives_the_same_bytes_again_and_again() -> None:
    with Sandbox("echo", package=READERS, preload=True) as sandbox:
        assert len({repr(sandbox.read(b"the same", {"b": 1, "a": 2})) for _ in range(20)}) == 1


def test_a_reader_that_does_not_exist_is_not_asked_for() -> None:
    with pytest.raises(ModuleNotFoundError):
        Sandbox("nobody", package=READERS)


def test_a_limit_may_be_given_for_one_read() -> None:
    with pytest.raises(Stopped, match=r"answer of more than 1\.00 KiB"):
        read_in_sandbox("acts", b"", Limits(result_bytes=1024), options={"act": "long_answer", "length": 10**5}, package=READERS)
