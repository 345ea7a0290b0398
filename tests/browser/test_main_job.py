"""The main job in a real browser: describe a workload, watch live probes, read the answer, find it again, take it away."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import PATIENCE_MS, Portal

pytestmark = [pytest.mark.browser, pytest.mark.slow]

RUN_S = 240
"""The longest that a small run on a busy machine of two cores may take."""

FINISHED = "run"
PAGES = ("", "history", "devices", "about", FINISHED)


def _settled(page: Page) -> None:
    """Wait for the script to end: until then parts of its last run stand beside those of this one."""
    page.wait_for_selector('[data-testid="stApp"][data-test-script-state="notRunning"]')


def _choose(page: Page, words: str) -> None:
    page.get_by_test_id("stSelectbox").first.locator("input").click()
    page.keyboard.type(words)
    page.get_by_role("option").first.click()


@pytest.fixture(scope="module")
def finished(portal: Portal, browser: Browser) -> str:
    """Do the main job once, up to the finished run, and return the address of that run."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    context.set_default_timeout(PATIENCE_MS)
    page = context.new_page()
    page.goto(portal.address)
    _choose(page, "mlp infer")
    expect(page).to_have_url(re.compile("workload=mlp"))
    page.get_by_text("Change anything in this workload").click()
    page.get_by_label("Batch", exact=True).fill("16")
    page.get_by_role("button", name="Apply").click()
    expect(page).to_have_url(re.compile(r"set=batch%3D16"))
    expect(page.get_by_text("batch 16").first).to_be_visible()
    expect(page.get_by_text("This machine", exact=True).first).to_be_visible()

    _settled(page)
    page.get_by_test_id("stPopover").filter(has_text="Options").get_by_role("button").click()
    for runtime in ("jax", "torch-eager"):
        page.get_by_role("button", name=runtime, exact=True).click()
        expect(page).to_have_url(re.compile(f"runtime={runtime}"))
        _settled(page)
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Probe this machine").click()

    expect(page).to_have_url(re.compile(r"/run\?id=\w+"))
    expect(page.get_by_role("button", name="Cancel")).to_be_visible()
    expect(page.get_by_text(re.compile(r"\d+ of \d+ probes answered"))).to_be_visible()
    address = page.url
    page.reload()
    expect(page.get_by_role("button", name="Cancel").or_(page.get_by_text("Export", exact=True)).first).to_be_visible()
    portal.restart()
    page.goto(address)
    expect(page.get_by_text("Export", exact=True)).to_be_visible(timeout=RUN_S * 1000)
    context.close()
    return address


def test_a_finished_run_is_there_after_reload_and_restart(finished: str, page: Page) -> None:
    page.goto(finished)
    expect(page.get_by_text(re.compile("Done$")).first).to_be_visible()
    expect(page.get_by_text("Why:").first).to_be_visible()
    expect(page.get_by_text("Rests on:").first).to_be_visible()


def test_reasons_open_and_their_link_restores_them(finished: str, page: Page) -> None:
    page.goto(finished)
    expect(page.get_by_role("tab", name="Reasons")).to_be_visible()
    _settled(page)
    page.get_by_role("tab", name="Reasons").click()
    expect(page).to_have_url(re.compile("show=Reasons"))
    page.reload()
    expect(page.get_by_role("tab", name="Reasons")).to_have_attribute("aria-selected", "true")


def test_the_report_holds_the_numbers_of_the_page(finished: str, page: Page, tmp_path: Path) -> None:
    page.goto(finished)
    expect(page.get_by_text("Step time", exact=True).nth(2)).to_be_visible()
    _settled(page)
    sentence = page.get_by_role("heading", level=2).first.inner_text()
    times = page.get_by_test_id("stMetricValue").all_inner_texts()
    page.get_by_test_id("stPopover").filter(has_text="Export").get_by_role("button").click()
    with page.expect_download(timeout=120_000) as download:
        page.get_by_role("button", name="HTML report").click()
    report = tmp_path / "report.html"
    download.value.save_as(report)

    page.goto(report.as_uri())
    shown = page.locator("body").inner_text()
    assert sentence in shown
    assert len(times) == 3
    assert all(time in shown for time in times)
    assert page.locator("figure img").count() > 0
    assert page.evaluate("[...document.images].every(image => image.complete && image.naturalWidth > 0)")


def test_the_run_is_found_again_in_the_history(finished: str, portal: Portal, page: Page) -> None:
    page.goto(f"{portal.address}/history?state=done")
    page.get_by_test_id("stPageLink").first.get_by_role("link").click()
    expect(page).to_have_url(finished)


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_overflows_on_a_phone(finished: str, portal: Portal, browser: Browser, name: str, scheme: str) -> None:
    context = browser.new_context(viewport={"width": 390, "height": 844}, color_scheme=scheme)  # type: ignore[arg-type]
    narrow = context.new_page()
    narrow.goto(finished if name == FINISHED else f"{portal.address}/{name}")
    expect(narrow.get_by_role("heading").first).to_be_visible()
    _settled(narrow)
    widths = narrow.evaluate("[document.documentElement.scrollWidth, document.querySelector('[data-testid=stMain]').scrollWidth]")
    assert max(widths) <= 390
    context.close()


def test_a_cancelled_run_keeps_what_it_measured_and_says_so(finished: str, portal: Portal, page: Page) -> None:
    page.goto(f"{portal.address}/?workload=mlp:train&runtime=torch-eager&budget=60")
    expect(page.get_by_role("button", name="Probe this machine")).to_be_visible()
    _settled(page)
    page.get_by_role("button", name="Probe this machine").click()
    page.get_by_role("button", name="Cancel").click()
    expect(page.get_by_text(re.compile("Cancelled. What was measured is kept"))).to_be_visible()
    page.get_by_role("button", name="Delete").click()
    page.get_by_role("button", name="Delete for good").click()
    expect(page).to_have_url(re.compile("/history"))


def test_a_run_can_be_deleted_by_keyboard_alone(finished: str, portal: Portal, page: Page) -> None:
    page.goto(finished)
    expect(page.get_by_role("button", name="Delete")).to_be_visible()
    _settled(page)
    page.get_by_role("button", name="Delete").focus()
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Delete for good").focus()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("/history"))
    expect(page.get_by_text("Nothing here yet")).to_be_visible()
