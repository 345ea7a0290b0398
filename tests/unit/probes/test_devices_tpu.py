"""TPUs by bus, device files and open files of processes, and Google's metadata by a real server on the loopback interface."""

import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from core.device import Device
from core.hardware import Board, TpuSlice
from probes.devices.metadata import tpu_slice
from probes.devices.tpu import tpus
from tests.samples.devices import lay_out

NOWHERE = ("127.0.0.1", 9)
GKE = {"TPU_ACCELERATOR_TYPE": "v5litepod-4", "TPU_TOPOLOGY": "2x2", "TPU_WORKER_ID": "0"}
ENTRY = "ACCELERATOR_TYPE: 'v6e-8'\nTOPOLOGY: '2x4'\nWORKER_ID: '1'\nTYPE: 'V6E'\n"
GOOGLE = f"HTTP/1.0 200 OK\r\nMetadata-Flavor: Google\r\nContent-Type: application/text\r\n\r\n{ENTRY}"


def _chip(address: str, kind: str, group: int | None = None) -> tuple[dict[str, str], dict[str, str]]:
    place = f"sys/bus/pci/devices/{address}"
    told = {"vendor": "0x1ae0", "device": kind, "class": "0x120000", "numa_node": "0"}
    files = {f"{place}/{name}": f"{value}\n" for name, value in told.items()}
    return files, {} if group is None else {f"{place}/iommu_group": f"../../../kernel/iommu_groups/{group}"}


def _host(root: Path, kind: str, count: int = 4) -> Path:
    for index in range(count):
        files, links = _chip(f"0000:00:{index + 4:02x}.0", kind, index)
        lay_out(root, {**files, f"dev/vfio/{index}": ""}, links)
    return root


def _board(device: Device) -> Board:
    assert device.board is not None
    return device.board


