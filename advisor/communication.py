"""What chips of one pool must exchange in a step, and how long that takes on a ring: latency times hops plus bytes over rate.

A pool has one domain (chips joined by the fast link) or several joined by the network of their hosts; a collective over
several domains is done in two levels, inside first, so that each host's network carries its own share only.
"""

from dataclasses import dataclass

from advisor.beliefs import BELIEFS, CHIP_HABITS
from core.device import Accelerator, Pool


@dataclass(frozen=True, slots=True)
class Fabric:
    """The links of a pool.

    Args:
        inside: chips in one domain.
        domains: how many domains.
        link_bytes_per_s: between chips of a domain, one direction.
        network_bytes_per_s: of one domain to the next; None with one domain.
        hop_s: latency of one step of a ring.
        evidence: which link it is.
    """

    inside: int
    domains: int
    link_bytes_per_s: float
    network_bytes_per_s: float | None
    hop_s: float
    evidence: str


def fabric_of(pool: Pool, chip: Accelerator | None) -> Fabric | None:
    """Return how the chips of a pool are joined, or None when no rate is known (one chip needs none)."""
    hop_s = CHIP_HABITS[pool.kind].hop_s
    if pool.link is not None:
        note = "link as given with the pool"
        return Fabric(pool.count, 1, pool.link.bytes_per_s, None, pool.link.latency_s, note)
    if chip is None:
        return None
    inside = _domain(pool, chip)
    domains = -(-pool.count // inside)
    link, name = chip.link_bytes_per_s, chip.link_name or "link"
    if link is None and chip.host_bytes_per_s is not None:
        link, name = chip.host_bytes_per_s, "host bus"
    if link is None and inside > 1:
        return None
    network = chip.internode_bytes_per_s
    if domains > 1 and network is None:
        return None
    per_domain = None if network is None else network * max(1, inside // (chip.chips_per_host or inside))
    return Fabric(inside, domains, link or 1.0, per_domain if domains > 1 else None, hop_s, f"{name} of {chip.key}")


def _domain(pool: Pool, chip: Accelerator) -> int:
    """Return chips in one domain of the fast link; without a known limit, one host."""
    limit = chip.max_domain_chips or chip.chips_per_host or 1
    return min(pool.count, limit)


def all_reduce_s(size_bytes: float, fabric: Fabric) -> float:
    """Return seconds to sum a tensor over all chips.

    Source: ring all-reduce, 2 (n - 1) / n x bytes / rate + 2 (n - 1) x latency (Patarasuk and Yuan, 2009), in two levels.
    """
    return 2.0 * _pass_s(size_bytes, fabric)


def all_gather_s(size_bytes: float, fabric: Fabric) -> float:
    """Return seconds to give every chip the whole of a tensor that is spread over all; a reduce-scatter takes the same."""
    return _pass_s(size_bytes, fabric)


def _pass_s(size_bytes: float, fabric: Fabric) -> float:
    n = fabric.inside
    seconds = (n - 1) / n * size_bytes / (fabric.link_bytes_per_s * BELIEFS.link_share) + (n - 1) * fabric.hop_s if n > 1 else 0.0
    if fabric.network_bytes_per_s is not None:
        d = fabric.domains
        rate = fabric.network_bytes_per_s * BELIEFS.link_share
        seconds += (d - 1) / d * size_bytes / rate + (d - 1) * 10 * fabric.hop_s
    return seconds


def exposed_s(communication_s: float, compute_s: float) -> float:
    """Return the part of communication that does not hide behind computation."""
    return communication_s - min(BELIEFS.overlap * communication_s, BELIEFS.overlap * compute_s)
