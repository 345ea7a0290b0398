"""What advice promises of published runs under plans of its own is what they reached, within its band."""

import json

import pytest

from bench import advised


def test_advice_promises_what_published_runs_reached(capsys: pytest.CaptureFixture[str]) -> None:
    assert advised.main(["--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["kinds"]["decoder"]["runs"] > 200
    assert told["kinds"]["mixture"]["runs"] > 50
