"""Environments of their own on the devices page: built by a click, watched, removed, and a build that failed says how."""

from dataclasses import replace

import pytest

from services import runtimes as service
from services.runtimes import EnvironmentState
from tests.app.conftest import Opener

ABSENT = EnvironmentState("mxnet", ("mxnet",), "cpu", "retired", 1e9, "absent", None, None, "", "")


class Builds:
    """Plays the states of one environment; a click on Build makes it be built."""

    def __init__(self, now: EnvironmentState) -> None:
        self.now, self.asked, self.gone = now, [], []

    def environments(self) -> tuple[EnvironmentState, ...]:
        return (self.now,)

    def install_in_background(self, name: str) -> None:
        self.asked.append(name)

    def remove(self, name: str) -> int:
        self.gone.append(name)
        self.now = ABSENT
        return 1


def _played(monkeypatch: pytest.MonkeyPatch, state: EnvironmentState) -> Builds:
    builds = Builds(state)
    for name in ("environments", "install_in_background", "remove"):
        monkeypatch.setattr(service, name, getattr(builds, name))
    return builds


def _said(page: object) -> list[str]:
    return [caption.value.replace("\\", "") for caption in page.caption]  # type: ignore[attr-defined]


def test_a_click_builds_and_the_card_tells_how_far_it_is(monkeypatch: pytest.MonkeyPatch, open_page: Opener) -> None:
    builds = _played(monkeypatch, ABSENT)
    page = open_page("devices")
    page.button(key="build:mxnet").click().run()
    assert builds.asked == ["mxnet"]
    assert "Starting" in _said(page)
    assert not [button for button in page.button if button.label == "Build"]
    builds.now = replace(ABSENT, state="building", last="unpacking")
    assert "Now: unpacking" in _said(page.run())


def test_one_that_is_removed_can_be_built_again(monkeypatch: pytest.MonkeyPatch, open_page: Opener) -> None:
    builds = _played(monkeypatch, replace(ABSENT, state="ready", size_bytes=10**8, build_s=10.0))
    page = open_page("devices")
    page.button(key="remove:mxnet").click().run()
    assert builds.gone == ["mxnet"]
    assert [button.label for button in page.button if button.key == "build:mxnet"] == ["Build"]


def test_a_build_that_failed_says_how_and_one_that_has_no_room_why(monkeypatch: pytest.MonkeyPatch, open_page: Opener) -> None:
    _played(monkeypatch, replace(ABSENT, last="no such package", obstacle="got 1 GB free"))
    page = open_page("devices")
    assert "The last build ended with: no such package" in _said(page)
    assert page.button(key="build:mxnet").disabled
