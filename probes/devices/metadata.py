"""The slice that a TPU belongs to: environment variables on GKE, else Google's metadata server with a short time limit.

The server is asked by its address, so that a machine without a name server loses no time, and only where a TPU was found or
the firmware says Google. The limit is on the whole exchange: a server that answers byte by byte is cut off as well.
Source: docs.cloud.google.com/compute/docs/metadata, docs.cloud.google.com/kubernetes-engine/docs/how-to/tpus.
"""

import re
import socket
import time
from collections.abc import Mapping
from pathlib import Path

from core.hardware import TpuSlice
from probes.devices.files import read

SERVER = ("169.254.169.254", 80)
PATH = "/computeMetadata/v1/instance/attributes/tpu-env"
LIMIT_S = 1.0
_MOST_BYTES = 2**16
_LINE = re.compile(r"^(\w+)\s*:\s*'?(.*?)'?\s*$", re.MULTILINE)


def looks_like_google(root: Path) -> bool:
    """Return whether the firmware says that this is a machine of Google Cloud."""
    return "google" in read(root / "sys/class/dmi/id/product_name").lower()


def tpu_slice(environ: Mapping[str, str], server: tuple[str, int] = SERVER, limit_s: float = LIMIT_S) -> TpuSlice | str:
    """Return the slice of this host's TPUs, or why it is not known.

    Args:
        environ: variables as in `os.environ`; GKE sets them, and there the server has no such entry.
        server: address and port.
        limit_s: seconds for the whole exchange.
    """
    kind = environ.get("TPU_ACCELERATOR_TYPE", "")
    if kind:
        return TpuSlice(kind, environ.get("TPU_TOPOLOGY", ""), environ.get("TPU_WORKER_ID", ""), "environment (GKE)")
    told = fetch(PATH, server, limit_s)
    if isinstance(told, OSError):
        return f"the metadata server did not answer: {told}"
    status, headers, body = told
    if "metadata-flavor: google" not in headers.lower():
        return "what answered is not Google's metadata server"
    if status != 200:
        return f"the metadata server has no entry for a TPU (status {status})"
    values = dict(_LINE.findall(body))
    kind, topology, worker = (values.get(name, "") for name in ("ACCELERATOR_TYPE", "TOPOLOGY", "WORKER_ID"))
    return TpuSlice(kind, topology, worker, "Google metadata") if kind else "the metadata name no accelerator type"


def fetch(path: str, server: tuple[str, int], limit_s: float) -> tuple[int, str, str] | OSError:
    """Return status, headers and body of one answer, or what went wrong; `limit_s` holds for all of it together."""
    deadline = time.monotonic() + limit_s
    request = f"GET {path} HTTP/1.0\r\nHost: metadata.google.internal\r\nMetadata-Flavor: Google\r\n\r\n"
    late = TimeoutError(f"no whole answer within {limit_s:g} s")
    received = bytearray()
    try:
        with socket.create_connection(server, timeout=limit_s) as connection:
            connection.sendall(request.encode("ascii"))
            while len(received) < _MOST_BYTES:
                left = deadline - time.monotonic()
                if left <= 0:
                    return late
                connection.settimeout(left)
                part = connection.recv(4096)
                if not part:
                    break
                received += part
    except TimeoutError:
        return late
    except OSError as error:
        return error
    head, _, body = received.decode("utf-8", "replace").partition("\r\n\r\n")
    first, _, headers = head.partition("\r\n")
    words = first.split()
    if len(words) < 2 or not words[1].isdigit():
        return ConnectionError("an answer that is not HTTP")
    return int(words[1]), headers, body
