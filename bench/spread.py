"""How much the suite's medians differ from run to run, and what a full tier's time is spent on.

The same quick tier of kernels is measured in five fresh sessions, each with new workers, one after the other. For each point the
spread is the greatest median minus the least, over the middle one. The spread of the minima is told beside it, and so is the
greatest interquartile range within one run: noise that a run can see itself.

Bounds, all of which must hold for exit 0: every point whose copy takes longer than 10 ms spreads by at most 5 % over the five
runs, or is flagged: `spread` by the last of them, or in doubt (`noisy`, `contended`, `outliers`, ...) in every run whose
median lies more than 2.5 % from the middle one. `drift` is one of them: as in the portal, each run is held against those before
it. The first has none; that it was off is told by the second, as a drift. At least 70 % of the wall time of one full tier is
timed samples, warm-up or compilation, by the session's own account.

Run: `python -m bench.spread [--json] [--runs N] [--runtime ID ...] [--only KERNEL] [--skip-full]`. `--runs 0` does the full tier
alone. Nothing is stored.
"""

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

from bench.control import control_s
from core.errors import TandemError
from core.history import DRIFT, SPREAD, with_history
from core.probe import Measurement, Outcome, ProbeFailure
from core.statistics import iqr, median, range_share
from probes.accounting import Spent, productive_share, totals
from probes.inventory import devices
from probes.plan import kernel_probes
from probes.session import Answered, Event, run_probes
from services.context import context
from services.probing import chosen_runtimes
from services.runtimes import known_runtimes

LONG_S = 0.010
BOUND = 0.05
SHARE = 0.70
BUDGET_S = 3600.0
FEWEST_RUNS = 3


@dataclass(frozen=True, slots=True)
class Point:
    """One probe over all runs.

    Args:
        name, runtime: of the probe.
        medians_s, minima_s: one of each run.
        within: interquartile range over median, of each run.
        doubted: whether each run raised a doubt, or the second one about the first.
        unsteady: whether the last run says that the medians differ.
    """

    name: str
    runtime: str
    medians_s: tuple[float, ...]
    minima_s: tuple[float, ...]
    within: tuple[float, ...]
    doubted: tuple[bool, ...]
    unsteady: bool = False

    @property
    def middle_s(self) -> float:
        """Median of the medians."""
        return median(self.medians_s)

    @property
    def spread(self) -> float:
        """Greatest minus least median, over the middle one."""
        return range_share(self.medians_s)

    @property
    def spread_of_minima(self) -> float:
        """The same for the least sample of each run."""
        return range_share(self.minima_s)

    @property
    def judged(self) -> bool:
        """Whether the point is long enough for the bound."""
        return self.middle_s > LONG_S

    @property
    def flagged(self) -> bool:
        """Whether it is said that the medians differ, or each run that lies far from the middle says that it is in doubt."""
        far = [abs(value / self.middle_s - 1) > BOUND / 2 for value in self.medians_s]
        return self.unsteady or all(doubt for doubt, away in zip(self.doubted, far, strict=True) if away)

    @property
    def holds(self) -> bool:
        """Whether the bound holds or does not apply."""
        return not self.judged or self.spread <= BOUND or self.flagged


def run_once(runtimes: Sequence[str], tier: str, only: str | None) -> tuple[list[Outcome], list[Spent]]:
    """Measure one tier on the processor in a fresh session, and return outcomes and what the time went into."""
    settings = context().settings
    device = next(one for one in devices() if one.kind == "cpu")
    installed = chosen_runtimes(tuple(runtimes), known_runtimes(settings, (device,)))
    heard: list[Event] = []
    planned = kernel_probes(installed, device, tier, only)
    run_probes(planned, (device,), installed, settings, heard.append, lambda: False, BUDGET_S)
    return [e.outcome for e in heard if isinstance(e, Answered)], [e for e in heard if isinstance(e, Spent)]


def points(runs: Sequence[Sequence[Outcome]]) -> list[Point]:
    """Return what was measured in every run, in the order of the first; what failed in one of them is left to the caller."""
    found: list[dict[object, Measurement]] = []
    for one in runs:
        earlier = [measurement for before in found for measurement in before.values() if measurement.trusted]
        found.append({o.probe: with_history(o, earlier) for o in one if isinstance(o, Measurement)})
    result: list[Point] = []
    for probe in found[0] if found else ():
        same = [one[probe] for one in found if probe in one]
        if len(same) == len(runs) and all(m.median_s > 0 for m in same):
            result.append(_point(same))
    return result


def _point(same: Sequence[Measurement]) -> Point:
    first = same[0].probe
    doubted = [bool(m.warnings) or not m.trusted for m in same]
    doubted[0] |= any(warning.startswith(DRIFT) for m in same[1:2] for warning in m.warnings)
    sizes = " ".join(f"{key}={value}" for key, value in first.sizes)
    return Point(
        f"{first.subject} {sizes}",
        first.runtime,
        tuple(m.median_s for m in same),
        tuple(m.figures.minimum for m in same),
        tuple(iqr(m.samples_s) / m.median_s for m in same),
        tuple(doubted),
        any(warning.startswith(SPREAD) for warning in same[-1].warnings),
    )


def failures(runs: Sequence[Sequence[Outcome]]) -> list[str]:
    """Return one line for each probe that gave no measurement."""
    return [f"{o.probe.label} in {o.probe.runtime}: {o.error}" for one in runs for o in one if isinstance(o, ProbeFailure)]


