"""A SQLite library or a file system that loses data is refused before it can."""

import subprocess
import sys
from pathlib import Path

import pytest

from core.errors import BadInput, StoreError
from db import Store
from db.clock import age_s, boot_id, boot_seconds
from db.library import SAFE_SQLITE, check_place, check_version, file_system, sqlite_library

ROOT = Path(__file__).resolve().parents[3]
MOUNTS = """\
22 1 0:1 / / rw,relatime shared:1 - ext4 /dev/sda rw
23 22 0:2 / /home rw - nfs4 server:/home rw
24 23 0:3 / /home/ann/local\\040disk rw master:2 - xfs /dev/sdb rw
25 22 0:4 / /mnt/c rw - 9p drvfs rw
26 22 0:5 / /mnt/keys rw - fuse.sshfs keys: rw
27 22 0:6 / /srv rw - ext4 /dev/sdc rw
28 22 0:7 / /srv rw - cifs //server/srv rw
a line that is none
"""


def test_the_library_in_use_is_free_of_the_corruption_fault() -> None:
    assert sqlite_library().sqlite_version_info >= SAFE_SQLITE


@pytest.mark.parametrize("version", [(3, 40, 1), (3, 51, 2)])
def test_an_older_library_is_refused_with_a_way_out(version: tuple[int, ...]) -> None:
    with pytest.raises(StoreError, match="pysqlite3"):
        check_version(version, "sqlite3")


@pytest.mark.parametrize("version", [(3, 51, 3), (3, 53, 4), (4, 0, 0)])
def test_a_repaired_library_is_taken(version: tuple[int, ...]) -> None:
    check_version(version, "pysqlite3")


@pytest.mark.parametrize(("folder", "kind"), [
    ("/var/lib", "ext4"), ("/home/ann", "nfs4"), ("/home/ann/local disk/t", "xfs"), ("/homes", "ext4"), ("/srv/t", "cifs"),
    ("/", "ext4"),
])
def test_the_innermost_and_latest_mount_says_the_file_system(folder: str, kind: str) -> None:
    assert file_system(Path(folder), MOUNTS) == kind


@pytest.mark.parametrize("folder", ["/home/ann/tandem", "/mnt/c/tandem", "/mnt/keys", "/srv/tandem"])
def test_a_network_file_system_is_refused_and_postgres_named(folder: str) -> None:
    with pytest.raises(StoreError, match="Postgres"):
        check_place(Path(folder), MOUNTS)


@pytest.mark.parametrize("folder", ["/var/lib/tandem", "/home/ann/local disk"])
def test_a_local_disk_is_taken(folder: str) -> None:
    check_place(Path(folder), MOUNTS)


def test_a_system_without_a_mount_table_is_taken() -> None:
    check_place(Path("/anywhere"), "")


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///:memory:", "sqlite:///file:x?mode=memory", "nonsense", "oracle9://host/x"])
def test_an_address_that_is_no_database_file_or_server_is_bad_input(url: str) -> None:
    with pytest.raises(BadInput):
        Store(url)


def test_the_sqlite_of_the_standard_library_is_never_loaded(tmp_path: Path) -> None:
    code = ("import sys; from db import Store; s = Store(sys.argv[1]); s.migrate(); s.count(); s.history(); "
            "print([name for name in sys.modules if name in ('sqlite3', '_sqlite3')]); "
            "print({line.split('/')[-1].strip() for line in open('/proc/self/maps') if 'libsqlite' in line})")
    command = [sys.executable, "-c", code, f"sqlite:///{tmp_path}/t.db"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\nset()\n"


def test_a_heartbeat_of_this_boot_has_the_age_of_the_clock_that_cannot_jump() -> None:
    assert age_s(3 * 86400.0, boot_id(), boot_seconds() - 2) == pytest.approx(2, abs=1)
    assert age_s(-86400.0, boot_id(), boot_seconds() - 2) == pytest.approx(2, abs=1)


@pytest.mark.parametrize("written_in", ["another boot", ""])
def test_a_heartbeat_of_another_boot_has_the_age_of_the_wall_clock(written_in: str) -> None:
    assert age_s(77.0, written_in, boot_seconds()) == 77.0
    assert age_s(-5.0, written_in, boot_seconds()) == 0.0
