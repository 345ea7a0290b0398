"""One look for charts and reports, light and dark: colours, shapes and words, as plain values.

Why plain: a chart gets its whole configuration in its own specification, so nothing depends on which library was told what
before, and the report's style sheet and the pages take the same colours from here. Must not import a drawing library.

Categorical colours are those of Okabe and Ito (2008), "Color Universal Design", shifted in lightness so that each keeps
3:1 (marks) or 4.5:1 (text) against its background; a test holds the contrast.
"""

from dataclasses import dataclass
from typing import Any

from core.errors import NotFound
from core.quantity import TIERS

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', Ubuntu, Cantarell, 'Helvetica Neue', Arial, sans-serif"


@dataclass(frozen=True, slots=True)
class TierLook:
    """How a tier is shown: always by word, shape and colour together.

    Args:
        word: for people.
        symbol: one character that looks like the shape, for tables.
        shape: Vega's name of the shape, for charts.
        meaning: one line for the legend.
    """

    word: str
    symbol: str
    shape: str
    meaning: str


TIER_LOOKS: dict[str, TierLook] = {
    "measured": TierLook("measured", "●", "circle", "this block, this shape, this device, timed here"),
    "interpolated": TierLook("interpolated", "■", "square", "between shapes that were timed on this device"),
    "transferred": TierLook("transferred", "◆", "diamond", "from a near type, operation or runtime timed on this device"),
    "published": TierLook("published", "▲", "triangle-up", "from efficiencies in public measurements"),
    "datasheet": TierLook("datasheet", "✚", "cross", "from the maker's figures and typical efficiencies; wide bands"),
}


@dataclass(frozen=True, slots=True)
class Theme:
    """Colours of one mode, `#rrggbb` each.

    Args:
        name: `light` or `dark`.
        background, card, text, muted, line: surfaces and ink.
        primary: links, the chosen candidate; 4.5:1 on `background` and `card`.
        tint: the fill behind the chosen row.
        alarm: failures and the capacity rule.
        tiers: colour of each tier, in the order of `core.quantity.TIERS`.
        terms: base colour of each breakdown term.
        frameworks: colour of each framework.
        parts: colours of memory parts, in order.
    """

    name: str
    background: str
    card: str
    text: str
    muted: str
    line: str
    primary: str
    tint: str
    alarm: str
    tiers: tuple[str, ...]
    terms: tuple[tuple[str, str], ...]
    frameworks: tuple[tuple[str, str], ...]
    parts: tuple[str, ...]

    def tier(self, name: str) -> str:
        """Return the colour of a tier; raises ValueError for an unknown one."""
        return self.tiers[TIERS.index(name)]


