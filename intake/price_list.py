"""Price lists that a user hands in: Tandem's own CSV form, or the form of SkyPilot's catalog.

A list is data of a stranger: bounded in bytes, rows and cells, read as text by the standard library, checked row by row, and
taken whole or not at all, with the lines named that cannot be used. In SkyPilot's form rows without an accelerator, and
accelerators that the catalog does not know or cannot tell apart, are left out and counted, since such a list holds every machine
of a cloud. A price of nothing is refused: it would win every comparison.
"""

import csv
import io
from collections.abc import Iterator, Mapping
from datetime import date

from catalog import TERMS, Named, machine_named, parse_name
from core.device import Price
from core.errors import BadInput
from intake.price_list_skypilot import COLUMNS, read_skypilot
from intake.price_rows import (
    HIGHEST_USD,
    LOWEST_USD,
    Origin,
    PriceList,
    cheapest_of_each,
    line,
    offer_of,
    positive,
    refuse_faults,
)
from intake.wording import nearest, refuse_other_separators, say

MOST_BYTES = 32 * 2**20
MOST_ROWS = 500_000
OWN = (
    "accelerator", "cloud", "instance", "region", "terms", "usd_per_chip_h", "usd_per_h", "chips_per_instance", "vcpus",
    "host_memory_gib", "source", "source_date", "confidence", "notes",
)  # fmt: skip
"""Columns of the own form; `accelerator` and one of the prices must be there."""
_LONGEST = 80
_WITHOUT_HOST = ", without host"


def read_price_list(data: bytes, origin: Origin) -> PriceList:
    """Read a price list.

    Args:
        data: the whole file.
        origin: what it does not say of itself.

    Raises:
        BadInput: no price list of a form that is read, too large, or rows that cannot be used; one line that names them.
    """
    reader = csv.DictReader(io.StringIO(_text(data, origin.name), newline=""), restkey="")
    try:
        columns = [(column or "").strip() for column in reader.fieldnames or ()]
        refuse_other_separators(columns)
        if set(COLUMNS) <= set(columns):
            return read_skypilot(list(_numbered(reader, columns)), origin)
        return _own(list(_numbered(reader, columns)), columns, origin)
    except csv.Error as error:
        raise BadInput(f"{origin.name[-_LONGEST:]}: {error}", "a CSV file", "save the list as plain CSV") from None


