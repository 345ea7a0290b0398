"""Agreements on disk: found again by the same code on the same versions, by nothing else, and never in the way."""

import sys
from pathlib import Path

import pytest

from core.errors import WorkerError
from core.probe import Probe
from probes import worker
from probes.agreed import Agreed, source_digest, surroundings
from probes.agreement import Agreement
from probes.blocks import block_modules
from probes.case import Case
from probes.worker import Worker

SIZES = {"batch": 2, "widths": (12, 16, 8), "activation": "relu", "last_activation": "none", "first": 0}
FOUND = Agreement(1e-7, 2e-6)
ABOUT = ("jax", "jax 0.10.2", "cpu")
PROBE = Probe("dense_tower", "block", tuple(sorted(SIZES.items())), "fp32", "jax", "cpu:0", "train", "sgd")


def _case(**changed: object) -> Case:
    given = {"block": block_modules()["dense_tower"], "sizes": SIZES, "depth": 1, "mode": "train", "optimizer": "sgd"}
    return Case(**{**given, "dtype": "fp32", **changed})  # type: ignore[arg-type]


def test_what_was_found_is_found_again_by_another_process(tmp_path: Path) -> None:
    Agreed(tmp_path / "agreed", ABOUT).keep(_case(), FOUND)
    assert Agreed(tmp_path / "agreed", ABOUT).find(_case()) == FOUND


@pytest.mark.parametrize("about", [("jax", "jax 0.10.3", "cpu"), ("jax", "jax 0.10.2", "gpu"), (*ABOUT, "other source")])
def test_another_version_device_or_source_finds_nothing(tmp_path: Path, about: tuple[str, ...]) -> None:
    Agreed(tmp_path, ABOUT).keep(_case(), FOUND)
    assert Agreed(tmp_path, about).find(_case()) is None


@pytest.mark.parametrize(
    "changed", [{"mode": "forward"}, {"dtype": "bf16"}, {"depth": 2}, {"optimizer": "adamw"}, {"sizes": {**SIZES, "batch": 3}}]
)
def test_another_case_finds_nothing(tmp_path: Path, changed: dict[str, object]) -> None:
    Agreed(tmp_path, ABOUT).keep(_case(), FOUND)
    assert Agreed(tmp_path, ABOUT).find(_case(**changed)) is None


def test_a_file_that_was_cut_is_found_anew(tmp_path: Path) -> None:
    Agreed(tmp_path, ABOUT).keep(_case(), FOUND)
    (file,) = tmp_path.iterdir()
    file.write_bytes(file.read_bytes()[:9])
    assert Agreed(tmp_path, ABOUT).find(_case()) is None


@pytest.mark.parametrize("output", ["1e9", "-1.0", "1" + "0" * 400])
def test_a_file_that_says_what_no_agreement_can_say_is_found_anew(tmp_path: Path, output: str) -> None:
    Agreed(tmp_path, ABOUT).keep(_case(), FOUND)
    (file,) = tmp_path.iterdir()
    file.write_text(f'{{"gradient_error":null,"output_error":{output}}}', encoding="ascii")
    assert Agreed(tmp_path, ABOUT).find(_case()) is None


def test_surroundings_hold_the_interpreter_and_what_chooses_libraries() -> None:
    told = surroundings({"OMP_NUM_THREADS": "2", "HOME": "/h"})
    assert sys.executable in told
    assert "OMP_NUM_THREADS=2" in told
    assert "HOME=/h" not in told


def test_a_folder_that_cannot_be_made_is_in_nobodys_way(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    agreed = Agreed(tmp_path / "file" / "agreed", ABOUT)
    agreed.keep(_case(), FOUND)
    assert agreed.find(_case()) == FOUND


def test_a_worker_compares_once_and_keeps_no_disagreement(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Case] = []

    def check(_backend: object, case: Case) -> Agreement:
        asked.append(case)
        if len(asked) == 1:
            raise WorkerError("off by 1")
        return FOUND

    monkeypatch.setattr(worker, "check", check)
    subject, sizes = block_modules()["dense_tower"], dict(SIZES)
    with pytest.raises(WorkerError):
        Worker(agreed=Agreed(tmp_path, ABOUT))._agree(subject, sizes, PROBE)  # pyright: ignore[reportPrivateUsage]
    for _ in range(2):
        fresh = Worker(agreed=Agreed(tmp_path, ABOUT))
        assert fresh._agree(subject, sizes, PROBE) == FOUND  # pyright: ignore[reportPrivateUsage]
    assert len(asked) == 2


def test_the_digest_follows_the_source(tmp_path: Path) -> None:
    (tmp_path / "probes").mkdir()
    file = tmp_path / "probes" / "block.py"
    file.write_text("a = 1")
    before = source_digest(("probes",), tmp_path)
    file.write_text("a = 2")
    assert source_digest(("probes",), tmp_path) != before
    assert source_digest() == source_digest()
