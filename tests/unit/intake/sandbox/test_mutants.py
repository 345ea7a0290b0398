"""The bench of spoilt files: mutants depend on the seed alone, and whatever is no allowed outcome falls short."""

import io
import json
import random
import zipfile
from pathlib import Path

import pytest

from bench.mutants import READERS as READERS_OF_MODELS
from bench.mutants import SAMPLES, main, reader_for, samples, shared
from bench.mutations import LARGEST_BYTES, MUTATIONS, mutant
from intake.files import readers

READERS = "tests.samples.hostile_readers"
TEXT = b'{"shape": [3, 4], "name": "layer"}' * 3


def broken_zip() -> bytes:
    """Return a zip that can be listed, and whose one entry cannot be unpacked."""
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a", TEXT * 50)
    data = bytearray(held.getvalue())
    data[31:39] = b"\xff" * 8  # behind the header of 30 bytes and the name of one
    return bytes(data)


def test_a_mutant_is_the_same_for_the_same_seed_and_number_and_another_for_others() -> None:
    assert mutant(1, 5, TEXT, TEXT) == mutant(1, 5, TEXT, TEXT)
    assert len({mutant(1, number, TEXT, TEXT)[1] for number in range(200)}) > 150


@pytest.mark.parametrize("kind", sorted(MUTATIONS))
@pytest.mark.parametrize("data", [b"x", TEXT, bytes(5000), broken_zip()], ids=["one byte", "text", "zeros", "broken zip"])
def test_every_kind_of_fault_works_on_every_file(kind: str, data: bytes) -> None:
    for number in range(20):
        assert isinstance(MUTATIONS[kind](random.Random(number), data, TEXT), bytes)


def test_a_mutant_is_never_larger_than_the_limit() -> None:
    assert max(len(mutant(2, number, bytes(2**20), TEXT)[1]) for number in range(30)) <= LARGEST_BYTES


def test_a_reader_that_takes_everything_holds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "good.txt").write_bytes(TEXT)
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "a").write_bytes(TEXT)
    (folder / "b").write_bytes(TEXT)
    code = main(["--count", "20", "--reader", "echo", "--package", READERS, str(tmp_path / "good.txt"), str(folder)])
    said = capsys.readouterr().out
    assert code == 0
    assert said.strip().split("\n")[-1].startswith("HOLDS: 20 spoilt files at sandbox level")
    assert [(folder / name).read_bytes() for name in "ab"] == [TEXT, TEXT]


def test_a_reader_without_words_for_what_it_meets_falls_short_and_its_mutants_are_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "good.txt").write_bytes(TEXT)
    keep = tmp_path / "kept"
    flags = ["--count", "5", "--reader", "acts", "--package", READERS, "--keep", str(keep), "--json"]
    assert main([*flags, str(tmp_path / "good.txt")]) == 1
    (found,) = json.loads(capsys.readouterr().out)["readers"]
    assert len(found["failures"]) == 6  # the whole file and five mutants
    assert "KeyError: 'act'" in found["failures"][0]
    assert len(list(keep.iterdir())) == 5


def test_a_file_that_is_not_there_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--reader", "echo", "--package", READERS, str(tmp_path / "missing")]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_mutants_are_dealt_out_to_the_last_one() -> None:
    assert shared(2000, dict.fromkeys("abcdefghijk", 1)) == {**dict.fromkeys("abcdefghi", 182), "j": 181, "k": 181}
    assert shared(10, {"a": 3, "b": 1}) == {"a": 8, "b": 2}


@pytest.mark.parametrize(("path", "reader"), [
    ("saved_model/tokens", "saved_model"), ("safetensors/sharded", "safetensors"), ("pt2/older.pt2", "pt2"),
    ("hugging_face_config/llama.json", "hugging_face_config"),
])
def test_a_folder_is_read_by_the_reader_of_its_model(path: str, reader: str) -> None:
    assert reader_for(SAMPLES / path, READERS_OF_MODELS) == reader


def test_samples_are_there_for_every_format_that_is_read() -> None:
    assert {reader for reader, _ in samples()} == {*readers()}
