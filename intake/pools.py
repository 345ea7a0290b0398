"""The pools that a document names: each an accelerator by any of its names, a count of chips, and at will what it costs.

A count is always chips. What a name was understood as, and how the price of own hardware comes about, is added to the
assumptions, so that the reader sees "v5p-8 = 4 chips" before paying for eight.
"""

import re
from dataclasses import replace

from catalog import TERMS, Named, accelerator, count_note, counted, machine_named, parse_name
from core.errors import BadInput
from core.workload import PoolRequest
from intake.fields import Section
from intake.ownership import ownership_of
from intake.wording import fault

_DEVICE = re.compile(
    r"(cpu|gpu|tpu):\d{1,4}"
    r"|ray:(?!node|memory|object_store|accelerator_type)[A-Za-z][A-Za-z0-9_.-]{0,60}(:[A-Za-z0-9_.-]{1,60})?"
)
"""An attached device, or what a Ray cluster counts and gives; it counts nodes and memory too, which are no devices."""
_KEYS = ("accelerator", "count", "terms", "price_usd_per_h", "price")
MOST_CHIPS = 10**6

UNCOUNTED = "no count was given: one host's are tried, and doublings where memory, a deadline, a budget or a rate asks for more"
"""What is said of a pool whose chips are left open."""

def read_pools(top: Section, assumed: list[str]) -> tuple[PoolRequest, ...]:
    """Return the pools that were named.

    Args:
        top: the document.
        assumed: what Tandem understood or filled in is added to it.

    Raises:
        BadInput: an accelerator that is neither in the catalog nor a device id, a name that several have, or a count or price
            that cannot be used.
    """
    entries = top.items("pools", "a list of pools such as [{accelerator: tpu-v6e, count: 16}]")
    return tuple(_pool(f"pools[{i}]", entry, assumed) for i, entry in enumerate(entries))


def is_device(name: str) -> bool:
    """Return whether a name is the id of an attached device, `cpu:0`, or of one reached through Ray, `ray:GPU`."""
    return _DEVICE.fullmatch(name) is not None


def _pool(path: str, entry: object, assumed: list[str]) -> PoolRequest:
    section = Section(path, {"accelerator": entry} if isinstance(entry, str) else entry, _KEYS)
    name = section.text("accelerator")
    if name is None:
        raise fault(path, section.values, "an accelerator", "add accelerator: KEY such as tpu-v6e, h100-sxm or cpu:0")
    count = section.whole("count", 1, MOST_CHIPS)
    price = section.number("price_usd_per_h", 0, 1e9)
    if is_device(name):
        for key in ("price", "terms"):
            if section.has(key):
                raise fault(f"{path}.{key}", name, "price_usd_per_h for an attached device", "write price_usd_per_h: N")
        return PoolRequest(name, count or 1, price)
    try:
        named = parse_name(name) if count is None else counted(parse_name(name), count)
    except BadInput as error:
        raise type(error)(f"{path}.accelerator: {error.got}", error.expected, error.remedy) from None
    request, said = request_of(named)
    assumed += said
    given = [key for key in ("price", "price_usd_per_h", "terms") if section.has(key)]
    if len(given) > 1:
        raise fault(path, " and ".join(given), "one of price, price_usd_per_h and terms", "keep one of them")
    if section.has("price"):
        own = ownership_of(f"{path}.price", section.values["price"], accelerator(named.key), request.count)
        if request.open:
            raise fault(f"{path}.price", section.values["price"], "a price and how many chips it is of", "add count: N")
        assumed.append(f"{request.count} x {named.key}: own hardware: {own.words}")
        return replace(request, price_usd_per_h=own.usd_per_chip_h, own=own)
    return replace(request, price_usd_per_h=price, terms=section.choice("terms", TERMS) or "")


def request_of(named: Named) -> tuple[PoolRequest, tuple[str, ...]]:
    """Return the pool that a name asks for, and what is to be said of how it was understood, one phrase each.

    Args:
        named: from `catalog.parse_name`.
    """
    machine = machine_named(named.said)
    request = PoolRequest(named.key, named.chips or 1, machine="" if machine is None else machine.name, open=named.chips is None)
    said = (
        named.echo if named.said != named.key else "",
        f"{named.key}: {UNCOUNTED}" if request.open else "",
        "" if request.open else count_note(named.key, request.count) or "",
    )
    return request, tuple(filter(None, said))