def _numbered(reader: "csv.DictReader[str]", columns: list[str]) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield each row with the line that it ends on, cells without spaces around them.

    Raises:
        BadInput: more rows than are read.
    """
    for count, row in enumerate(reader, 1):
        if count > MOST_ROWS:
            raise BadInput(f"more than {MOST_ROWS:,} rows", "a price list", "give the rows of the accelerators that matter")
        values = list(row.values())
        cells = {column: (value or "").strip() for column, value in zip(columns, values, strict=False)}
        if any(isinstance(value, list) for value in values):
            got = f"line {reader.line_num} with more cells than the heading"
            raise BadInput(got, "as many", "mend that line")
        yield reader.line_num, cells


def _text(data: bytes, name: str) -> str:
    if len(data) > MOST_BYTES:
        raise BadInput(f"{name[-_LONGEST:]}: {len(data):,} bytes", f"at most {MOST_BYTES:,}", "give the rows that matter")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise BadInput(f"{name[-_LONGEST:]}: bytes that are not UTF-8", "a CSV text in UTF-8", "save it as UTF-8") from None
    if not text.strip():
        raise BadInput(f"{name[-_LONGEST:]}, which is empty", "a CSV file with a heading", "give the price list")
    return text


def _own(rows: list[tuple[int, dict[str, str]]], columns: list[str], origin: Origin) -> PriceList:
    for column in columns:
        if columns.count(column) > 1:
            raise BadInput(f"a heading with {say(column)} twice", "each column once", "remove or rename one of them")
        if column not in OWN:
            remedy = nearest(column, (*OWN, *COLUMNS)) or "rename or remove it"
            raise BadInput(f"column {say(column)}", f"columns out of {', '.join(OWN)}, or SkyPilot's", remedy)
    if "accelerator" not in columns or not {"usd_per_chip_h", "usd_per_h"} & set(columns):
        raise BadInput(f"columns {', '.join(columns)[:120]}", "accelerator and usd_per_chip_h or usd_per_h", "add them")
    prices: list[Price] = []
    faults: list[str] = []
    first: dict[tuple[str, ...], tuple[int, float]] = {}
    for number, row in rows:
        if not any(row.values()):
            continue
        try:
            price = _own_row(row, origin)
        except (ValueError, BadInput) as error:
            faults.append(f"line {number}: {error.got if isinstance(error, BadInput) else error}")
            continue
        prices.append(price)
        before, usd = first.setdefault(offer_of(price), (number, price.usd_per_chip_h))
        if usd != price.usd_per_chip_h:
            both = f"{usd:g} and {price.usd_per_chip_h:g} USD a chip-hour"
            faults.append(f"lines {before} and {number}: {both} for one machine, place and terms")
    refuse_faults(faults, origin.name)
    if not prices:
        raise BadInput(f"{origin.name[-_LONGEST:]}, which has no rows", "at least one price", "give the price list")
    return PriceList("own", cheapest_of_each(prices), (), len(rows))


def _own_row(row: Mapping[str, str], origin: Origin) -> Price:
    named = parse_name(row["accelerator"])
    chips = _chips(row, named)
    usd = _usd(row, chips)
    cloud = line(row.get("cloud") or origin.cloud)
    if not cloud:
        raise ValueError("no cloud; add a column cloud, or say it for the whole list")
    memory = row.get("host_memory_gib")
    return Price(
        named.key, cloud, line(row.get("instance") or row["accelerator"]), line(row.get("region", "")),
        _terms(row.get("terms", "")), usd, chips, line(row.get("source") or origin.name),
        _day(row.get("source_date", ""), origin),
        _confidence(row.get("confidence", "")),
        positive(row["vcpus"], "vcpus", 1e5) if row.get("vcpus") else None,
        positive(memory, "host_memory_gib", 1e6) * 2.0**30 if memory else None,
        imported=True, notes=line(row.get("notes", "")),
    )  # fmt: skip


def _chips(row: Mapping[str, str], named: Named) -> int:
    """Return the chips of a row's machine: as it says, as its accelerator or machine is named, or one where none is priced."""
    cell, machine = row.get("chips_per_instance"), machine_named(row.get("instance", ""))
    if cell:
        told = positive(cell, "chips_per_instance", 1e6)
        if told != int(told):
            raise ValueError(f"chips_per_instance {told:g} is no whole number")
        if named.chips is not None and told not in (1, named.chips):
            raise ValueError(f"chips_per_instance {told:g} where {named.echo}")
        return named.chips or int(told)
    if named.chips is not None:
        return named.chips
    if machine is not None and machine.accelerator == named.key:
        return machine.chips
    if row.get("usd_per_h") and not row.get("usd_per_chip_h"):
        raise ValueError("usd_per_h without chips_per_instance, so nobody knows of how many chips it is the price")
    return 1


def _usd(row: Mapping[str, str], chips: int) -> float:
    """Return what one chip costs for an hour."""
    whole, each = row.get("usd_per_h", ""), row.get("usd_per_chip_h", "")
    if whole and each:
        raise ValueError("both usd_per_chip_h and usd_per_h; keep one of them")
    if not whole and not each:
        raise ValueError("no price")
    usd = positive(each, "usd_per_chip_h", HIGHEST_USD) if each else positive(whole, "usd_per_h", HIGHEST_USD * chips) / chips
    if usd < LOWEST_USD:
        raise ValueError(f"{usd:.3g} USD a chip-hour is below {LOWEST_USD:g}")
    return usd


def _confidence(cell: str) -> str:
    if cell not in {"", "high", "medium", "low"}:
        raise ValueError(f"confidence {say(cell)} is none of high, medium, low")
    return cell or "high"


def _terms(cell: str) -> str:
    terms = cell.lower() or TERMS[0]
    if terms.removesuffix(_WITHOUT_HOST) not in TERMS:
        raise ValueError(f"terms {say(cell)} are none of {', '.join(TERMS)}")
    return terms


def _day(cell: str, origin: Origin) -> str:
    if not cell:
        return origin.day.isoformat()
    try:
        first = date.fromisoformat(cell + "-01-01"[len(cell) - 4 :] if len(cell) in {4, 7} else cell)
    except ValueError:
        raise ValueError(f"source_date {say(cell)} is no day such as {origin.today.isoformat()}") from None
    if first > origin.today:
        raise ValueError(f"source_date {say(cell)} is in the future")
    return cell
