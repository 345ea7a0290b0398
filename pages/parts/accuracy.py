"""Pieces of the page about accuracy: tables of scores, of the worst runs, and of what was refused."""

from collections.abc import Sequence

import streamlit as st

from core import format as write
from pages.parts.tables import small_table
from services.accuracy import Accuracy, Score, accuracy

_CUTS = ("task", "accelerator", "framework", "source")
_MOST = 30


@st.cache_data(show_spinner="Predicting published measurements …")
def measured() -> Accuracy:
    """Return the accuracy on the catalog's measurements; computed once for all sessions."""
    return accuracy(None)


def summary(found: Accuracy) -> None:
    """Draw the scores by group, over all runs and with at most 25 of a source."""
    st.subheader("At most 25 runs of a source", anchor=False)
    _scores([score for score in found.capped if score.rows], "Group")
    st.caption(
        "Off: |predicted / published - 1|. In band: share of published figures inside the band of 80 %. Pairs: of two "
        "configurations of one model that differ by over 10 %, how often the better was named; faster and cheaper: the same for "
        "unlike accelerators."
    )
    with st.expander("All runs, each counted once"):
        _scores([score for score in found.scores if score.rows], "Group")


def cuts(found: Accuracy) -> None:
    """Draw the same runs cut by task, accelerator, framework or source."""
    cut = st.segmented_control("Cut by", _CUTS, default="accelerator", key="cut") or "accelerator"
    scores = {
        "task": found.by_task, "accelerator": found.by_accelerator, "framework": found.by_framework, "source": found.by_source,
    }[cut]  # fmt: skip
    _scores([score for score in scores if score.rows][:_MOST], cut.capitalize())
    if len(scores) > _MOST:
        st.caption(f"The {_MOST} with most runs of {len(scores)}; ./tandem accuracy --json has them all.")


def worst(found: Accuracy) -> None:
    """Draw the runs that were off most."""
    st.subheader("Furthest off", anchor=False)
    small_table({
        "Run": [one.id for one in found.worst],
        "Figure": [one.metric for one in found.worst],
        "Published": [write.three_digits(one.measured) for one in found.worst],
        "Predicted": [write.three_digits(one.predicted) for one in found.worst],
        "Off": [f"{one.predicted / one.measured - 1:+.0%}" for one in found.worst],
        "Band": ["in" if one.covered else "out" for one in found.worst],
    })  # fmt: skip


def refusals(found: Accuracy) -> None:
    """Draw what was not predicted, and what was missing."""
    reasons: dict[str, int] = {}
    for one in found.refused:
        if one.group != "other":
            reasons[one.reason] = reasons.get(one.reason, 0) + 1
    if not reasons:
        return
    st.subheader("Refused, not guessed", anchor=False)
    listed = sorted(reasons.items(), key=lambda pair: -pair[1])
    small_table({"Runs": [str(count) for _, count in listed], "What is missing": [reason for reason, _ in listed]})


def _scores(scores: Sequence[Score], title: str) -> None:
    columns = {
        title: [score.name for score in scores],
        "Runs": [f"{score.rows:,}" for score in scores],
        "Median off": [_percent(score.median_ape) for score in scores],
        "Mean off": [_percent(score.mean_ape) for score in scores],
        "90 % within": [_percent(score.p90_ape) for score in scores],
        "In band": [_percent(score.coverage_80) for score in scores],
        "Pairs": [_percent(score.pair_order) for score in scores],
        "Faster": [_percent(score.faster_chip) for score in scores],
        "Cheaper": [_percent(score.cheaper_chip) for score in scores],
    }
    small_table({name: cells for name, cells in columns.items() if set(cells) != {write.MISSING}})


def _percent(value: float | None) -> str:
    return write.MISSING if value is None else f"{100 * value:.1f}\u00a0%"
