"""Devices, and what the numbers mean."""

from core.quantity import TIERS
from tests.app.conftest import Opener, words_of


def test_devices_names_what_is_attached_and_mends_each_no(open_page: Opener) -> None:
    page = open_page("devices")
    assert not page.exception
    assert not page.error
    said = words_of(page)
    assert "cpu" in said
    assert "What cannot be used, and what to do" in [element.value for element in page.subheader]


def test_every_tier_is_explained(open_page: Opener) -> None:
    page = open_page("about")
    assert not page.exception
    shown = str(page.table[0].value)
    assert all(tier in shown for tier in TIERS)


def test_accuracy_tells_how_far_off_and_what_was_refused(open_page: Opener) -> None:
    page = open_page("accuracy")
    assert not page.exception
    assert not page.error
    heads = [element.value for element in page.subheader]
    assert heads == ["At most 25 runs of a source", "Furthest off", "Refused, not guessed"]
    shown = str(page.table[0].value)
    assert "training" in shown
    assert "inference" in shown
