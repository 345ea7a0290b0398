"""A second process of a worker: a rank of a process group, or the far end of a hand-off. It dies with its worker.

`python -m probes.partner PARENT READ_FD WRITE_FD`: one JSON document a line. The first says what to be; what follows is up to the
role. The worker that starts it is its parent and is in the same process group, so the launcher's kill reaches both.
"""

import json
import os
import select
import subprocess
import sys
from collections.abc import Iterator, Mapping
from typing import IO, Any, cast

from core.errors import WorkerError, one_line
from probes.backends import backend_module
from probes.environment import ROOT
from probes.process import die_with_parent, first_to_be_killed

ANSWER_S = 60.0
Said = dict[str, Any]


class Partner:
    """The parent's side of one partner.

    Args:
        interpreter: Python that runs it.
        environment: complete.
        role: first message.
        keep: file descriptors that it may use.
    """

    def __init__(self, interpreter: str, environment: Mapping[str, str], role: Said, keep: tuple[int, ...] = ()) -> None:
        read_end, write_end = os.pipe()
        answer_end, reply_end = os.pipe()
        try:
            self.process = subprocess.Popen(  # noqa: S603 - our own module, in the interpreter of a runtime
                [interpreter, "-m", "probes.partner", str(os.getpid()), str(read_end), str(reply_end)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=dict(environment),
                cwd=ROOT,
                pass_fds=(read_end, reply_end, *keep),
            )
        finally:
            os.close(read_end)
            os.close(reply_end)
        self._requests, self._answers = os.fdopen(write_end, "wb", 0), os.fdopen(answer_end, "rb", 0)
        self._rest = b""
        self.tell(role)

    def tell(self, message: Said) -> None:
        """Send one message without waiting; raises WorkerError when the partner is gone."""
        try:
            self._requests.write(json.dumps(message).encode() + b"\n")
        except OSError:
            raise WorkerError("got no partner process to talk to; expected it to live; see what else uses memory here") from None

    def hear(self, limit_s: float = ANSWER_S) -> Said:
        """Wait for one answer.

        Raises:
            WorkerError: it ended, took too long, or told an error.
        """
        while b"\n" not in self._rest:
            ready, _, _ = select.select([self._answers], [], [], limit_s)
            part = os.read(self._answers.fileno(), 2**16) if ready else b""
            if not part:
                what = "an end" if ready else f"no answer within {limit_s:.0f} s"
                raise WorkerError(f"got {what} from the partner process; expected an answer; run the probe again")
            self._rest += part
        line, _, self._rest = self._rest.partition(b"\n")
        answer: Said = json.loads(line)
        if "error" in answer:
            raise WorkerError(one_line(f"the partner process failed: {answer['error']}"))
        return answer

    def close(self) -> None:
        """End it; may be called twice."""
        self._requests.close()
        try:
            self.process.wait(timeout=2)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._answers.close()


def main(parent: int, read_fd: int, write_fd: int) -> None:
    """Be what the first message says until the pipe closes."""
    die_with_parent(parent)
    first_to_be_killed()
    with os.fdopen(read_fd, "rb") as requests, os.fdopen(write_fd, "wb", 0) as replies:
        messages = (cast("Said", json.loads(line)) for line in requests)
        role = next(messages, None)
        if role is None:
            return
        try:
            {"rank": _be_rank, "receiver": _be_receiver}[role["role"]](role, messages, replies)
        except Exception as error:  # noqa: BLE001 - outermost frame of a worker process: whatever a framework throws becomes data
            say(replies, {"error": one_line(f"{type(error).__name__}: {error}")})


def say(replies: IO[bytes], answer: Said) -> None:
    """Answer with one line."""
    replies.write(json.dumps(answer).encode() + b"\n")


def _be_rank(role: Said, messages: Iterator[Said], replies: IO[bytes]) -> None:
    from probes.backends.torch_system import Rank

    rank = Rank(role["device_kind"], role["rank"], role["ranks"], role["rendezvous"])
    say(replies, {"ok": True})
    for message in messages:
        rank.follow(message)
        if message.get("answer"):
            say(replies, {"ok": True})
    rank.close()


def _be_receiver(role: Said, messages: Iterator[Said], replies: IO[bytes]) -> None:
    """Bring what lies in shared memory onto the device whenever told; copy it back out when asked for proof."""
    from importlib import import_module

    import numpy as np

    backend = backend_module(role["runtime"]).open_backend(role["runtime"], role["device_kind"])
    links = import_module(f"probes.backends.{role['framework']}_system").open_links(backend, role["device_kind"], role["runtime"])
    with os.fdopen(role["file"], "r+b") as file:
        say(replies, {"ok": True})
        for message in messages:
            shared: Any = np.memmap(file, np.float32, "r+", shape=(message["count"],))
            arrived = links.upload(shared)
            if message.get("proof"):
                shared[:] = links.download(arrived) * 2
            say(replies, {"ok": True})
            links.drop(arrived)


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:4]))
