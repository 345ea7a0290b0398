"""What moves between devices, what compiling costs, how load, cores and overlap behave: as system probes measured it here."""

from typing import Any

import streamlit as st

from core import format as write
from core.errors import TandemError
from core.links import LinkSeries
from pages.parts.tables import small_table
from pages.parts.text import plain, refuse
from reports.charts.links import TITLES, links
from services import devices as device_service
from services import links as service

WAYS = {
    "first": "first call",
    "new_shape": "new shape",
    "cached": "first call, program on disk",
    "dynamic": "first call, rows left open",
}
KERNELS = {"matmul_chain": "matrix product", "memory_triad": "sweep over memory"}


def measured(report: device_service.DevicesReport) -> None:
    """Draw everything that system probes told of the attached devices, or what to run when they told nothing."""
    st.subheader("Links, compiling and load", anchor=False)
    try:
        found = service.report(report.devices)
    except TandemError as error:
        refuse(error)
        return
    if found.empty:
        st.caption("Nothing was measured yet. This measures copies, collectives, compiling, load and memory; it takes a minute.")
        st.code("./tandem probe --runtime jax --runtime torch-eager --tier quick", language="bash")
        return
    _links(found.links)
    _loads(found)
    _compilings(found)
    _overlaps(found)
    _capacities(found)
    disturbed = f" At {found.contended} of {found.measured} other processes used the device: measure again when it is quiet."
    st.caption(
        "All of these were measured on this machine by `./tandem probe`; each is the median of its samples."
        + (disturbed if found.contended else "")
    )


def _links(series: tuple[LinkSeries, ...]) -> None:
    kinds = [kind for kind in TITLES if any(one.kind == kind for one in series)]
    if not kinds:
        return
    kind = st.segmented_control(
        "Link", kinds, format_func=TITLES.__getitem__, default=kinds[0], required=True, label_visibility="collapsed"
    )
    shown = [one for one in series if one.kind == (kind or kinds[0])]
    drawn = links(shown, "dark" if st.context.theme.type == "dark" else "light")
    if drawn is not None:
        spec: dict[str, Any] = drawn.to_dict()
        st.vega_lite_chart(spec=spec, theme=None, width="stretch", key="chart:links")  # pyright: ignore[reportUnknownMemberType]
    small_table(
        {
            "Link": [plain(one.what) for one in shown],
            "Framework": [plain(one.runtime) for one in shown],
            "Devices": [str(one.devices) for one in shown],
            "Latency": [write.seconds(one.model.latency_s if one.model else None) for one in shown],
            "Rate": [write.count(one.model.bytes_per_s if one.model else None, "B/s") for one in shown],
            "80 % of sizes within": [_band(one) for one in shown],
            "Bus rate, largest": [write.count(one.bus_bytes_per_s, "B/s") for one in shown],
            "Maker says": [plain(_maker(one)) for one in shown],
            "Doubts": [plain(_doubts(one)) for one in shown],
            "Measured": [_when(one.taken_at) for one in shown],
        }
    )
    st.caption(
        "Latency and rate are the line of least squares through the median time of each size, each size weighted by its relative "
        "error. Bus rate has the factors of nccl-tests. On a processor, devices are parts of it or processes on it: no real link."
    )


def _loads(found: service.SystemReport) -> None:
    if found.loads:
        st.markdown("**Sustained load**: a matrix product without a pause, against a burst after rest")
        small_table(
            {
                "Framework": [plain(one.runtime) for one in found.loads],
                "Burst": [write.count(one.burst_flop_per_s, "FLOP/s") for one in found.loads],
                "Sustained": [write.count(one.sustained_flop_per_s, "FLOP/s") for one in found.loads],
                "Droop": [write.percent(one.droop) + (" throttled or shared" if one.throttled else "") for one in found.loads],
                "Timed": [write.seconds(one.seconds) for one in found.loads],
                "Measured": [_when(one.taken_at) for one in found.loads],
            }
        )
    if found.scalings:
        st.markdown("**Scaling over cores**")
        unit = {"matmul_chain": "FLOP/s", "memory_triad": "B/s"}
        small_table(
            {
                "Framework": [plain(one.runtime) for one in found.scalings],
                "Kernel": [KERNELS[one.kernel] for one in found.scalings],
                "Cores": [str(one.cores) for one in found.scalings],
                "Rate": [write.count(one.rate, unit[one.kernel]) for one in found.scalings],
                "Against one core": [f"{write.three_digits(one.speedup)} ×" if one.speedup else "—" for one in found.scalings],
                "Measured": [_when(one.taken_at) for one in found.scalings],
            }
        )


def _compilings(found: service.SystemReport) -> None:
    if found.compilings:
        st.markdown("**Compiling** a network of dense layers, 64 wide")
        small_table(
            {
                "Framework": [plain(one.runtime) for one in found.compilings],
                "What": [WAYS.get(one.what, one.what) for one in found.compilings],
                "Layers": [str(one.layers) for one in found.compilings],
                "Time": [f"{write.seconds(one.seconds)} ({one.samples} compilations)" for one in found.compilings],
                "Measured": [_when(one.taken_at) for one in found.compilings],
            }
        )


def _overlaps(found: service.SystemReport) -> None:
    if found.overlaps:
        st.markdown("**Overlap** with a matrix product: 100 % hides all of the shorter, less than 0 means they hinder each other")
        small_table(
            {
                "Framework": [plain(one.runtime) for one in found.overlaps],
                "Beside it": [plain(one.beside) for one in found.overlaps],
                "Product alone": [write.seconds(one.product_s) for one in found.overlaps],
                "The other alone": [write.seconds(one.beside_s) for one in found.overlaps],
                "Together": [write.seconds(one.together_s) for one in found.overlaps],
                "Hidden": [write.percent(one.fraction) for one in found.overlaps],
                "Measured": [_when(one.taken_at) for one in found.overlaps],
            }
        )


def _capacities(found: service.SystemReport) -> None:
    if found.capacities:
        st.markdown("**Memory**: the largest block that could be had, under a cap that endangers nothing else")
        small_table(
            {
                "Framework": [plain(one.runtime) for one in found.capacities],
                "On": [plain(one.device) for one in found.capacities],
                "Largest block": [
                    ("at least " if one.capped else "") + write.memory(one.largest_bytes) for one in found.capacities
                ],
                "Cap": [write.memory(one.cap_bytes) for one in found.capacities],
                "Held at rest": [write.memory(one.at_rest_bytes) for one in found.capacities],
                "Measured": [_when(one.taken_at) for one in found.capacities],
            }
        )


def _band(one: LinkSeries) -> str:
    if one.model is None or len(one.points) < 3:
        return write.MISSING
    return f"{write.three_digits(one.model.low)} to {write.three_digits(one.model.high)} × the line"


def _doubts(one: LinkSeries) -> str:
    """Return the kinds of doubt that the gates raised at any size: the word before the colon of each."""
    words = dict.fromkeys(doubt.split(":")[0] for point in one.points for doubt in point.doubts)
    return ", ".join(words) or write.MISSING


def _maker(one: LinkSeries) -> str:
    return f"{write.count(one.peak_bytes_per_s, 'B/s')}, {one.peak_source}" if one.peak_bytes_per_s else write.MISSING


def _when(taken_at: str) -> str:
    return taken_at[:16].replace("T", " ") + " UTC"
