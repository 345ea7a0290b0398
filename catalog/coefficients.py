"""Coefficients of the cost model as they were fitted on published measurements: a file that a program wrote, with its report.

`coefficients.json` can be read by a person: each coefficient with its mean and its standard deviation before and after the fit.
The covariances, which bands need, lie beside it in `coefficients.npz`, lower triangles row by row.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, cast
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from core.errors import BadInput

FOLDER = Path(__file__).parent / "data"
JSON_FILE, ARRAY_FILE = FOLDER / "coefficients.json", FOLDER / "coefficients.npz"
SCHEMA = 1


@dataclass(frozen=True, slots=True)
class FittedGroup:
    """The coefficients of one group of runs.

    Args:
        names: (slot, level, label). prior: standard deviations before. mean: after, the shift of ln(time).
        covariance: lower triangle after, row by row.
        scales: (group of coefficients or error, size).
        seen: (level, labels that the rows had). latest: (stack, year of its newest row).
        ranges: (slot, least, largest number). residuals: (label, spread of left-out errors).
        rows, sources: that it was fitted on.
    """

    names: tuple[tuple[str, str, str], ...]
    prior: tuple[float, ...]
    mean: tuple[float, ...]
    covariance: NDArray[np.float64]
    scales: tuple[tuple[str, float], ...]
    seen: tuple[tuple[str, tuple[str, ...]], ...]
    latest: tuple[tuple[str, float], ...]
    ranges: tuple[tuple[str, float, float], ...]
    residuals: tuple[tuple[str, float], ...]
    rows: int
    sources: int


@cache
def fitted(group: str) -> FittedGroup:
    """Return the coefficients of a group.

    Args:
        group: `training` or `inference`.

    Raises:
        BadInput: the files are missing or of another version.
    """
    try:
        told = cast("dict[str, Any]", json.loads(JSON_FILE.read_text(encoding="utf-8")))
        with ARRAY_FILE.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            covariance = np.asarray(arrays[group], dtype=np.float64)
        one = told["groups"][group]
    except (OSError, ValueError, KeyError, TypeError, BadZipFile) as error:
        raise BadInput(f"no coefficients of {group} ({type(error).__name__})", "catalog/data/coefficients.json and .npz",
                       "write them with: python -m bench.fit") from error  # fmt: skip
    rows = one["coefficients"]
    return FittedGroup(
        tuple((row["slot"], row["level"], row["label"]) for row in rows),
        tuple(row["prior_sd"] for row in rows),
        tuple(row["mean"] for row in rows),
        covariance,
        tuple(sorted(one["scales"].items())),
        tuple((level, tuple(labels)) for level, labels in sorted(one["seen"].items())),
        tuple(sorted(one["latest"].items())),
        tuple((slot, *pair) for slot, pair in sorted(one["ranges"].items())),
        tuple(sorted(one["residuals"].items())),
        one["rows"],
        one["sources"],
    )


def write(
    groups: dict[str, dict[str, Any]], covariances: dict[str, Sequence[float] | NDArray[np.float64]], made: dict[str, str]
) -> None:
    """Write both files.

    Args:
        groups: by name: `coefficients`, `scales`, `rows`, `sources`.
        covariances: lower triangles by name.
        made: with which command, when, from what.
    """
    told = {"schema_version": SCHEMA, "made": made, "groups": groups}
    JSON_FILE.write_text(json.dumps(told, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    arrays: dict[str, Any] = {name: np.asarray(value, dtype=np.float32) for name, value in covariances.items()}
    np.savez_compressed(ARRAY_FILE, **arrays)
    fitted.cache_clear()
