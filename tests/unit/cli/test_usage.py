"""What Click refuses of a call is told in the house's one line, whichever command it is."""

from pathlib import Path

import click
import pytest

from cli.main import BAD_INPUT, OneLineGroup
from cli.parts import Number
from cli.usage import usage_line


@click.command()
@click.argument("run", metavar="RUN")
@click.option("--limit", type=click.IntRange(1, 10_000), required=True, help="How many at most.")
@click.option("--share", type=click.FloatRange(0, 1))
@click.option("--step", type=Number(min=0, min_open=True))
@click.option("--task", type=click.Choice(("train", "infer")))
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="File to write.")
@click.option("--json", is_flag=True)
def show(**_given: object) -> None:
    """Show a run."""


class Calls(OneLineGroup):
    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command:
        return show


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    with pytest.raises(SystemExit) as stopped:
        Calls("tandem").main(["show", *arguments], prog_name="./tandem")
    assert stopped.value.code == BAD_INPUT
    shown = capsys.readouterr()
    assert shown.out == ""
    line = shown.err.removesuffix("\n")
    assert "\n" not in line
    assert line.endswith("; see ./tandem show --help")
    return line.removesuffix("; see ./tandem show --help")


@pytest.mark.parametrize(("arguments", "line"), [
    (("a", "--limit", "many"), "got --limit 'many'; expected a whole number from 1 to 10000"),
    (("a", "--limit", "0"), "got --limit '0'; expected a whole number from 1 to 10000"),
    (("a", "--limit", "1.5"), "got --limit '1.5'; expected a whole number from 1 to 10000"),
    (("a", "--limit", "1", "--share", "2"), "got --share '2.0'; expected a number from 0 to 1"),
    (("a", "--limit", "1", "--step", "0"), "got --step '0.0'; expected a number above 0"),
    (("a", "--limit", "1", "--step", "nan"), "got --step 'nan'; expected a number above 0"),
    (("a", "--limit", "1", "--task", "trian"), "got --task 'trian'; expected one of train, infer, did you mean train?"),
    (("a", "--limit", "1", "--task", "is not one of"), "got --task 'is not one of'; expected one of train, infer"),
    (("a", "--limit", "1", "--task", ""), "got --task ''; expected one of train, infer"),
    (("a", "--limit", "1", "-o", "/"), "got --output '/' (is a directory); expected it with a value: file to write"),
    (("a", "--limit"), "got --limit without a value; expected --limit VALUE"),
    (("a", "--json=3"), "got --json with a value; expected it alone, since it is a flag"),
    (("a",), "got no --limit; expected it with a value: how many at most"),
    (("--limit", "1"), "got no RUN; expected ./tandem show [OPTIONS] RUN"),
    (("a", "b", "c", "--limit", "1"), "got 'b c' beside the rest; expected ./tandem show [OPTIONS] RUN"),
])
def test_what_was_got_and_what_was_expected_are_told_in_one_line(
    arguments: tuple[str, ...], line: str, capsys: pytest.CaptureFixture[str],
) -> None:
    assert told(capsys, *arguments) == f"tandem: {line}"


def test_an_unknown_option_is_told_with_those_that_there_are_and_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    line = told(capsys, "a", "--limt", "3")
    known = "--limit, --share, --step, --task, -o, --output, --json"
    assert line.startswith(f"tandem: got the option '--limt'; expected one of {known}")
    assert line.endswith("did you mean --limit?")


def test_a_long_value_is_cut(capsys: pytest.CaptureFixture[str]) -> None:
    line = told(capsys, "a", "--limit", "9" * 3000 + "x")
    assert line == f"tandem: got --limit '{'9' * 99}…'; expected a whole number from 1 to 10000"


def test_an_unknown_command_of_a_group_is_told_with_those_that_there_are() -> None:
    group = click.Group("runtimes", commands={"list": show, "install": show})
    with pytest.raises(click.UsageError) as raised:
        group.main(["instal"], prog_name="./tandem runtimes", standalone_mode=False)
    said = "got 'instal'; expected one of install, list, did you mean install?; see ./tandem runtimes --help"
    assert usage_line(raised.value) == said


def test_the_words_of_a_command_itself_stay_as_they_are() -> None:
    assert usage_line(click.ClickException("got x; expected y; do z"), "./tandem show") == "got x; expected y; do z"
