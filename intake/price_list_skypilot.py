"""Price lists in the form of SkyPilot's catalog, one file for each cloud.

Columns: InstanceType, AcceleratorName, AcceleratorCount, vCPUs, MemoryGiB, Price, SpotPrice, Region, GpuInfo,
AvailabilityZone. Two traps are handled: on Google's list a GPU and the machine around it are two rows, whose sum is what one
pays; and a name such as H100 or A100 leaves open which one, which the type of machine, the memory in GpuInfo or a word in its
name settles, or nothing does and the row is left out.
Source: skypilot-org/skypilot-catalog catalogs/v8 (lambda and gcp read 2026-12).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from catalog import Named, accelerator, accelerators, machine_named, machines_of, parse_name
from core.device import Price
from core.errors import BadInput, NotFound
from intake.price_rows import HIGHEST_USD, LeftOut, Origin, PriceList, cheapest_of_each, line, offer_of, positive, refuse_faults

COLUMNS = ("InstanceType", "AcceleratorName", "AcceleratorCount", "Price", "Region")
"""By these the form is known."""
_MEMORY = re.compile(r"['\"]SizeInMiB['\"]\s*:\s*(\d{1,9})")
_NEAR = 0.12
"""Boards hold a little less than their label; a label is that much off at most."""
_NO_MACHINE = ("", "TPU-VM")
_PLACEHOLDER = "700.0"
"""What the list says of any TPU slice, small or large, whose price in a region is not public."""
_AGAIN = "another price than a line before of the same machine, zone and terms; the lower counts"
_CLOUDS = {
    "aws": "AWS", "azure": "Azure", "gcp": "GCP", "oci": "OCI", "ibm": "IBM", "lambda": "Lambda", "runpod": "RunPod",
    "nebius": "Nebius", "vast": "Vast.ai", "hyperstack": "Hyperstack", "cudo": "Cudo", "paperspace": "Paperspace",
    "do": "DigitalOcean",
}  # fmt: skip
"""Folders of SkyPilot's catalog and how their clouds are written here."""


@dataclass(frozen=True, slots=True)
class _Left:
    """Why a row is left out."""

    reason: str


def cloud_of_path(path: str) -> str:
    """Return the cloud that a path of SkyPilot's catalog names (`catalogs/v8/aws/vms.csv`), or an empty text."""
    parts = path.lower().replace("\\", "/").split("/")
    return _CLOUDS.get(parts[-2], "") if len(parts) > 1 else ""


def read_skypilot(rows: list[tuple[int, dict[str, str]]], origin: Origin) -> PriceList:
    """Read rows of SkyPilot's form.

    Args:
        rows: with the line that each ends on.
        origin: must name the cloud.

    Raises:
        BadInput: the cloud is not known, rows that cannot be used, or no row with an accelerator of the catalog.
    """
    if not origin.cloud:
        got = f"{origin.name[-60:]}, which does not say whose prices it lists"
        raise BadInput(got, "the cloud", "name it, as in --cloud AWS")
    hosts = _hosts(rows)
    prices: list[Price] = []
    faults: list[str] = []
    left: dict[str, list[int]] = {}
    known: dict[tuple[str, ...], float] = {}
    for number, row in rows:
        try:
            found = _row(row, hosts, origin)
        except ValueError as error:
            faults.append(f"line {number}: {error}")
            continue
        if isinstance(found, _Left):
            left.setdefault(found.reason, []).append(number)
            continue
        prices.extend(found)
        if any(known.setdefault((*offer_of(one), _place(row)), one.usd_per_chip_h) != one.usd_per_chip_h for one in found):
            left.setdefault(_AGAIN, []).append(number)
    refuse_faults(faults, origin.name)
    skipped = tuple(LeftOut(reason, tuple(lines)) for reason, lines in sorted(left.items(), key=lambda one: -len(one[1])))
    if not prices:
        why = "; ".join(one.words for one in skipped[:3]) or "it has no rows"
        raise BadInput(f"{origin.name[-60:]} without a price that can be used ({why})", "prices of catalog accelerators",
                       "give another list")  # fmt: skip
    return PriceList("skypilot", cheapest_of_each(prices), skipped, len(rows))


def _hosts(rows: list[tuple[int, dict[str, str]]]) -> Mapping[tuple[str, str], dict[str, str]]:
    """Return the rows of machines without an accelerator of their own, by machine and zone, or region where no zone is given."""
    return {(row["InstanceType"], _place(row)): row for _, row in rows if row["InstanceType"] and not row["AcceleratorName"]}


