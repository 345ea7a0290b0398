"""Pieces of the catalog page: filters in the address, the table of accelerators, and one of them with its slices and prices."""

from dataclasses import dataclass

import streamlit as st

from core import format as write
from core.device import Accelerator, Price, Slice
from core.errors import BadInput
from pages.parts import link
from pages.parts.tables import ROW_PX, ROWS_SHOWN, small_table
from pages.parts.text import plain
from services import catalog as service

KINDS = {"gpu": "GPU", "tpu": "TPU", "other": "Other", "cpu": "CPU"}
SLICES_SHOWN = 12
STALE = "look again"


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the address asks for; empty means any."""

    find: str
    kind: str
    vendor: str


def filters() -> Wanted:
    """Draw the filters and return what they say."""
    vendors = tuple(dict.fromkeys(one.vendor for one in service.chips()))
    wanted = Wanted(link.text("find"), link.chosen("kind", tuple(KINDS), ""), link.chosen("vendor", vendors, ""))
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.text_input(
            "Find",
            key=link.follow("find", wanted.find),
            on_change=link.write("find"),
            width=300,
            placeholder="v5p-8, A100-80GB, trillium …",
            help="A key, or what Cloud TPU, SkyPilot, Ray, GKE, a driver or a machine type calls it",
            icon=":material/search:",
            type="search",
        )
        st.selectbox(
            "Kind",
            tuple(KINDS),
            index=None,
            placeholder="Any",
            format_func=KINDS.__getitem__,
            key=link.follow("kind", wanted.kind or None),
            on_change=link.write("kind"),
            width=130,
        )
        st.selectbox(
            "Vendor",
            vendors,
            index=None,
            placeholder="Any",
            key=link.follow("vendor", wanted.vendor or None),
            on_change=link.write("vendor"),
            width=150,
        )
    return wanted


def listing(wanted: Wanted) -> Accelerator | None:
    """Draw the table of accelerators and return the one to show in full, if any.

    Args:
        wanted: the filters.
    """
    those = _found(wanted)
    if not those:
        st.info(
            plain(f"Nothing in the catalog is called “{wanted.find}” there. Take away a filter."), icon=":material/search_off:"
        )
        return None
    rows = service.offers(those)
    config = st.column_config
    st.dataframe(  # pyright: ignore[reportUnknownMemberType]
        {
            "Accelerator": [one.key for one in those],
            "Memory": [one.memory_bytes / 2**30 for one in those],
            "Memory rate": [_in(one.memory_bytes_per_s, 1e12) for one in those],
            "bf16": [_in(one.peak("bf16"), 1e12) for one in those],
            "fp8": [_in(one.peak("fp8"), 1e12) for one in those],
            "Link": [_in(one.link_bytes_per_s, 1e9) for one in those],
            "Chip-hour": [row.usd_per_chip_h for row in rows],
            "Sold by": [row.cloud or None for row in rows],
            "Price from": [_dated(row.age) for row in rows],
        },
        column_config={
            "Accelerator": config.TextColumn(pinned=True),
            "Memory": config.NumberColumn("Memory, GiB", format="%.1f"),
            "Memory rate": config.NumberColumn("Memory, TB/s", format="%.2f"),
            "bf16": config.NumberColumn("bf16, TFLOP/s", format="%.0f", help="Dense peak of one chip"),
            "fp8": config.NumberColumn("fp8, TFLOP/s", format="%.0f", help="Dense peak of one chip"),
            "Link": config.NumberColumn("Link, GB/s", format="%.0f", help="Of one chip, one direction"),
            "Chip-hour": config.NumberColumn("$ a chip-hour", format="$%.2f", help="Lowest known, on demand, with the machine"),
            "Price from": config.TextColumn(help="When the price was read; it is relied on for 90 days"),
        },
        hide_index=True,
        placeholder=write.MISSING,
        alt="Accelerators of the catalog",
        height=ROW_PX * (min(len(those), ROWS_SHOWN) + 1) + 3,
    )
    return _chosen(wanted, those)


def detail(one: Accelerator) -> None:
    """Draw one accelerator: figures with source and age, what can be had together, and every price.

    Args:
        one: the accelerator.
    """
    st.subheader(plain(f"{one.key} · {one.name}"), anchor=False)
    age = service.hardware_age(one)
    mark = f" :orange-badge[{STALE}]" if age.stale else ""
    st.markdown(plain(f"Source: {one.source} · {age.words} · confidence {one.confidence}", 600) + mark)
    facts, together = st.columns(2, gap="medium")
    with facts:
        figures = {plain(name[:1].upper() + name[1:]): plain(value, 900) for name, value in service.figures(one)}
        small_table(figures, heads=False)
    with together:
        _slices(service.slices(one))
        _machines(one)
    _prices(service.prices(one))


def _found(wanted: Wanted) -> tuple[Accelerator, ...]:
    """Return the accelerators that the filters leave; a name with a number, such as v5p-8, finds its kind and is said back."""
    those = service.chips(wanted.find, wanted.kind, wanted.vendor)
    if not wanted.find:
        return those
    try:
        named = service.named(wanted.find)
    except BadInput as error:
        if not those:
            st.warning(plain(str(error), 600), icon=":material/help:")
        return those
    if named.echo:
        st.info(plain(named.echo, 300), icon=":material/info:")
    return those or tuple(one for one in service.chips("", wanted.kind, wanted.vendor) if one.key == named.key)


def _chosen(wanted: Wanted, those: tuple[Accelerator, ...]) -> Accelerator | None:
    keys = tuple(one.key for one in those)
    asked = link.text("chip")
    known = tuple(one.key for one in service.chips())
    if asked and asked not in known:
        link.chosen("chip", known, "")
    shown = asked if asked in keys else keys[0] if wanted.find and len(keys) == 1 else None
    st.selectbox(
        "Show in full",
        keys,
        index=None,
        placeholder="Choose an accelerator",
        key=link.follow("chip", shown),
        on_change=link.write("chip"),
        width=300,
    )
    return next((one for one in those if one.key == shown), None)


def _slices(known: tuple[Slice, ...]) -> None:
    if not any(one.topology for one in known):
        return
    st.markdown("**Slices**")
    shown = known[:SLICES_SHOWN]
    small_table(
        {
            "Chips": [str(one.chips) for one in shown],
            "Shape": [one.shape if one.slices == 1 else f"{one.slices} of {one.shape}" for one in shown],
            "Hosts": [str(one.hosts) for one in shown],
            "Wraps": [_wraps(one) for one in shown],
        }
    )
    if len(known) > len(shown):
        st.caption(f"and {len(known) - len(shown)} more up to {service.SLICES_SHOWN:,} chips")


def _machines(one: Accelerator) -> None:
    known = service.machines(one)
    if not known:
        return
    st.markdown("**Machines**")
    small_table(
        {
            "Machine": [plain(machine.name) for machine in known],
            "Cloud": [plain(machine.cloud) for machine in known],
            "Chips": [str(machine.chips) for machine in known],
            "vCPUs": [write.MISSING if machine.vcpus is None else str(machine.vcpus) for machine in known],
            "Memory": [write.memory(machine.host_memory_bytes) for machine in known],
        }
    )


def _prices(known: tuple[Price, ...]) -> None:
    st.markdown("**Prices**")
    if not known:
        st.caption("No price is known. Import a list below, or give a pool its own price.")
        return
    ages = [service.age(price) for price in known]
    old = sum(age.stale for age in ages)
    if old:
        st.caption(f"{old} of {len(known)} are past the time for which a price is relied on (90 days, 30 on spot).")
    st.dataframe(  # pyright: ignore[reportUnknownMemberType]
        {
            "Chip-hour": [price.usd_per_chip_h for price in known],
            "Terms": [price.terms for price in known],
            "Cloud": [f"{price.cloud} (your list)" if price.imported else price.cloud for price in known],
            "Region": [price.region or None for price in known],
            "Machine": [price.instance for price in known],
            "Chips": [price.chips_per_instance for price in known],
            "Read": [f"{age.source_date}, {STALE}" if age.stale else age.source_date for age in ages],
            "Source": [price.source for price in known],
        },
        column_config={"Chip-hour": st.column_config.NumberColumn("$ a chip-hour", format="$%.3f")},
        hide_index=True,
        placeholder=write.MISSING,
        alt="Prices of this accelerator, lists of yours first",
        height=ROW_PX * (min(len(known), ROWS_SHOWN) + 1) + 3,
    )


def _wraps(one: Slice) -> str:
    if all(one.wraps):
        return "every axis"
    return next((f"axis of {size}" for size, wraps in zip(one.topology, one.wraps, strict=True) if wraps), "no axis")


def _in(value: float | None, unit: float) -> float | None:
    return None if value is None else value / unit


def _dated(age: service.Age | None) -> str | None:
    return None if age is None else f"{age.source_date}, {STALE}" if age.stale else age.source_date