def table(found: Sequence[Point]) -> list[str]:
    """Return the points as lines, longest first."""
    lines = [f"{'point':44} {'runtime':12} {'ms':>9} {'spread':>7} {'minima':>7} {'within':>7} {'doubts':>6}"]
    for point in sorted(found, key=lambda p: -p.middle_s):
        told = ("holds" if point.spread <= BOUND else "flagged" if point.flagged else "FALLS SHORT") if point.judged else ""
        named = f"{point.name[:44]:44} {point.runtime:12}"
        lines.append(
            f"{named} {point.middle_s * 1e3:9.3f} {point.spread:7.1%} {point.spread_of_minima:7.1%} "
            f"{max(point.within):7.1%} {sum(point.doubted):3} of {len(point.doubted)}  {told}"
        )
    return lines


def spent_lines(seconds: dict[str, float]) -> list[str]:
    """Return where the time of the full tier went, as lines."""
    whole = sum(seconds.values()) or 1.0
    return [f"full tier: {stage:10} {value:8.1f} s {value / whole:6.1%}" for stage, value in seconds.items()]


def verdict(found: Sequence[Point], failed: Sequence[str], seconds: dict[str, float] | None) -> tuple[bool, str]:
    """Return whether every bound holds, and the line that ends the bench."""
    judged = [point for point in found if point.judged]
    steady = [point for point in judged if point.spread <= BOUND]
    parts: list[str] = []
    short = [f"{point.name} in {point.runtime} {point.spread:.1%}" for point in judged if not point.holds]
    short += failed
    if judged:
        parts += (
            f"{len(steady)} of {len(judged)} points over 10 ms spread by at most {BOUND:.0%}",
            f"{sum(point.holds for point in judged) - len(steady)} more are flagged",
            f"median spread {median([point.spread for point in judged]):.1%}",
            f"of minima {median([point.spread_of_minima for point in judged]):.1%}",
        )
    elif found or seconds is None:
        short.append("no point was long enough")
    if seconds is not None:
        share = productive_share(seconds)
        parts.append("full tier: nothing was spent" if share is None else f"full tier: {share:.0%} is measuring")
        if share is None or share < SHARE:
            short.append(f"measuring is under {SHARE:.0%} of the full tier")
    held = not short
    return held, f"HOLDS: {', '.join(parts)}" if held else f"FALLS SHORT: {', '.join(parts)}; {'; '.join(short)}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; exit 0 when every bound holds, 1 when one does not, 2 for bad input."""
    asked = _parse(arguments)
    runs: list[list[Outcome]] = []
    controls: list[float] = []
    seconds: dict[str, float] | None = None
    try:
        for index in range(asked.runs):
            controls.append(control_s())
            start = time.monotonic()
            runs.append(run_once(asked.runtime, "quick", asked.only)[0])
            _say(
                f"run {index + 1} of {asked.runs}: {len(runs[-1])} outcomes in {time.monotonic() - start:.0f} s, "
                f"control kernel {controls[-1] * 1e3:.1f} ms"
            )
        if not asked.skip_full:
            outcomes, spent = run_once(asked.runtime, "full", asked.only)
            seconds = totals(spent)
            _say(f"full tier: {len(outcomes)} outcomes")
    except TandemError as error:
        _say(str(error))
        return 2
    found, failed = points(runs), failures(runs)
    held, said = verdict(found, failed, seconds)
    if asked.json:
        plain = [
            {
                "name": p.name,
                "runtime": p.runtime,
                "medians_s": p.medians_s,
                "minima_s": p.minima_s,
                "spread": p.spread,
                "spread_of_minima": p.spread_of_minima,
                "doubted": p.doubted,
                "unsteady": p.unsteady,
                "holds": p.holds,
            }
            for p in found
        ]
        print(
            json.dumps(
                {
                    "schema_version": 1,
                    "holds": held,
                    "points": plain,
                    "failed": failed,
                    "control_s": controls,
                    "full_tier_s": seconds,
                    "verdict": said,
                }
            )
        )
        return 0 if held else 1
    lines = table(found) if runs else []
    lines += spent_lines(seconds) if seconds is not None else []
    lines += [f"control kernel: {min(controls) * 1e3:.1f} to {max(controls) * 1e3:.1f} ms between the runs"] if controls else []
    print("\n".join([*lines, "", said]))
    return 0 if held else 1


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.spread", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", action="store_true", help="one JSON document in place of the table")
    parser.add_argument("--runs", type=int, default=5, help=f"sessions, {FEWEST_RUNS} at least, or 0")
    parser.add_argument(
        "--runtime", action="append", metavar="ID", help="this one; may be repeated; by default torch-eager and jax"
    )
    parser.add_argument("--only", metavar="KERNEL", help="this kernel alone")
    parser.add_argument("--skip-full", action="store_true", help="no full tier, and no share of its time")
    asked = parser.parse_args(arguments)
    if asked.runs < FEWEST_RUNS and (asked.runs or asked.skip_full):
        parser.error(f"got {asked.runs} runs; expected {FEWEST_RUNS} at least, or 0 and a full tier; fewer say little")
    asked.runtime = asked.runtime or ["torch-eager", "jax"]
    return asked


def _say(text: str) -> None:
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
