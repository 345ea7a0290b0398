"""Lists of named pools in a document: what each asks for, and the name by which the rest of the document calls it."""

from core.errors import BadInput
from core.workload import PoolRequest
from intake.fields import Section
from intake.pools import read_pools
from intake.wording import fault

_REQUEST_KEYS = ("accelerator", "count", "price_usd_per_h", "price", "terms")


def requests_of(entries: tuple[object, ...], key: str, keys: tuple[str, ...], assumed: list[str]) -> tuple[PoolRequest, ...]:
    """Return what each pool of a list asks for: its accelerator by any name, its chips and its price.

    Args:
        entries: mappings, or accelerators as text; one without an accelerator that is a host stands for the CPU of this machine.
        key: under which the list stands.
        keys: that each may have.
        assumed: what Tandem understood is added to it.
    """
    plain: list[dict[str, object]] = []
    for index, entry in enumerate(entries):
        section = Section(f"{key}[{index}]", mapping_of(entry), keys)
        asked = {name: section.values[name] for name in _REQUEST_KEYS if section.has(name)}
        if section.values.get("host") is True and "accelerator" not in asked:
            asked["accelerator"] = "cpu:0"
        plain.append({"count": 1, **asked})
    try:
        return read_pools(Section("", {"pools": plain}, ("pools",)), assumed)
    except BadInput as error:
        raise type(error)(error.got.replace("pools[", f"{key}[", 1), error.expected, error.remedy) from None


def mapping_of(entry: object) -> object:
    """Return an entry of a list of pools as a mapping: a text alone is an accelerator."""
    return {"accelerator": entry} if isinstance(entry, str) else entry


def name_of(section: Section, request: PoolRequest) -> str:
    """Return the name of a pool: given, or made of its accelerator and chips."""
    return section.text("name") or f"{request.accelerator}={request.count}"


def once(path: str, names: list[str]) -> None:
    """Refuse a name that stands twice in a list."""
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise fault(path, twice[0], "every name once", "give one of them another name")
