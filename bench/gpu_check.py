"""Tandem's quick tier on a real NVIDIA GPU, beside what others published for the same accelerator.

One prepared script for a machine that is lent for minutes: it installs nothing. It takes jax and torch from this environment,
or from those that `TANDEM_PYTHON_JAX` and `TANDEM_PYTHON_TORCH_EAGER` name, measures the kernels of the quick tier on `gpu:0`
in a real session, and besides the shapes that published figures are known for. Every outcome with its raw samples goes to a
file, to be kept under `tests/device/recorded/` and judged again by a test.

Bounds, all of which must hold for exit 0: every figure that was measured is within 10 % of the published one
(`bench/published.py`); the bf16 product and the copy were measured; every probe was answered and none is quarantined; it all
took under 10 minutes. Without an NVIDIA GPU it ends with one line and exit 2.

Run: `python -m bench.gpu_check [--json] [--output FILE] [--runtime ID ...] [--only KERNEL] [--budget-s N] [--replay FILE]`.
`--cpu` records the processor in the same format, for tests of the format: nothing is published for it, so it never holds.
"""

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from bench.published import Published, published_for
from bench.recorded import SCHEMA, Figure, Recorded, failed_gates, figures, read, told, verdict, write
from core.device import Device
from core.errors import BadInput, TandemError
from core.probe import Outcome, Probe, Runtime
from core.workload import Size
from probes.inventory import devices
from probes.kernels import kernel_modules
from probes.peaks import peak_flop_per_s
from probes.plan import Planned, kernel_probes
from probes.session import Answered, Event, run_probes
from services.context import context
from services.probing import chosen_runtimes, usable
from services.runtimes import known_runtimes

RUNTIMES = ("jax", "torch-eager")
DTYPES = ("fp32", "bf16")
COPY_BYTES = 2**28


def device_of(kind: str, attached: Sequence[Device]) -> Device:
    """Return the first device of a kind.

    Raises:
        BadInput: there is none.
    """
    found = next((device for device in attached if device.kind == kind), None)
    if found is None:
        names = ", ".join(device.name for device in attached)
        raise BadInput(f"no NVIDIA GPU ({names})", "gpu:0, as nvidia-smi tells it", "run this where a GPU is attached")
    return found


def plan(device: Device, runtimes: Sequence[Runtime], only: str | None) -> tuple[Planned, ...]:
    """Return the quick tier in both dtypes, and what published figures need beyond it."""
    planned = [one for dtype in DTYPES for one in kernel_probes(tuple(runtimes), device, "quick", only, dtype)]
    for row in published_for(device.accelerator):
        if only in (None, row.subject) and row.dtype in DTYPES and not any(_is_of(one.probe, row) for one in planned):
            planned.extend(_repeat(row, device, runtimes))
    return tuple(dict.fromkeys(planned))


def _is_of(probe: Probe, row: Published) -> bool:
    return (probe.subject, probe.dtype) == (row.subject, row.dtype) and set(row.sizes) <= set(probe.sizes)


def _repeat(row: Published, device: Device, runtimes: Sequence[Runtime]) -> list[Planned]:
    """Return the probes that repeat one published figure; none when this version has no such probe."""
    sizes: dict[str, Size] = dict(row.sizes)
    if row.family == "system":
        if find_spec("probes.system") is None:
            return []
        module = import_module("probes.system").system_modules().get(row.subject)
        sizes["bytes"] = COPY_BYTES
        traffic = module.traffic(sizes) if module else 0
    else:
        module = kernel_modules().get(row.subject)
        traffic = module.traffic(sizes, 2.0 if row.dtype == "bf16" else 4.0) if module else 0
    if module is None:
        return []
    ordered = tuple(sorted(sizes.items()))
    large = row.subject == "matmul_chain"
    probes = [
        Probe(
            row.subject,
            row.family,
            ordered,
            row.dtype,
            runtime.id,
            device.id,
            module.MODE if row.family == "kernel" else "forward",
        )
        for runtime in runtimes
        if row.family == "kernel" or runtime.id in module.RUNTIMES
    ]
    return [Planned(probe, module.flop(sizes), traffic, large) for probe in probes]


