"""The history on the devices page: empty at first, then flags as sentences, a chart and a table."""

from dataclasses import replace

from core.probe import Measurement, Timing
from probes.inventory import devices
from services.context import Context
from tests.app.conftest import Opener, words_of
from tests.samples.parts import kernel_outcomes


def test_without_measurements_it_says_how_to_begin(open_page: Opener) -> None:
    page = open_page("devices")
    assert not page.exception
    assert "History" in [element.value for element in page.subheader]
    assert "Nothing was measured here yet" in words_of(page)
    assert "./tandem probe" in words_of(page)


def test_a_drift_is_a_sentence_and_every_measurement_is_in_the_table(here: Context, open_page: Opener) -> None:
    kernel = next(o for o in kernel_outcomes() if isinstance(o, Measurement))
    for day, factor in ((1, 1), (2, 2)):
        timings = (Timing(1, 1, (100_000_000 * factor, 101_000_000 * factor)),)
        here.store.keep_loose(replace(kernel, timings=timings, device_uuid=devices()[0].uuid, warnings=(),
                                      taken_at=f"2026-03-0{day}T10:00:00+00:00"))
    page = open_page("devices")
    assert not page.exception
    assert [element.value for element in page.warning if "2.0 times as slow as" in str(element.value).replace("\\", "")]
    assert any({"Median (s)", "Spread, IQR (s)", "Least (s)", "Samples"} <= set(table.value.columns) and len(table.value) == 2
               for table in page.dataframe)
