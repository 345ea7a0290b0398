"""Do the gates catch what they are for? Every faulty kernel through the same worker and verdict as a real probe: fault x gate.

Each fault is a real program of a real framework with one mistake (`bench/faulty`). It is caught when one of the gates that are
meant for it speaks; an honest kernel of each framework must pass all gates but those that speak of the machine's noise.
Exit 0 only when every fault is caught and every honest kernel passes.

Run: `python -m bench.faults [--json] [--framework jax|torch|tensorflow|plain ...]`.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from importlib import import_module
from pathlib import Path

from bench.trial import Conditions, Trial, in_gibibytes, try_kernel, try_platform
from catalog import accelerator, accelerators
from core.codec import from_plain
from core.device import Device
from probes.claims import claim_doubt, sparse_rows
from probes.environment import worker_environment
from probes.gates import gate_of
from probes.inventory import devices
from probes.units import rate_doubt
from probes.watch import Reading, Watch, throttle_doubt

FRAMEWORKS = ("plain", "jax", "torch", "tensorflow")
REPOSITORY = Path(__file__).resolve().parent.parent
LIMIT_S = 900.0
MEANT_FOR = {
    "honest": (),
    "constant folding": ("captured", "work", "slope"),
    "dead code": ("work", "output"),
    "loop-invariant hoisting": ("work", "output", "slope"),
    "unsynchronised": ("unsynchronised",),
    "zeros for inputs": ("inputs",),
    "constant inputs": ("inputs",),
    "bf16 for fp32": ("precision",),
    "tf32 for fp32": ("precision",),
    "silent CPU fall-back": ("platform",),
    "one core for two": ("narrow",),
    "per-chip peak of a core": ("per chip",),
    "sparse peak": ("sparse",),
    "sparse catalog row": ("sparse",),
    "GiB for GB": ("units",),
    "first call counted": ("slow start", "outliers"),
    "hot cache": ("hot", "memory rate"),
    "throttled clock": ("drift", "throttled"),
    "neighbour noise": ("contended",),
}
"""The gates of which one must speak."""
CONDITIONS = {
    "throttled clock": Conditions(fewest=20),
    "neighbour noise": Conditions(neighbours=2),
    "first call counted": Conditions(first_call_counts=True),
    "hot cache": Conditions("memory_copy", (("bytes", 2**20),)),
    "GiB for GB": Conditions("memory_copy", (("bytes", 2**26),), in_gibibytes("memory_copy")),
}


@dataclass(frozen=True, slots=True)
class PlayedSensor:
    """Gives one recorded reading again and again."""

    reading: Reading

    def read(self) -> Reading:
        """Return it."""
        return self.reading


def plain(device: Device) -> Iterable[Trial]:
    """Return the trials that need no framework: claims, units and recorded clocks."""
    core = replace(device, id="tpu:0", kind="tpu", accelerator="tpu-v7", memory_bytes=96 * 2**30)
    board = replace(device, id="gpu:0", kind="gpu", accelerator="h100-sxm", memory_bytes=80 * 10**9)
    doubled = replace(accelerator("h100-sxm"), flop_per_s=(("tf32", 494.5e12), ("bf16", 1979e12)))
    with Watch(PlayedSensor(Reading(1.98e9, 1.98e9, 64))) as hot, Watch(PlayedSensor(Reading(1.0e9, 1.98e9, 0))) as slow:
        pass
    said = (
        ("per-chip peak of a core", claim_doubt(2307e12, core, "bf16")),
        ("sparse peak", claim_doubt(1979e12, board, "bf16")),
        ("sparse catalog row", "".join(f"sparse: {row}" for row in sparse_rows([doubled]))),
        ("GiB for GB", rate_doubt(10e9 / 2**30, 1e9, 10e9, 1.0)),
        ("throttled clock", throttle_doubt(hot.throttled)),
        ("throttled clock", throttle_doubt(slow.throttled)),
        ("honest", claim_doubt(1153.5e12, core, "bf16")),
        ("honest", claim_doubt(989e12, board, "bf16")),
        ("honest", "".join(sparse_rows(accelerators().values()))),
        ("honest", rate_doubt(10.0, 1e9, 10e9, 1.0)),
    )
    for fault, phrase in said:
        yield Trial("plain", fault, MEANT_FOR[fault], (gate_of(phrase),) if phrase else (), (phrase,) if phrase else ())


def of_framework(framework: str, device: Device, only: Sequence[str]) -> Iterable[Trial]:
    """Return the trials of one framework, which is imported here and nowhere else."""
    kernels = import_module(f"bench.faulty.{framework}_kernels")
    runtime: str = kernels.RUNTIME
    for kind in (*kernels.KINDS, "first call counted"):
        if not only or kind in only:
            backend = kernels.open_faulty(kind)
            yield try_kernel(backend, runtime, kind, MEANT_FOR[kind], device, CONDITIONS.get(kind))
    if not only or "silent CPU fall-back" in only:
        yield from (try_platform(runtime, kind) for kind in ("gpu", "tpu"))


def in_own_process(framework: str, only: Sequence[str]) -> tuple[Trial, ...]:
    """Run the trials of one framework in a process of its own, as a worker is."""
    names = {"jax": "jax", "torch": "torch-eager", "tensorflow": "tf-graph"}
    environment = worker_environment(names[framework], "cpu", os.environ, Path(tempfile.gettempdir()) / "tandem-faults", "")
    command = [sys.executable, "-m", "bench.faults", "--inside", framework, *[part for kind in only for part in ("--only", kind)]]
    done = subprocess.run(command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{framework}: {done.stderr[-2000:]}")
    return tuple(from_plain(Trial, one) for one in json.loads(done.stdout.strip().split("\n")[-1]))


def processor() -> Device:
    """Return this machine's processor."""
    return next(device for device in devices() if device.kind == "cpu")


