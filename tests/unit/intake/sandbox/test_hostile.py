"""A reader that does its worst is stopped, told of in one line, and leaves nothing; the next read works."""

import ctypes
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from core.errors import BadInput
from intake.sandbox import Limits, ReaderFault, Refused, Sandbox, Stopped, level
from intake.sandbox.scratch import Scratch, remove_stale

ROOT = Path(__file__).parents[4]
READERS = "tests.samples.hostile_readers"
LIMITS = Limits(memory_bytes=256 * 2**20, cpu_s=1, wall_s=20, result_bytes=2**20, scratch_bytes=4 * 2**20)

# act, how it ends (for a limit: which), words of the line
ENDINGS = [
    ("slowly", "memory", "took more than 256 MiB of memory"),
    ("at_once", "memory", "took more than 256 MiB of memory"),
    ("mapped", "memory", "took more than 256 MiB of memory"),
    ("burn", "processor time", "took more than 1 s of processor time"),
    ("burn_deaf", "processor time", "took more than 1 s of processor time"),
    ("print_for_ever", "output", "printed more than 1.00 MiB"),
    ("fill_scratch", "scratch", "made more than 4.00 MiB of files"),
    ("fill_one_file", "scratch", "made more than 4.00 MiB of files"),
    ("many_files", "scratch", "or too many"),
    ("long_answer", "result", "an answer of more than 1.00 MiB"),
    ("endless_answer", "ended", "does not answer this question"),
    ("fork", "denied", "Operation not permitted"),
    ("fork_and_detach", "denied", "Operation not permitted"),
    ("fork_bomb", "denied", "Operation not permitted"),
    ("program", "denied", "Operation not permitted"),
    ("write_file", "denied", "denied"),
    ("link_out", "denied", "Operation not permitted"),
    ("change_mode", "denied", "Operation not permitted"),
    ("connect", "denied", "Operation not permitted"),
    ("datagram", "denied", "Operation not permitted"),
    ("kill_parent", "denied", "Operation not permitted"),
    ("kill_leader", "denied", "Operation not permitted"),
    ("kill_all", "denied", "Operation not permitted"),
    ("nameless_file", "denied", "Operation not permitted"),
    ("hidden_memory", "denied", "Operation not permitted"),
    ("crash", "ended", "(SIGSEGV)"),
    ("abort", "ended", "(SIGABRT)"),
    ("illegal", "ended", "(SIGILL)"),
    ("kill_itself", "ended", "(SIGKILL)"),
    ("answer_and_crash", "ended", "(SIGSEGV)"),
    ("exit_0", "ended", "ended without an answer"),
    ("exit_7", "ended", "exit code 7"),
    ("half_a_message", "ended", "in the middle of its answer"),
    ("half_a_header", "ended", "in the middle of its answer"),
    ("great_length", "ended", "announced an answer of 10737418240 bytes"),
    ("another_run", "ended", "does not answer this question"),
    ("pickled", "ended", "is not JSON"),
    ("two_answers", "ended", "more than one answer"),
    ("deep_answer", "ended", "is not JSON"),
    ("infinite_answer", "ended", "is not JSON"),
    ("huge_number", "ended", "is not JSON"),
    ("half_a_pair", "ended", "is not JSON"),
    ("other_answer", "ended", "is no answer"),
    ("refuse", Refused, "got a file of two [31mlines; expected one; mend it"),
    ("recurse", Refused, "nested deeper than can be followed"),
    ("fault", ReaderFault, "KeyError: 'missing' at acts.py"),
    ("leave", ReaderFault, "SystemExit"),
    ("no_json", ReaderFault, "TypeError"),
    ("not_a_number", ReaderFault, "not JSON compliant"),
    ("threads", ReaderFault, "can't start new thread"),
    ("descriptors", ReaderFault, "Too many open files"),
]


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    """One sandbox for all: what one read does must not reach the next."""
    with Sandbox("acts", LIMITS, package=READERS) as opened:
        yield opened
        leader = opened.leader
    assert leader is None or not psutil.pid_exists(leader)


@contextmanager
def adopting() -> Iterator[None]:
    """Be the one to wait for orphans, rather than the machine's first process, which may take seconds to."""
    library = ctypes.CDLL(None)
    library.prctl(36, 1, 0, 0, 0)
    yield
    library.prctl(36, 0, 0, 0, 0)


@pytest.mark.parametrize(("act", "ending", "words"), ENDINGS, ids=[ending[0] for ending in ENDINGS])
def test_a_hostile_reader_gives_one_line_and_leaves_nothing(
    sandbox: Sandbox, temporary: Path, tmp_path: Path, act: str, ending: str | type[BadInput], words: str
) -> None:
    target = tmp_path / "target"
    if act == "change_mode":
        target.touch(0o600)
    options = {"act": act, "target": str(target), "parent": os.getpid(), "port": 9, "length": 3 * 2**20}
    with pytest.raises(BadInput) as raised:
        sandbox.read(b"anything", options)
    line = str(raised.value)
    assert words in line
    assert line.isprintable()
    if isinstance(ending, str):
        assert isinstance(raised.value, Stopped)
        assert raised.value.limit == ending
    else:
        assert type(raised.value) is ending
    assert list(temporary.iterdir()) == []
    assert target.stat().st_mode & 0o777 == 0o600 if act == "change_mode" else not target.exists()
    assert sandbox.leader is None or len(psutil.Process(sandbox.leader).children(recursive=True)) <= 1
    assert sandbox.read(b"", {"act": "use_scratch"}) == "kept for a while"


