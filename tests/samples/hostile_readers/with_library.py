"""An honest reader that asks a library, which makes threads of its own after the sandbox is closed."""

from typing import Any

NEEDS = ("numpy",)


def read(source: Any, options: dict[str, Any]) -> float:
    """Return the sum of a product of matrices of ones."""
    import numpy as np

    ones = np.ones((options["size"], options["size"]))
    return float((ones @ ones).sum())
