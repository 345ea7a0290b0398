"""The link between two pools when nobody says how fast it is: what hosts send in one place, or what regions and clouds leave."""

import re

from advisor.split.sides import Side
from core.device import Link

HOST_BYTES_PER_S = 50e9
"""Of one host to pools of another kind: 12.5 to 50 GB/s inside Google's network (rule R107). What joins GPUs of one kind (400
GB/s a host and more) is a network of theirs alone."""
BETWEEN_REGIONS = Link(0.03, 12.5e9)
"""Between regions of one cloud: the least of R107's rates, and some 30 ms one way (a few thousand kilometres of fibre at two
thirds of the speed of light, and routers)."""
BETWEEN_CLOUDS = Link(0.03, 0.32e9)
"""Between two clouds: 0.1 to 1 GB/s, here its geometric middle (rule R107), and the latency of regions."""
IN_ONE_NETWORK_S = 1e-4
"""One way between two hosts of a data centre network, software included."""
_REGION = re.compile(r"[a-z]+-[a-z]+\d+|[a-z]+-[a-z]+-\d+")


def link_between(first: Side, second: Side, given: Link | None) -> tuple[Link, str] | str:
    """Return the link between two sides and how it is known, or in one phrase why it is not.

    Every message passes through the hosts: no collective spans NCCL and ICI (R104).

    Args:
        first, second: the two.
        given: what the user said; a latency of zero is none said.
    """
    if given is not None:
        return given, f"{given.bytes_per_s / 1e9:.3g} GB/s and {given.latency_s * 1e3:.3g} ms, as given"
    if first.pool.attached and second.pool.attached:
        return f"the link between {first.name} and {second.name} is not measured: give its rate, or have the plan run"
    rates = {side.name: _network(side) for side in (first, second) if not side.pool.attached}
    unknown = [name for name, rate in rates.items() if rate is None]
    if unknown:
        return f"the network of {unknown[0]} is not in the catalog: give the rate of the link"
    (here, here_region), (there, there_region) = _place(first), _place(second)
    if here and there and here != there:
        return BETWEEN_CLOUDS, f"between {here} and {there}: 0.1 to 1 GB/s (R107), taken as {BETWEEN_CLOUDS.bytes_per_s / 1e9:g}"
    if here_region and there_region and here_region != there_region:
        said = f"between {here_region} and {there_region}: {BETWEEN_REGIONS.bytes_per_s / 1e9:g} GB/s (R107) and 30 ms, assumed"
        return BETWEEN_REGIONS, said
    name, rate = min(((name, rate) for name, rate in rates.items() if rate is not None), key=lambda pair: pair[1])
    said = f"{rate / 1e9:.3g} GB/s, assumed: what the hosts of {name} send in one place, at most 50 GB/s each (R107)"
    return Link(IN_ONE_NETWORK_S, rate), said


def _network(side: Side) -> float | None:
    """Return bytes a second that all hosts of a pool send to another kind of pool; part of a host has its part."""
    if side.chip is None or side.chip.internode_bytes_per_s is None:
        return None
    hosts = side.pool.count / (side.chip.chips_per_host or 1)
    return hosts * min(side.chip.internode_bytes_per_s, HOST_BYTES_PER_S)


def _place(side: Side) -> tuple[str, str]:
    """Return cloud and region of a pool; empty where they are not known, or the price is the user's own."""
    where = side.joined.where
    if side.pool.attached or not where or where.startswith(("price given", "own hardware", "no ")):
        return "", ""
    found = _REGION.search(where.split(",")[0])
    return where.split()[0].strip(",").lower(), found.group() if found else ""
