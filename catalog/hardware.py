"""Accelerators that can be attached or rented: what each chip is able to do by its data sheet.

The file keeps the units of the data sheets; here they become SI. Memory is what a framework can use where that is known, as
runtimes state it when it runs out (the note of the row says so); a label of "80 GB" is neither 80e9 bytes nor 80 GiB. Where
only the label is known it is taken as decimal (1 GB = 1e9 bytes). Link rates are one direction: figures for both directions
are halved.
"""

from collections.abc import Mapping
from difflib import get_close_matches
from functools import cache
from types import MappingProxyType

from catalog.tables import number, rows_of, whole
from core.device import Accelerator
from core.errors import NotFound

_MEMORY_UNITS = {"GB": 1e9, "GiB": 2.0**30, "MiB": 2.0**20}
_PEAK_COLUMNS = ("fp64", "fp32", "tf32", "bf16", "fp16", "fp8", "int8", "int4", "fp4")
_GB = 1e9
_TERA = 1e12


@cache
def accelerators() -> Mapping[str, Accelerator]:
    """Return every accelerator by its key, in the order of the file."""
    return MappingProxyType({row["key"]: _accelerator(row) for row in rows_of("accelerators.csv")})


def accelerator(key: str) -> Accelerator:
    """Return one accelerator.

    Args:
        key: `tpu-v6e`, `h100-sxm`, ...

    Raises:
        NotFound: there is none of that key; the message names the nearest.
    """
    known = accelerators()
    if key in known:
        return known[key]
    near = get_close_matches(key.lower(), known, n=1)
    remedy = f"did you mean {near[0]!r}?" if near else "list them with: ./tandem catalog"
    raise NotFound(f"accelerator {key[:60]!r}", "a key of the catalog such as 'tpu-v6e' or 'h100-sxm'", remedy)


def _accelerator(row: dict[str, str]) -> Accelerator:
    peaks = tuple((dtype, float(row[f"{dtype}_tflop_per_s"]) * _TERA) for dtype in _PEAK_COLUMNS if row[f"{dtype}_tflop_per_s"])
    return Accelerator(
        key=row["key"], vendor=row["vendor"], kind=row["kind"], name=row["name"], year=whole(row["year"]),
        memory_bytes=float(row["memory"]) * _MEMORY_UNITS[row["memory_unit"]],
        memory_bytes_per_s=number(row["memory_gb_per_s"], _GB), flop_per_s=peaks,
        link_name=row["link_name"] or None, link_bytes_per_s=number(row["link_gb_per_s"], _GB),
        host_bytes_per_s=number(row["host_gb_per_s"], _GB), internode_bytes_per_s=number(row["internode_gb_per_s"], _GB),
        power_w=number(row["power_w"]), chips_per_host=whole(row["chips_per_host"]),
        max_domain_chips=whole(row["max_domain_chips"]), clouds=row["clouds"], notes=row["notes"],
        source=row["source"], source_date=row["source_date"], confidence=row["confidence"],
    )
