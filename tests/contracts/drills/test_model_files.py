"""Drills F1 to F6, F9 to F13 and F15 to F18: hostile model files, handed in as the page does, in real sandboxed processes.

Each is read or refused in one plain line; no path in it is opened, nothing is called, and the next good file is read.
"""

from pathlib import Path

import pytest

from core.errors import BadInput
from intake.files import sandbox_level
from services import models, workloads
from tests.contracts.drills.conftest import WORDS, fair
from tests.samples.hostile_models.models import SAMPLES, cases
from tests.samples.hostile_models.parts import EITHER, READ, Case, Target

pytestmark = [
    pytest.mark.skipif(sandbox_level().level < 2, reason="this kernel gives no sandbox in which uploads may be read"),
    pytest.mark.slow,
]
NAMES = [f"{case.drill} {case.what}" for case in cases(Target(Path("/nowhere/canary"), Path("/nowhere/absent"), 9))]
APPLY = {f"F{number}" for number in (1, 2, 3, 4, 5, 6, 9, 10, 11, 12, 13, 15, 16, 17, 18)}


@pytest.fixture(scope="module")
def hostile(target: Target) -> dict[str, Case]:
    """Return the files, aimed at this module's target."""
    return {f"{case.drill} {case.what}": case for case in cases(target)}


def outcome(name: str, data: bytes) -> tuple[str, str]:
    """Return what came of a file that was handed in, and everything that a person is told of it."""
    try:
        found = workloads.understand_upload(name, data)
    except BadInput as error:
        return fair(error)
    picture = models.picture_of(found.document)
    assert picture is not None
    sizes = picture.values()
    assert all(block.repeats >= 0 for block in picture.blocks)
    assert picture.parameter_count >= 0
    assert min(sizes.values(), default=1) > 0
    return READ, "; ".join((found.workload.name, *picture.notes))


def test_every_drill_of_model_files_has_its_files() -> None:
    assert {name.partition(" ")[0] for name in NAMES} == APPLY
    assert len(NAMES) == len(set(NAMES)) > 110


@pytest.mark.parametrize("name", NAMES)
def test_a_hostile_model_file_is_read_or_refused_and_touches_nothing(
    hostile: dict[str, Case], untouched: None, name: str
) -> None:
    del untouched
    case = hostile[name]
    found, said = outcome(case.name, case.make(Target(Path(), Path(), 0)))
    assert case.outcome in (found, EITHER)
    assert case.said in said
    assert said.isprintable()
    assert len(said) < 1200
    assert WORDS not in said


@pytest.mark.parametrize("what", ["ReadFile", "WriteFile", "PyFunc", "own op"])
def test_an_operation_that_would_touch_files_or_python_is_flagged(hostile: dict[str, Case], what: str) -> None:
    case = hostile[f"F5 saved_model with {what}"]
    picture = models.picture_of(workloads.understand_upload(case.name, case.make(Target(Path(), Path(), 0))).document)
    assert picture is not None
    assert {mark.partition(":")[0] for one in picture.operations for mark in [one.mark]} & {"custom", "host_read"}


def test_after_all_of_them_a_good_file_is_read(hostile: dict[str, Case]) -> None:
    del hostile
    data = (SAMPLES / "keras" / "tabular.keras").read_bytes()
    assert outcome("tabular.keras", data) == (READ, "tabular; dropout and noise are left out: they do nothing outside training")
