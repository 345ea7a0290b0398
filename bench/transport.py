"""What carries tensors between two processes of one host: candidates measured side by side, each in its own two processes.

Candidates: the ring of shared memory that Tandem uses within a host, the gRPC stream that it uses between hosts, a socket of
the system with the same framing (that of safetensors), Arrow Flight, and Ray's objects where its environment is installed. Every
message is a float32 vector that the other end holds as an array of its own before it answers with one number; both processes have
a core of their own where there are two (Ray's are where Ray puts them).

Bounds, which are what the choice rests on (docs/decisions/0011-transport-of-tensors.md): from 1 MiB on shared memory moves at
least twice as many bytes a second as gRPC, and gRPC at least half as many as Arrow Flight; exit 0 when they hold. Ray's objects
are told beside them; within a host their store is shared memory too, between hosts it is copied from store to store by gRPC.

Run: `python -m bench.transport [--json] [--quick]`. The machine must be quiet for the figures to mean anything.
"""

import argparse
import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np

from bench.transport_ray import timed
from catalog import environment_spec
from core.errors import WorkerError
from core.settings import settings_from
from core.statistics import median
from probes.environments import Environments
from probes.split.channel import TensorChannel
from probes.split.remote import GrpcServer, connect
from probes.split.streams import MemoryStream, SharedMemory, gone

