"""Drills F7 to F14 of code: hostile archives, scripts and notebooks are scanned or refused in one line; nothing of them runs."""

import os
from pathlib import Path

import pytest

from core.errors import BadInput
from intake import read_text
from intake.files import sandbox_level
from services import code
from tests.contracts.drills.conftest import fair
from tests.samples.hostile_models.code import CALL, cases
from tests.samples.hostile_models.parts import EITHER, READ, Case, Target

pytestmark = pytest.mark.skipif(sandbox_level().level < 2, reason="this kernel gives no sandbox in which uploads may be read")
NAMES = [f"{case.drill} {case.what}" for case in cases(Target(Path("/nowhere/canary"), Path("/nowhere/absent"), 9))]


def outcome(source: Path | bytes, name: str) -> tuple[str, str]:
    """Return what came of code that was handed in, and what a person is told of it."""
    try:
        found = code.scan(source, name)
    except BadInput as error:
        return fair(error)
    files = [one.file for one in found.scan.findings]
    return READ, "; ".join((found.name, *found.scan.notes, *(how for how, _ in found.scan.read), *dict.fromkeys(files)))


@pytest.fixture(scope="module")
def hostile(target: Target) -> dict[str, Case]:
    """Return the code bases, aimed at this module's target."""
    return {f"{case.drill} {case.what}": case for case in cases(target)}


@pytest.mark.parametrize("name", NAMES)
def test_a_hostile_code_base_is_scanned_or_refused_and_nothing_of_it_runs(
    hostile: dict[str, Case], target: Target, untouched: None, name: str
) -> None:
    del untouched
    case = hostile[name]
    found, said = outcome(case.make(target), case.name)
    assert case.outcome in (found, EITHER)
    assert case.said in said
    assert said.isprintable()
    assert found == READ or len(said) < 500


def test_a_folder_of_links_pipes_and_sparse_giants_gives_its_plain_files(tmp_path: Path, target: Target, untouched: None) -> None:
    del untouched
    folder = tmp_path / "code"
    folder.mkdir()
    (folder / "a.py").write_bytes(CALL)
    (folder / "link.py").symlink_to(target.canary)
    (folder / "up").symlink_to("..")
    os.mkfifo(folder / "pipe.py")
    with (folder / "sparse.py").open("wb") as file:
        file.truncate(2**36)
    found, said = outcome(folder, "")
    assert found == READ
    assert "a.py" in said
    assert "link.py" not in said
    assert "sparse.py: " in said


@pytest.mark.parametrize(("text", "said"), [
    ("model: &a {preset: gpt2-small}\nx: *a\n", "anchor"), ("model: !!python/object/apply:os.system ['true']\n", "tag"),
    ('{"model": ' + '{"a": ' * 100_000, "characters"), ('{"model": {"preset": "gpt2-small"}, "batch": 1e999}', "inf"),
    ('{"model": {"preset": "gpt2-small"}, "batch": NaN}', "NaN"), ('{"batch": 1, "batch": 2}', "twice"),
    ('{"batch": ' + "9" * 5_000 + "}", "digits"), ("name: " + "x" * 10_000_000, "characters"),
], ids=["alias", "tag", "deep", "1e999", "nan", "key twice", "digits", "long"])  # fmt: skip
def test_a_hostile_workload_is_refused_in_one_line(text: str, said: str) -> None:
    with pytest.raises(BadInput, match=said) as caught:
        read_text(text)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 500
