"""How a split is asked for: pools, the link between them, what is saved and by how much; all of it lives in the address."""

import json
from dataclasses import dataclass
from typing import Any

import streamlit as st

from core.split import MODES, Split, SplitOptions
from core.workload import OBJECTIVES, Workload
from pages.parts import link
from pages.parts.ask import device_report
from pages.parts.text import plain
from reports.split_text import mode_meaning, mode_name
from services import catalog, split

USUAL = ("h100-sxm=8", "tpu-v6e=16")
FEWEST = 2
LEAST_SAVING = SplitOptions(()).least_saving
LARGEST_GBPS, LARGEST_MS = 1e6, 6e4
USUAL_MS = 0.1
"""Latency of a link whose rate alone was given, as the command line takes it too."""
EXAMPLES: tuple[tuple[str, str, dict[str, object]], ...] = (
    (
        "GPUs and TPUs, one 8B model",
        "Eight H100 and sixteen v6e finetune Llama 3 8B, over a link that you can change.",
        {"workload": "llama-3-8b:finetune", "pool": list(USUAL)},
    ),
    (
        "Far apart",
        "A v5p slice and a machine of H100 over 10 Gbit/s: too slow for every step, perhaps not for every fiftieth.",
        {"workload": "llama-3-8b:train", "pool": ["tpu-v5p=16", "h100-sxm=8"], "gbps": 10.0, "latency_ms": 30.0},
    ),
    (
        "Two frameworks, here",
        "JAX and PyTorch share a small GPT-2 on this machine; the plan can be run for real.",
        {"workload": "gpt2-demo:train", "pool": ["cpu:0@jax", "cpu:0@torch-eager"]},
    ),
)
"""Title, what it is, and what is written into the address."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What the address asks for; `objective` is None where it is the workload's own."""

    options: SplitOptions
    objective: str | None


@dataclass(frozen=True, slots=True)
class Written:
    """One pool as typed, `NAME=COUNT@RUNTIME`, in its parts; `count` is None where the name says it or it is one."""

    name: str
    count: int | None
    runtime: str

    @property
    def text(self) -> str:
        """The pool as it is typed again."""
        return self.name + (f"={self.count}" if self.count is not None else "") + (f"@{self.runtime}" if self.runtime else "")


def first_visit() -> None:
    """Offer what can be tried at once."""
    st.markdown("##### Or begin with one of these")
    with st.grid(3, min_column_width=240, gap="small"):
        for title, text, parameters in EXAMPLES:
            with st.container(border=True, height="stretch"):
                st.markdown(f"**{title}**")
                st.markdown(text)
                st.button("Open", key=f"example:{title}", icon=":material/arrow_forward:", on_click=_take, args=(parameters,))


def asked() -> Asked:
    """Return what the address asks for; a value that cannot be read is named to the reader."""
    gbps, latency_ms = _number("gbps", LARGEST_GBPS), _number("latency_ms", LARGEST_MS, zero=True)
    least = link.number("saving", 0, 99, round(100 * LEAST_SAVING))
    options = SplitOptions(
        tuple(st.query_params.get_all("pool")) or USUAL,
        link.chosen("mode", MODES, ""),
        None if gbps is None else gbps * 1e9 / 8,
        None if gbps is None else (USUAL_MS if latency_ms is None else latency_ms) * 1e-3,
        least / 100,
    )
    return Asked(options, link.chosen("objective", OBJECTIVES, "") or None)


def form(now: Asked, workload: Workload) -> None:
    """Draw every choice; each change is written into the address at once.

    Args:
        now: as the address has it.
        workload: gives the objective where none was asked for.
    """
    with st.container(border=True):
        st.markdown("**Pools to share it**")
        written = [written_pool(text) for text in now.options.pools]
        for index, one in enumerate(written):
            _pool(index, one, removable=len(written) > FEWEST)
        st.button("Add a pool", icon=":material/add:", type="tertiary", on_click=_add)
        _choices(now, workload)


def written_pool(text: str) -> Written:
    """Return a pool that was typed in its parts; what is no count stays with the name, to be refused with it."""
    head, _, runtime = text.partition("@")
    name, _, count = head.partition("=")
    if count.isascii() and count.isdigit() and len(count) < 8:
        return Written(name.strip(), int(count), runtime.strip())
    return Written(head.strip(), None, runtime.strip())


def planned(document: dict[str, Any], now: Asked) -> Split:
    """Return the answer to what is asked.

    Raises:
        BadInput: a pool, the link or the mode cannot be used.
    """
    return _planned(json.dumps(document, sort_keys=True, default=str), now.options, now.objective, document)


@st.cache_data(ttl=20, max_entries=64, show_spinner="Planning who does what …")
def _planned(stamp: str, options: SplitOptions, objective: str | None, _document: dict[str, Any]) -> Split:  # noqa: ARG001  (the cache knows the document by it)
    return split.plan(_document, options, objective)


