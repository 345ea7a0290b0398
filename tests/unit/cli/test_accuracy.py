"""`./tandem accuracy`: the document that scripts read, the tables that people read, and refusals in one line."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from cli.accuracy import accuracy
from cli.main import DONE, FINDING
from core.errors import BadInput
from tests.unit.intake.published.tables import SERVING, TRAINING, table

SCORE = {"rows", "refused", "median_ape", "mean_ape", "p90_ape", "bias", "coverage_80", "pair_order"}


def run(path: Path, text: str, *arguments: str) -> Result:
    (path / "rows.csv").write_text(text, encoding="utf-8")
    return CliRunner().invoke(
        accuracy, ["--rows", str(path / "rows.csv"), *arguments], catch_exceptions=False, standalone_mode=False
    )


def test_the_document_has_the_keys_that_scripts_rely_on(tmp_path: Path) -> None:
    found = run(tmp_path, table(TRAINING, SERVING, TRAINING | {"id": "x", "n_devices": ""}), "--json")
    said = json.loads(found.stdout)
    assert found.return_value == DONE
    assert said["schema_version"] == 1
    for group in ("training", "inference", "other"):
        assert set(said[group]) >= SCORE
    for cut in ("by_source", "by_accelerator", "by_framework", "by_task", "by_tier"):
        assert all(set(score) >= {"name", *SCORE} for score in said[cut])
        assert said[cut]
    assert (said["training"]["rows"], said["training"]["refused"], said["inference"]["rows"]) == (1, 1, 1)
    assert "n_devices" in said["refused"][0]["reason"]
    assert (said["refused"][0]["id"], said["refused"][0]["line"]) == ("x", 4)
    assert "runs" not in said


def test_each_run_is_listed_on_demand(tmp_path: Path) -> None:
    (listed,) = json.loads(run(tmp_path, table(TRAINING), "--json", "--each").stdout)["runs"]
    assert (listed["id"], listed["measured"], listed["metric"]) == ("new-1", 7000, "tokens_per_s_per_device")
    assert listed["ape"] == pytest.approx(abs(listed["predicted"] / 7000 - 1))


def test_a_person_sees_tables_and_what_was_refused(tmp_path: Path) -> None:
    found = run(tmp_path, table(TRAINING, TRAINING | {"id": "x", "accelerator": "abacus"}), "--each")
    assert "All runs" in found.stdout
    assert "By source" in found.stdout
    assert "Refused, not guessed" in found.stdout
    assert "'abacus'" in found.stdout
    assert "Every run" in found.stdout
    assert "Traceback" not in found.output


def test_refused_runs_are_named_by_line_and_id_and_many_are_counted(tmp_path: Path) -> None:
    wrong = [TRAINING | {"id": f"n{index}", "parallelism": "tp0"} for index in range(12)]
    shown = run(tmp_path, table(TRAINING, TRAINING | {"id": "x", "date": "soon"}, *wrong)).stdout
    assert "- 1 run: got date 'soon'; expected a day" in shown
    assert "  line 3 (x)" in shown.splitlines()
    assert "  line 4 (n0), line 5 (n1)," in shown
    assert "line 13 (n9) and 2 more: see --json" in shown


def test_what_was_left_out_is_said_and_told(tmp_path: Path) -> None:
    usual, unseen = (json.loads(run(tmp_path, table(SERVING), "--json", *more).stdout) for more in ((), ("--unseen-chips",)))
    assert (usual["left_out"], unseen["left_out"]) == ("source", "accelerator")
    assert (usual["worst"][0]["predicted"], usual["worst"][0]["sigma"]) != (
        unseen["worst"][0]["predicted"], unseen["worst"][0]["sigma"],
    )  # fmt: skip
    assert "without any run on its accelerator" in unseen["method"]
    shown = run(tmp_path, table(SERVING), "--unseen-chips").stdout
    assert "At most 25 runs of each accelerator" in shown
    assert "bias" in shown


def test_a_file_of_which_nothing_can_be_predicted_is_a_finding(tmp_path: Path) -> None:
    assert run(tmp_path, table(TRAINING | {"value": "nan"}), "--json").return_value == FINDING
    assert run(tmp_path, table()).return_value == FINDING


def test_what_is_no_table_is_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(BadInput) as caught:
        run(tmp_path, "hello\n")
    assert "without id, task, model" in str(caught.value)
