"""What system probes told stands on the devices page, with where it is from."""

from dataclasses import replace

from core.probe import Measurement, Probe, Timing
from probes.inventory import devices
from services import links
from services.context import Context
from tests.app.conftest import Opener, words_of

CPU = next(device for device in devices() if device.kind == "cpu")


def measured(subject: str, seconds: float, flop: int = 0, traffic: int = 0, **sizes: object) -> Measurement:
    probe = Probe(subject, "system", tuple(sorted(sizes.items())), "fp32", "jax", CPU.id)  # type: ignore[arg-type]
    timing = Timing(1, 1, (round(seconds * 1e9),) * 5)
    taken_at = "2026-11-30T20:00:00+00:00"
    return Measurement(probe, (timing,), "direct", flop, traffic, None, ("noisy: a lot",), True, (), CPU.uuid, taken_at)


def all_kinds() -> list[Measurement]:
    copies = [measured("host_device", 1e-5 + s / 1e9, 0, s, bytes=s, way="to_device", memory="pageable") for s in (2**12, 2**20)]
    both = measured("overlap", 0.012, **{"with": "copy"})
    parts = (Timing(1, 1, (10_000_000,) * 5, part="product"), Timing(1, 1, (4_000_000,) * 5, part="beside"))
    block = replace(
        measured("memory_capacity", 0.1),
        counts=(("largest_bytes", 2.0**28), ("cap_bytes", 2.0**28), ("at_rest_bytes", 2.0**27)),
        warnings=("contended: a neighbour",),
    )
    return [
        *copies,
        replace(both, timings=(*both.timings, *parts)),
        measured("sustained_load", 0.0125, 10**9, phase="sustained", n=1024),
        measured("sustained_load", 0.01, 10**9, phase="burst", n=1024),
        measured("cpu_scaling", 0.02, 10**9, 1, kernel="matmul_chain", cores=1, of=2),
        measured("compile_cost", 0.4, what="cached", layers=4),
        block,
    ]


def test_an_empty_store_says_what_to_run(open_page: Opener) -> None:
    page = open_page("devices")
    assert not page.exception
    assert any("./tandem probe" in element.value for element in page.code)


def test_every_kind_of_system_measurement_is_told_with_its_source(here: Context, open_page: Opener) -> None:
    for one in all_kinds():
        here.store.keep_loose(one)
    page = open_page("devices")
    assert not page.exception
    cells = " ".join(str(table.value.to_dict()) for table in page.table).replace("\\", "")
    for said in (
        "host to device, pageable", "10.0 µs", "noisy", "20 % throttled or shared", "first call, program on disk",
        "50 %", "at least 256 MiB", "matrix product", "2026-11-30 20:00 UTC",
    ):
        assert said in cells
    assert "./tandem probe" in words_of(page)


def test_a_report_counts_what_was_disturbed(here: Context) -> None:
    for one in all_kinds():
        here.store.keep_loose(one)
    found = links.report((CPU,))
    assert (found.measured, found.contended) == (8, 1)
    assert not found.empty
    assert links.report(()).empty
