"""Published runs are known to run: nearly all of them are said to fit, by the same parts as plans are weighed by."""

import pytest

from bench import memory_fit


def test_published_runs_are_said_to_fit(capsys: pytest.CaptureFixture[str]) -> None:
    assert memory_fit.main([]) == 0
    assert capsys.readouterr().out.splitlines()[-1].startswith("HOLDS: ")
