"""The level of the sandbox is what holds when it is tried, here and on kernels that lack a part."""

import errno
import json
import subprocess
import sys
from pathlib import Path

import pytest

from core.errors import BadInput
from intake.sandbox import SandboxLevel, level, require
from intake.sandbox.closing import Closed
from intake.sandbox.kernel import NAMESPACES, landlock_version
from intake.sandbox.strength import graded

ALL = tuple(name for name, _ in NAMESPACES)
WEAKER = f"""
import errno, json, os, sys
import psutil
from intake.sandbox import Limits, Sandbox, Stopped, kernel, level
from intake.sandbox.filter import denying_filter
from intake.sandbox.syscalls import call_number

numbers = {{name: call_number(name) for name in sys.argv[1:]}}
assert kernel.forgo_privileges()
assert kernel.install_filter(denying_filter(os.uname().machine, numbers, {errno.ENOSYS}))
found = level()
with Sandbox("acts", Limits(wall_s=20), package="tests.samples.hostile_readers") as sandbox:
    said = sandbox.read(b"", {{"act": "use_scratch"}})
    try:
        left = sandbox.read(b"", {{"act": "fork_and_detach"}})
    except Stopped as error:
        left = error.limit
mine = {{str(os.getpid())}}
left_over = [one for one in psutil.process_iter(["cmdline"]) if mine & {{*(one.info["cmdline"] or [])[-1:]}}]
print(json.dumps([found.level, found.open, found.notices, said, left, len(left_over)]))
"""


def test_here_everything_that_was_tried_is_stopped() -> None:
    found = level()
    if landlock_version() == 0:
        pytest.skip("this kernel has no Landlock")
    assert found.open == ()
    assert len(found.stopped) == 19
    assert found.level >= 2
    assert any("cgroup" in notice for notice in found.notices)


@pytest.mark.parametrize(
    ("missing", "expected", "notice", "fork"),
    [
        (["unshare"], 2, "no namespaces", "denied"),
        (["unshare", "landlock_create_ruleset"], 1, "files are not confined", "denied"),
        (["seccomp"], 0, "not blocked (seccomp)", "left one behind"),
        (["unshare", "landlock_create_ruleset", "seccomp"], 0, "not blocked (seccomp)", "left one behind"),
    ],
    ids=lambda value: "+".join(value) if isinstance(value, list) else "",
)
def test_a_kernel_that_lacks_a_part_lowers_the_level_with_a_notice_and_reading_goes_on(
    missing: list[str], expected: int, notice: str, fork: str
) -> None:
    root = Path(__file__).parents[4]
    done = subprocess.run([sys.executable, "-c", WEAKER, *missing], cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    reached, came_through, notices, said, left, processes = json.loads(done.stdout)
    assert reached == expected
    assert any(notice in one for one in notices)
    assert bool(came_through) == (expected < 2)
    assert (said, left, processes) == ("kept for a while", fork, 0)


@pytest.mark.parametrize(
    ("closed", "left", "expected"),
    [
        (Closed(ALL, True, 7, True), (), 3),
        (Closed((), True, 7, True), (), 2),
        (Closed(("user", "net"), True, 7, True), (), 2),
        (Closed(ALL, True, 0, True), (), 1),
        (Closed(ALL, True, 7, True), ("read a file of the user",), 1),
        (Closed(ALL, True, 7, True), ("send over UDP",), 0),
        (Closed(ALL, False, 7, True), (), 0),
        (Closed(ALL, True, 7, False), (), 0),
        (None, (), 0),
    ],
)
def test_a_level_holds_only_with_all_below_it_and_with_nothing_that_came_through(
    closed: Closed | None, left: tuple[str, ...], expected: int
) -> None:
    found = graded(closed, (), left)
    assert found.level == expected
    assert [name for name in left if f"not stopped: {name}" not in found.notices] == []


@pytest.mark.parametrize(
    ("reached", "accepted", "refused"), [(0, False, True), (1, False, True), (1, True, False), (2, False, False)]
)
def test_uploads_need_level_two_or_an_administrator_who_takes_the_risk(reached: int, accepted: bool, refused: bool) -> None:
    found = SandboxLevel(reached, (), (), ("L1 is missing: calls", "L2 is missing: files are not confined (Landlock)"))
    if not refused:
        require(found, accepted)
        return
    with pytest.raises(BadInput) as caught:
        require(found, accepted)
    missing = "L1 is missing: calls; L2 is missing: files are not confined (Landlock)"
    assert caught.value.got == f"a sandbox of level {reached} ({missing})"
    assert "TANDEM_ACCEPT_WEAK_SANDBOX" in caught.value.remedy
