"""The commands that look at kept runs, on a real database with a run in it."""

import csv
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from cli.main import BAD_INPUT, DONE, tandem
from core.run import Run
from core.split import SplitRun
from services.context import context
from tests.samples.runs import sample_hostile, sample_run
from tests.samples.splits import sample_split, sample_verified

Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    monkeypatch.setenv("TANDEM_HOME", str(tmp_path / "home"))
    context.cache_clear()
    run = sample_run()
    store = context().store
    store.create_run(run)
    yield run
    store.close()
    context.cache_clear()


@pytest.fixture
def call(kept: Run, capfdbinary: pytest.CaptureFixture[bytes]) -> Call:
    def run(*arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as stopped:
            tandem.main(list(arguments), prog_name="./tandem")
        shown = capfdbinary.readouterr()
        return int(str(stopped.value.code)), shown.out.decode(), shown.err.decode()

    return run


def test_history_finds_a_run_as_a_row_and_as_a_document(kept: Run, call: Call) -> None:
    code, text, _ = call("history")
    assert code == DONE
    assert text.count("\n") == 2
    assert kept.id in text
    said = json.loads(call("history", "--json")[1])
    assert said["schema_version"] == 1
    row = said["runs"][0]
    assert {"id", "created_at", "name", "task", "best", "owner", "state"} <= set(row)
    assert (row["id"], row["state"]) == (kept.id, "done")


def test_history_searches_and_says_when_there_is_nothing(call: Call) -> None:
    assert json.loads(call("history", "--search", "no such words", "--json")[1])["runs"] == []
    assert call("history", "--state", "failed") == (DONE, "No run matches.\n", "")


def test_show_tells_the_answer_and_what_was_measured(kept: Run, call: Call) -> None:
    code, text, _ = call("show", kept.id)
    assert code == DONE
    assert kept.recommendation is not None
    assert kept.recommendation.sentence in text
    assert "Measured:" in text
    said = json.loads(call("show", kept.id, "--json")[1])
    assert said["recommendation"]["run_id"] == kept.id
    assert len(said["outcomes"]) == len(kept.outcomes)


def test_show_tells_a_split_and_what_came_of_running_it(kept: Run, call: Call) -> None:
    planned = SplitRun(sample_split(), sample_verified())
    context().store.create_run(replace(kept, id="splitsplit12", outcomes=(), actuals=(), split=planned))
    code, text, _ = call("show", "splitsplit12")
    assert code == DONE
    assert planned.split.sentence in text
    assert "weights after 3 steps" in text
    said = json.loads(call("show", "splitsplit12", "--json")[1])["split"]
    assert said["verdict"] == planned.split.verdict
    assert said["verified"]["n"] == 20
    assert call("history", "--search", "splitsplit12")[1].count(planned.split.label) == 1


def test_an_actual_is_kept_and_shown(kept: Run, call: Call) -> None:
    code, text, _ = call("actual", kept.id, "--step-time-s", "0.25", "--note", "a real one")
    assert code == DONE
    assert "250 ms" in text
    assert "a real one" in call("show", kept.id)[1]
    assert json.loads(call("show", kept.id, "--json")[1])["actuals"][-1]["step_time_s"] == 0.25


@pytest.mark.parametrize("arguments", [("show",), ("report",), ("actual", "--step-time-s", "1")])
def test_a_run_that_is_not_there_is_one_line_and_exit_2(call: Call, arguments: tuple[str, ...]) -> None:
    code, text, error = call(arguments[0], "nosuchrun", *arguments[1:])
    assert (code, text) == (BAD_INPUT, "")
    assert error.count("\n") == 1
    assert "nosuchrun" in error


def test_a_report_is_written_to_a_file_or_to_standard_output(kept: Run, call: Call, tmp_path: Path) -> None:
    file = tmp_path / "run.json"
    code, text, error = call("report", kept.id, "--format", "json", "-o", str(file))
    assert (code, text) == (DONE, "")
    assert str(file) in error
    assert call("report", kept.id, "--format", "json")[1].encode() == file.read_bytes()
    assert call("report", kept.id, "--format", "md", "-o", "-")[1].startswith("#")
    assert list(csv.reader(call("report", kept.id, "--format", "csv")[1].splitlines()))


def test_a_report_into_a_folder_that_is_not_there_is_one_line_and_exit_2(kept: Run, call: Call, tmp_path: Path) -> None:
    code, _, error = call("report", kept.id, "--format", "json", "-o", str(tmp_path / "none" / "run.json"))
    assert code == BAD_INPUT
    assert error.count("\n") == 1
    assert "No such file or directory" in error


def test_what_a_user_typed_cannot_break_a_line(call: Call) -> None:
    hostile = replace(sample_hostile(), id="hostile00000", actuals=())
    context().store.create_run(hostile)
    code, text, _ = call("history")
    assert code == DONE
    assert text.count("\n") == 3
    assert hostile.workload.name.split("(")[0] in text
