"""Drills: what is drawn, what the checks find, and that the moved clock moves."""

import os
import subprocess
import sys
from pathlib import Path

from filelock import FileLock

from bench.compiled import build
from bench.drill import Result, verdict
from bench.drills.faults import FAULTS, TARGETS, Drill, drills, strike_at
from bench.drills.scene import fill, harmed, held_leases, marked_pids
from core.run import FINAL_STATES

CLOCK = (
    "import sqlite3, time; print(time.time(), time.monotonic()); "
    "print(sqlite3.connect(':memory:').execute('select unixepoch()').fetchone()[0])"
)
MAKE = (
    "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute('create table t (x)'); "
    "c.executemany('insert into t values (?)', [('y' * 900,)] * 90); c.commit()"
)


_BY_TARGET = {fault.target: fault for fault in FAULTS}


def _result(fault: str, *findings: str, struck: bool = True) -> Result:
    return Result(fault, 1.0, struck, "done", 3, 4, 4.0, 5.0, findings)


def test_every_fault_has_a_target_and_ends_in_a_final_state() -> None:
    assert {fault.target for fault in FAULTS} == set(TARGETS)
    assert all(set(fault.states) <= set(FINAL_STATES) for fault in FAULTS)
    assert len({fault.name for fault in FAULTS}) == len(FAULTS)


def test_equal_seeds_give_equal_drills_and_every_fault_is_drilled() -> None:
    assert drills(60, 7) == drills(60, 7)
    assert drills(60, 7) != drills(60, 8)
    assert {drill.fault for drill in drills(len(FAULTS) + 1, 7)} == set(FAULTS)
    assert len(drills(200, 0)) == 200


def test_faults_strike_after_any_probe_and_a_worker_only_while_probes_are_left() -> None:
    struck = {
        part: {strike_at(Drill(fault, share / 100, False, 0, 0.0), 4)[0] for share in range(100)}
        for part, fault in _BY_TARGET.items()
    }
    assert struck["worker"] == {0, 1, 2, 3}
    assert struck["run"] == struck["supervisor"] == struck["disk"] == {0, 1, 2, 3, 4}
    assert 0.1 < sum(drill.starting for drill in drills(200, 0)) / 200 < 0.4


def test_one_finding_or_a_fault_that_never_strikes_falls_short() -> None:
    assert verdict([_result("run: KILL")], 60.0)[0]
    assert not verdict([_result("run: KILL", "zombie: 1 of parent 2")], 60.0)[0]
    held, said = verdict([_result("run: KILL", struck=False)] * 4, 60.0)
    assert not held
    assert said.endswith("struck too seldom: run: KILL")
    assert not verdict([], 0.0)[0]


def test_a_lease_that_is_held_is_found_and_a_free_one_is_not(tmp_path: Path) -> None:
    lock = tmp_path / "cpu-1.lock"
    with FileLock(lock):
        code = "import sys, pathlib; from bench.drills import scene; print(scene.held_leases(pathlib.Path(sys.argv[1])))"
        done = subprocess.run((sys.executable, "-c", code, str(tmp_path)), capture_output=True, text=True, check=True)
        assert "lease left: cpu-1.lock" in done.stdout
    assert held_leases(tmp_path) == []


def test_a_process_that_carries_a_run_is_found_by_its_environment() -> None:
    command = (sys.executable, "-c", "input()")
    with subprocess.Popen(command, env={**os.environ, "TANDEM_RUN_ID": "abcdef123456"}, stdin=subprocess.PIPE) as process:
        assert marked_pids("abcdef123456") == [process.pid]
        process.communicate()
    assert marked_pids("abcdef123456") == []


def test_a_database_with_damaged_pages_is_found(tmp_path: Path) -> None:
    database = tmp_path / "tandem.db"
    subprocess.run((sys.executable, "-c", MAKE, str(database)), check=True)
    assert harmed(database) == []
    content = bytearray(database.read_bytes())
    content[4096 : 4096 * 3] = b"\xff" * 8192
    database.write_bytes(content)
    assert harmed(database)


def test_filling_stops_where_the_file_system_does(tmp_path: Path) -> None:
    code = (
        "import resource, sys; from pathlib import Path; resource.setrlimit(resource.RLIMIT_FSIZE, (3_000_000, 3_000_000)); "
        "from bench.drills.scene import fill; print(fill(Path(sys.argv[1])).stat().st_size)"
    )
    done = subprocess.run((sys.executable, "-c", code, str(tmp_path)), capture_output=True, text=True, check=True)
    assert int(done.stdout) == 3_000_000
    assert fill.__doc__


def test_the_preloaded_clock_moves_the_wall_clock_and_leaves_the_monotonic_one(tmp_path: Path) -> None:
    library = build("clock_jump.c", tmp_path, "-fPIC", "-shared", "-ldl")
    moved = tmp_path / "clock"
    moved.write_bytes((10**8).to_bytes(8, sys.byteorder, signed=True))
    told: list[list[float]] = []
    for more in ({}, {"LD_PRELOAD": str(library), "CLOCK_JUMP_FILE": str(moved)}):
        environment = {**os.environ, **more}
        done = subprocess.run((sys.executable, "-c", CLOCK), env=environment, capture_output=True, text=True, check=True)
        told.append([float(word) for word in done.stdout.split()])
    (wall, steady, sql), (moved_wall, moved_steady, moved_sql) = told
    assert round((moved_wall - wall) / 10**8, 3) == round((moved_sql - sql) / 10**8, 3) == 1
    assert 0 <= moved_steady - steady < 1000
