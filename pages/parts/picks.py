"""Picked candidates: ticked rows of the table and outlined rows of the chart are one choice, and it is kept in the address."""

from collections.abc import Callable, Sequence
from typing import Any

import streamlit as st

from core.run import Run
from pages.parts import link
from reports.charts.frame import PICKED

PARAMETER = "pick"


def labels_of(run: Run) -> list[str]:
    """Return the labels of all candidates in the order of their table."""
    advice = run.recommendation
    return [estimate.candidate.label for estimate in advice.ranked + advice.unranked] if advice else []


def picked(run: Run) -> list[str]:
    """Return the candidates that the address asks for, and exist; `checked` also names the others."""
    return [label for label in st.query_params.get_all(PARAMETER) if label in labels_of(run)]


def checked(run: Run) -> list[str]:
    """Return the candidates that the address asks for; those that do not exist are named to the reader."""
    return link.several(PARAMETER, labels_of(run))


def follow_rows(key: str, labels: Sequence[str], wanted: Sequence[str]) -> str:
    """Tick the rows of a table that are picked and return its key.

    Args:
        key: of the table.
        labels: of its rows.
        wanted: the picked ones.
    """
    rows = [index for index, label in enumerate(labels) if label in wanted]
    state: Any = st.session_state.get(key)
    if state is None or sorted(state["selection"]["rows"]) != rows:
        st.session_state[key] = {"selection": {"rows": rows, "columns": [], "cells": []}}
    return key


def from_rows(key: str, labels: Sequence[str]) -> Callable[[], None]:
    """Return a callback that writes the ticked rows of a table into the address.

    Rows of equal label (pools that differ in price) are ticked and unticked together.
    """

    def copy() -> None:
        rows: list[int] = st.session_state[key]["selection"]["rows"]
        before = st.query_params.get_all(PARAMETER)
        unticked = {label for row, label in enumerate(labels) if label in before and row not in rows}
        ticked = dict.fromkeys(labels[row] for row in sorted(rows) if row < len(labels))
        link.put(PARAMETER, [label for label in ticked if label not in unticked])

    return copy


def from_chart(key: str) -> Callable[[], None]:
    """Return a callback that writes the clicked rows of a chart into the address."""

    def copy() -> None:
        points: list[dict[str, str]] = st.session_state[key]["selection"].get(PICKED, [])
        link.put(PARAMETER, [point["candidate"] for point in points])

    return copy


def outlined(spec: dict[str, Any], wanted: Sequence[str]) -> dict[str, Any]:
    """Return a chart's specification with some candidates outlined.

    Args:
        spec: with a parameter `PICKED`; it is not changed.
        wanted: labels.
    """
    value = [{"candidate": label} for label in wanted]
    params = [{**one, "value": value} if one["name"] == PICKED and value else one for one in spec["params"]]
    return {**spec, "params": params}
