"""The link between two pools when nobody says how fast it is: the slower of both hosts' network cards, or what clouds leave."""

from advisor.split.sides import Side
from core.device import Link

BETWEEN_CLOUDS = Link(0.03, 0.32e9)
"""Between two clouds: 0.1 to 1 GB/s, here its geometric middle (rule R107), and some 30 ms one way (a few thousand kilometres of
fibre at two thirds of the speed of light, and routers)."""
IN_ONE_NETWORK_S = 1e-4
"""One way between two hosts of a data centre network, software included."""


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
    here, there = _cloud(first), _cloud(second)
    if here and there and here != there:
        return BETWEEN_CLOUDS, f"between {here} and {there}: 0.1 to 1 GB/s (R107), taken as {BETWEEN_CLOUDS.bytes_per_s / 1e9:g}"
    name, rate = min(((name, rate) for name, rate in rates.items() if rate is not None), key=lambda pair: pair[1])
    return Link(IN_ONE_NETWORK_S, rate), f"{rate / 1e9:.3g} GB/s: the network of the hosts of {name}, by the catalog"


def _network(side: Side) -> float | None:
    """Return bytes a second that all hosts of a pool send together; part of a host has its part of the network."""
    if side.chip is None or side.chip.internode_bytes_per_s is None:
        return None
    return side.chip.internode_bytes_per_s * side.pool.count / (side.chip.chips_per_host or 1)


def _cloud(side: Side) -> str:
    """Return the cloud of a pool, the first word of its place; empty when it is not known."""
    return side.pool.where.split()[0].strip(",").lower() if side.pool.where and not side.pool.attached else ""