ROOT = Path(__file__).resolve().parent.parent
SIZES = tuple(2**10 * 8**i for i in range(7))
LARGE_BYTES = 2**20
LIMIT_S = 120.0
SECRET = "bench"
TITLES = {
    "memory": "shared memory", "grpc": "gRPC stream", "socket": "local socket", "flight": "Arrow Flight", "ray": "Ray objects",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Line:
    """One candidate at one size; seconds are one way: a round trip less the least way back; `cpu_s` of the near end."""

    candidate: str
    size_bytes: int
    median_s: float
    samples: int
    cpu_s: float

    @property
    def bytes_per_s(self) -> float:
        """Payload over time."""
        return self.size_bytes / self.median_s


class SocketStream:
    """Bytes over a connected socket; see `probes.split.streams.Stream`."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end

    def write(self, data: memoryview) -> None:
        """Send all bytes."""
        self._end.sendall(data)

    def read_into(self, target: memoryview) -> None:
        """Fill `target`."""
        while len(target):
            got = self._end.recv_into(target)
            if not got:
                raise gone()
            target = target[got:]

    def close(self) -> None:
        """Wake whoever waits."""
        try:
            self._end.shutdown(socket.SHUT_RDWR)
        except OSError:
            return
        finally:
            self._end.close()


def pin(index: int) -> None:
    """Keep this process on a core of its own where there are enough."""
    if hasattr(os, "sched_setaffinity"):
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {cores[index % len(cores)]})


def far_end(kind: str, arguments: list[str]) -> None:
    """Receive vectors and answer each until the near end goes."""
    pin(1)
    if kind == "flight":
        flight_server()
        return
    channel = TensorChannel(far_stream(kind, arguments))
    with suppress(WorkerError):  # the near end goes when it has measured
        while True:
            message = channel.receive("vector")
            channel.send("answer", [np.array([message.arrays[0].size], np.int64)])


def far_stream(kind: str, arguments: list[str]) -> Any:
    """Return the far end's stream, having said on stdout where it is where that is not known."""
    numbers = [int(argument) for argument in arguments]
    if kind == "memory":
        return MemoryStream(1, (numbers[0], numbers[1], numbers[2]))
    if kind == "socket":
        return SocketStream(socket.socket(fileno=numbers[0]))
    server = GrpcServer("127.0.0.1", SECRET)
    print(server.port, flush=True)
    return server.stream()


def flight_server() -> None:
    """Serve Arrow Flight: each batch that is written is read to an array and answered with its length."""
    from pyarrow import flight

    class Server(cast("Any", flight).FlightServerBase):
        """Answers each record batch."""

        def do_exchange(self, _context: Any, _descriptor: Any, reader: Any, writer: Any) -> None:
            """Read every batch, copy its column out, and answer with its length."""
            for chunk in reader:
                values = np.array(chunk.data.column(0).to_numpy(zero_copy_only=True))
                writer.write_metadata(str(values.size).encode())

    server = Server("grpc://127.0.0.1:0")
    print(server.port, flush=True)
    server.serve()


def start(kind: str, arguments: list[str], keep: tuple[int, ...]) -> subprocess.Popen[str]:
    """Start the far end."""
    command = [sys.executable, "-m", "bench.transport", "--far", kind, *arguments]
    return subprocess.Popen(command, cwd=ROOT, pass_fds=keep, stdout=subprocess.PIPE, text=True)


def address_of(process: "subprocess.Popen[str]") -> str:
    """Return where a far end says that it serves."""
    assert process.stdout is not None
    return f"127.0.0.1:{int(process.stdout.readline())}"


def near_end(kind: str) -> tuple[Callable[[Any], int], Callable[[], None]]:
    """Return a call that sends a vector and returns the length that the far end answers, and what ends both."""
    if kind == "flight":
        return near_flight()
    if kind == "memory":
        memory = SharedMemory()
        ends = memory.ends(1)
        process = start(kind, [str(end) for end in ends], ends)
        stream: Any = MemoryStream(0, cast("tuple[int, int, int]", tuple(os.dup(end) for end in memory.ends(0))))
        memory.close()
    elif kind == "socket":
        mine, other = socket.socketpair()
        process = start(kind, [str(other.fileno())], (other.fileno(),))
        other.close()
        stream = SocketStream(mine)
    else:
        process = start(kind, [], ())
        stream = connect(address_of(process), SECRET)
    channel = TensorChannel(stream)

    def trip(values: Any) -> int:
        channel.send("vector", [values])
        return int(channel.receive("answer", LIMIT_S).arrays[0][0])

    def close() -> None:
        channel.close()
        process.kill()
        process.communicate()

    return trip, close


def near_flight() -> tuple[Callable[[Any], int], Callable[[], None]]:
    """Return the same for Arrow Flight: one exchange that lasts, a record batch of one column each time."""
    import pyarrow as pa
    from pyarrow import flight

    arrow, flights = cast("Any", pa), cast("Any", flight)
    process = start("flight", [], ())
    client = flights.connect(f"grpc://{address_of(process)}")
    schema = arrow.schema([("values", arrow.float32())])
    writer, reader = client.do_exchange(flights.FlightDescriptor.for_command(b"vector"))
    writer.begin(schema)

    def trip(values: Any) -> int:
        writer.write_batch(arrow.record_batch([arrow.array(values)], schema))
        return int(reader.read_chunk().app_metadata.to_pybytes())

    def close() -> None:
        writer.close()
        client.close()
        process.kill()
        process.communicate()

    return trip, close


def measure(kind: str, sizes: tuple[int, ...]) -> list[Line]:
    """Return every size of one candidate; nothing where Ray is not there."""
    if kind == "ray":
        return lines_of(kind, by_ray(sizes))
    trip, close = near_end(kind)
    try:
        return lines_of(kind, [(size, *timed(trip, size // 4)) for size in (4, *sizes)])
    finally:
        close()


def lines_of(kind: str, told: list[tuple[int, list[float], float]]) -> list[Line]:
    """Return lines of (bytes, seconds there and back, processor seconds), the least message first."""
    if not told:
        return []
    (_, empty, _), *rest = told
    back_s = min(empty) / 2
    first = Line(kind, 4, median(empty) / 2, len(empty), 0.0)
    return [first, *(Line(kind, size, median(taken) - back_s, len(taken), cpu_s) for size, taken, cpu_s in rest)]


def by_ray(sizes: tuple[int, ...]) -> list[tuple[int, list[float], float]]:
    """Return what Ray's objects take, measured in the environment that holds it; nothing where it is not there."""
    settings = settings_from(os.environ)
    built = Environments(settings.home).find(environment_spec("ray"))
    python = dict(settings.interpreters).get("ray") or (str(built.interpreter) if built else None)
    if python is None:
        return []
    command = [python, "-m", "bench.transport_ray", *(str(size) for size in sizes)]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True)
    return [(int(size), taken, cpu_s) for size, taken, cpu_s in json.loads(done.stdout.splitlines()[-1])]


def verdict(lines: list[Line]) -> tuple[bool, str]:
    """Return whether the bounds hold, and the line that says so with the figures."""
    rates = {(line.candidate, line.size_bytes): line.bytes_per_s for line in lines if line.size_bytes >= LARGE_BYTES}
    sizes = sorted({size for _, size in rates})
    over_grpc = min(rates["memory", size] / rates["grpc", size] for size in sizes)
    over_flight = min(rates["grpc", size] / rates["flight", size] for size in sizes)
    holds = over_grpc >= 2 and over_flight >= 0.5
    words = (
        f"shared memory at least {over_grpc:.1f} times gRPC (bound 2), gRPC at least {over_flight:.2f} times Flight (bound 0.5)"
    )
    return holds, f"{'holds' if holds else 'FALLS SHORT'}: {words}, from 1 MiB on"


def table(lines: list[Line]) -> str:
    """Return GB/s by size and candidate, and the latency of a message of four bytes."""
    kinds = [kind for kind in TITLES if any(line.candidate == kind for line in lines)]
    found = {(line.candidate, line.size_bytes): line for line in lines}
    rows = [f"{'one way':>12}" + "".join(f"{TITLES[kind]:>16}" for kind in kinds)]
    rows.append(f"{'4 B':>12}" + "".join(f"{found[kind, 4].median_s * 1e6:>13.0f} us" for kind in kinds))
    for size in sorted({size for _, size in found if size > 4}):
        name = f"{size // 2**20} MiB" if size >= 2**20 else f"{size // 2**10} KiB"
        rows.append(f"{name:>12}" + "".join(f"{found[kind, size].bytes_per_s / 1e9:>11.3f} GB/s" for kind in kinds))
    rows.append("processor time of the sending end for each gigabyte, in seconds:")
    for size in sorted({size for _, size in found if size >= LARGE_BYTES}):
        rows += [f"{size // 2**20:>8} MiB" + "".join(f"{found[kind, size].cpu_s / size * 1e9:>16.3f}" for kind in kinds)]
    return "\n".join(rows)


def main() -> int:
    """Measure, print, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quick", action="store_true", help="up to 4 MiB only")
    parser.add_argument("--far", nargs="+", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.far:
        far_end(asked.far[0], asked.far[1:])
        return 0
    pin(0)
    sizes = tuple(size for size in SIZES if not asked.quick or size <= 2**22)
    lines = [line for kind in TITLES for line in measure(kind, sizes)]
    holds, words = verdict(lines)
    if asked.json:
        print(json.dumps({"schema_version": 1, "holds": holds, "lines": [asdict(line) for line in lines]}))
    else:
        print(table(lines))
        print(words)
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
