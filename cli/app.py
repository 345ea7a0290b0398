"""`./tandem app`: opens the portal. This process becomes Streamlit's server, so that signals reach it directly."""

import os
import socket
import sys
from pathlib import Path

import click

from cli.output import progress
from core.errors import BadInput
from services import runs

ROOT = Path(__file__).resolve().parent.parent
FIRST_PORT, TRIED_PORTS = 8501, 100


@click.command()
@click.option("--port", type=click.IntRange(1, 65535), help="Port to listen on; without it the first free one from 8501.")
@click.option("--address", default="127.0.0.1", show_default=True, help="Address to listen on; 0.0.0.0 lets other machines in.")
@click.option("--browser/--no-browser", default=False, show_default=True, help="Open a browser window too.")
def app(port: int | None, address: str, browser: bool) -> None:
    """Open the portal. Stop it with Ctrl-C: runs go on, and are there when it is started again."""
    chosen = port if port is not None else _free_port(address)
    if port is not None and not _is_free(address, port):
        raise BadInput(f"port {port}, which is in use", "a free port", "name another one or leave --port out")
    ended = runs.sweep()
    if ended:
        progress(f"ended {len(ended)} runs whose process was gone; what they measured is kept")
    progress(f"Tandem is at http://{'localhost' if address in ('127.0.0.1', '0.0.0.0') else address}:{chosen} (Ctrl-C stops it)")  # noqa: S104
    os.chdir(ROOT)
    arguments = [
        sys.executable, "-m", "streamlit", "run", str(ROOT / "app.py"), "--server.port", str(chosen), "--server.address", address,
        "--server.headless", "false" if browser else "true", "--browser.gatherUsageStats", "false",
    ]
    os.execv(sys.executable, arguments)  # noqa: S606  our own interpreter and file


def _free_port(address: str) -> int:
    for port in range(FIRST_PORT, FIRST_PORT + TRIED_PORTS):
        if _is_free(address, port):
            return port
    raise BadInput(f"no free port from {FIRST_PORT} to {FIRST_PORT + TRIED_PORTS - 1}", "a free port", "name one with --port")


def _is_free(address: str, port: int) -> bool:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
        except OSError:
            return False
    return True
