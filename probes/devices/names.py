"""From the name that a driver reports to the key of the catalog.

Only whole boards: virtual slices, laptop parts and NVL variants have other peaks than the catalog's rows, and get no key.
"""

import re

_OTHERS = re.compile(r"\b(grid|laptop|max-q|nvl|vgpu|mig)\b|\b\d090 d\b|-\d+[abcq]\b|\d+c\b", re.IGNORECASE)
_KEYS = tuple(
    (re.compile(rf"\b{pattern}\b", re.IGNORECASE), key)
    for pattern, key in (
        ("gh200", "gh200"), ("gb300", "gb300"), ("gb200", "gb200"), ("b300", "b300"), ("b200", "b200"), ("h200", "h200"),
        ("h100 pcie", "h100-pcie"), ("h100", "h100-sxm"),
        (r"a100[- ](?:sxm\d?-|pcie-)?80gb", "a100-80"), ("a100", "a100-40"), ("a10g", "a10g"),
        ("l40s", "l40s"), ("l4", "l4"), ("t4", "t4"), (r"v100-sxm[23]-32gb", "v100-32"), (r"v100-sxm2", "v100-16"),
        ("rtx 4090", "rtx4090"), ("rtx 5090", "rtx5090"), ("rtx pro 6000", "rtxpro6000"),
        ("mi355x", "mi355x"), ("mi325x", "mi325x"), ("mi300x", "mi300x"), ("mi250x", "mi250x"), ("mi210", "mi210"),
    )
)  # fmt: skip
"""What a driver's name holds, with the key of the catalog; the first that fits counts."""


def catalog_key(name: str) -> str | None:
    """Return the key of the catalog for a driver's name, or None when it is not surely one of its rows."""
    if _OTHERS.search(name):
        return None
    return next((key for pattern, key in _KEYS if pattern.search(name)), None)