LIGHT = Theme(
    "light",
    "#f7f8fa",
    "#ffffff",
    "#1a1f27",
    "#5b6472",
    "#dde1e7",
    "#1f5fae",
    "#eaf1fb",
    "#b3261e",
    tiers=("#1f5fae", "#0b7a68", "#8a45b0", "#96600a", "#5b6472"),
    terms=(
        ("compute", "#2f74c0"),
        ("memory traffic", "#c77700"),
        ("launch", "#6f7886"),
        ("communication", "#8a45b0"),
        ("bubble", "#a08c5b"),
        ("input", "#0b8a75"),
        ("host", "#c2517d"),
    ),
    frameworks=(("jax", "#1f5fae"), ("torch", "#c4500a"), ("tensorflow", "#0b7a68"), ("keras", "#a8437a"), ("mxnet", "#5b6472")),
    parts=("#2f74c0", "#0b8a75", "#8a45b0", "#c77700", "#8b939f", "#c2517d", "#a08c5b", "#4d8fb8", "#6f7886"),
)
DARK = Theme(
    "dark",
    "#0e1117",
    "#161b24",
    "#e8ebf0",
    "#a3adbb",
    "#2f3744",
    "#82b4ff",
    "#1a2a44",
    "#ff8a80",
    tiers=("#82b4ff", "#3fc7ae", "#c99af0", "#e5ae4a", "#a3adbb"),
    terms=(
        ("compute", "#5c9cec"),
        ("memory traffic", "#e5a03a"),
        ("launch", "#98a2b1"),
        ("communication", "#bb86e6"),
        ("bubble", "#c4b078"),
        ("input", "#35b89f"),
        ("host", "#e884ab"),
    ),
    frameworks=(("jax", "#82b4ff"), ("torch", "#ff9a5c"), ("tensorflow", "#3fc7ae"), ("keras", "#ee94bf"), ("mxnet", "#a3adbb")),
    parts=("#5c9cec", "#35b89f", "#bb86e6", "#e5a03a", "#98a2b1", "#e884ab", "#c4b078", "#7cbfe0", "#bcc4cf"),
)
THEMES: dict[str, Theme] = {theme.name: theme for theme in (LIGHT, DARK)}
RUNTIME_LOOKS: dict[str, tuple[str, str]] = {
    "jax": ("jax", "circle"),
    "torch-eager": ("torch", "square"),
    "torch-compile": ("torch", "diamond"),
    "torch-xla": ("torch", "triangle-up"),
    "torch-tpu": ("torch", "cross"),
    "tf-graph": ("tensorflow", "square"),
    "tf-xla": ("tensorflow", "diamond"),
    "keras-jax": ("keras", "circle"),
    "keras-tensorflow": ("keras", "triangle-up"),
    "keras-torch": ("keras", "square"),
    "mxnet": ("mxnet", "cross"),
}
"""Framework (which gives the colour) and shape of each runtime."""


def theme_named(name: str) -> Theme:
    """Return the theme `light` or `dark`.

    Raises:
        NotFound: any other name.
    """
    if name not in THEMES:
        raise NotFound(f"theme {name!r}", "light or dark", "name one of them")
    return THEMES[name]


def chart_config(theme: Theme) -> dict[str, Any]:
    """Return Vega-Lite's `config` for a theme: fonts, ink, quiet grid, no frame."""
    return {
        "background": "transparent",
        "font": FONT,
        "view": {"stroke": None},
        "axis": {
            "labelColor": theme.muted,
            "titleColor": theme.muted,
            "gridColor": theme.line,
            "domainColor": theme.line,
            "tickColor": theme.line,
            "labelFontSize": 12,
            "titleFontSize": 12,
            "titleFontWeight": "normal",
            "titlePadding": 8,
        },
        "legend": {
            "orient": "bottom",
            "direction": "horizontal",
            "labelColor": theme.text,
            "titleColor": theme.muted,
            "labelFontSize": 12,
            "titleFontSize": 12,
            "titleFontWeight": "normal",
            "symbolSize": 90,
            "columnPadding": 36,
            "labelLimit": 240,
        },
        "title": {
            "anchor": "start",
            "frame": "bounds",
            "color": theme.text,
            "fontSize": 15,
            "fontWeight": 600,
            "subtitleColor": theme.muted,
            "subtitleFontSize": 12,
            "offset": 14,
            "subtitlePadding": 5,
        },
        "text": {"color": theme.text, "fontSize": 12},
    }


def contrast(first: str, second: str) -> float:
    """Return the contrast ratio of two `#rrggbb` colours, 1 to 21.

    Source: WCAG 2.2, relative luminance and contrast ratio, https://www.w3.org/TR/WCAG22/#dfn-contrast-ratio
    """
    lighter, darker = sorted((_luminance(first), _luminance(second)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def shades(base: str, count: int, towards: str) -> tuple[str, ...]:
    """Return `count` colours from `base` on, each a step nearer to `towards`, never past 45 % of the way."""
    if count == 1:
        return (base,)
    start, end = _channels(base), _channels(towards)
    steps = (0.45 * index / (count - 1) for index in range(count))
    return tuple("#" + "".join(f"{round(a + (b - a) * step):02x}" for a, b in zip(start, end, strict=True)) for step in steps)


def _channels(colour: str) -> tuple[int, int, int]:
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def _luminance(colour: str) -> float:
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in (v / 255 for v in _channels(colour))]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