def _place(row: Mapping[str, str]) -> str:
    return row.get("AvailabilityZone") or row["Region"]


def _row(row: Mapping[str, str], hosts: Mapping[tuple[str, str], Mapping[str, str]], origin: Origin) -> tuple[Price, ...] | _Left:
    if not row["AcceleratorName"]:
        return _Left("machines without an accelerator")
    named = _named(row)
    if isinstance(named, _Left):
        return named
    count = positive(row["AcceleratorCount"], "AcceleratorCount", 1e6)
    if count != int(count):
        return _Left("parts of an accelerator")
    if named.chips is not None and count > 1:
        raise ValueError(f"AcceleratorCount {count:g} where {named.echo}")
    chips = int(count) * (named.chips or 1)
    instance = row["InstanceType"]
    host: Mapping[str, str] | None = None
    without = ""
    if instance in _NO_MACHINE and accelerators()[named.key].kind != "tpu":
        host = _host(named.key, chips, row, hosts)
        without = "" if host is not None else ", without host"
    sold = row if host is None else host
    prices: list[Price] = []
    for column, terms in (("Price", "on-demand"), ("SpotPrice", "spot")):
        usd = _usd(row, host, column)
        if usd is not None:
            free = "community" if terms == "on-demand" and "community" in instance.lower() else terms
            shown = sold["InstanceType"] if sold["InstanceType"] not in _NO_MACHINE else row["AcceleratorName"]
            prices.append(Price(
                named.key, origin.cloud, line(shown), line(row["Region"]), free + without, usd / chips, chips, line(origin.name),
                origin.day.isoformat(), "high", _size(sold, "vCPUs"), _memory(sold), imported=True,
            ))  # fmt: skip
    return tuple(prices) or _Left("no price")


def _usd(row: Mapping[str, str], host: Mapping[str, str] | None, column: str) -> float | None:
    """Return the price of a whole machine for an hour; None where a part of it has none; a zero is none."""
    parts = [row.get(column, "")] if host is None else [row.get(column, ""), host.get(column, "")]
    unknown = {"", "0", "0.0"}
    if row["AcceleratorName"].lower().startswith("tpu"):
        unknown.add(_PLACEHOLDER)
    if unknown.intersection(parts):
        return None
    return sum(positive(part, column, HIGHEST_USD * 1e3) for part in parts)


def _host(
    key: str, chips: int, row: Mapping[str, str], hosts: Mapping[tuple[str, str], Mapping[str, str]]
) -> Mapping[str, str] | None:
    """Return the row of the machine that is bound to so many of a GPU, when the list has one in that place."""
    for machine in machines_of(key):
        found = hosts.get((machine.name, _place(row)))
        if machine.chips == chips and found is not None:
            return found
    return None


def _named(row: Mapping[str, str]) -> Named | _Left:
    """Return which accelerator a row sells, or why that is not known."""
    machine = machine_named(row["InstanceType"])
    if machine is not None:
        return Named(row["AcceleratorName"], machine.accelerator)
    name = row["AcceleratorName"]
    try:
        return parse_name(name)
    except NotFound:
        return _Left(f"{line(name)}, which the catalog does not know")
    except BadInput:
        key = _settled(name, row)
        return Named(name, key) if key else _Left(f"{line(name)}, where it is not said which one")


def _settled(name: str, row: Mapping[str, str]) -> str:
    """Return the one accelerator that an open name means here by its form factor or its memory, or an empty text."""
    instance = row["InstanceType"].lower()
    family = re.split(r"[-_ ]", name.lower())[0]
    known = [key for key in accelerators() if key.split("-")[0] == family]
    by_form = [key for key in known if any(word in instance and key.endswith(word) for word in ("sxm", "pcie"))]
    if len(by_form) == 1:
        return by_form[0]
    said = _MEMORY.search(row.get("GpuInfo", ""))
    if said is None:
        return ""
    label = int(said[1]) * 2.0**20
    near = [key for key in known if abs(accelerator(key).memory_bytes / label - 1) <= _NEAR]
    return near[0] if len(near) == 1 else ""


def _size(row: Mapping[str, str], column: str) -> float | None:
    return positive(row[column], column, 1e6) if row.get(column) else None


def _memory(row: Mapping[str, str]) -> float | None:
    gib = _size(row, "MemoryGiB")
    return None if gib is None else gib * 2.0**30
