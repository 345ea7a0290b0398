"""The lease: never two holders, a fair queue, and nobody waits for the dead; with real threads, processes and signals."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from filelock import FileLock
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import BadInput
from probes.lease import Lease, Place
from probes.tickets import Ticket, Tickets, here, parsed, start_of

ROOT = Path(__file__).resolve().parents[3]
CHILD = """
import sys
from pathlib import Path
from probes.lease import Lease
lease = Lease(Path(sys.argv[1]), "cpu", sys.argv[2], "ann", float(sys.argv[3]), 0.01)
tell = lambda place: print(place.words, flush=True)
if lease.acquire(tell, lambda: False):
    print("holds", flush=True)
    sys.stdin.readline()
    lease.release()
    print("gone", flush=True)
"""
UNDISTURBED = 60.0


PATIENT = settings(deadline=None)


def lease(folder: Path, run_id: str = "here", fresh_s: float = UNDISTURBED, poll_s: float = 0.005) -> Lease:
    return Lease(folder, "cpu", run_id, "ann", fresh_s, poll_s)


@contextmanager
def child(folder: Path, run_id: str, fresh_s: float = UNDISTURBED) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen([sys.executable, "-c", CHILD, str(folder), run_id, str(fresh_s)], cwd=ROOT, text=True,
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def said(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def until(found: Callable[[Place], bool]) -> tuple[list[Place], Callable[[Place], None], Callable[[], bool]]:
    """Return what is heard, a listener, and a stop that comes once something was found (or after 20 s, which then fails)."""
    heard: list[Place] = []
    end = time.monotonic() + 20.0
    return heard, heard.append, lambda: any(found(place) for place in heard) or time.monotonic() > end


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "cpu.queue").iterdir())


def test_a_free_device_is_held_at_once_and_given_back(tmp_path: Path) -> None:
    one, heard = lease(tmp_path), []
    assert one.acquire(heard.append, lambda: False)
    assert heard == []
    holder = one.holder()
    assert holder is not None
    assert (holder.run_id, holder.owner, holder.pid) == ("here", "ann", os.getpid())
    one.release()
    assert (one.holder(), files(tmp_path)) == (None, [])
    one.release()


def test_the_second_process_sees_its_place_and_who_holds_the_device_since_when(tmp_path: Path) -> None:
    with child(tmp_path, "abc123") as first:
        assert said(first) == "holds"
        with child(tmp_path, "second") as second:
            told = said(second)
            assert told.startswith("place 1, held by run abc123 of ann since ")
            assert told.endswith(" UTC")
            heard, tell, stop = until(lambda _place: True)
            assert lease(tmp_path).acquire(tell, stop) is False
            assert heard[0].number == 2
            assert heard[0].words == told.replace("place 1", "place 2")


def test_threads_of_one_process_never_hold_it_together_and_all_get_their_turn(tmp_path: Path) -> None:
    inside, most, turns = [0], [0], []

    def work(number: int) -> None:
        mine = lease(tmp_path, str(number))
        for _ in range(5):
            assert mine.acquire(lambda _place: None, lambda: False)
            inside[0] += 1
            most[0] = max(most[0], inside[0])
            turns.append(number)
            inside[0] -= 1
            mine.release()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1]
    assert sorted(turns) == sorted([*range(6)] * 5)


def test_a_hundred_waiters_are_served_in_the_order_in_which_they_came(tmp_path: Path) -> None:
    door, served = lease(tmp_path, "door"), []
    assert door.acquire(lambda _place: None, lambda: False)
    threads: list[threading.Thread] = []

    def wait(number: int, came: threading.Event) -> None:
        mine = lease(tmp_path, str(number), poll_s=0.02)
        mine.acquire(lambda _place: came.set(), lambda: False)
        served.append(number)
        mine.release()

    for number in range(100):
        came = threading.Event()
        threads.append(threading.Thread(target=wait, args=(number, came)))
        threads[-1].start()
        assert came.wait(20.0)
    door.release()
    for thread in threads:
        thread.join()
    assert served == [*range(100)]
    assert files(tmp_path) == []


def test_when_the_holder_is_killed_the_next_holds_and_its_ticket_is_swept(tmp_path: Path) -> None:
    with child(tmp_path, "killed") as first, child(tmp_path, "next") as second:
        names = {said(first): first, said(second): second}
        holder = names.pop("holds")
        waiter = next(iter(names.values()))
        holder.send_signal(signal.SIGKILL)
        holder.wait()
        assert said(waiter) == "holds"
        assert [name[:4] for name in files(tmp_path)] == ["hold"]


def test_a_killed_waiter_holds_up_nobody(tmp_path: Path) -> None:
    door = lease(tmp_path)
    assert door.acquire(lambda _place: None, lambda: False)
    with child(tmp_path, "killed") as waiter:
        assert said(waiter).startswith("place 1")
        waiter.send_signal(signal.SIGKILL)
        waiter.wait()
    heard, tell, stop = until(lambda _place: True)
    assert lease(tmp_path, "next").acquire(tell, stop) is False
    assert [place.number for place in heard] == [1]
    door.release()
    assert files(tmp_path) == []


def test_a_stopped_waiter_loses_its_place_when_its_beats_grow_old_and_queues_anew_when_it_wakes(tmp_path: Path) -> None:
    door = lease(tmp_path)
    assert door.acquire(lambda _place: None, lambda: False)
    with child(tmp_path, "stopped", 0.3) as waiter:
        assert said(waiter).startswith("place 1")
        waiter.send_signal(signal.SIGSTOP)
        heard, tell, stop = until(lambda place: place.number == 1)
        behind = lease(tmp_path, "behind", 0.3)
        assert behind.acquire(tell, stop) is False
        assert heard[-1].number == 1
        before = [name for name in files(tmp_path) if name.startswith("wait")]
        last = Tickets(tmp_path / "cpu.queue", 0.3).draw(b"{}")
        waiter.send_signal(signal.SIGCONT)
        door.release()
        assert said(waiter).startswith(("place", "holds"))
        assert before[0] not in files(tmp_path)
        Tickets(tmp_path / "cpu.queue", 0.3).remove(last)


def test_a_stopped_holder_keeps_the_device(tmp_path: Path) -> None:
    with child(tmp_path, "stopped") as first:
        assert said(first) == "holds"
        first.send_signal(signal.SIGSTOP)
        heard, tell, stop = until(lambda _place: True)
        assert lease(tmp_path).acquire(tell, stop) is False
        assert heard[0].holder is not None
        assert heard[0].holder.run_id == "stopped"
        first.send_signal(signal.SIGCONT)
        assert first.stdin is not None
        first.stdin.write("\n")
        first.stdin.flush()
        assert said(first) == "gone"
        assert lease(tmp_path).acquire(lambda _place: None, lambda: False)


def test_a_lease_that_is_stopped_while_it_waits_leaves_no_ticket(tmp_path: Path) -> None:
    door = lease(tmp_path)
    assert door.acquire(lambda _place: None, lambda: False)
    assert lease(tmp_path).acquire(lambda _place: None, lambda: True) is False
    assert [name[:4] for name in files(tmp_path)] == ["hold"]

    def broken(_place: Place) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        lease(tmp_path).acquire(broken, lambda: False)
    assert [name[:4] for name in files(tmp_path)] == ["hold"]


def test_where_no_ticket_can_be_written_the_lock_alone_keeps_them_apart_and_says_why(tmp_path: Path) -> None:
    (tmp_path / "cpu.queue").write_text("a file where a folder should be", encoding="utf-8")
    door = lease(tmp_path)
    assert door.acquire(lambda _place: None, lambda: False)
    heard, tell, stop = until(lambda _place: True)
    assert lease(tmp_path).acquire(tell, stop) is False
    assert heard[0].number is None
    assert heard[0].words == "no place in the queue (File exists), held by another process"


ON_A_FULL_DISK = """
import errno, os, sys
from pathlib import Path
from probes.lease import Lease
folder = Path(sys.argv[1])
door = Lease(folder, "cpu", "door", "", 60.0, 0.01)
assert door.acquire(print, lambda: False)
try:
    (folder / "filler").write_bytes(bytes(2**22))
