"""Whatever is killed, and whenever: an end in words, what was measured is kept, nothing is left."""

import json
import os
import random
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from core.codec import to_plain
from core.errors import Cancelled
from probes.split.handle import SideLost
from probes.split.run import run, verify
from probes.split.session import SplitLimits, SplitSession
from probes.split.words import LinkSpec, SplitFailure

ROOT = Path(__file__).resolve().parents[4]
SHARED = Path("/dev/shm")
FATES = [("data", 0), ("data", 1), ("local", 0), ("pipeline", 1), ("ahead", 0), ("rl", 0), ("rl", 1)]


def _left():
    """What a run could leave: shared memory, children, ports of this process."""
    held = {path.name for path in SHARED.iterdir()} if SHARED.is_dir() else set()
    me = psutil.Process()
    ports = [c.laddr for c in me.net_connections(kind="inet") if c.status == psutil.CONN_LISTEN]
    return held, {child.pid for child in me.children(recursive=True)}, ports, me.num_fds()


def _killed(sides, settings, task, victim, link, ready):
    """Run a task and kill one side as soon as `ready(session)`; return the failure."""
    session = SplitSession(sides, settings, should_stop=lambda: _strike(session, victim, ready))
    with session:
        try:
            session.open(link)
            run(session, task, 60.0)
        except SideLost as error:
            return session.failure(error)
    raise AssertionError("the run went on")


def _strike(session, victim, ready):
    if ready(session) and len(session._handles) == 2:
        os.kill(session._handles[victim].process.pid, signal.SIGKILL)
    return False


@pytest.mark.parametrize(("mode", "victim"), FATES)
def test_a_side_that_is_killed_between_steps_ends_the_run_with_what_was_measured(sides, settings, tasks, mode, victim) -> None:
    before, after = _left(), random.Random(f"{mode} {victim}").randint(4, 60)
    told = _killed(sides, settings, tasks[mode], victim, LinkSpec(), lambda s: len(s.steps[victim]) >= after)
    assert (told.stage, told.side, told.exit_code) == ("steps", sides[victim].name, -9)
    assert told.error == f"side {sides[victim].name} was killed (SIGKILL), by someone or by the kernel for lack of memory"
    assert len(told.steps[victim]) >= after
    assert len(told.step_s) >= 1
    assert _left() == before


@pytest.mark.parametrize("stage", ["open", "model"])
def test_a_side_that_is_killed_before_the_first_step_is_told(sides, settings, tasks, stage) -> None:
    before = _left()
    told = _killed(sides, settings, tasks["data"], 1, LinkSpec(), lambda s: s.stage == stage)
    assert (told.side, told.exit_code, told.step_s) == ("other", -9, ())
    assert _left() == before


def test_a_side_that_is_killed_leaves_no_port(sides, settings, tasks) -> None:
    before = _left()
    told = _killed(sides, settings, tasks["data"], 0, LinkSpec(transport="grpc"), lambda s: len(s.steps[0]) >= 5)
    assert (told.side, told.exit_code) == ("one", -9)
    assert _left() == before


def test_a_side_that_stands_still_is_ended(sides, settings, tasks) -> None:
    before = _left()

    def halt():
        if len(session.steps[0]) >= 5 and session._handles:
            os.kill(session._handles[0].process.pid, signal.SIGSTOP)
        return False

    session = SplitSession(sides, settings, SplitLimits(quiet_s=1.0), halt)
    with session:
        session.open(LinkSpec())
        with pytest.raises(SideLost, match="no word of one"):
            run(session, tasks["data"], 60.0)
    assert _left() == before


def test_a_side_that_takes_too_much_memory_is_ended(sides, settings, tasks) -> None:
    before = _left()
    told = verify(tasks["data"], sides, settings, 60.0, limits=SplitLimits(memory_bytes=2**20))
    assert isinstance(told, SplitFailure)
    assert "out of memory" in told.error
    assert _left() == before


def test_a_run_that_is_stopped_keeps_what_it_measured(sides, settings, tasks) -> None:
    before = _left()
    session = SplitSession(sides, settings, should_stop=lambda: len(session.steps[0]) >= 9)
    with session:
        session.open(LinkSpec())
        with pytest.raises(Cancelled) as caught:
            run(session, tasks["pipeline"], 60.0)
        told = session.failure(caught.value)
    assert (told.error, told.side) == ("stopped", "")
    assert len(told.steps[0]) >= 9
    assert _left() == before


def test_an_interpreter_that_is_not_there_is_told_in_one_line(sides, settings, tasks) -> None:
    before = _left()
    told = verify(tasks["data"], (sides[0], replace(sides[1], interpreter="/nowhere/python")), settings, 1.0)
    assert isinstance(told, SplitFailure)
    assert told.error.startswith("got no process from /nowhere/python")
    assert _left() == before


def test_a_runtime_that_cannot_be_a_side_is_told_in_one_line(sides, settings, tasks) -> None:
    told = verify(tasks["data"], (replace(sides[0], runtime="mxnet", models=""), sides[1]), settings, 1.0)
    assert isinstance(told, SplitFailure)
    assert told.error == "got mxnet as a side of a split; expected jax, torch or TensorFlow; choose one of these"


COORDINATOR = """
import json, sys
from pathlib import Path
from core.settings import Settings
from probes.split.run import run
from probes.split.session import SplitSession
from probes.split.words import LinkSpec, SideSpec, SplitTask
from core.codec import from_json
task, sides, home, transport = (json.loads(a) for a in sys.argv[1:])
sides = tuple(from_json(SideSpec, json.dumps(s)) for s in sides)
def told():
    if len(session.steps[0]) >= 5:
        print(*(h.process.pid for h in session._handles), flush=True)
    return False
session = SplitSession(sides, Settings(Path(home), "", "", leases=Path(home)), should_stop=told)
with session:
    session.open(LinkSpec(transport))
    run(session, from_json(SplitTask, json.dumps(task)), 60.0)
"""


@pytest.mark.parametrize("transport", ["memory", "grpc"])
def test_when_the_coordinator_is_killed_no_side_lives_on(sides, tasks, tmp_path, transport) -> None:
    before = _left()
    arguments = [json.dumps(a) for a in (to_plain(tasks["pipeline"]), to_plain(sides), str(tmp_path), transport)]
    with subprocess.Popen(
        [sys.executable, "-c", COORDINATOR, *arguments], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        pids = [int(pid) for pid in process.stdout.readline().split()]
        lives = [psutil.Process(pid) for pid in pids]
        process.kill()
    _, alive = psutil.wait_procs(lives, timeout=10)
    assert len(pids) == 2
    assert alive == []
    assert _left() == before