@contextmanager
def _server(answer: Callable[[socket.socket], None]) -> Iterator[tuple[str, int]]:
    """Serve one connection on the loopback interface."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        def serve() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.recv(4096)
                answer(connection)

        thread = threading.Thread(target=serve)
        thread.start()
        yield listening.getsockname()[:2]
        thread.join()


@pytest.mark.parametrize(("kind", "key"), [
    ("0x0063", "tpu-v5e"), ("0x006f", "tpu-v6e"), ("0x0062", "tpu-v5p"), ("0x0076", "tpu-v7"),
])  # fmt: skip
def test_chips_have_their_device_file_and_slice(tmp_path: Path, kind: str, key: str) -> None:
    found = tpus(_host(tmp_path, kind), GKE, NOWHERE)
    told = [(one.id, one.accelerator, _board(one).path) for one in found]
    assert told == [(f"tpu:{index}", key, f"/dev/vfio/{index}") for index in range(4)]
    assert _board(found[0]).group == TpuSlice("v5litepod-4", "2x2", "0", "environment (GKE)")
    assert found[0].memory_bytes > 10**10


def test_the_device_file_is_that_of_the_iommu_group(tmp_path: Path) -> None:
    files, links = _chip("0000:00:05.0", "0x006f", 7)
    lay_out(tmp_path, {**files, "dev/vfio/7": "", "dev/vfio/0": ""}, links)
    assert _board(tpus(tmp_path, GKE)[0]).path == "/dev/vfio/7"


def test_older_chips_are_told_apart_by_their_subsystem(tmp_path: Path) -> None:
    files, _ = _chip("0000:00:05.0", "0x0027")
    lay_out(tmp_path, {**files, "sys/bus/pci/devices/0000:00:05.0/subsystem_device": "0x004f\n", "dev/accel0": ""})
    (device,) = tpus(tmp_path, GKE)
    assert (device.accelerator, _board(device).path) == ("tpu-v3", "/dev/accel0")


def test_the_process_that_holds_a_chip_is_named(tmp_path: Path) -> None:
    root = _host(tmp_path, "0x0063")
    lay_out(root, {"proc/4242/cmdline": "python\0serve.py\0"}, {"proc/4242/fd/12": "/dev/vfio/2", "proc/4242/fd/1": "/dev/null"})
    free, _, held, _ = tpus(root, GKE)
    owners = _board(held).tenants
    assert owners is not None
    assert (owners[0].pid, owners[0].name) == (4242, "python serve.py")
    assert _board(free).tenants == ()
    assert _board(free).locked_by is None


def test_a_lock_that_no_process_stands_behind_is_stale(tmp_path: Path) -> None:
    root = lay_out(_host(tmp_path, "0x0063", 1), {"tmp/libtpu_lockfile": ""})
    assert _board(tpus(root, GKE)[0]).locked_by == "/tmp/libtpu_lockfile"


def test_processes_that_may_not_be_looked_into_are_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = lay_out(_host(tmp_path, "0x0063", 1), {"tmp/libtpu_lockfile": ""}, {"proc/77/fd/3": "/dev/vfio/0"})
    real = Path.iterdir

    def guarded(self: Path) -> Iterator[Path]:
        if self.parts[-2:] == ("77", "fd"):
            raise PermissionError(13, "Permission denied")
        return real(self)

    monkeypatch.setattr(Path, "iterdir", guarded)
    board = _board(tpus(root, GKE)[0])
    assert (board.tenants, board.locked_by) == (None, None)
    assert "run it with sudo" in next(one.why for one in board.unread if one.what == "owner")


def test_a_device_file_that_is_closed_to_this_user_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert _board(tpus(_host(tmp_path, "0x006f", 1), GKE)[0]).reachable is False


def test_a_container_that_does_not_see_the_bus_counts_device_files(tmp_path: Path) -> None:
    root = lay_out(tmp_path, {"dev/vfio/0": "", "dev/vfio/1": "", "dev/vfio/vfio": ""})
    assert [one.accelerator for one in tpus(root, GKE)] == ["tpu-v5e", "tpu-v5e"]
    assert tpus(root, {}) == ()


def test_a_device_file_of_another_vendor_is_no_tpu(tmp_path: Path) -> None:
    root = lay_out(tmp_path, {"dev/vfio/0": "", "sys/class/dmi/id/product_name": "PowerEdge R760\n"})
    assert tpus(root, {}) == ()


def test_the_slice_is_read_from_googles_metadata(tmp_path: Path) -> None:
    with _server(lambda connection: connection.sendall(GOOGLE.encode())) as address:
        (device,) = tpus(_host(tmp_path, "0x006f", 1), {}, address)
    assert _board(device).group == TpuSlice("v6e-8", "2x4", "1", "Google metadata")


@pytest.mark.parametrize(("answer", "reason"), [
    ("HTTP/1.0 404 Not Found\r\nMetadata-Flavor: Google\r\n\r\nno", "no entry for a TPU"),
    (f"HTTP/1.0 200 OK\r\n\r\n{ENTRY}", "not Google's metadata server"),
    ("HTTP/1.0 200 OK\r\nMetadata-Flavor: Google\r\n\r\nZONE: 'x'\n", "no accelerator type"),
    ("hello", "not HTTP"),
])  # fmt: skip
def test_a_server_that_says_something_else_is_a_reason(answer: str, reason: str) -> None:
    with _server(lambda connection: connection.sendall(answer.encode())) as address:
        told = tpu_slice({}, address)
    assert isinstance(told, str)
    assert reason in told


def test_a_server_that_refuses_is_a_reason() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = listening.getsockname()[:2]
    told = tpu_slice({}, address)
    assert isinstance(told, str)
    assert "did not answer" in told


def test_a_server_that_says_nothing_is_left_within_the_limit() -> None:
    asked = threading.Event()
    with _server(lambda _: bool(asked.wait(20))) as address:
        told = tpu_slice({}, address, limit_s=0.1)
        asked.set()
    assert isinstance(told, str)
    assert "no whole answer within 0.1 s" in told


def test_a_server_that_drips_is_cut_off_although_each_byte_comes_in_time() -> None:
    stop = threading.Event()

    def drip(connection: socket.socket) -> None:
        with suppress(OSError):  # the other end has left
            while not stop.wait(0.01):
                connection.sendall(b"H")

    with _server(drip) as address:
        told = tpu_slice({}, address, limit_s=0.2)
        stop.set()
    assert isinstance(told, str)
    assert "no whole answer within 0.2 s" in told
