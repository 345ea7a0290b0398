"""A process is told from every other, and is ended with all that it started."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from core.errors import StoreError
from services import processes
from services.processes import alive, end, identity, kill_group, kill_marked, marked, send

Launch = Callable[..., subprocess.Popen[str]]
ROOT = Path(__file__).resolve().parents[3]
WAITS = "print('ready', flush=True); input()"
DEAF = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); " + WAITS
WITH_CHILD = """
import subprocess, sys
deaf = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('ready', flush=True); signal.pause()"
child = subprocess.Popen([sys.executable, "-c", deaf], start_new_session=SESSION, stdout=subprocess.PIPE, text=True)
child.stdout.readline()
print("ready", flush=True)
print(child.pid, flush=True)
input()
"""


def test_this_process_is_alive() -> None:
    assert alive(identity()) is True
    assert identity().pid == os.getpid()


def test_a_process_that_does_not_exist_has_no_identity() -> None:
    with pytest.raises(ProcessLookupError):
        identity(2**22 + 1)


def test_a_process_that_ended_but_was_not_yet_reaped_is_dead(launch: Launch) -> None:
    child = launch(WAITS)
    who = identity(child.pid)
    assert alive(who) is True
    os.kill(child.pid, signal.SIGKILL)
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert Path(f"/proc/{child.pid}").exists()
    assert alive(who) is False


def test_another_process_with_the_same_id_is_not_mistaken_for_the_dead_one_and_not_signalled(launch: Launch) -> None:
    child = launch(WAITS)
    before = replace(identity(child.pid), start_ticks=identity(child.pid).start_ticks - 1)
    assert alive(before) is False
    assert send(before, signal.SIGKILL) is False
    assert end((before,), 0.1) == 0
    assert alive(identity(child.pid)) is True


def test_a_process_of_an_earlier_boot_is_dead() -> None:
    assert alive(replace(identity(), boot_id="before")) is False


def test_a_process_of_another_host_is_unknown_and_is_never_signalled() -> None:
    elsewhere = replace(identity(), host="elsewhere")
    assert alive(elsewhere) is None
    assert send(elsewhere, signal.SIGKILL) is False


def test_a_process_that_ends_between_look_and_signal_is_not_signalled(launch: Launch, monkeypatch: pytest.MonkeyPatch) -> None:
    child = launch(WAITS)
    who = identity(child.pid)
    answers = iter((True, False))
    monkeypatch.setattr(processes, "alive", lambda _: next(answers))
    assert send(who, signal.SIGKILL) is False
    assert child.poll() is None


def test_a_polite_process_is_ended_with_one_word(launch: Launch) -> None:
    child = launch(WAITS)
    assert kill_group(child.pid) == 1
    assert child.wait() == -signal.SIGTERM


@pytest.mark.parametrize("code", [DEAF, "import os, signal; " + WAITS.replace("input()", "os.kill(os.getpid(), signal.SIGSTOP)")])
def test_a_deaf_or_stopped_process_is_ended_within_the_grace(launch: Launch, code: str) -> None:
    child = launch(code)
    assert kill_group(child.pid, 0.2) == 1
    assert child.wait() in (-signal.SIGKILL, -signal.SIGTERM)


@pytest.mark.parametrize("session", [False, True])
def test_what_a_process_started_is_ended_with_it_even_in_another_session(launch: Launch, session: bool) -> None:
    child = launch(WITH_CHILD.replace("SESSION", str(session)), marked=False)
    assert child.stdout is not None
    grandchild = identity(int(child.stdout.readline()))
    assert kill_group(child.pid, 0.2) == 2
    assert alive(grandchild) is False


def test_what_a_dead_process_left_behind_is_found_by_the_run_in_its_environment(launch: Launch) -> None:
    child = launch(WITH_CHILD.replace("SESSION", "True"), run_id="feedfacefeed")
    assert child.stdout is not None
    orphan = identity(int(child.stdout.readline()))
    child.kill()
    child.wait()
    assert marked("feedfacefeed") == (orphan,)
    assert marked("feedfacefee") == ()
    assert kill_marked("feedfacefeed", 0.2) == 1
    assert alive(orphan) is False


def test_a_process_that_looks_for_its_own_run_does_not_end_itself(launch: Launch) -> None:
    child = launch("print('ready', flush=True); from services.processes import kill_marked, RUN_VARIABLE; import os; "
                   "print(kill_marked(os.environ[RUN_VARIABLE], 0.1))")
    assert child.stdout is not None
    assert child.stdout.readline() == "0\n"


@pytest.fixture(params=["no /proc", "no pidfd"])
def another_system(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Take away what only Linux has."""
    if request.param == "no /proc":
        monkeypatch.setattr(processes, "_PROC", Path("/no/such/folder"))
    monkeypatch.delattr(os, "pidfd_open")


@pytest.mark.usefixtures("another_system")
def test_processes_are_told_apart_and_ended_on_other_systems_too(launch: Launch) -> None:
    child = launch(WAITS, marked=False)
    who = identity(child.pid)
    assert (alive(who), identity(child.pid)) == (True, who)
    assert alive(replace(who, start_ticks=who.start_ticks - 50)) is False
    assert kill_group(child.pid, 5) == 1
    assert child.wait() == -signal.SIGTERM
    assert alive(who) is False
    assert send(who, signal.SIGKILL) is False
    with pytest.raises(ProcessLookupError):
        identity(child.pid)


def test_what_only_linux_can_do_is_left_out_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "_PROC", Path("/no/such/folder"))
    monkeypatch.setattr(processes.ctypes, "CDLL", None)
    processes.become_subreaper()
    processes.die_with_parent(os.getppid())
    assert processes.marked("any") == ()


def test_a_kernel_that_refuses_is_told_in_one_line() -> None:
    with pytest.raises(StoreError, match="prctl"):
        processes._prctl(12345, 0)


def test_ending_what_is_gone_does_nothing() -> None:
    assert kill_group(2**22 + 1) == 0
    assert kill_marked("no such run") == 0


def test_a_child_dies_with_its_parent(launch: Launch) -> None:
    code = """
import os, subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "import sys; from services.processes import die_with_parent; "
                          "die_with_parent(int(sys.argv[1])); print('ready', flush=True); input()", str(os.getpid())],
                         start_new_session=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
child.stdout.readline()
print("ready", flush=True)
print(child.pid, flush=True)
input()
"""
    parent = launch(code, marked=False)
    assert parent.stdout is not None
    child = identity(int(parent.stdout.readline()))
    parent.kill()
    parent.wait()
    processes._wait_for_all((child,), 5)
    assert alive(child) is False


def test_a_child_whose_parent_is_gone_already_ends_at_once() -> None:
    code = "from services.processes import die_with_parent; die_with_parent(1 << 22); print('still here')"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (-signal.SIGKILL, "")


def test_a_subreaper_inherits_the_children_of_its_dead_children() -> None:
    code = """
import os, subprocess, sys, time
from services.processes import become_subreaper
become_subreaper()
inner = "import subprocess, sys; print(subprocess.Popen([sys.executable, '-c', 'input()'], stdin=subprocess.PIPE).pid)"
middle = subprocess.run([sys.executable, "-c", inner], capture_output=True, text=True, check=True)
pid, status = os.wait()
print(pid == int(middle.stdout))
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"
