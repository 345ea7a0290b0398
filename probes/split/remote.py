"""Bytes between two sides on two hosts: one gRPC call that streams both ways, behind a secret.

The side that serves takes one caller, who must show the secret that the coordinator gave to both over their private pipes. The
port goes with the process. gRPC is imported inside functions: within a host no side needs it.
"""

import hmac
import threading
from collections.abc import Iterator
from queue import SimpleQueue
from typing import Any, cast

from core.errors import WorkerError, one_line
from probes.split.streams import gone

SERVICE, METHOD = "tandem.Split", "Join"
CHUNK_BYTES = 2**20
CONNECT_S = 30.0
WAITING_CHUNKS = 8
"""Taken before they are sent on: a writer waits for room, as for that of a ring."""
KEY = "tandem-key"
_OPTIONS = (
    ("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1), ("grpc.so_reuseport", 0),
    ("grpc.enable_http_proxy", 0),
)  # fmt: skip


class GrpcStream:
    """One side's end of a streaming call; see `probes.split.streams.Stream`."""

    def __init__(self) -> None:
        self._outgoing: SimpleQueue[bytes | None] = SimpleQueue()
        self._room = threading.Semaphore(WAITING_CHUNKS)
        self._incoming: Iterator[bytes] = iter(())
        self._ready, self._closed = threading.Event(), threading.Event()
        self._rest = memoryview(b"")
        self._close: Any = None

    def attach(self, incoming: Iterator[bytes], close: Any) -> None:
        """Take the chunks that come in, and what ends the call."""
        self._incoming, self._close = incoming, close
        self._ready.set()

    def outgoing(self) -> Iterator[bytes]:
        """Yield the chunks that go out until the stream is closed."""
        while (chunk := self._outgoing.get()) is not None:
            self._room.release()
            yield chunk

    def write(self, data: memoryview) -> None:
        """Send all bytes; raises WorkerError when the other side is gone."""
        for at in range(0, len(data), CHUNK_BYTES):
            while not self._room.acquire(timeout=0.5):
                if self._closed.is_set():
                    raise gone()
            if self._closed.is_set():
                raise gone()
            self._outgoing.put(bytes(data[at : at + CHUNK_BYTES]))

    def read_into(self, target: memoryview) -> None:
        """Fill `target`; raises WorkerError when the other side is gone."""
        import grpc

        while not self._ready.wait(0.5):
            if self._closed.is_set():
                raise gone()
        at = 0
        while at < len(target):
            if not len(self._rest):
                try:
                    self._rest = memoryview(next(self._incoming))
                except (StopIteration, grpc.RpcError):
                    self._closed.set()
                    raise gone() from None
            part = min(len(target) - at, len(self._rest))
            target[at : at + part] = self._rest[:part]
            self._rest, at = self._rest[part:], at + part

    def close(self) -> None:
        """Wake whoever waits, here and there; may be called twice."""
        self._closed.set()
        self._outgoing.put(None)
        if self._close is not None:
            self._close()


class GrpcServer:
    """A port for one caller.

    Args:
        host: address to listen at; the port is the system's choice.
        secret: that the caller must show.

    Raises:
        WorkerError: nothing can listen there.
    """

    def __init__(self, host: str, secret: str) -> None:
        from concurrent.futures import ThreadPoolExecutor

        import grpc

        self._secret = secret
        self._stream = GrpcStream()
        self._taken = threading.Lock()
        self._server = grpc.server(ThreadPoolExecutor(max_workers=2), options=list(_OPTIONS))
        handler = cast("Any", grpc).stream_stream_rpc_method_handler(self._join)
        self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, {METHOD: handler}),))
        try:
            self.port = int(self._server.add_insecure_port(f"{host}:0"))
        except RuntimeError as error:
            raise WorkerError(
                one_line(f"got no port at {host}: {error}; expected an address of this host; give another")
            ) from None
        self._server.start()

    def stream(self) -> GrpcStream:
        """Return this side's end; reading from it waits for the caller."""
        return self._stream

    def _join(self, incoming: Iterator[bytes], context: Any) -> Iterator[bytes]:
        import grpc

        told = dict(context.invocation_metadata()).get(KEY, "")
        if not hmac.compare_digest(told.encode(), self._secret.encode()):
            context.abort(grpc.StatusCode.UNAUTHENTICATED, "the secret is another")
        if not self._taken.acquire(blocking=False):
            context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "the other side is there already")
        context.add_callback(self._stream.close)
        self._stream.attach(incoming, lambda: self._server.stop(None))
        yield from self._stream.outgoing()


def connect(address: str, secret: str) -> GrpcStream:
    """Return this side's end of a call to a server.

    Args:
        address: HOST:PORT.
        secret: to be shown.

    Raises:
        WorkerError: nobody answers there.
    """
    import grpc

    channel = grpc.insecure_channel(address, options=list(_OPTIONS))
    try:
        grpc.channel_ready_future(channel).result(timeout=CONNECT_S)
    except grpc.FutureTimeoutError:
        channel.close()
        raise WorkerError(f"got no answer from {address}; expected the other side; see whether a firewall is between") from None
    stream = GrpcStream()
    call = cast("Any", channel).stream_stream(f"/{SERVICE}/{METHOD}")(stream.outgoing(), metadata=((KEY, secret),))
    stream.attach(iter(call), channel.close)
    return stream
