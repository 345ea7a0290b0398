"""A reader that asks for files which are not on the list, over the socket on which files are fetched."""

import os
import socket
import struct
from typing import Any


def read(source: Any, options: dict[str, Any]) -> Any:
    """Send what the options say, and tell whether a file came back."""
    request = bytes.fromhex(options["request"]) if "request" in options else struct.pack("<I", options["number"])
    os.write(source._socket.fileno(), request)
    said, files, _, _ = socket.recv_fds(source._socket, 1, 1)
    return [said.decode(), len(files)]
