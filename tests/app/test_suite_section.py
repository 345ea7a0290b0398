"""The devices page: what was measured, or how to measure."""

from core.probe import Measurement, Probe, Timing
from probes.inventory import devices
from services.context import Context
from tests.app.conftest import Opener, words_of


def test_without_measurements_the_page_says_how_to_measure(open_page: Opener) -> None:
    page = open_page("devices")
    assert not page.exception
    assert "Nothing was measured here yet" in words_of(page)
    assert any("./tandem probe --tier quick" in str(element.value) for element in page.code)


def test_what_was_measured_is_shown_with_its_band_and_its_doubts(open_page: Opener, here: Context) -> None:
    cpu = devices()[0]
    for n, samples in ((512, (3_000_000,) * 5), (1024, (20_000_000, 21_000_000, 22_000_000, 23_000_000, 24_000_000))):
        probe = Probe("matmul_chain", "kernel", (("n", n),), "fp32", "jax", cpu.id)
        here.store.keep_loose(
            Measurement(
                probe, (Timing(1, 1, samples),), "direct", 2 * n**3, 12 * n**2, None, ("noisy: made up",), True,
                (("jax", "0.10.2"),), cpu.uuid, "2026-11-30T09:00:00+00:00",
            )
        )
    page = open_page("devices")
    assert not page.exception
    said = (words_of(page) + str([list(table.value.iloc[0]) for table in page.table])).replace("\\", "")
    assert "97.6 GFLOP" in said
    assert "Nothing was measured here yet" not in said
    (points,) = (table for table in page.dataframe if "Doubts" in table.value and "Sizes" in table.value)
    assert sorted(points.value["Sizes"]) == ["n=1024", "n=512"]
    assert set(points.value["Doubts"]) == {"noisy: made up"}
