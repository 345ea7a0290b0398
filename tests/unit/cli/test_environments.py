"""`./tandem runtimes resolve`: text, document and exit code."""

import json

import pytest
from click.testing import CliRunner, Result

from cli.main import tandem


def resolve(*arguments: str) -> Result:
    return CliRunner().invoke(tandem, ["runtimes", "resolve", *arguments])


def test_the_text_says_pins_command_and_source() -> None:
    done = resolve("jax", "v6e-8")
    assert done.exit_code == 0
    for part in ("v6e-8 = 8 chips", "jax: first-class", "libtpu", "./tandem runtimes install jax-tpu", "source: "):
        assert part in done.stdout


def test_runtimes_that_share_an_environment_are_told_once() -> None:
    said = resolve("torch", "h100-sxm").stdout
    assert "torch-eager, torch-compile: first-class" in said
    assert said.count("runtimes install torch-cuda") == 1


def test_no_way_is_a_finding_with_the_way_out() -> None:
    done = resolve("mxnet", "tpu-v4")
    assert done.exit_code == 1
    assert "mxnet: no; retired to the Apache Attic" in done.stdout
    assert "Way out: torch-tpu (supported), jax (first-class)" in done.stdout


def test_a_conflict_is_told_with_the_environments_apart() -> None:
    said = resolve("torch-xla", "v5e", "--with", "torch-tpu").stdout
    assert said.count("  apart: ") == 2


@pytest.mark.parametrize(("arguments", "code", "ways"), [
    (("jax", "tpu-v6e"), 0, ["jax"]), (("keras", "tpu-v6e"), 0, ["keras-jax", "keras-tensorflow"]), (("tf", "tpu7x"), 1, []),
])  # fmt: skip
def test_the_document_holds_the_same(arguments: tuple[str, ...], code: int, ways: list[str]) -> None:
    done = resolve(*arguments, "--json")
    said = json.loads(done.stdout)
    assert done.exit_code == code
    assert said["schema_version"] == 1
    assert [one["runtime"] for one in said["ways"]] == ways
    assert all(one["pins"] and one["install"] and one["source"] for one in said["ways"])
    assert set(said) == {"schema_version", "framework", "accelerator", "ways", "refused", "way_out", "unknown"}


@pytest.mark.parametrize("arguments", [("jaxx", "cpu"), ("jax", "h100"), ("jax", "cpu", "--with", "=="), ("jax",)])
def test_bad_input_is_one_line_and_code_2(arguments: tuple[str, ...]) -> None:
    done = resolve(*arguments)
    assert done.exit_code == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
