"""`./tandem` prepares the environment: once, resumably, one at a time, and cheaply when all is in place.

A copy of the script runs in a small repository of its own, with requirements that need no network.
"""

import fcntl
import os
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parent.parent.parent.parent
COMMAND = "import os, sys; print(os.getcwd(), *sys.argv[1:]); print(sys.path[0])\n"


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("clone") / "a folder with spaces"
    (root / "cli").mkdir(parents=True)
    (root / "requirements").mkdir()
    (root / "cli" / "__init__.py").touch()
    (root / "cli" / "__main__.py").write_text(COMMAND)
    (root / "requirements.txt").write_text("# none\n")
    (root / "requirements" / "test.txt").write_text("# none\n")
    shutil.copy(ROOT / "tandem", root / "tandem")
    first = call(root, "hello")
    assert first.returncode == 0, first.stderr
    assert "installing the portal and the CPU runtimes" in first.stderr
    assert "ready after" in first.stderr
    return root


def call(root: Path, *arguments: str, cwd: Path | None = None, path: str | None = None) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PATH": path or os.environ["PATH"], "PYTHONPATH": ""}
    return subprocess.run(
        [str(root / "tandem"), *arguments], cwd=cwd or root, env=environment,
        capture_output=True, text=True, timeout=120, check=False,
    )


def test_a_second_call_says_and_changes_nothing(repository: Path) -> None:
    def state() -> dict[str, int]:
        return {str(path): path.stat().st_mtime_ns for path in (repository / ".venv").rglob("*")}

    before = state()
    done = call(repository, "hello", "two words")
    assert done.stderr == ""
    assert done.stdout.split("\n")[0].endswith("hello two words")
    assert state() == before


def test_it_runs_where_it_was_called_and_is_not_misled_by_what_lies_there(repository: Path, tmp_path: Path) -> None:
    (tmp_path / "cli").mkdir()
    (tmp_path / "cli" / "__main__.py").write_text("print('the wrong one')\n")
    done = call(repository, cwd=tmp_path)
    assert done.stdout.split("\n")[:2] == [str(tmp_path), str(repository)]


def test_it_may_be_called_through_a_link(repository: Path, tmp_path: Path) -> None:
    link = tmp_path / "tandem"
    link.symlink_to(repository / "tandem")
    done = subprocess.run([str(link), "x"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout.split("\n")[0] == f"{tmp_path} x"


def test_an_interrupted_build_is_carried_on_and_a_half_installed_package_is_taken_out(repository: Path) -> None:
    packages = next((repository / ".venv" / "lib").glob("python3*/site-packages"))
    (packages / "half-1.0.dist-info").mkdir()
    (packages / "half-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: half\nVersion: 1.0\n")
    (repository / ".venv" / ".tandem-base").unlink()
    done = call(repository, "on")
    assert done.returncode == 0, done.stderr
    assert "ready after" in done.stderr
    assert not (packages / "half-1.0.dist-info").exists()
    assert call(repository, "again").stderr == ""


def test_an_environment_that_was_broken_off_before_pip_came_is_made_anew(repository: Path) -> None:
    packages = next((repository / ".venv" / "lib").glob("python3*/site-packages"))
    (repository / ".venv" / ".tandem-base").unlink()
    shutil.rmtree(packages / "pip")
    done = call(repository, "on")
    assert done.returncode == 0, done.stderr
    assert call(repository, "again").stderr == ""


def test_changed_requirements_are_installed_and_compiled_but_for_their_tests(repository: Path, tmp_path: Path) -> None:
    wheel, about = tmp_path / "thing-1.0-py3-none-any.whl", "thing-1.0.dist-info"
    with zipfile.ZipFile(wheel, "w") as file:
        for name in ("thing/__init__.py", "thing/tests/much.py"):
            file.writestr(name, "answer = 42\n")
        file.writestr("thing/python2.py", "print 42\n")
        file.writestr(f"{about}/METADATA", "Metadata-Version: 2.1\nName: thing\nVersion: 1.0\n")
        file.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        file.writestr(f"{about}/RECORD", "thing/__init__.py,,\n")
    (repository / "requirements.txt").write_text(f"{wheel}\n")
    assert "ready after" in call(repository, "x").stderr
    thing = next((repository / ".venv" / "lib").glob("python3*/site-packages/thing"))
    assert [path.name.partition(".")[0] for path in thing.rglob("*.pyc")] == ["__init__"]
    assert call(repository, "x").stderr == ""


def test_the_requirements_of_tests_come_with_the_first_test_only(repository: Path) -> None:
    assert "tests' requirements" not in call(repository, "devices").stderr
    assert "tests' requirements" in call(repository, "test").stderr
    assert call(repository, "check").stderr == ""


def test_a_requirement_that_cannot_be_had_is_one_clear_failure_and_leaves_no_stamp(repository: Path) -> None:
    kept = (repository / "requirements.txt").read_text()
    (repository / "requirements.txt").write_text("./no-such-folder==1\n")
    done = call(repository, "x")
    assert done.returncode == 2
    assert "could not install" in done.stderr.split("\n")[-2]
    assert "then call again" in done.stderr.split("\n")[-2]
    assert call(repository, "x").returncode == 2
    (repository / "requirements.txt").write_text(kept)
    assert call(repository, "x").returncode == 0


def test_a_second_call_waits_for_the_first_and_says_so(repository: Path) -> None:
    (repository / ".venv" / ".tandem-base").unlink()
    folder = os.open(repository, os.O_RDONLY)
    fcntl.flock(folder, fcntl.LOCK_EX)
    command = [str(repository / "tandem"), "x"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as waiting:
        assert waiting.stderr is not None
        assert "waiting for it" in waiting.stderr.readline()
        os.close(folder)
        _, rest = waiting.communicate(timeout=120)
    assert waiting.returncode == 0
    assert "ready after" in rest


def test_without_a_usable_python_it_says_which_one_it_needs(repository: Path, tmp_path: Path) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("bash", "env", "readlink", "sha256sum", "flock", "rm", "grep", "tail", "wc"):
        found = shutil.which(name)
        assert found
        (tools / name).symlink_to(found)
    (tools / "python3").write_text("#!/bin/bash\nexit 1\n")
    (tools / "python3").chmod(0o755)
    clone = tmp_path / "clone"
    shutil.copytree(repository, clone, ignore=shutil.ignore_patterns(".venv"))
    done = call(clone, "x", path=str(tools))
    assert done.returncode == 2
    assert "expected Python 3.11 to 3.13" in done.stderr
    assert not (clone / ".venv").exists()
