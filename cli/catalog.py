"""`./tandem catalog`: accelerators in SkyPilot's words and order, one with its sources, its prices, and lists of the user."""

from pathlib import Path
from typing import Any

import click

from cli.output import document, table, write
from cli.parts import json_flag
from core import format as fmt
from core.device import Accelerator, Price
from core.errors import BadInput
from services import catalog as service
from services import price_lists

HEADINGS = (
    "GPU",
    "QTY",
    "CLOUD",
    "INSTANCE_TYPE",
    "DEVICE_MEM",
    "vCPUs",
    "HOST_MEM",
    "HOURLY_PRICE",
    "HOURLY_SPOT_PRICE",
    "REGION",
)
"""As `sky gpus list` writes them; prices are of the whole machine."""
_NUMBERS = (1, 4, 5, 6, 7, 8)
_MOST_READ = 40 * 2**20
_SHOWN_SKIPPED = 8


@click.group(invoke_without_command=True)
@click.option("-a", "--all", "everything", is_flag=True, help="Every machine of every cloud, not the cheapest of each.")
@click.option("--infra", metavar="CLOUD", default="", help="Only what this cloud sells.")
@click.option("--all-regions", is_flag=True, help="A row for every region, not the cheapest of each machine.")
@json_flag
@click.pass_context
def catalog(ctx: click.Context, infra: str, *, everything: bool, all_regions: bool, as_json: bool) -> None:
    """Without a command: every accelerator with its cheapest offer. Prices are for an hour of the whole machine."""
    if ctx.invoked_subcommand is not None:
        if as_json:
            after = ctx.invoked_subcommand
            raise BadInput(f"--json before {after}", "it after", f"./tandem catalog {after} ... --json")
        return
    _check_cloud(infra)
    known = service.chips()
    rows = service.offers(known, everything=everything or all_regions, cloud=infra, all_regions=all_regions)
    if as_json:
        document({"accelerators": [_chip(one) for one in known], "offers": [_offer(row) for row in rows]})
        return
    table((*HEADINGS, "AGE"), [_offer_cells(row) for row in rows], right=_NUMBERS)
    write("\nHOURLY_PRICE is of the whole machine; ./tandem catalog prices KEY has the price of a chip, terms and sources.")


@catalog.command()
@click.argument("name")
@json_flag
def show(name: str, *, as_json: bool) -> None:
    """Show what one accelerator can do, by its key or any other name, with source, date and confidence."""
    named, one = service.named(name), service.chip(name)
    age = service.hardware_age(one)
    if as_json:
        shapes = [_slice(known) for known in service.slices(one)]
        document(
            {**_chip(one), "understood": named.echo, "slices": shapes, "machines": [_machine(m) for m in service.machines(one)]}
        )
        return
    write(f"{one.key}: {one.name} ({one.vendor})")
    if named.echo:
        write(f"understood: {named.echo}")
    table(("what", "value"), service.figures(one))
    write(f"\nFrom {one.source}; {age.words}{_look_again(stale=age.stale)}; confidence {one.confidence}.")
    shapes = service.slices(one)
    if shapes:
        few = [k for k in shapes if one.kind == "tpu" or k.hosts == 1]
        write(f"\nCan be had together, up to {service.SLICES_SHOWN} chips:")
        table(
            ("chips", "shape", "hosts", "wraps around", "machine"),
            [(str(k.chips), _shape(k), str(k.hosts), _wraps(k), k.machine or fmt.MISSING) for k in few], right=(0, 2),
        )  # fmt: skip
        if few != list(shapes):
            largest = max(k.chips for k in few)
            write(f"and any number of machines of {largest} chip{'s' if largest > 1 else ''}.")


@catalog.command()
@click.argument("name")
@click.option("--infra", metavar="CLOUD", default="", help="Only what this cloud sells.")
@json_flag
def prices(name: str, infra: str, *, as_json: bool) -> None:
    """Show every known price of one accelerator, cheapest first, with terms, source and age; those of your lists come first."""
    _check_cloud(infra)
    one = service.chip(name)
    known = [price for price in service.prices(one) if infra.lower() in {"", price.cloud.lower()}]
    if as_json:
        document({"accelerator": one.key, "prices": [_price(price) for price in known]})
    elif not known:
        write(f"No price of {one.key} is known. Import a list: ./tandem catalog import-prices FILE")
    else:
        table(
            ("$ a chip-hour", "terms", "cloud", "region", "machine", "chips", "age", "confidence", "source"),
            [_price_cells(price) for price in known], right=(0, 5),
        )  # fmt: skip


@catalog.command("import-prices")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--cloud", default="", metavar="NAME", help="Whose prices they are, where the list does not say.")
@click.option("--date", "day", default="", metavar="YYYY-MM-DD", help="Of rows without a date; today unless given.")
@click.option("--dry-run", is_flag=True, help="Say what the list would bring and keep nothing.")
@json_flag
def import_prices(file: Path, cloud: str, day: str, *, dry_run: bool, as_json: bool) -> None:
    """Take a price list: CSV in Tandem's own form or SkyPilot's. It replaces what was imported of the same clouds."""
    data = _read(file)
    take = price_lists.preview_prices if dry_run else price_lists.import_prices
    found = take(data, str(file.absolute()), cloud, day)
    if as_json:
        document({
            "form": found.form, "rows": found.rows, "kept": not dry_run, "replaced": found.replaced, "clouds": list(found.clouds),
            "accelerators": list(found.accelerators),
            "skipped": [{"reason": one.reason, "rows": len(one.lines), "lines": list(one.lines)} for one in found.skipped],
            "prices": [_price(price) for price in found.prices],
        })  # fmt: skip
        return
    done = "would be taken" if dry_run else "are taken"
    write(f"{len(found.prices)} prices of {', '.join(found.accelerators)} at {', '.join(found.clouds)} {done}.")
    if found.replaced:
        write(f"They take the place of {found.replaced} that were imported before.")
    for left in found.skipped[:_SHOWN_SKIPPED]:
        write(f"- left out, {left.words}")
    if not dry_run:
        write("They are preferred to the catalog's own; ./tandem catalog forget-prices undoes that.")


