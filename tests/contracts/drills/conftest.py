"""What the drills share: a canary, a path that must stay empty, a listener that nobody may call, and a look round afterwards."""

import socket
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest

from core.errors import BadInput
from intake.sandbox import ReaderFault, Stopped
from services.context import context
from tests.samples.hostile_models.parts import REFUSED, Target

WORDS = "canary words that nothing may tell"
_WATCHED = frozenset({"pickle.find_class", "os.system", "subprocess.Popen", "socket.connect", "os.exec", "os.posix_spawn"})


@dataclass
class Seen:
    """What the portal's own process did, as Python tells it."""

    on: bool = False
    events: list[str] = field(default_factory=list[str])


SEEN = Seen()


def _hook(event: str, arguments: tuple[object, ...]) -> None:
    # the sandbox starts its worker by subprocess, with this interpreter: all else is the file's doing
    if SEEN.on and event in _WATCHED and not (event == "subprocess.Popen" and arguments[0] == sys.executable):
        SEEN.events.append(f"{event} {arguments!r:.200}")


@pytest.fixture(scope="session", autouse=True)
def audited() -> None:
    """Have Python tell of pickles, programs and connections of this process; a hook cannot be taken away again."""
    sys.addaudithook(_hook)


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    """Return what hostile files aim at, and see afterwards that nothing reached it."""
    room = tmp_path_factory.mktemp("target")
    scratch = tmp_path_factory.mktemp("scratch")
    canary = room / "canary"
    canary.write_text(WORDS)
    with pytest.MonkeyPatch.context() as patch, socket.create_server(("127.0.0.1", 0)) as listener:
        patch.setattr(tempfile, "tempdir", str(scratch))
        yield Target(canary, room / "absent", listener.getsockname()[1])
        listener.setblocking(False)
        with pytest.raises(BlockingIOError):
            listener.accept()
    assert canary.read_text() == WORDS
    assert [one.name for one in room.iterdir()] == ["canary"]
    assert list(scratch.iterdir()) == []


@pytest.fixture
def untouched(tandem_home: Path, target: Target) -> Iterator[None]:
    """See that a drill leaves no process, no file in the data folder, and nothing that the portal would not do by itself."""
    context()  # makes the database
    before, here = {one.pid for one in psutil.Process().children(recursive=True)}, _files(tandem_home)
    folder = Path.cwd()
    SEEN.events, SEEN.on = [], True
    yield
    SEEN.on = False
    assert SEEN.events == []
    assert {one.pid for one in psutil.Process().children(recursive=True)} <= before
    assert _files(tandem_home) == here
    assert Path.cwd() == folder
    assert not target.absent.exists()


def _files(home: Path) -> set[Path]:
    return {one for one in home.rglob("*") if one.is_file()}


def fair(error: BadInput) -> tuple[str, str]:
    """Return a refusal in words; what a reader has no words for, or tried and was denied, is none and is raised again."""
    if isinstance(error, ReaderFault) or (isinstance(error, Stopped) and error.limit == "denied"):
        raise error
    return REFUSED, str(error)