def _pool(index: int, one: Written, *, removable: bool) -> None:
    offers = _offers()
    runtimes = [runtime.id for runtime in device_report().runtimes]
    keys = [f"pool:{index}:{part}" for part in ("name", "count", "runtime")]
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        st.selectbox(
            f"Pool {index + 1}",
            list(dict.fromkeys([*offers, one.name] if one.name else offers)),
            index=None,
            format_func=lambda name: offers.get(str(name), str(name)),
            key=link.follow(keys[0], one.name or None),
            accept_new_options=True,
            on_change=_write,
            placeholder="Type an accelerator",
            width=300,
            help="An accelerator of the catalog, a device of this machine, any other name (v5p-8, A100-80GB:8), or ray:GPU",
        )
        st.number_input(
            "Chips",
            1,
            1_000_000,
            value=None,
            step=1,
            key=link.follow(keys[1], one.count),
            on_change=_write,
            placeholder="as named",
            width=130,
            disabled=":" in one.name and not one.name.startswith("ray:") and one.count is None,
            help="Empty takes the count that is in the name, or one; of a Ray cluster, what is asked for",
        )
        st.selectbox(
            "Framework",
            list(dict.fromkeys([*runtimes, one.runtime] if one.runtime else runtimes)),
            index=None,
            key=link.follow(keys[2], one.runtime or None),
            on_change=_write,
            placeholder="the best for it",
            width=180,
        )
        if removable:
            st.button(
                "Remove", key=f"pool:{index}:remove", icon=":material/close:", type="tertiary", on_click=_remove, args=(index,)
            )


def _choices(now: Asked, workload: Workload) -> None:
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        st.number_input(
            "Link, Gbit/s",
            0.001,
            LARGEST_GBPS,
            value=None,
            key=link.follow("gbps", _number("gbps", LARGEST_GBPS, quiet=True)),
            on_change=link.write("gbps"),
            placeholder="as known",
            width=170,
            help="Between the pools, one way. Empty takes what the catalog knows of their hosts.",
        )
        st.number_input(
            "Latency, ms",
            0.0,
            LARGEST_MS,
            value=None,
            key=link.follow("latency_ms", _number("latency_ms", LARGEST_MS, zero=True, quiet=True)),
            on_change=link.write("latency_ms"),
            placeholder="as known" if now.options.link_bytes_per_s is None else f"{USUAL_MS:g}",
            width=170,
            disabled=now.options.link_bytes_per_s is None,
            help="One way. Counts only with a rate of the link.",
        )
        st.selectbox(
            "Divided by",
            ("", *MODES),
            format_func=lambda mode: mode_name(mode) if mode else "Whatever is best",
            key=link.follow("mode", now.options.mode),
            on_change=link.write("mode"),
            width=220,
            help=mode_meaning(now.options.mode),
        )
        st.number_input(
            "Worth it from, % saved",
            0,
            99,
            step=5,
            key=link.follow("saving", round(100 * now.options.least_saving)),
            on_change=link.write("saving"),
            width=180,
            help="Two stacks cost people's time: below this, one pool is recommended",
        )
        st.segmented_control(
            "Save",
            OBJECTIVES,
            format_func=str.capitalize,
            required=True,
            key=link.follow("objective", now.objective or workload.objective),
            on_change=link.write("objective"),
        )


@st.cache_data(ttl=60, max_entries=1, show_spinner=False)
def _offers() -> dict[str, str]:
    """Return what can be chosen as a pool: id or key, and how it is shown; this machine's devices first."""
    here = {device.id: f"{device.id} · {device.name}" for device in device_report().devices}
    return here | {chip.key: f"{chip.key} · {chip.name}" for chip in catalog.chips() if chip.kind in ("gpu", "tpu")}


def _write() -> None:
    """Copy the widgets of all pools into the address; a count stays with another key, not with a name that may hold one."""
    catalog_keys = {chip.key for chip in catalog.chips()}
    pools: list[str] = []
    for index in range(len(_texts())):
        name, count, runtime = (st.session_state.get(f"pool:{index}:{part}") for part in ("name", "count", "runtime"))
        renamed = name != written_pool(_texts()[index]).name
        held = None if renamed and name not in catalog_keys else count
        pools.append(Written(str(name or "").strip(), held, str(runtime or "")).text)
    link.put("pool", pools)


def _add() -> None:
    link.put("pool", [*_texts(), "cpu:0"])


def _remove(index: int) -> None:
    link.put("pool", [text for place, text in enumerate(_texts()) if place != index])


def _texts() -> list[str]:
    return st.query_params.get_all("pool") or list(USUAL)


def _take(parameters: dict[str, object]) -> None:
    for name in ("workload", "doc", "set", "pool", "gbps", "latency_ms", "mode", "saving", "objective"):
        link.put(name, parameters.get(name))


def _number(name: str, most: float, *, zero: bool = False, quiet: bool = False) -> float | None:
    """Return a number out of the address, None when there is none; one that cannot be used is named, unless `quiet`."""
    text = st.query_params.get(name)
    if text is None:
        return None
    try:
        value = float(text[:30])
    except ValueError:
        value = float("nan")
    if 0 < value <= most or (zero and value == 0):
        return value
    if not quiet:
        expected = f"a number {'from 0' if zero else 'above 0'} to {most:,.0f}"
        said = f"The link asks for {name} “{text[:60]}”, which is not {expected}. Showing what the catalog knows."
        st.warning(plain(said, 600), icon=":material/link_off:")
    return None
