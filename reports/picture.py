"""Charts as pictures, without a browser; the one place that calls vl-convert.

Converting holds Python's lock for a fifth of a second each, so call it where nobody waits (the run or an export process).
No address is ever fetched: charts carry their data, and any other source is refused.
"""

from typing import Any

import vl_convert

from reports.theme import THEMES

VEGA_LITE = "6.4"
"""The dialect that the pinned Altair writes."""


def to_svg(specification: dict[str, Any], width: int) -> str:
    """Return a chart as SVG text.

    Args:
        specification: `chart.to_dict()` of a chart of this room.
        width: pixels of the drawing, in place of the container's.
    """
    return vl_convert.vegalite_to_svg(_sized(specification, width), vl_version=VEGA_LITE, allowed_base_urls=[])


def to_png(specification: dict[str, Any], width: int, theme: str = "light", scale: float = 2.0) -> bytes:
    """Return a chart as PNG on the card colour of its theme.

    Args:
        specification, width: as for `to_svg`.
        theme: `light` or `dark`, the one that the chart was made for.
        scale: pixels of the picture for one of the drawing.
    """
    sized = _sized(specification, width)
    sized["config"] = {**sized["config"], "background": THEMES[theme].card}
    return vl_convert.vegalite_to_png(sized, vl_version=VEGA_LITE, allowed_base_urls=[], scale=scale)


def _sized(specification: dict[str, Any], width: int) -> dict[str, Any]:
    rest = {key: value for key, value in specification.items() if key != "autosize"}
    return {**rest, "width": width}
