"""Environments of their own: whole or not at all, keyed by what they hold, one build at a time, removable."""

import os
import shutil
import subprocess
import threading
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest
from filelock import FileLock

from catalog import EnvironmentSpec, environment_spec, environment_specs, runtime_specs
from core.device import Device
from core.errors import BadInput, NotFound, StoreError
from probes import environments
from probes.environments import Built, Environments
from probes.runtimes import installed_runtimes
from probes.usability import usable_by

pytestmark = pytest.mark.slow

SPEC = replace(environment_spec("mxnet"), disk_bytes=1.0)
CPU = Device("cpu:0", "cpu", "test", "cpu-test", 24 * 2**30, 2)


Listing = Callable[..., list[str]]


class Made(NamedTuple):
    """A repository with a tiny wheel, a home, and the environment that was built from them."""

    root: Path
    home: Path
    built: Built
    told: list[str]


def _repository(root: Path, source: str, version: str = "1.9.1") -> Path:
    """Write requirements that name one wheel of ours, which holds `mxnet.py` with the given source."""
    root.mkdir(parents=True, exist_ok=True)
    lead = f"mxnet-{version}"
    wheel = root / f"{lead}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as file:
        file.writestr("mxnet.py", source)
        file.writestr(f"{lead}.dist-info/METADATA", f"Metadata-Version: 2.1\nName: mxnet\nVersion: {version}\n")
        file.writestr(f"{lead}.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        file.writestr(f"{lead}.dist-info/RECORD", f"mxnet.py,,\n{lead}.dist-info/METADATA,,\n")
    shutil.copytree(environments.ROOT / "requirements", root / "requirements", dirs_exist_ok=True)
    (root / SPEC.requirements).write_text(f"# mxnet=={version}\n{wheel}\n", encoding="utf-8")
    return root


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    folder = tmp_path_factory.mktemp("made")
    root, told = _repository(folder / "repository", "answer = 42"), []
    built = Environments(folder / "home", root).build(SPEC, told.append)
    return Made(root, folder / "home", built, told)


def _stand_in(made: Made, place: Path) -> None:
    """Put an environment there that tells the same as the one that was built, and runs its Python."""
    (place / "bin").mkdir(parents=True)
    (place / "bin" / "python").symlink_to(made.built.interpreter.resolve())
    (place / environments.READY).write_bytes((made.built.folder / environments.READY).read_bytes())


@pytest.fixture
def rests(made: Made) -> Listing:
    """Return a function that lists what lies beside the environment, locks aside."""

    def listed(home: Path = made.home) -> list[str]:
        return sorted(path.name for path in (home / "runtimes").iterdir() if path.suffix != ".lock")

    return listed


def test_a_built_environment_runs_its_modules_and_tells_its_versions(made: Made, rests: Listing) -> None:
    command = [str(made.built.interpreter), "-c", "import mxnet; print(mxnet.answer)"]
    assert subprocess.run(command, capture_output=True, check=True).stdout.strip() == b"42"
    assert ("mxnet", "1.9.1") in made.built.versions
    assert made.built.size_bytes > 1e6
    assert rests() == [made.built.folder.name]
    assert "importing mxnet" in made.told


def test_it_is_found_again_and_not_built_twice(made: Made) -> None:
    told: list[str] = []
    again = Environments(made.home, made.root)
    assert again.find(SPEC) == made.built == again.build(SPEC, told.append)
    assert not told


def test_its_runtime_starts_from_it(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    own = Environments(made.home, made.root)
    monkeypatch.setattr("probes.runtimes.Environments", lambda _home: own)
    runtime = next(r for r in installed_runtimes((), made.home) if r.id == "mxnet")
    assert (runtime.installed, runtime.interpreter) == (True, str(made.built.interpreter))
    assert runtime.versions == (("mxnet", "1.9.1"),)


def test_other_pins_are_another_environment(made: Made, tmp_path: Path) -> None:
    other = _repository(tmp_path / "repository", "answer = 43", "1.9.2")
    assert Environments(made.home, other).find(SPEC) is None


def test_modules_that_cannot_be_imported_leave_nothing_behind(tmp_path: Path, rests: Listing) -> None:
    root = _repository(tmp_path / "repository", "raise RuntimeError('numpy has no attribute bool')")
    with pytest.raises(StoreError, match=r"numpy has no attribute bool.*nothing was left behind"):
        Environments(tmp_path / "home", root).build(SPEC, lambda _line: None)
    assert rests(tmp_path / "home") == []


def test_packages_that_cannot_be_found_are_told_in_one_line(tmp_path: Path, rests: Listing) -> None:
    root = _repository(tmp_path / "repository", "")
    (root / SPEC.requirements).write_text("/no/such/wheel.whl\n", encoding="utf-8")
    with pytest.raises(StoreError, match=r"wheel\.whl") as raised:
        Environments(tmp_path / "home", root).build(SPEC, lambda _line: None)
    assert "\n" not in str(raised.value)
    assert rests(tmp_path / "home") == []


def test_too_little_space_is_told_before_anything_is_made(tmp_path: Path, rests: Listing) -> None:
    root = _repository(tmp_path / "repository", "")
    with pytest.raises(BadInput, match=r"free at .*TANDEM_HOME"):
        Environments(tmp_path / "home", root).build(replace(SPEC, disk_bytes=1e18), lambda _line: None)
    assert rests(tmp_path / "home") == []


def test_a_python_that_no_package_is_built_for_is_named(tmp_path: Path) -> None:
    root = _repository(tmp_path / "repository", "")
    old = replace(SPEC, python_from=(3, 1), python_to=(3, 2))
    with pytest.raises(BadInput, match=r"Python 3\.1 to 3\.2 for mxnet"):
        Environments(tmp_path / "home", root).build(old, lambda _line: None)


def test_what_a_killed_build_left_is_swept_and_a_running_one_is_not(tmp_path: Path, rests: Listing) -> None:
    own = Environments(tmp_path, _repository(tmp_path / "repository", ""))
    for name in ("dead.building", "gone.removing", "alive.building"):
        (own.folder / name / "lib").mkdir(parents=True)
    with FileLock(own.folder / "alive.lock"):
        own.sweep()
        assert rests(tmp_path) == ["alive.building"]
    own.sweep()
    assert rests(tmp_path) == []


def test_a_second_builder_waits_for_the_first(made: Made, tmp_path: Path) -> None:
    home, told, waits = tmp_path / "home", [], threading.Event()
    own = Environments(home, made.root)
    place = home / "runtimes" / made.built.folder.name
    place.parent.mkdir(parents=True)

    def tell(line: str) -> None:
        told.append(line)
        waits.set()

    with FileLock(place.with_suffix(".lock")):
        second = threading.Thread(target=own.build, args=(SPEC, tell))
        second.start()
        assert waits.wait(30)
        assert told == ["another process builds it; waiting"]
        _stand_in(made, place)
    second.join(60)
    assert told == ["another process builds it; waiting"]


@pytest.mark.parametrize("start", ["as it is", "relative", "through a link"])
def test_one_that_a_process_runs_from_stays(start: str, made: Made, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(made.built.folder)
    program, cwd = {
        "as it is": (str(made.built.interpreter), None),
        "relative": ("./bin/python", made.built.folder),
        "through a link": (str(link / "bin" / "python"), None),
    }[start]
    sleeper = subprocess.Popen([program, "-c", "input()"], stdin=subprocess.PIPE, cwd=cwd)
    try:
        with pytest.raises(BadInput, match=f"in use by process {sleeper.pid}"):
            Environments(made.home, made.root).remove(SPEC)
    finally:
        sleeper.communicate(b"\n")
    assert made.built.interpreter.exists()


def test_a_shell_that_only_stands_in_it_does_not_run_from_it(made: Made) -> None:
    bystander = subprocess.Popen(["cat"], stdin=subprocess.PIPE, cwd=made.built.folder / "lib")
    try:
        assert bystander.pid not in environments._users(made.built.folder)
    finally:
        bystander.communicate()


def test_one_that_is_removed_is_gone(tmp_path: Path, made: Made, rests: Listing) -> None:
    own = Environments(tmp_path, made.root)
    _stand_in(made, own.folder / made.built.folder.name)
    assert own.remove(SPEC) >= (made.built.folder / environments.READY).stat().st_size
    assert rests(tmp_path) == []
    with pytest.raises(BadInput, match="not built"):
        own.remove(SPEC)


@pytest.mark.parametrize("damage", ["bin/python", environments.READY])
def test_a_damaged_one_is_not_there_for_probes_and_can_be_removed(
    damage: str, tmp_path: Path, made: Made, rests: Listing
) -> None:
    own = Environments(tmp_path, made.root)
    place = own.folder / made.built.folder.name
    _stand_in(made, place)
    (place / damage).unlink()
    assert own.find(SPEC) is None
    own.remove(SPEC)
    assert rests(tmp_path) == []


def test_a_damaged_one_is_built_anew(tmp_path: Path, made: Made, rests: Listing) -> None:
    own = Environments(tmp_path, made.root)
    place = own.folder / made.built.folder.name
    _stand_in(made, place)
    (place / "bin" / "python").unlink()
    (place / "remains").touch()
    assert own.build(SPEC, lambda _line: None).folder == place
    assert not (place / "remains").exists()
    assert rests(tmp_path) == [place.name]


def test_a_folder_that_cannot_be_used_is_named_in_one_line(tmp_path: Path, made: Made) -> None:
    own = Environments(tmp_path, made.root)
    own.folder.write_text("a file", encoding="utf-8")
    with pytest.raises(BadInput, match=r"File exists for .*runtimes; expected a folder"):
        own.build(SPEC, lambda _line: None)
    own.folder.unlink()
    own.folder.with_suffix("").mkdir()
    (own.folder / made.built.folder.name).with_suffix(".lock").mkdir()
    with pytest.raises(BadInput, match=r"\.lock; expected a folder"):
        own.build(SPEC, lambda _line: None)


@pytest.mark.parametrize("spec", environment_specs().values(), ids=lambda spec: spec.id)
def test_an_environment_of_the_catalog_pins_what_it_installs(spec: EnvironmentSpec) -> None:
    lines = (environments.ROOT / spec.requirements).read_text(encoding="utf-8").splitlines()
    packages = [line for line in lines if line and not line.startswith("#")]
    assert packages
    assert all("==" in line for line in packages)
    assert set(spec.runtimes) <= set(runtime_specs())
    assert spec.python_from <= spec.python_to


def test_an_unknown_environment_names_those_there_are() -> None:
    with pytest.raises(NotFound, match="torch-xla"):
        environment_spec("torch-xlaa")


def test_a_runtime_without_its_environment_says_how_to_build_it(tmp_path: Path) -> None:
    runtimes = installed_runtimes((), tmp_path)
    remedies = {pair.runtime: (pair.reason, pair.remedy) for pair in usable_by((CPU,), runtimes)}
    assert remedies["mxnet"][1] == "./tandem runtimes install mxnet"
    assert remedies["torch-xla"][1] == "./tandem runtimes install torch-xla"
    assert remedies["torch-tpu"] == ("TorchTPU runs on a TPU alone, and this is a CPU", "")
    assert os.sep not in remedies["jax"][0]
