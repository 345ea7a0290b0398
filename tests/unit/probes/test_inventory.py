"""The inventory: what the operating system tells, and what it fails to tell."""

from pathlib import Path

from probes.inventory import cpu, parse_nvidia, tpus

H200 = "0, GPU-5f1c, NVIDIA H200, 143771, 570.86.15\n1, GPU-77aa, NVIDIA A100-SXM4-80GB, 81920, 570.86.15\n"


def _write(root: Path, name: str, text: str) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def test_gpus_are_named_by_uuid_with_their_catalog_key() -> None:
    first, second = parse_nvidia(H200)
    assert (first.id, first.uuid, first.accelerator, first.memory_bytes) == ("gpu:0", "GPU-5f1c", "h200", 143771 * 2**20)
    assert second.accelerator == "a100-80"


def test_a_gpu_of_an_unknown_name_has_no_catalog_key() -> None:
    assert parse_nvidia("0, GPU-1, NVIDIA Something New, 1000, 1.0\n")[0].accelerator is None


def test_lines_that_the_driver_could_not_fill_are_passed_over() -> None:
    assert parse_nvidia("NVIDIA-SMI has failed because it could not communicate with the driver\n0, GPU-1, X, [N/A], 1\n") == ()


def test_the_memory_of_a_control_group_counts_when_it_is_less(tmp_path: Path) -> None:
    _write(tmp_path, "proc/meminfo", "MemTotal: 16000000 kB\n")
    _write(tmp_path, "sys/fs/cgroup/memory.max", "1000000000\n")
    assert cpu(tmp_path).memory_bytes == 1_000_000_000


def test_the_memory_of_the_machine_counts_when_the_group_has_no_limit(tmp_path: Path) -> None:
    _write(tmp_path, "proc/meminfo", "MemTotal: 16000000 kB\n")
    _write(tmp_path, "sys/fs/cgroup/memory.max", "max\n")
    assert cpu(tmp_path).memory_bytes == 16_000_000 * 1024


def test_a_limit_on_cores_is_said(tmp_path: Path) -> None:
    _write(tmp_path, "sys/fs/cgroup/cpu.max", "50000 100000\n")
    assert any("limited to 0.5 cores" in fact for fact in cpu(tmp_path).detail)


def test_the_last_level_cache_is_the_one_of_the_highest_level(tmp_path: Path) -> None:
    for index, (level, size) in enumerate(((1, "32K"), (2, "1024K"), (3, "32M"))):
        _write(tmp_path, f"sys/devices/system/cpu/cpu0/cache/index{index}/level", f"{level}\n")
        _write(tmp_path, f"sys/devices/system/cpu/cpu0/cache/index{index}/size", f"{size}\n")
    assert cpu(tmp_path).cache_bytes == 32 * 2**20


def test_an_empty_machine_still_has_a_processor(tmp_path: Path) -> None:
    device = cpu(tmp_path)
    assert (device.id, device.cache_bytes) == ("cpu:0", None)


def test_tpus_are_found_by_their_vendor_without_taking_them(tmp_path: Path) -> None:
    for address, vendor, kind in (
        ("0000:00:05.0", "0x1ae0", "0x006f"),
        ("0000:00:06.0", "0x10de", "0x2330"),
        ("0000:00:07.0", "0x1ae0", "0x0001"),
    ):
        _write(tmp_path, f"sys/bus/pci/devices/{address}/vendor", f"{vendor}\n")
        _write(tmp_path, f"sys/bus/pci/devices/{address}/device", f"{kind}\n")
    found = tpus(tmp_path)
    assert [(d.id, d.accelerator, d.uuid) for d in found] == [("tpu:0", "tpu-v6e", "0000:00:05.0")]
