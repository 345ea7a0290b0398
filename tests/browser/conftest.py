"""What the browser tests share: a portal of their own on a free port, and Chromium."""

import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

ROOT = Path(__file__).resolve().parents[2]
START_S = 60
PATIENCE_MS = 60_000
"""How long a page may take to show something; a machine of two cores that runs the other tests too is slow at times."""


@dataclass
class Portal:
    """A running portal: where it answers, where it keeps its data, and its process."""

    address: str
    port: int
    home: Path
    process: "subprocess.Popen[bytes]"

    def restart(self) -> None:
        """Stop the server and start it again on the same port; runs are processes of their own and go on."""
        stop(self.process)
        self.process = start(self.port, self.home)


def start(port: int, home: Path) -> "subprocess.Popen[bytes]":
    """Start the portal and wait until it answers."""
    log = (home / "portal.log").open("ab")
    command = [sys.executable, "-m", "streamlit", "run", "app.py", "--server.port", str(port)]
    process = subprocess.Popen(
        command, cwd=ROOT, env={**os.environ, "TANDEM_HOME": str(home)}, stdout=log, stderr=log, start_new_session=True
    )
    log.close()
    waited = subprocess.run([sys.executable, "-c", WAIT, str(port), str(START_S)], check=False, capture_output=True, text=True)
    if waited.returncode != 0:
        stop(process)
        pytest.fail(f"the portal did not start: {(home / 'portal.log').read_text(errors='replace')[-2000:]}")
    return process


WAIT = """
import socket, sys, time
end = time.monotonic() + float(sys.argv[2])
while time.monotonic() < end:
    try:
        socket.create_connection(("127.0.0.1", int(sys.argv[1])), 1).close()
        sys.exit(0)
    except OSError:
        time.sleep(0.1)
sys.exit(1)
"""


CANCEL_ALL = """
from services import runs
for state in ("queued", "running"):
    for row in runs.history(state=state):
        runs.delete(row.id)
"""


def stop(process: "subprocess.Popen[bytes]") -> None:
    """End the server as Ctrl-C does, or by force when it does not listen."""
    process.send_signal(signal.SIGINT)
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@pytest.fixture(scope="module")
def portal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Portal]:
    """Start a portal with an empty data folder."""
    home = tmp_path_factory.mktemp("portal-home")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    running = Portal(f"http://127.0.0.1:{port}", port, home, start(port, home))
    yield running
    stop(running.process)
    subprocess.run([sys.executable, "-c", CANCEL_ALL], cwd=ROOT, env={**os.environ, "TANDEM_HOME": str(home)}, check=True)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Start Chromium, the one of this system; without one the browser tests are skipped, and say so."""
    path = (
        os.environ.get("TANDEM_CHROMIUM")
        or shutil.which("chromium")
        or shutil.which("chromium-browser")
        or shutil.which("google-chrome")
    )
    if path is None:
        pytest.skip("there is no Chromium on this machine")
    expect.set_options(timeout=PATIENCE_MS)
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(
            executable_path=path, args=["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
        )
        yield chromium
        chromium.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """Open a wide window with a fresh profile."""
    context = browser.new_context(viewport={"width": 1280, "height": 900}, accept_downloads=True)
    context.set_default_timeout(PATIENCE_MS)
    yield context.new_page()
    context.close()