def record(asked: argparse.Namespace) -> Recorded:
    """Measure, and return everything that was found."""
    attached = devices()
    device = device_of("cpu" if asked.cpu else "gpu", attached)
    settings = context().settings
    runtimes = usable(device, chosen_runtimes(tuple(asked.runtime), known_runtimes(settings, (device,))))
    if not runtimes:
        raise BadInput(
            f"no runtime that can use {device.id}",
            "jax or torch built for it",
            "set TANDEM_PYTHON_JAX or TANDEM_PYTHON_TORCH_EAGER; see ./tandem devices",
        )
    outcomes: list[Outcome] = []

    def hear(event: Event) -> None:
        if isinstance(event, Answered):
            outcomes.append(event.outcome)
            _say(f"{time.monotonic() - start:5.0f} s: {event.outcome.probe.label} in {event.outcome.probe.runtime}")

    start = time.monotonic()
    run_probes(plan(device, runtimes, asked.only), (device,), runtimes, settings, hear, lambda: False, asked.budget_s)
    peaks = tuple((dtype, peak_flop_per_s(device, dtype)) for dtype in DTYPES)
    found = Recorded(SCHEMA, device, tuple(outcomes), peaks, asked.budget_s, time.monotonic() - start, "")
    return replace(found, verdict=verdict(found)[1])


def table(found: Sequence[Figure]) -> list[str]:
    """Return measured beside published as lines."""
    lines = [f"{'figure':26} {'runtime':12} {'measured':>15} {'published':>24}  {'':11} source"]
    for one in found:
        low, high = (told(value, one.published.unit) for value in (one.published.low, one.published.high))
        span = low if low == high else f"{low.split()[0]} to {high}"
        says = {True: "holds", False: "FALLS SHORT", None: "not measured"}[one.holds]
        lines.append(
            f"{one.published.title:26} {one.runtime or '-':12} {told(one.rate, one.published.unit):>15} {span:>24}  "
            f"{says:11} {one.published.source}{'; ' + one.reason if one.reason else ''}"
        )
    return lines


def plain(figure: Figure) -> dict[str, object]:
    """Return one figure for JSON."""
    published = figure.published
    return {
        "figure": published.title,
        "runtime": figure.runtime,
        "rate": figure.rate,
        "unit": published.unit,
        "low": published.low,
        "high": published.high,
        "holds": figure.holds,
        "source": published.source,
        "reason": figure.reason,
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; exit 0 when every bound holds, 1 when one does not, 2 without a GPU or for bad input."""
    asked = _parse(arguments)
    try:
        found = read(asked.replay) if asked.replay else record(asked)
    except TandemError as error:
        _say(str(error))
        return 2
    if asked.output:
        write(asked.output, found)
    held, said = verdict(found)
    changed = failed_gates(found)
    if changed:
        held, said = False, f"FALLS SHORT: judged anew, {'; '.join(changed)}"
    if asked.json:
        rows = [plain(figure) for figure in figures(found)]
        print(
            json.dumps(
                {
                    "schema_version": 1,
                    "holds": held,
                    "device": found.device.name,
                    "replayed": bool(asked.replay),
                    "figures": rows,
                    "verdict": said,
                }
            )
        )
        return 0 if held else 1
    replayed = [f"replayed from {asked.replay.name}: measured then, judged now"] if asked.replay else []
    print("\n".join([*replayed, *table(figures(found)), "", said]))
    return 0 if held else 1


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.gpu_check", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", action="store_true", help="one JSON document in place of the table")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write the outcome file there")
    parser.add_argument("--runtime", action="append", choices=RUNTIMES, metavar="ID", help="this one alone")
    parser.add_argument("--only", metavar="KERNEL", help="this kernel alone")
    parser.add_argument("--budget-s", type=float, default=480.0, help="seconds of probing at most")
    parser.add_argument(
        "--replay", type=Path, metavar="FILE", help="judge a file that was recorded; measures nothing and says so"
    )
    parser.add_argument("--cpu", action="store_true", help="record the processor in place of a GPU")
    asked = parser.parse_args(arguments)
    asked.runtime = asked.runtime or list(RUNTIMES)
    return asked


def _say(text: str) -> None:
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
