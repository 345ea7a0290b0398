"""What is known of a device, in words, the same in a terminal and on a page. Unknown facts are left out, reasons are kept."""

from core import format as write
from core.device import Device
from core.hardware import Board, Cache, Clock, Processor, Slot, TpuSlice

Facts = tuple[tuple[str, str], ...]
"""Name and value, in the order in which they are read."""


def headline(device: Device) -> str:
    """Return name, memory and cores in one line."""
    cores = "" if device.cores is None else f", {device.cores} cores"
    size = f", {write.memory(device.memory_bytes)}" if device.memory_bytes else ""
    return f"{device.name}{size}{cores}"


def facts(device: Device) -> Facts:
    """Return all that is known of a device."""
    found: Facts = ()
    if device.processor is not None:
        found += _processor(device.processor)
    if device.board is not None:
        found += _board(device.board)
    if not found:
        found = _kept(("facts", "; ".join(device.detail)))
    if device.accelerator:
        found += (("catalog", device.accelerator),)
    if device.fault is not None:
        found += (("fault", device.fault.reason), ("what to do", device.fault.remedy))
    return (*found, ("identity", device.uuid))


def alerts(device: Device) -> tuple[str, ...]:
    """Return what somebody who measures must see at once: limits, slowdowns, tenants, partitions."""
    found: list[str] = []
    facts_of, board = device.processor, device.board
    if facts_of and facts_of.quota_cores is not None and facts_of.quota_cores < (device.cores or 0):
        found.append(f"Limited to {facts_of.quota_cores:.1f} cores by its control group")
    if board is None:
        return tuple(found)
    if board.slowdowns:
        found.append(f"Clocks are held down: {', '.join(board.slowdowns)}")
    if board.partitioned:
        found.append(f"MIG mode is on, {len(board.partitions)} instances")
    if board.tenants:
        found.append(f"In use by {'; '.join(tenant.label for tenant in board.tenants[:3])}")
    if board.locked_by:
        found.append(f"A stale lock bars it: {board.locked_by}")
    return tuple(found)


def _processor(value: Processor) -> Facts:
    counted = ((value.sockets, "sockets"), (value.physical_cores, "cores"), (value.machine_cores, "logical cores"))
    built = ", ".join(f"{count} {name if count != 1 else name[:-1]}" for count, name in counted if count)
    quota = "" if value.quota_cores is None else f"{value.quota_cores:.2f} cores"
    limit = "" if value.group_memory_bytes is None else write.memory(value.group_memory_bytes)
    group = f"version {value.control_group}, " if value.control_group else ""
    nodes = "; ".join(
        f"node {node.id}: {node.cores} logical cores" + (f", {write.memory(node.memory_bytes)}" if node.memory_bytes else "")
        for node in value.numa
    )
    return _kept(
        ("machine", built),
        ("control group", f"{group}{', '.join(filter(None, (quota, limit))) or 'no limit'}"),
        ("caches", "; ".join(_cache(cache) for cache in value.caches)),
        ("NUMA", nodes),
        ("extensions", ", ".join(value.extensions)),
    )


def _cache(value: Cache) -> str:
    kind = "" if value.kind == "unified" else f" {value.kind}"
    return f"L{value.level}{kind} {value.count} × {write.memory(value.size_bytes)}"


def _board(value: Board) -> Facts:
    watts = (value.power_w, value.power_limit_w)
    power = " of ".join(f"{watt:.0f} W" for watt in watts if watt is not None)
    group = value.group
    return _kept(
        ("driver", ", ".join(filter(None, (value.driver, f"up to CUDA {value.driver_cuda}" if value.driver_cuda else "")))),
        ("compute capability", value.capability or ""),
        ("clocks", "; ".join(filter(None, map(_clock, value.clocks)))),
        ("power", power),
        ("temperature", "" if value.temperature_c is None else f"{value.temperature_c:.0f} °C"),
        ("held down by", ", ".join(value.slowdowns or ()) or ("" if value.slowdowns is None else "nothing")),
        ("memory in use", "" if value.memory_used_bytes is None else write.memory(value.memory_used_bytes)),
        ("processes", "" if value.tenants is None else "; ".join(one.label for one in value.tenants) or "none"),
        ("MIG", _mig(value)),
        ("PCIe", "" if value.slot is None else _slot(value.slot)),
        ("device file", (value.path or "") + (", not open to this user" if value.reachable is False else "")),
        ("stale lock", value.locked_by or ""),
        ("slice", "" if group is None else _slice(group)),
        ("told by", value.source),
        *((f"no {one.what}", one.why) for one in value.unread),
    )


def _slice(value: TpuSlice) -> str:
    worker = f"worker {value.worker_id}" if value.worker_id else ""
    return ", ".join(filter(None, (f"{value.accelerator_type} {value.topology}".strip(), worker, value.source)))


def _clock(value: Clock) -> str:
    megahertz = [f"{hertz / 1e6:.0f}" for hertz in (value.now_hz, value.max_hz) if hertz is not None]
    return f"{value.name} {' of '.join(megahertz)} MHz" if megahertz else ""


def _mig(value: Board) -> str:
    if value.partitioned is None:
        return ""
    if not value.partitions:
        return "on, no instance" if value.partitioned else "off"
    return "; ".join(f"{part.name} {part.uuid}" for part in value.partitions)


def _slot(value: Slot) -> str:
    pairs = (("generation", value.generation, value.generation_max), ("lanes", value.lanes, value.lanes_max))
    link = [f"{name} {now}" + (f" of {most}" if most else "") for name, now, most in pairs if now]
    near = [] if value.numa_node is None else [f"near NUMA node {value.numa_node}"]
    return ", ".join((value.address, *link, *near))


def _kept(*pairs: tuple[str, str]) -> Facts:
    return tuple((name, value) for name, value in pairs if value)
