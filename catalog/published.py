"""What others measured with single kernels on a type of accelerator: figures to hold a measurement against.

The file keeps the units of its sources; here they become SI. Dates are the month in which a source was read.
"""

from functools import cache

from catalog.tables import rows_of
from core.roofline import Reference

_UNITS = {"TFLOP/s": 1e12, "GB/s": 1e9}


@cache
def published_rates(accelerator: str) -> tuple[Reference, ...]:
    """Return published rates of one type of accelerator, in the order of the file; none when none is known.

    Args:
        accelerator: a key of the catalog.
    """
    return tuple(
        Reference(
            row["kind"],
            row["dtype"],
            float(row["value"]) * _UNITS[row["unit"]],
            row["label"],
            False,
            f"{row['source']}, read {row['source_date']}",
        )
        for row in rows_of("published_rates.csv")
        if row["accelerator"] == accelerator
    )