def measure(frameworks: Sequence[str], only: Sequence[str] = ()) -> tuple[Trial, ...]:
    """Return every trial of the frameworks named, one framework after the other."""
    trials: list[Trial] = []
    for framework in frameworks:
        trials.extend(plain(processor()) if framework == "plain" else in_own_process(framework, only))
    return tuple(trials)


def table(trials: Sequence[Trial]) -> str:
    """Return fault x gate: `x` the gate that is meant for the fault, `o` another that spoke too."""
    gates = sorted({gate for trial in trials for gate in trial.gates})
    rows = [f"| fault | framework | {' | '.join(gates)} | verdict |", "|" + "---|" * (len(gates) + 3)]
    for trial in trials:
        marks = ["x" if gate in trial.expected else "o" if gate in trial.gates else "" for gate in gates]
        marks = [mark if gate in trial.gates else "" for mark, gate in zip(marks, gates, strict=True)]
        word = ("passes" if trial.fault == "honest" else "caught") if trial.right else "WRONG"
        rows.append(f"| {trial.fault} | {trial.framework} | {' | '.join(marks)} | {word} |")
    return "\n".join(rows)


def verdict_line(trials: Sequence[Trial]) -> str:
    """Return the one line that ends the bench."""
    honest = [trial.right for trial in trials if trial.fault == "honest"]
    faulty = [trial.right for trial in trials if trial.fault != "honest"]
    figures = f"{sum(faulty)} of {len(faulty)} faulty kernels and claims caught, {sum(honest)} of {len(honest)} honest ones pass"
    return f"{'HOLDS' if all((*honest, *faulty)) else 'FALLS SHORT'}: {figures}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the trials and print the table, or JSON."""
    parser = argparse.ArgumentParser(prog="python -m bench.faults", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--framework", action="append", choices=FRAMEWORKS, help="only this one; may be repeated")
    parser.add_argument("--only", action="append", default=[], choices=sorted(MEANT_FOR), help="only this fault; may be repeated")
    parser.add_argument("--inside", choices=FRAMEWORKS, help=argparse.SUPPRESS)
    asked = parser.parse_args(arguments)
    if asked.inside:
        print(json.dumps([asdict(trial) for trial in of_framework(asked.inside, processor(), asked.only)]))
        return 0
    trials = measure(asked.framework or FRAMEWORKS, asked.only)
    right = all(trial.right for trial in trials)
    if asked.json:
        print(json.dumps({"trials": [{**asdict(trial), "right": trial.right} for trial in trials], "all_right": right}))
    else:
        print(table(trials))
        for trial in trials:
            if not trial.right:
                print(f"WRONG {trial.framework}, {trial.fault}: {'; '.join(trial.said) or 'no gate spoke'}", file=sys.stderr)
        print(verdict_line(trials))
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
