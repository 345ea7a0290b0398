"""The command line's frame: one line for each fault, the exit codes, documents alone on stdout."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import click
import pytest

from cli import output
from cli.main import BAD_INPUT, DONE, FINDING, STOPPED, OneLineGroup, tandem
from cli.parts import stopped_by_signals
from core.errors import BadInput, StoreError

ROOT = Path(__file__).resolve().parent.parent.parent.parent


def run(*arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "cli", *arguments], cwd=ROOT, input=stdin, capture_output=True, text=True, timeout=60, check=False,
    )


def code_of(group: click.Group, *arguments: str) -> int:
    with pytest.raises(SystemExit) as stopped:
        group.main(list(arguments), prog_name="./tandem")
    assert isinstance(stopped.value.code, int)
    return stopped.value.code


def group_that(raises: BaseException) -> click.Group:
    def fail() -> None:
        raise raises

    class Failing(OneLineGroup):
        def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command:
            return click.Command(cmd_name, callback=fail)

    return Failing("tandem")


@pytest.mark.parametrize(("arguments", "parts"), [
    (("advize",), ("got 'advize'", "did you mean 'advise'?", "./tandem --help")),
    (("show",), ("RUN", "./tandem show --help")),
    (("history", "--limt", "3"), ("--limt", "--limit", "./tandem history --help")),
    (("history", "--limit", "many"), ("--limit", "many", "./tandem history --help")),
    (("history", "--task", "trian"), ("trian", "train", "./tandem history --help")),
    (("report", "x", "--format", "docx"), ("docx", "html")),
    (("actual", "x", "--step-time-s", "0"), ("--step-time-s", "0", "./tandem actual --help")),
    (("runtimes", "install", "torch-xlaa"), ("torch-xlaa", "torch-xla")),
    (("app", "--port", "99999"), ("--port", "99999", "65535")),
])
def test_a_usage_error_is_one_line_on_stderr_and_exit_2(
    arguments: tuple[str, ...], parts: tuple[str, ...], capsys: pytest.CaptureFixture[str],
) -> None:
    code = code_of(tandem, *arguments)
    shown = capsys.readouterr()
    assert code == BAD_INPUT
    assert shown.out == ""
    assert shown.err.startswith("tandem: ")
    assert shown.err.count("\n") == 1
    assert [part for part in parts if part not in shown.err] == []


@pytest.mark.parametrize(("raised", "code", "line"), [
    (BadInput("a\nb", "one line", "look"), BAD_INPUT, "tandem: got a b; expected one line; look\n"),
    (StoreError("got a full disk; expected room; free some"), BAD_INPUT, "tandem: got a full disk; expected room; free some\n"),
    (KeyboardInterrupt(), STOPPED, "tandem: stopped\n"),
    (BrokenPipeError(), DONE, ""),
])
def test_errors_of_tandem_are_one_line_with_their_exit_code(
    raised: BaseException, code: int, line: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("os.dup2", lambda *_: None)  # stdout is pytest's here
    assert code_of(group_that(raised), "show") == code
    assert capfd.readouterr().err.lstrip("\n") == line


def test_a_fault_of_tandem_itself_is_one_line_and_its_trace_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TANDEM_HOME", str(tmp_path))
    assert code_of(group_that(ZeroDivisionError("by\nnothing")), "show") == FINDING
    (kept,) = (tmp_path / "faults").iterdir()
    said = capsys.readouterr().err
    assert said.startswith("tandem: got a fault of Tandem itself (")
    assert said.count("\n") == 1
    assert str(kept) in said
    assert "Traceback" in kept.read_text()
    assert "ZeroDivisionError" in kept.read_text()


def test_where_the_trace_cannot_be_kept_it_is_told_on_the_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TANDEM_HOME", "/dev/null/here")
    assert code_of(group_that(ZeroDivisionError("by nothing")), "show") == FINDING
    said = capsys.readouterr().err
    assert "Traceback" in said
    assert said.count("\n") == 1


def test_help_loads_nothing_heavy() -> None:
    code = "import sys; sys.argv = ['tandem', '--help']\ntry: import runpy; runpy.run_module('cli', run_name='__main__')\n"
    code += "finally: print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0
    assert "advise" in done.stdout
    heavy = {"numpy", "pandas", "torch", "jax", "tensorflow", "keras", "transformers", "sqlalchemy", "streamlit", "altair"}
    assert not heavy & set(done.stdout.split())


def test_every_command_shows_its_help() -> None:
    for name in tandem.list_commands(click.Context(tandem)):
        command = tandem.get_command(click.Context(tandem), name)
        assert command is not None
        assert "--help" in command.get_help(click.Context(command, info_name=name))


def test_work_is_there_but_not_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert code_of(tandem, "--help") == DONE
    assert "\n  work" not in capsys.readouterr().out
    assert tandem.get_command(click.Context(tandem), "work") is not None


def test_a_document_is_json_with_its_version_first(capsys: pytest.CaptureFixture[str]) -> None:
    output.document({"name": "µ", "values": [1.5, None]})
    text = capsys.readouterr().out
    assert json.loads(text) == {"schema_version": 1, "name": "µ", "values": [1.5, None]}
    assert text.startswith('{\n  "schema_version": 1')


def test_a_document_never_holds_what_json_does_not_know() -> None:
    with pytest.raises(ValueError, match="JSON compliant"):
        output.document({"value": float("nan")})


def test_a_table_is_aligned_and_a_cell_stays_on_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    output.table(("name", "n"), [("a\nb", "1"), ("longer name", "1000")], right=(1,))
    assert capsys.readouterr().out == "name            n\na b             1\nlonger name  1000\n"


def test_progress_goes_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    output.progress("one\ntwo")
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ("", "one two\n")


@pytest.mark.parametrize(("output", "said"), [(">&-", "closed standard output"), (">/dev/full", "No space left on device")])
def test_an_output_that_cannot_be_written_is_one_line(output: str, said: str) -> None:
    command = f"exec {sys.executable} -m cli runtimes list --json {output}"
    done = subprocess.run(["/bin/sh", "-c", command], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == BAD_INPUT
    assert done.stderr.startswith("tandem: got ")
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_fault_of_the_disk_names_the_file_and_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert code_of(group_that(PermissionError(13, "Permission denied", "/x/y")), "history") == BAD_INPUT
    told = capsys.readouterr().err
    assert told.startswith("tandem: got Permission denied for /x/y; expected ")
    assert len(told.splitlines()) == 1


def test_a_flag_of_the_list_is_not_lost_before_another_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert code_of(tandem, "runtimes", "--json", "list") == BAD_INPUT
    assert "./tandem runtimes list --json" in capsys.readouterr().err


def test_a_signal_stops_what_tidies_up_as_ctrl_c_does() -> None:
    before = signal.getsignal(signal.SIGTERM)
    tidied: list[str] = []
    with pytest.raises(KeyboardInterrupt), stopped_by_signals():
        try:
            os.kill(os.getpid(), signal.SIGTERM)
        finally:
            tidied.append("done")
    assert tidied == ["done"]
    assert signal.getsignal(signal.SIGTERM) == before
