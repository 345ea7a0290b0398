"""Coefficients that ship: both files agree, and what is missing or damaged is said with the command that writes them."""

import json
from pathlib import Path

import numpy as np
import pytest

from catalog import coefficients
from catalog.coefficients import FittedGroup, fitted, write
from core.errors import BadInput

GROUPS = ("training", "inference")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(coefficients, "JSON_FILE", tmp_path / "coefficients.json")
    monkeypatch.setattr(coefficients, "ARRAY_FILE", tmp_path / "coefficients.npz")
    fitted.cache_clear()
    yield tmp_path
    fitted.cache_clear()


def group(mean: float = 0.25) -> dict[str, object]:
    return {
        "coefficients": [{"slot": "one", "level": "all", "label": "", "prior_sd": 0.3, "mean": mean, "sd": 0.1}],
        "scales": {"source": 0.1, "noise": 0.05, "widening": 1.0}, "seen": {"stack": ["torch"]}, "latest": {"torch": 2025.5},
        "ranges": {"one": [1.0, 1.0]}, "residuals": {"": 0.2}, "rows": 10, "sources": 3,
    }  # fmt: skip


@pytest.mark.parametrize("name", GROUPS)
def test_both_files_of_the_catalog_agree(name: str) -> None:
    found = fitted(name)
    size = len(found.names)
    assert len(set(found.names)) == size == len(found.mean) == len(found.prior)
    assert found.covariance.shape == (size * (size + 1) // 2,)
    assert {"source", "noise", "widening", "between chips"} <= set(dict(found.scales))
    assert found.rows > found.sources > 1


@pytest.mark.parametrize("name", GROUPS)
def test_what_was_learned_is_surer_than_what_was_assumed(name: str) -> None:
    found = fitted(name)
    whole = np.zeros((len(found.names),) * 2)
    whole[np.tril_indices(len(found.names))] = found.covariance
    spread = np.sqrt(np.maximum(np.diag(whole), 0.0))
    assert np.all(spread <= np.array(found.prior) * 1.001 + 1e-5)
    assert np.all(np.isfinite(found.mean))


def test_what_is_written_is_read_again(folder: Path) -> None:
    write({"training": group()}, {"training": [0.01]}, {"by": "a test"})
    assert fitted("training") == FittedGroup(
        (("one", "all", ""),), (0.3,), (0.25,), pytest.approx(np.array([0.01], dtype=np.float32)),
        (("noise", 0.05), ("source", 0.1), ("widening", 1.0)), (("stack", ("torch",)),), (("torch", 2025.5),),
        (("one", 1.0, 1.0),),
        (("", 0.2),), 10, 3,
    )  # fmt: skip
    assert json.loads((folder / "coefficients.json").read_text(encoding="utf-8"))["made"] == {"by": "a test"}


def test_writing_replaces_what_was_read(folder: Path) -> None:
    write({"training": group()}, {"training": [0.01]}, {})
    assert fitted("training").mean == (0.25,)
    write({"training": group(0.5)}, {"training": [0.01]}, {})
    assert fitted("training").mean == (0.5,)


@pytest.mark.parametrize("damage", ["none", "empty", "words", "no group", "no array", "text array", "cut array", "a list"])
def test_missing_or_damaged_coefficients_are_refused_with_the_command_that_writes_them(folder: Path, damage: str) -> None:
    if damage != "none":
        write({"training": group()}, {"training": [0.01]}, {})
        texts = {"empty": "", "words": "nothing", "no group": '{"groups": {}}', "a list": "[]"}
        if damage in texts:
            (folder / "coefficients.json").write_text(texts[damage], encoding="utf-8")
        if damage == "no array":
            (folder / "coefficients.npz").unlink()
        if damage == "cut array":
            whole = (folder / "coefficients.npz").read_bytes()
            (folder / "coefficients.npz").write_bytes(whole[: len(whole) // 2])
        if damage == "text array":
            (folder / "coefficients.npz").write_text("hello", encoding="utf-8")
    with pytest.raises(BadInput, match=r"python -m bench\.fit"):
        fitted("training")
