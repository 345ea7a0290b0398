"""Price lists of this user: imported, kept in the data directory, preferred to what the catalog ships, and forgotten again.

They are one CSV file in Tandem's own form, which a person may read and edit. A list replaces what was imported before of the
same clouds. The file is written beside and moved into place, so that a reader sees the old one or the new one.
"""

import csv
import io
import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import lru_cache
from pathlib import Path
from tempfile import NamedTemporaryFile

import intake
from core.device import Price
from core.errors import BadInput, StoreError, one_line
from core.settings import settings_from

FILE = "prices.csv"
_COLUMNS = (
    "accelerator", "cloud", "instance", "region", "terms", "usd_per_chip_h", "chips_per_instance", "vcpus", "host_memory_gib",
    "source", "source_date", "confidence", "notes",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Preview:
    """What a price list would bring.

    Args:
        prices: that it holds.
        form: `own` or `skypilot`.
        rows: read in all.
        skipped: rows that are left out, by reason, most first.
        replaced: prices imported before that it takes the place of.
        kept: prices imported before that stay.
    """

    prices: tuple[Price, ...]
    form: str
    rows: int
    skipped: tuple[intake.LeftOut, ...]
    replaced: int
    kept: int

    @property
    def clouds(self) -> tuple[str, ...]:
        """Clouds of which it holds prices."""
        return tuple(sorted({price.cloud for price in self.prices}))

    @property
    def accelerators(self) -> tuple[str, ...]:
        """Catalog keys of which it holds prices."""
        return tuple(sorted({price.accelerator for price in self.prices}))


def imported_prices(home: Path | None = None) -> tuple[Price, ...]:
    """Return the prices that this user imported; none when there are none.

    Args:
        home: data directory; this user's when None.

    Raises:
        BadInput: the file was changed into something that cannot be used; the line says how to be rid of it.
        StoreError: it cannot be read.
    """
    path = _path(home)
    try:
        stamp = path.stat()
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise _unusable(path, error) from None
    return _read(path, stamp.st_mtime_ns, stamp.st_size)


def preview_prices(data: bytes, name: str, cloud: str = "", day: str = "", *, home: Path | None = None) -> Preview:
    """Read a price list without keeping it.

    Args:
        data: the whole file, in Tandem's own CSV form or SkyPilot's.
        name: of the file, with its path when it has one: SkyPilot's lists are named by their folder.
        cloud: whose prices they are, where the list does not say; empty when not known.
        day: ISO date of rows without one; today when empty.
        home: data directory; this user's when None.

    Raises:
        BadInput: it cannot be used; one line.
    """
    today = datetime.now(UTC).date()
    whose = one_line(cloud, 60) or intake.cloud_of_path(name)
    origin = intake.PriceOrigin(one_line(Path(name).name, 120), whose, _day(day, today), today)
    found = intake.read_price_list(data, origin)
    clouds = {price.cloud.lower() for price in found.prices}
    before = imported_prices(home)
    kept = sum(price.cloud.lower() not in clouds for price in before)
    return Preview(found.prices, found.form, found.rows, found.skipped, len(before) - kept, kept)


def import_prices(data: bytes, name: str, cloud: str = "", day: str = "", *, home: Path | None = None) -> Preview:
    """Read a price list and keep it; what was imported before of the same clouds is replaced.

    Args:
        data, name, cloud, day, home: as for `preview_prices`.

    Raises:
        BadInput: it cannot be used; nothing is changed.
        StoreError: it cannot be kept.
    """
    found = preview_prices(data, name, cloud, day, home=home)
    replaced = {cloud.lower() for cloud in found.clouds}
    kept = [price for price in imported_prices(home) if price.cloud.lower() not in replaced]
    _write(_path(home), [*kept, *found.prices])
    return found


def forget_prices(cloud: str = "", *, home: Path | None = None) -> int:
    """Forget imported prices, so that the catalog's own count again.

    Args:
        cloud: only of this cloud; all when empty.
        home: data directory; this user's when None.

    Returns:
        How many prices were forgotten.

    Raises:
        BadInput: no price of that cloud was imported.
        StoreError: they cannot be removed.
    """
    path = _path(home)
    if not cloud:
        count = 0
        with suppress(BadInput):  # a file that cannot be used can still be removed
            count = len(imported_prices(home))
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise _unusable(path, error) from None
        return count
    before = imported_prices(home)
    kept = [price for price in before if price.cloud.lower() != cloud.lower()]
    if len(kept) == len(before):
        known = ", ".join(sorted({price.cloud for price in before})) or "none"
        raise BadInput(f"cloud {cloud[:60]!r}", f"a cloud with imported prices: {known}", "name one of these, or none for all")
    _write(path, kept) if kept else path.unlink()
    return len(before) - len(kept)


def price_list_text(prices: Iterable[Price]) -> str:
    """Return prices as a list in Tandem's own form, as `import_prices` reads it."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for price in prices:
        memory = "" if price.host_memory_bytes is None else f"{price.host_memory_bytes / 2**30:g}"
        writer.writerow((
            price.accelerator, price.cloud, price.instance, price.region, price.terms, repr(price.usd_per_chip_h),
            price.chips_per_instance, "" if price.vcpus is None else f"{price.vcpus:g}", memory, price.source, price.source_date,
            price.confidence, price.notes,
        ))  # fmt: skip
    return out.getvalue()


@lru_cache(maxsize=4)
def _read(path: Path, _changed_ns: int, _size_bytes: int) -> tuple[Price, ...]:
    """Return the prices of a file as it was when it was last changed; a change makes another key of this cache."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise _unusable(path, error) from None
    try:
        return intake.read_price_list(data, intake.PriceOrigin(FILE, "", date.min, date.max)).prices
    except BadInput as error:
        remedy = "mend it, or run: ./tandem catalog forget-prices"
        raise BadInput(f"imported prices that cannot be used ({error.got})", error.expected, remedy) from None


def _write(path: Path, prices: Iterable[Price]) -> None:
    temporary: str | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with NamedTemporaryFile("w", dir=path.parent, prefix=".prices-", delete=False, encoding="utf-8", newline="") as file:
            temporary = file.name
            file.write(price_list_text(prices))
        Path(temporary).replace(path)
    except OSError as error:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)
        raise _unusable(path, error) from None


def _path(home: Path | None) -> Path:
    return (home or settings_from(os.environ).home) / FILE


def _day(text: str, today: date) -> date:
    if not text:
        return today
    try:
        day = date.fromisoformat(text)
    except ValueError:
        raise BadInput(f"date {text[:40]!r}", f"a day such as {today.isoformat()}", "correct the date") from None
    if day > today:
        raise BadInput(f"date {text}, which is in the future", f"a day up to {today.isoformat()}", "correct the date")
    return day


def _unusable(path: Path, error: OSError) -> StoreError:
    return StoreError(one_line(f"got {error.strerror} for {path}; expected a file of this user; mend its rights or free space"))
