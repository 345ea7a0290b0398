"""Charts: drawn by `reports.charts`, kept as finished specifications, since building one costs more than the rest of a page."""

import hashlib
from typing import Any

import streamlit as st

from core.run import Run
from pages.parts import picks
from pages.parts.text import plain
from reports import charts
from reports.charts.frame import PICKED
from reports.describe import describe


def chart(run: Run, name: str) -> None:
    """Draw one chart of a finished run; its specification carries a description for people who cannot see it.

    Where rows can be picked, the picked ones are outlined, and a click picks.

    Args:
        run: a run that has ended, or an answer that was not stored.
        name: one of `reports.describe.CHARTS`.
    """
    theme = "dark" if st.context.theme.type == "dark" else "light"
    key = run.id or hashlib.sha256(f"{run.document}{run.options}".encode()).hexdigest()
    spec, description = _spec(f"{key} {run.finished_at} {name}", theme, run, name)
    if spec is None:
        st.caption(plain(description, 600))
    else:
        key = f"chart:{name}"
        pickable = any(one["name"] == PICKED for one in spec.get("params", ()))
        on_select = picks.from_chart(key) if pickable else "ignore"
        shown = picks.outlined(spec, picks.picked(run)) if pickable else spec
        st.vega_lite_chart(  # pyright: ignore[reportUnknownMemberType]
            spec=shown, theme=None, width="stretch", key=key, on_select=on_select
        )


@st.cache_data(max_entries=256, show_spinner=False)
def _spec(key: str, theme: str, _run: Run, _name: str) -> tuple[dict[str, Any] | None, str]:  # noqa: ARG001  (the cache knows the run by it)
    subject = _run if _name in ("roofline", "outcomes") else _run.recommendation
    if subject is None:
        return None, "There is no advice to draw."
    drawn = getattr(charts, _name)(subject, theme)
    return None if drawn is None else drawn.to_dict(), describe(_name, subject)
