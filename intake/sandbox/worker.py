"""The other side of `intake.sandbox.session`: a process that reads for the portal, one input after the other.

It first moves into namespaces of its own. For each input it forks; the child closes the sandbox around itself, tells what is in
force, imports the libraries that the reader needs, and only then opens the input. What the child does afterwards may be
anything: it has no way out but one pipe, on which the parent takes an answer or nothing. The outer process never looks at an
input; it waits for the child and tells how it ended. The outermost frames of the child are the only place with a broad `except`.
"""

import contextlib
import errno
import json
import os
import select
import signal
import socket
import sys
from dataclasses import asdict
from importlib import import_module
from types import ModuleType
from typing import Any

from core.errors import BadInput, one_line
from intake.sandbox import kernel
from intake.sandbox.closing import close_sandbox, prepare
from intake.sandbox.handed import HandedFile, HandedFolder
from intake.sandbox.limits import Limits
from intake.sandbox.wire import SPARE_BYTES, STATUS, encode, frame

RESERVE_BYTES = 2**20
_OUT_OF_ROOM = (errno.EFBIG, errno.ENOSPC, errno.EDQUOT)


def main(control: int, parent: int) -> None:
    """Serve until the parent closes the control socket.

    Args:
        control: descriptor of the socket on which inputs come and endings are told.
        parent: id of the process that started this one.
    """
    namespaces = kernel.put_apart()
    kernel.die_with_parent()
    if os.getppid() != parent:
        sys.exit(0)
    kernel.first_to_be_killed()
    kernel.adopt_orphans()
    channel = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, fileno=control)
    # the write end is held by this process alone: when it is gone, however that came, those who read know
    life_read, life_write = os.pipe()
    if "pid" in namespaces:
        _start_first_process(channel, life_read, life_write)
    _, handed, _, _ = socket.recv_fds(channel, 1, 1)
    setup: dict[str, Any] = _json_of(handed[0])
    sys.path.extend(setup["paths"])
    reader = import_module(setup["reader"])
    if setup["preload"]:
        _import_libraries(reader, setup["needs"])
    prepare()
    while True:
        asked, descriptors, _, _ = socket.recv_fds(channel, 1, 3)
        if not asked:
            return
        child = os.fork()
        if child == 0:
            channel.close()
            os.close(life_write)
            kernel.die_with_parent()
            if _is_over(life_read):
                os._exit(1)
            os.close(life_read)
            _answer(reader, setup, namespaces, descriptors)
        for descriptor in descriptors:
            os.close(descriptor)
        _, status, used = os.wait4(child, 0)
        channel.sendall(STATUS.pack(status, int((used.ru_utime + used.ru_stime) * 1e6)))


def _start_first_process(channel: socket.socket, life_read: int, life_write: int) -> None:
    """Start the first process of the new namespace, with which all others in it end.

    It waits for the end of the life line and does nothing else: a reader that were the first would be spared its own signals.
    """
    if os.fork() == 0:
        channel.close()
        kernel.die_with_parent()
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        for descriptor in (0, 1, 2, life_write):
            os.close(descriptor)
        os.read(life_read, 1)
        os._exit(0)


def _is_over(life_read: int) -> bool:
    """Return whether the outer process had ended before its end could be asked for."""
    return bool(select.select([life_read], [], [], 0)[0])


def _json_of(descriptor: int) -> Any:
    with os.fdopen(descriptor, "rb") as file:
        file.seek(0)
        return json.load(file)


def _import_libraries(reader: ModuleType, names: list[str]) -> None:
    """Import what the reader needs, in its own way where it has one, since a library may load most of itself on first use."""
    for name in names:
        import_module(name)
    if hasattr(reader, "prepare"):
        reader.prepare()


def _answer(
    reader: ModuleType,
    setup: dict[str, Any],
    namespaces: tuple[str, ...],
    descriptors: list[int],
) -> None:
    """Be the child: close the sandbox, read, answer, end."""
    reserve = bytearray(RESERVE_BYTES)
    code = 1
    try:
        question, answer, given = descriptors
        asked: dict[str, Any] = _json_of(question)
        scratch: str = asked["scratch"]
        os.chdir(scratch)
        os.environ.update(HOME=scratch, TMPDIR=scratch, TORCHINDUCTOR_CACHE_DIR=scratch)
        files = asked["files"]
        source = HandedFile(asked["name"], given) if files is None else HandedFolder(asked["name"], files, given)
        limits, mark = Limits(**setup["limits"]), bytes.fromhex(asked["mark"])
        closed = close_sandbox(limits, scratch, setup["readable"], namespaces, with_folder=files is not None)
        _send(answer, frame(mark, encode(asdict(closed))))
        body = _read(reader, source, asked["options"], setup["needs"], limits)
        del reserve
        _send(answer, frame(mark, body))
        code = 0
    except BaseException as error:  # noqa: BLE001 - the outermost frame: the last words of a child that could not even answer
        with contextlib.suppress(Exception):
            os.write(2, f"{type(error).__name__}: {error}".encode("utf-8", "replace"))
    finally:
        os._exit(code)


def _read(
    reader: ModuleType,
    source: HandedFile | HandedFolder,
    options: dict[str, Any],
    needs: list[str],
    limits: Limits,
) -> bytes:
    """Return what is answered, in whichever way the reader comes to an end."""
    try:
        if needs:
            # the module looks for a folder by making a file and removing it again, and removing is denied
            setattr(import_module("tempfile"), "tempdir", os.environ["TMPDIR"])  # noqa: B010 - its documented switch
        _import_libraries(reader, needs)
        body = encode({"value": reader.read(source, options)})
        return body if len(body) <= limits.result_bytes + SPARE_BYTES // 2 else encode({"limit": "result"})
    except BadInput as refusal:
        return encode({"refused": [one_line(part) for part in (refusal.got, refusal.expected, refusal.remedy)]})
    except MemoryError:
        return b'{"limit":"memory"}'
    except RecursionError:
        return b'{"refused":["a file nested deeper than can be followed","fewer levels","check the file"]}'
    except OSError as error:
        if error.errno in _OUT_OF_ROOM:
            return b'{"limit":"scratch"}'
        if error.errno == errno.ENOMEM:
            return b'{"limit":"memory"}'
        return _fault(error, "denied" if error.errno in (errno.EPERM, errno.EACCES) else "fault")
    except BaseException as error:  # noqa: BLE001 - the one place: whatever a reader or a library throws is told
        return _fault(error)


def _fault(error: BaseException, kind: str = "fault") -> bytes:
    """Return what is told of an error that a reader should not make: its kind, its text, and where it happened."""
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    where = f" at {last.tb_frame.f_code.co_filename.rpartition('/')[2]}:{last.tb_lineno}" if last else ""
    text = ""
    with contextlib.suppress(Exception):
        text = str(error)
    return encode({kind: one_line(f"{type(error).__name__}: {text}{where}", 300)})


def _send(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
