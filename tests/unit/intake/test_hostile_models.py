"""Model files and code that mean ill, or only look odd: one line at most, and never a name that steers a terminal."""

import json
import random
import zlib
from base64 import urlsafe_b64encode
from copy import deepcopy
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO, cast
from zipfile import ZipFile

import pytest

from core.errors import BadInput
from core.finding import Portability
from intake.code.reading import read
from intake.existing import with_code
from intake.files import sandbox_level
from intake.picture.packed import picture_rows, unpacked
from intake.source import BytesSource
from services import code, models, workloads

SAMPLES = Path(__file__).parents[2] / "samples" / "models"
CODE = b"import torch\nmodel.cuda()\n"
ODD: tuple[Any, ...] = (-1, 0, 10**15, 2**70, None, True, "", "nonsense", "\x1b[31m\n", [], {}, 1.5, [[]], "batch")
enough = pytest.mark.skipif(sandbox_level().level < 2, reason="this kernel gives no sandbox in which uploads may be read")


class PartlyClosed(BytesSource):
    """A folder of which one file may not be opened, as the sandbox tells it."""

    def open(self, name: str = "") -> BinaryIO:
        """Return a file; raises BadInput for the closed one."""
        if name == "closed.py":
            raise BadInput("closed.py, a file of the folder that cannot be opened", "one that can be read", "check the folder")
        return super().open(name)


def plain_scan(source: BytesSource) -> dict[str, Any]:
    return cast("dict[str, Any]", read(source, {}))


def as_text(rows: object) -> str:
    """Return rows of a picture, right or wrong, as the text that an address holds."""
    return urlsafe_b64encode(zlib.compress(json.dumps(rows).encode(), 1)).decode().rstrip("=")


def leaves(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    if isinstance(value, dict):
        inner = list(cast("dict[Any, Any]", value).items())
    else:
        inner = list(enumerate(cast("list[Any]", value))) if isinstance(value, list) else []
    return [path, *(one for key, item in inner for one in leaves(item, (*path, key)))]


def test_a_name_within_a_zip_cannot_steer_the_terminal_or_forge_a_line() -> None:
    made = BytesIO()
    with ZipFile(made, "w") as archive:
        archive.writestr("a\n\x1b[31mb.py", CODE)
    files = {one["file"] for one in plain_scan(BytesSource("code.zip", made.getvalue()))["findings"]}
    assert files == {"a\ufffd\ufffd[31mb.py"}


def test_a_file_that_cannot_be_opened_is_noted_and_the_others_are_read() -> None:
    found = plain_scan(PartlyClosed("folder", {"closed.py": CODE, "open.py": CODE}))
    assert {one["file"] for one in found["findings"]} == {"open.py"}
    assert found["notes"] == ["closed.py: cannot be opened, not read"]


@pytest.mark.parametrize("text", ["a" * 5000, "a\0b", "https://example.org/code"])
def test_a_text_that_is_no_path_is_left_as_existing_code_and_said_to_be_none(tmp_path: Path, text: str) -> None:
    found = with_code({"code": text}, tmp_path, weak_sandbox=False)
    assert found["code"] == text
    assert "was not scanned" in found["evidence"][0]


@enough
@pytest.mark.parametrize("name", ["a" * 240 + ".onnx", "a\n\x1b[31mb.onnx"])
def test_a_model_whose_name_is_long_or_unprintable_is_read(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes((SAMPLES / "onnx" / "dense.onnx").read_bytes())
    title = workloads.read(str(path)).workload.name
    assert title.isprintable()
    assert 1 <= len(title) <= 200


@enough
def test_the_folder_that_one_stands_in_is_named_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "train.py").write_bytes(CODE)
    monkeypatch.chdir(tmp_path)
    assert code.scan(Path()).name == tmp_path.name


@pytest.mark.parametrize(("low", "high", "said"), [(0.0, 0.0, "none"), (0.1, 0.4, "under 1 h"), (2.0, 14.4, "2 to 14 h")])
def test_work_of_less_than_an_hour_is_not_told_as_none(low: float, high: float, said: str) -> None:
    assert code.work_of(Portability("jax-tpu", 90, low, high, ())) == said


@enough
def test_a_picture_that_was_tampered_with_is_refused_in_one_line_or_shown() -> None:
    given: dict[str, Any] = {"schema": 1, "task": "train"}
    base = picture_rows(unpacked(models.model_document(SAMPLES / "pt2" / "decoder.pt2")["model"]["picture"]))
    places, chance = [path for path in leaves(base) if path], random.Random(5)
    for _ in range(400):
        rows = deepcopy(base)
        *way, last = chance.choice(places)
        target: Any = rows
        for key in way:
            target = target[key]
        target[last] = chance.choice(ODD)
        document = json.dumps({**given, "model": {"picture": as_text(rows)}})
        try:
            found = workloads.understand(document)
        except BadInput:
            continue
        picture = models.picture_of(found.document)
        assert picture is not None
        assert all(isinstance(models.mark_meaning(one.mark), str) for one in picture.operations)
        models.optimizer_states(picture)
        models.adapter(picture)


def test_a_script_that_ends_python_is_told_and_not_taken_for_success(tmp_path: Path) -> None:
    script = tmp_path / "leaves.py"
    script.write_text("import sys\n\n\ndef make():\n    sys.exit(0)\n")
    with pytest.raises(BadInput, match="make, which raises SystemExit"):
        models.capture(f"{script}:make", tmp_path / "graph.json", training=False)
