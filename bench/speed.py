"""How fast Tandem itself is, and how much memory its portal takes.

Bounds, all of which must hold for exit 0, as medians of the runs made here: advice from stored measurements, whole command: at
most 1.5 s; inside the advisor, all pools of the catalog: at most 0.15 s; quick probing of the demo in every installed runtime,
caches warm: at most 120 s; `./tandem --help` when its environment is there: under 1 s;
the portal's process after answering the first page: under 400 MB.

Run: `python -m bench.speed [--json] [--runs N] [--skip-probing]`. The machine must be quiet for the figures to mean anything.
"""

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

from core.run import RunOptions
from core.statistics import median
from services import advice, devices, workloads
from services.context import context

REPOSITORY = Path(__file__).resolve().parent.parent
DEMO = "gpt2-demo:train"
START_S = 60.0


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured figure and its bound; unit in the name."""

    name: str
    unit: str
    samples: tuple[float, ...]
    bound: float

    @property
    def value(self) -> float:
        """Median of the samples."""
        return median(self.samples)

    @property
    def holds(self) -> bool:
        """Whether the median is within the bound."""
        return self.value <= self.bound


def timed(work: Callable[[], object], runs: int) -> tuple[float, ...]:
    """Return wall seconds of each of `runs` calls, after one that is not counted."""
    work()
    taken: list[float] = []
    for _ in range(runs):
        start = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start)
    return tuple(taken)


def command(*arguments: str) -> Callable[[], object]:
    """Return a call of the command line that fails loudly."""
    return lambda: subprocess.run(
        [sys.executable, "-m", "cli", *arguments],
        cwd=REPOSITORY,
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def advisor_figure(runs: int) -> Figure:
    """Time the advisor alone, with stored measurements, every pool of the catalog and every runtime."""
    workload = workloads.understand(DEMO).workload
    report = devices.report()
    stored = context().store.measurements(tuple(device.uuid for device in report.devices))

    def ask() -> object:
        return advice.answer(workload, RunOptions(), report.devices, report.runtimes, stored)

    return Figure("inside the advisor, whole catalog", "s", timed(ask, runs), 0.15)


def probing_figure() -> Figure:
    """Time quick probing of the demo in every installed runtime; a first run fills the caches and is not counted."""
    work = command("advise", DEMO, "--pools", "attached", "--json")
    return Figure("quick probing of the demo, every runtime", "s", timed(work, 1), 120.0)


def portal_figure() -> Figure:
    """Start the portal, let it answer, and read its resident memory."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen(
        [sys.executable, "-m", "streamlit", "run", "app.py", "--server.port", str(port), "--server.headless", "true"],
        cwd=REPOSITORY,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        end = time.monotonic() + START_S
        while True:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/_stcore/health", timeout=2):
                    break
            except OSError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.2)
        _visit(port)
        resident = psutil.Process(process.pid).memory_info().rss
    finally:
        process.terminate()
        process.wait()
    return Figure("portal, resident after the first page", "MB", (resident / 1e6,), 400.0)


def _visit(port: int) -> None:
    """Open the demo in a real browser, so that the page's script has run."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=os.environ.get("TANDEM_CHROMIUM", "/usr/bin/chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page()
        page.goto(f"http://127.0.0.1:{port}/?workload={DEMO}")
        page.get_by_text("Rests on").first.wait_for(timeout=60_000)
        browser.close()


def measure(runs: int, *, probing: bool) -> list[Figure]:
    """Return all figures."""
    figures = [
        Figure(
            "./tandem --help, all in place",
            "s",
            timed(
                lambda: subprocess.run(["bash", str(REPOSITORY / "tandem"), "--help"], check=True, stdout=subprocess.DEVNULL),
                runs,
            ),
            1.0,
        ),
    ]
    if probing:
        figures.append(probing_figure())
    figures.append(
        Figure("advise --probe none, whole command", "s", timed(command("advise", DEMO, "--probe", "none", "--json"), runs), 1.5)
    )
    figures.append(advisor_figure(runs))
    figures.append(portal_figure())
    return figures


def main(arguments: Sequence[str]) -> int:
    """Measure, print the table and the verdict, and return 0 when every bound holds."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--skip-probing", action="store_true")
    asked = parser.parse_args(arguments)
    if "TANDEM_HOME" not in os.environ:
        os.environ["TANDEM_HOME"] = tempfile.mkdtemp(prefix="tandem-speed-")
    figures = measure(asked.runs, probing=not asked.skip_probing)
    held = all(figure.holds for figure in figures)
    if asked.json:
        print(
            json.dumps(
                {"schema_version": 1, "holds": held, "figures": [asdict(f) | {"median": f.value} for f in figures]}, indent=1
            )
        )
        return 0 if held else 1
    for figure in figures:
        spread = f"{min(figure.samples):.3g} to {max(figure.samples):.3g}"
        told = "holds" if figure.holds else "FALLS SHORT"
        print(f"{figure.name:42} {figure.value:9.3g} {figure.unit:3} ({spread}), at most {figure.bound:g}: {told}")
    said = "; ".join(f"{figure.name} {figure.value:.3g} {figure.unit}" for figure in figures)
    print(f"{'HOLDS' if held else 'FALLS SHORT'}: {said}")
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