@catalog.command("forget-prices")
@click.option("--cloud", default="", metavar="NAME", help="Only those of this cloud.")
def forget_prices(cloud: str) -> None:
    """Forget imported prices, so that the catalog's own count again."""
    write(f"{price_lists.forget_prices(cloud)} imported prices are forgotten")


def _read(file: Path) -> bytes:
    try:
        with file.open("rb") as opened:
            return opened.read(_MOST_READ)
    except OSError as error:
        raise BadInput(f"{str(file)[-80:]!r} ({error.strerror})", "a CSV file", "correct the path") from None


def _check_cloud(infra: str) -> None:
    known = service.clouds()
    if infra and infra.lower() not in known:
        raise BadInput(f"--infra {infra[:60]!r}", f"one of {', '.join(known)}", "choose one of these")


def _offer_cells(row: service.OfferRow) -> tuple[str, ...]:
    age = fmt.MISSING if row.age is None else f"{row.age.source_date}{' (stale)' if row.age.stale else ''}"
    price = (
        fmt.usd(row.usd_per_h)
        if row.usd_per_h is not None or not row.others
        else f"{fmt.usd(row.others[0][1])} {row.others[0][0]}"
    )
    return (
        row.accelerator, str(row.chips), row.cloud or fmt.MISSING, row.instance or fmt.MISSING,
        fmt.memory(row.device_memory_bytes),
        fmt.MISSING if row.vcpus is None else f"{row.vcpus:g}", fmt.memory(row.host_memory_bytes), price,
        fmt.usd(row.spot_usd_per_h), row.region or fmt.MISSING, age,
    )  # fmt: skip


def _price_cells(price: Price) -> tuple[str, ...]:
    age = service.age(price)
    where = f"{price.cloud} (your list)" if price.imported else price.cloud
    words = f"{age.words}{_look_again(stale=age.stale)}"
    return (f"{price.usd_per_chip_h:.4f}", price.terms, where, price.region or fmt.MISSING, price.instance,
            str(price.chips_per_instance), words, price.confidence, price.source)  # fmt: skip


def _look_again(*, stale: bool) -> str:
    return ": look again" if stale else ""


def _shape(known: service.Slice) -> str:
    return f"{known.slices} x {known.shape}" if known.slices > 1 else known.shape or fmt.MISSING


def _wraps(known: service.Slice) -> str:
    axes = [str(size) for size, wrapped in zip(known.topology, known.wraps, strict=True) if wrapped]
    if not known.topology:
        return fmt.MISSING
    return "no axis" if not axes else "every axis" if len(axes) == len(known.topology) else f"the axis of {axes[0]}"


def _chip(one: Accelerator) -> dict[str, Any]:
    return {
        "key": one.key, "name": one.name, "vendor": one.vendor, "kind": one.kind, "year": one.year,
        "memory_bytes": one.memory_bytes, "memory_bytes_per_s": one.memory_bytes_per_s, "flop_per_s": dict(one.flop_per_s),
        "link": one.link_name, "link_bytes_per_s": one.link_bytes_per_s, "host_bytes_per_s": one.host_bytes_per_s,
        "internode_bytes_per_s": one.internode_bytes_per_s, "power_w": one.power_w, "chips_per_host": one.chips_per_host,
        "max_domain_chips": one.max_domain_chips, "notes": one.notes, "source": one.source, "source_date": one.source_date,
        "confidence": one.confidence, "stale": service.hardware_age(one).stale,
    }  # fmt: skip


def _offer(row: service.OfferRow) -> dict[str, Any]:
    return {
        "accelerator": row.accelerator, "count": row.chips, "cloud": row.cloud or None, "instance_type": row.instance or None,
        "device_memory_bytes": row.device_memory_bytes, "vcpus": row.vcpus, "host_memory_bytes": row.host_memory_bytes,
        "usd_per_h": row.usd_per_h, "spot_usd_per_h": row.spot_usd_per_h, "other_terms": dict(row.others),
        "region": row.region or None, "source_date": row.age.source_date if row.age else None,
        "stale": row.age.stale if row.age else None, "imported": row.imported,
    }  # fmt: skip


def _price(price: Price) -> dict[str, Any]:
    age = service.age(price)
    return {
        "accelerator": price.accelerator, "cloud": price.cloud, "region": price.region or None, "terms": price.terms,
        "instance_type": price.instance, "count": price.chips_per_instance, "usd_per_chip_h": price.usd_per_chip_h,
        "source": price.source, "source_date": price.source_date, "age_days": age.days, "stale": age.stale,
        "confidence": price.confidence, "notes": price.notes, "imported": price.imported,
    }  # fmt: skip


def _slice(known: service.Slice) -> dict[str, Any]:
    return {"chips": known.chips, "topology": known.shape or None, "slices": known.slices, "hosts": known.hosts,
            "wraps": list(known.wraps), "machine": known.machine or None, "notes": known.notes}  # fmt: skip


def _machine(one: service.Machine) -> dict[str, Any]:
    return {"name": one.name, "cloud": one.cloud, "count": one.chips, "vcpus": one.vcpus,
            "host_memory_bytes": one.host_memory_bytes, "source": one.source, "source_date": one.source_date}  # fmt: skip
