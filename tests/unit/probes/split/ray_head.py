"""A Ray cluster of one node for tests, started by Ray's own command and ended with everything that it started."""

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import psutil

from tests.here import RAY

STARTED_S = 60.0
TOKEN = "0123456789abcdef0123456789abcdef"


@contextmanager
def ray_head(mode, resources='{"TPU": 2}'):
    """Start a head that asks for a token (`token`) or for none (`disabled`); yields (address, address for clients)."""
    port, client = _free(), _free()
    mine = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    mine |= {
        "RAY_AUTH_MODE": mode, "TANDEM_PYTHON_JAX": sys.executable, "TANDEM_PYTHON_TORCH_EAGER": sys.executable,
        **({"RAY_AUTH_TOKEN": TOKEN} if mode == "token" else {}),
    }  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="ray-", dir="/tmp", ignore_cleanup_errors=True) as folder:
        command = [
            RAY, "-m", "ray.scripts.scripts", "start", "--head", "--block", "--disable-usage-stats", "--include-dashboard=false",
            "--node-ip-address", "127.0.0.1", "--port", str(port), "--ray-client-server-port", str(client), "--temp-dir", folder,
            "--dashboard-agent-listen-port", str(_free()), "--num-cpus", "2", "--resources", resources,
        ]  # fmt: skip
        log = Path(folder) / "start.log"
        with log.open("wb") as out:
            head = subprocess.Popen(command, env=mine, stdout=out, stderr=out, stdin=subprocess.DEVNULL, start_new_session=True)
        try:
            _wait_for((port, client), head, log)
            yield f"127.0.0.1:{port}", f"ray://127.0.0.1:{client}"
        finally:
            started = [*psutil.Process(head.pid).children(recursive=True)] if head.poll() is None else []
            head.send_signal(signal.SIGTERM)
            try:
                head.wait(20)
            except subprocess.TimeoutExpired:
                head.kill()
                head.wait()
            for process in started:
                try:
                    process.kill()
                except psutil.NoSuchProcess:
                    continue
            psutil.wait_procs(started, 10)


def _free():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def _wait_for(ports, head, log):
    end = time.monotonic() + STARTED_S
    for port in ports:
        while True:
            with socket.socket() as asked:
                if asked.connect_ex(("127.0.0.1", port)) == 0:
                    break
            if head.poll() is not None or time.monotonic() > end:
                raise AssertionError(log.read_text(errors="replace")[-2000:])
            time.sleep(0.1)