@pytest.mark.parametrize("act", ["sleep_for_ever", "answer_and_stay"])
def test_what_a_reader_sleeps_through_is_stopped_at_the_limit_of_time_even_if_it_has_answered(act: str) -> None:
    with Sandbox("acts", Limits(wall_s=0.7), package=READERS) as sandbox:
        with pytest.raises(Stopped, match=r"took more than 0\.7 s") as raised:
            sandbox.read(b"", {"act": act})
        assert raised.value.limit == "time"
        assert sandbox.leader is None


def test_a_file_of_the_user_is_not_read(sandbox: Sandbox, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("canary")
    with pytest.raises(Stopped) as raised:
        sandbox.read(b"", {"act": "read_file", "target": str(secret)})
    assert raised.value.limit == "denied"


def test_nothing_arrives_at_a_listener(sandbox: Sandbox) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams:
        datagrams.bind(("127.0.0.1", 0))
        for act, listener in (("connect", server), ("datagram", datagrams)):
            with pytest.raises(Stopped):
                sandbox.read(b"", {"act": act, "port": listener.getsockname()[1]})
            listener.setblocking(False)
            with pytest.raises(BlockingIOError):
                listener.recv(1) if listener is datagrams else server.accept()


def test_what_a_reader_prints_does_not_disturb_its_answer(sandbox: Sandbox) -> None:
    assert sandbox.read(b"", {"act": "print_little"}) == "said"


def test_the_last_words_of_a_reader_are_told_without_their_control_characters() -> None:
    with Sandbox("acts", LIMITS, package=READERS) as sandbox:
        assert sandbox.read(b"", {"act": "print_little"}) == "said"
        with pytest.raises(Stopped, match="exit code 7") as raised:
            sandbox.read(b"", {"act": "exit_7"})
    assert str(raised.value).isprintable()


def test_the_worker_ends_with_a_portal_that_is_killed_and_its_scratch_folder_goes_with_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = f"""
from intake.sandbox import Sandbox
with Sandbox("acts", package={READERS!r}) as sandbox:
    sandbox.read(b"", {{"act": "use_scratch"}})
    print(sandbox.leader, flush=True)
    sandbox.read(b"", {{"act": "sleep_for_ever"}})
"""
    expected = 3 if level().level >= 3 else 2
    command = [sys.executable, "-c", code]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True) as portal:
        assert portal.stdout is not None
        worker = psutil.Process(int(portal.stdout.readline()))
        family = [worker.pid]
        while len(family) < expected:  # until the second read has begun
            family = [one.pid for one in (worker, *worker.children())]
        with adopting():
            portal.kill()
            portal.wait()
            # the youngest first: the first process of a namespace is gone when all others have been waited for
            for pid in sorted(family, key=lambda pid: (pid != worker.pid, -pid)):
                try:
                    ended = os.pidfd_open(pid)
                except ProcessLookupError:  # the end of its namespace took it along
                    continue
                assert select.select([ended], [], [], 30)[0]
                os.close(ended)
                os.waitpid(pid, 0)
    (left,) = tmp_path.iterdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    remove_stale()
    assert left.exists()  # it could be about to be used
    os.utime(left, (0, 0))
    in_use = Scratch()
    os.utime(in_use.path, (0, 0))
    remove_stale()
    assert list(tmp_path.iterdir()) == [in_use.path]
    in_use.remove()


def test_a_reader_that_is_held_still_from_outside_meets_the_limit_of_time() -> None:
    with Sandbox("acts", Limits(wall_s=1.0), package=READERS) as sandbox:
        sandbox.read(b"", {"act": "use_scratch"})
        assert sandbox.leader is not None
        os.kill(sandbox.leader, signal.SIGSTOP)
        with pytest.raises(Stopped, match="took more than 1 s"):
            sandbox.read(b"", {"act": "use_scratch"})
        assert sandbox.read(b"", {"act": "use_scratch"}) == "kept for a while"


def test_a_worker_that_is_killed_between_reads_is_told_of_and_replaced() -> None:
    with Sandbox("acts", LIMITS, package=READERS) as sandbox:
        sandbox.read(b"", {"act": "use_scratch"})
        assert sandbox.leader is not None
        os.killpg(sandbox.leader, signal.SIGKILL)
        with pytest.raises(Stopped, match="ended with its worker"):
            sandbox.read(b"", {"act": "use_scratch"})
        assert sandbox.read(b"", {"act": "use_scratch"}) == "kept for a while"
