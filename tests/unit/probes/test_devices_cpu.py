"""The processor: affinity, control groups of both versions, caches of all levels, NUMA nodes, odd machines."""

from pathlib import Path

import pytest

from core.codec import from_json, to_json
from core.device import Device
from core.hardware import Cache, NumaNode
from probes.devices.cpu import control_group, cpu
from probes.devices.files import tenant
from probes.inventory import devices, survey
from tests.samples.devices import lay_out

CPU = "sys/devices/system/cpu"


def _two_sockets(root: Path) -> Path:
    files = {
        "proc/cpuinfo": "processor : 0\nmodel name : Intel(R) Xeon(R) Platinum 8480+\n"
        "flags : fpu avx2 avx512f avx512_bf16 amx_bf16\n",
        "proc/meminfo": "MemTotal: 263000000 kB\n", f"{CPU}/online": "0-7\n",
    }  # fmt: skip
    for number in range(8):
        core, package = number % 4, number % 4 // 2
        topology = f"{CPU}/cpu{number}/topology"
        files |= {f"{topology}/core_id": f"{core % 2}\n", f"{topology}/physical_package_id": f"{package}\n"}
        shared = f"{core},{core + 4}\n"
        last = f"{package * 2}-{package * 2 + 1},{package * 2 + 4}-{package * 2 + 5}\n"
        caches = ((1, "Data", "48K", shared), (1, "Instruction", "32K", shared), (2, "Unified", "2048K", shared),
                  (3, "Unified", "107520K", last))  # fmt: skip
        for index, (level, kind, size, who) in enumerate(caches):
            place = f"{CPU}/cpu{number}/cache/index{index}"
            files |= {f"{place}/level": f"{level}\n", f"{place}/type": f"{kind}\n", f"{place}/size": f"{size}\n",
                      f"{place}/shared_cpu_list": who}  # fmt: skip
    for node in (0, 1):
        place = f"sys/devices/system/node/node{node}"
        files |= {f"{place}/cpulist": f"{node * 2}-{node * 2 + 1},{node * 2 + 4}-{node * 2 + 5}\n",
                  f"{place}/meminfo": f"Node {node} MemTotal:       131500000 kB\nNode {node} MemFree: 1 kB\n"}  # fmt: skip
    return lay_out(root, files)


def test_a_machine_of_two_sockets_is_told_whole(tmp_path: Path) -> None:
    device = cpu(_two_sockets(tmp_path), frozenset({0, 4}))
    facts = device.processor
    assert facts is not None
    assert (device.name, device.cores, facts.machine_cores) == ("Intel(R) Xeon(R) Platinum 8480+", 2, 8)
    assert (facts.physical_cores, facts.sockets) == (4, 2)
    assert facts.extensions == ("avx2", "avx512f", "avx512_bf16", "amx_bf16")
    assert facts.numa == (NumaNode(0, 4, 131500000 * 1024), NumaNode(1, 4, 131500000 * 1024))


def test_caches_of_all_levels_are_counted_once(tmp_path: Path) -> None:
    device = cpu(_two_sockets(tmp_path))
    assert device.processor is not None
    assert device.processor.caches == (
        Cache(1, "data", 48 * 2**10, 4), Cache(1, "instruction", 32 * 2**10, 4), Cache(2, "unified", 2 * 2**20, 4),
        Cache(3, "unified", 105 * 2**20, 2),
    )  # fmt: skip
    assert device.cache_bytes == 105 * 2**20


def test_the_least_limit_above_a_group_counts_in_version_2(tmp_path: Path) -> None:
    base = "sys/fs/cgroup"
    lay_out(tmp_path, {
        "proc/self/cgroup": "0::/kubepods/pod1/container\n", f"{base}/cgroup.controllers": "cpu memory\n",
        f"{base}/kubepods/pod1/cpu.max": "150000 100000\n", f"{base}/kubepods/pod1/container/cpu.max": "max 100000\n",
        f"{base}/kubepods/memory.max": "8000000000\n", f"{base}/kubepods/pod1/container/memory.max": "4000000000\n",
    })  # fmt: skip
    assert control_group(tmp_path) == (2, 1.5, 4_000_000_000)


