"""Words on the screen: text that a person or a file gave is shown as text, whatever it contains.

Streamlit reads Markdown, directives, emoji codes, LaTeX and bare addresses nearly everywhere. `plain` disarms all of them, so
that a workload named `:red[$x$] <script>` reads exactly so. Use it wherever a string did not come from this source code.
"""

import re
from typing import Literal, TypeAlias

import streamlit as st

from core.errors import TandemError, one_line
from reports.theme import TIER_LOOKS

Color: TypeAlias = Literal["red", "orange", "blue", "green", "violet", "gray"]
WORD_JOINER = "\u2060"
"""Invisible and without width; it parts what Streamlit would replace after Markdown was read (emoji codes, arrows, addresses)."""

TIER_COLOR: dict[str, Color] = {
    "measured": "blue",
    "interpolated": "green",
    "transferred": "violet",
    "published": "orange",
    "datasheet": "gray",
}
STATE_WORDS: dict[str, tuple[str, str, Color]] = {
    "queued": ("Waiting", ":material/hourglass_empty:", "gray"),
    "running": ("Running", ":material/play_circle:", "blue"),
    "done": ("Done", ":material/check_circle:", "green"),
    "failed": ("Failed", ":material/error:", "red"),
    "cancelled": ("Cancelled", ":material/cancel:", "orange"),
    "interrupted": ("Interrupted", ":material/warning:", "orange"),
}
"""Word, icon and colour of each run state; the word alone must be enough."""

_PUNCTUATION = re.compile(r"([!-/:-@\[-`{-~])")
_JOINED = re.compile(r"(\\[:@])(?=\S)|(\\[-<>~=])(?=\\[-<>~=])|((?<![\w])www)(?=\\\.)", re.IGNORECASE)


def plain(text: str, limit: int = 300) -> str:
    """Return text for any Markdown field that shows exactly these characters, on one line.

    Args:
        text: anything.
        limit: the greatest number of characters before escaping; the cut is marked with an ellipsis.
    """
    escaped = _PUNCTUATION.sub(r"\\\1", one_line(text, limit))
    return _JOINED.sub(lambda match: match.group(0) + WORD_JOINER, escaped)


def tier_label(tier: str) -> str:
    """Return shape and word of a tier, `● measured`; `— missing` for an empty one."""
    return "— missing" if not tier else f"{TIER_LOOKS[tier].symbol} {TIER_LOOKS[tier].word}"


def tier_legend() -> str:
    """Return the one legend of a page: shape, word and meaning of every tier, best first."""
    return " · ".join(f"{look.symbol} **{look.word}**: {look.meaning}" for look in TIER_LOOKS.values())


def state_label(state: str) -> str:
    """Return icon and word of a run state."""
    word, icon, _ = STATE_WORDS[state]
    return f"{icon} {word}"


def age(seconds: float) -> str:
    """Return how long ago in whole units: `12 s ago`, `3 min ago`, `2 h ago`, `5 d ago`."""
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{int(seconds // size)} {unit} ago"
    return f"{int(max(seconds, 0))} s ago"


def name_tab(title: str) -> None:
    """Name the browser's tab after what it shows, so that several can be told apart."""
    st.set_page_config(page_title=f"{one_line(title, 60)} · Tandem")


def refuse(error: TandemError) -> None:
    """Show what a person should know about their own mistake: one line, no trace."""
    st.error(plain(str(error), 500), icon=":material/error:")