except OSError as error:
    assert error.errno == errno.ENOSPC
heard = []
assert Lease(folder, "cpu", "late", "", 60.0, 0.01).acquire(heard.append, lambda: bool(heard)) is False
print(heard[0].words)
door.release()
assert Lease(folder, "cpu", "late", "", 60.0, 0.01).acquire(print, lambda: False)
"""


def _can_mount() -> bool:
    trial = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", "mount -t tmpfs tandem /mnt"]
    try:
        return subprocess.run(trial, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


@pytest.mark.skipif(not _can_mount(), reason="this system lets nobody mount a small disk")
def test_on_a_full_disk_the_device_is_still_held_by_one_alone(tmp_path: Path) -> None:
    script = f'mount -t tmpfs -o size=64k tandem "{tmp_path}" && exec "{sys.executable}" -c "$0" "{tmp_path}"'
    done = subprocess.run(["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script, ON_A_FULL_DISK],
                          cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("no place in the queue (No space left on device), held by run door since ")


def test_a_folder_that_cannot_be_used_is_refused_with_one_line(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("", encoding="utf-8")
    with pytest.raises(BadInput, match="TANDEM_LEASES"):
        lease(tmp_path / "taken").acquire(lambda _place: None, lambda: False)
    (tmp_path / "cpu.lock").mkdir()
    with pytest.raises(BadInput, match="folder of leases"):
        lease(tmp_path).acquire(lambda _place: None, lambda: False)
    assert files(tmp_path) == []


def test_the_files_are_open_to_every_user_of_the_host_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        one = lease(tmp_path / "leases")
        assert one.acquire(lambda _place: None, lambda: False)
    finally:
        os.umask(before)
    modes = {path.name[:4]: path.stat().st_mode & 0o7777 for path in (tmp_path / "leases").rglob("*")}
    assert (tmp_path / "leases").stat().st_mode & 0o7777 == 0o1777
    assert modes == {"cpu.": 0o666, "hold": 0o644} or modes["hold"] == 0o644
    assert (tmp_path / "leases" / "cpu.lock").stat().st_mode & 0o777 == 0o666
    assert (tmp_path / "leases" / "cpu.queue").stat().st_mode & 0o7777 == 0o1777


def test_a_folder_that_was_there_keeps_its_mode(tmp_path: Path) -> None:
    own = tmp_path / "private"
    own.mkdir(mode=0o700)
    assert lease(own).acquire(lambda _place: None, lambda: False)
    assert own.stat().st_mode & 0o7777 == 0o700


def test_the_wall_clock_may_jump_as_it_likes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    door = lease(tmp_path)
    assert door.acquire(lambda _place: None, lambda: False)
    monkeypatch.setattr(time, "time", lambda: 0.0)
    monkeypatch.setattr(time, "time_ns", lambda: 0)
    queue = Tickets(tmp_path / "cpu.queue", 60.0)
    first = queue.draw(b"{}")
    monkeypatch.setattr(time, "time", lambda: 4e9)
    monkeypatch.setattr(time, "time_ns", lambda: 4 * 10**18)
    second = queue.draw(b"{}")
    assert (queue.before(first), queue.before(second)) == (0, 1)


def test_what_others_left_in_the_folder_is_judged_by_its_name_and_harms_nobody(tmp_path: Path) -> None:
    queue = Tickets(tmp_path, 60.0)
    boot, space = here()
    mine = start_of(os.getpid())
    assert mine is not None
    dead = Ticket(1, boot, space, os.getpid(), mine + 1, 0)
    earlier = Ticket(2, "0" * 8, space, os.getpid(), mine, 0)
    elsewhere = Ticket(3, boot, "0" * 8, 1, 7, 0)
    for ticket in (dead, earlier, elsewhere):
        (tmp_path / ticket.name).write_text("{", encoding="utf-8")
        assert queue.beat(ticket)
    (tmp_path / "wait-what").mkdir()
    os.mkfifo(tmp_path / "hold-00000000000000000009-x-y-1-1-1")
    last = queue.draw(b"[]")
    assert queue.before(last) == 1
    assert queue.read(last, 100) == {}
    assert queue.read(elsewhere, 100) == {}
    left = {path.name for path in tmp_path.iterdir()}
    assert not {dead.name, earlier.name} & left
    assert {elsewhere.name, last.name} <= left


def test_a_lock_of_an_older_program_is_respected(tmp_path: Path) -> None:
    heard, tell, stop = until(lambda _place: True)
    with FileLock(tmp_path / "cpu.lock"):
        assert lease(tmp_path).acquire(tell, stop) is False
    assert heard == [Place(1, None)]


@PATIENT
@given(st.builds(Ticket, st.integers(0, 10**19), st.sampled_from(["0" * 8, "deadbeef"]), st.just("01234567"),
                 st.integers(0, 2**22), st.integers(0, 10**12), st.integers(0, 10**6), st.sampled_from(["wait", "hold"])))
def test_a_ticket_is_what_its_name_says(ticket: Ticket) -> None:
    assert parsed(ticket.name) == ticket


@PATIENT
@given(st.text(max_size=40))
def test_any_other_name_is_no_ticket(name: str) -> None:
    found = parsed(name)
    assert found is None or found.name == name or parsed(found.name) == found


@settings(PATIENT, max_examples=15)
@given(st.lists(st.tuples(st.integers(0, 3), st.booleans()), min_size=4, max_size=24))
def test_whatever_the_order_of_taking_and_giving_there_is_never_a_second_holder(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[int, bool]]
) -> None:
    folder = tmp_path_factory.mktemp("leases")
    leases = [lease(folder, str(number)) for number in range(4)]
    held: set[int] = set()
    for number, take in steps:
        if take and number not in held:
            asked = [True, False]
            if leases[number].acquire(lambda _place: None, lambda asked=asked: not asked.pop(0) if asked else True):
                held.add(number)
        elif not take and number in held:
            leases[number].release()
            held.discard(number)
        assert len(held) <= 1
    for number in held:
        leases[number].release()


CROWD = """
import fcntl, os, random, signal, sys
from pathlib import Path
from probes.lease import Lease
folder, seed = Path(sys.argv[1]), int(sys.argv[2])
draw = random.Random(seed)
for turn in range(8):
    lease = Lease(folder, "cpu", str(seed), "", 60.0, 0.002)
    assert lease.acquire(lambda place: None, lambda: False)
    witness = os.open(folder / "witness", os.O_RDWR | os.O_CREAT)
    fcntl.flock(witness, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.write(1, b"turn\\n")
    if draw.random() < 0.15:
        os.kill(os.getpid(), signal.SIGKILL)
    os.close(witness)
    lease.release()
"""


def test_a_crowd_of_processes_that_die_at_random_never_holds_together_and_leaves_no_lease(tmp_path: Path) -> None:
    crowd = [subprocess.Popen([sys.executable, "-c", CROWD, str(tmp_path), str(seed)], cwd=ROOT, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE) for seed in range(8)]
    ended = [(process.communicate(), process.returncode) for process in crowd]
    assert [error for (_, error), code in ended if code not in (0, -signal.SIGKILL)] == []
    assert {code for _, code in ended} == {0, -signal.SIGKILL}
    assert sum(out.count("turn") for (out, _), code in ended if code == 0) == 8 * sum(code == 0 for _, code in ended)
    last = lease(tmp_path)
    assert last.acquire(lambda _place: None, lambda: False)
    last.release()
    assert files(tmp_path) == []