def test_version_1_is_read_at_its_own_places(tmp_path: Path) -> None:
    base = "sys/fs/cgroup"
    lay_out(tmp_path, {
        "proc/self/cgroup": "11:memory:/docker/abc\n4:cpu,cpuacct:/docker/abc\n1:name=systemd:/docker/abc\n",
        f"{base}/cpu,cpuacct/docker/abc/cpu.cfs_quota_us": "250000\n",
        f"{base}/cpu,cpuacct/docker/abc/cpu.cfs_period_us": "100000\n",
        f"{base}/memory/docker/abc/memory.limit_in_bytes": "2147483648\n",
        f"{base}/memory/memory.limit_in_bytes": "9223372036854771712\n",
    })  # fmt: skip
    assert control_group(tmp_path) == (1, 2.5, 2**31)


def test_no_limit_of_version_1_is_none(tmp_path: Path) -> None:
    base = "sys/fs/cgroup"
    lay_out(tmp_path, {
        "proc/self/cgroup": "4:cpu:/elsewhere\n", f"{base}/cpu/cpu.cfs_quota_us": "-1\n",
        f"{base}/cpu/cpu.cfs_period_us": "100000\n",
        f"{base}/memory/memory.limit_in_bytes": "9223372036854771712\n",
    })  # fmt: skip
    assert control_group(tmp_path) == (1, None, None)


def test_an_arm_processor_without_a_model_name_is_named_by_its_part(tmp_path: Path) -> None:
    lay_out(tmp_path, {"proc/cpuinfo": "processor : 0\nFeatures : fp asimd sve bf16\nCPU implementer : 0x41\nCPU part : 0xd4f\n"})
    device = cpu(tmp_path)
    assert device.name == "Arm CPU, implementer 0x41, part 0xd4f"
    assert device.processor is not None
    assert device.processor.extensions == ("asimd", "sve", "bf16")


def test_a_device_that_was_stored_before_its_facts_were_known_is_read() -> None:
    stored = '{"id":"gpu:0","kind":"gpu","name":"NVIDIA H200","uuid":"GPU-1","memory_bytes":5,"detail":["driver 570"]}'
    device = from_json(Device, stored)
    assert (device.board, device.processor, device.fault) == (None, None, None)


def test_all_facts_survive_the_store(tmp_path: Path) -> None:
    for device in survey(_two_sockets(tmp_path), {}):
        assert from_json(Device, to_json(device)) == device


def test_what_nothing_can_use_is_surveyed_but_not_offered(tmp_path: Path) -> None:
    place = "sys/bus/pci/devices/0000:0c:00.0"
    lay_out(tmp_path, {f"{place}/vendor": "0x1002\n", f"{place}/device": "0x74a1\n", f"{place}/class": "0x120000\n"})
    assert [one.id for one in survey(tmp_path, {})] == ["cpu:0", "gpu:0"]
    assert [one.id for one in devices(tmp_path)] == ["cpu:0"]


@pytest.mark.parametrize(("line", "name"), [
    ("/usr/bin/python3\0/home/ana/train.py\0--token=canary\0", "python3 train.py"),
    ("python\0-P\0-m\0probes.worker\0canary\0", "python -m probes.worker"),
    ("python\0-c\0import canary\0", "python"),
    ("/opt/server\0--key\0canary\0", "server"),
])  # fmt: skip
def test_a_process_is_named_without_its_arguments(tmp_path: Path, line: str, name: str) -> None:
    lay_out(tmp_path, {"proc/4242/cmdline": line})
    assert tenant(tmp_path, 4242).name == name
