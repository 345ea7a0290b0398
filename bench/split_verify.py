"""Splits that are planned from measured pieces, then run: JAX and PyTorch on a core each, three models, three links.

For each model both sides are calibrated once and the channel at each link speed; from that `services.split_measured` plans the
shares. Then the planned shares and a sweep of shares, all and nothing among them, are run in rounds of random order; the
planner's choice and the best of the sweep, and both sides and the better one alone, are then run in turn, so that luck and a
machine that becomes faster or slower favour neither.

Bounds, all of which must hold for exit 0: the median over all models and links of |planned / measured - 1| of the planned step at
most 12 %; the step at the planner's choice (a share, or one side alone) at most 3 % longer than the best step of the sweep;
`hybrid` or `single` right wherever measured steps of the two differ by more than 5 %; every comparison with one runtime holds.

Run: `python -m bench.split_verify [--json] [--quick] [--models NAME ...]`. The machine must be quiet for the figures to mean
anything.
"""

import argparse
import json
import os
import random
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import intake
from core.settings import Settings
from core.statistics import iqr, median
from probes.split.calibration import calibrate
from probes.split.handle import SideLost
from probes.split.run import run
from probes.split.session import SplitSession
from probes.split.words import Calibrated, LinkSpec, SideSpec, SplitTask
from services.split_measured import data_problem, plan_data, planned_s, single_s

FOLDER = Path(__file__).resolve().parent / "splits"
MODELS = ("transformer", "towers", "convolutions")
LINKS = {"as it is": None, "200 MB/s": 200e6, "20 MB/s": 20e6}
EIGHTHS = tuple(part / 8 for part in range(9))
STEP_BOUND, SHARE_BOUND, VERDICT_MARGIN = 0.12, 0.03, 0.05
NEAR = 1 / 32
"""Two points that are nearer to each other than this part of the batch are one."""
PLANS = 3
"""Plans at most: a planned share that was not calibrated is, and the plan is made again."""


@dataclass(frozen=True, slots=True)
class Effort:
    """How long it may take.

    Args:
        window_s, windows: seconds of a calibration window, and rounds of them.
        point_s, rounds: seconds of steps of a point in one round, and rounds of all points.
        duels: times that the planner's choice and the best of the sweep are run in turn.
    """

    window_s: float
    windows: int
    point_s: float
    rounds: int
    duels: int


FULL, QUICK = Effort(0.6, 3, 0.5, 3, 5), Effort(0.3, 2, 0.3, 1, 3)


@dataclass
class Point:
    """One division at one link speed.

    Args:
        rows: of the first side.
        planned_s: None where it was not planned.
        samples_s: measured periods of all rounds.
    """

    rows: int
    planned_s: float | None
    samples_s: list[float] = field(default_factory=list[float])

    @property
    def step_s(self) -> float:
        """Median."""
        return median(self.samples_s)


@dataclass(frozen=True, slots=True)
class Result:
    """One model at one link speed.

    Args:
        planned: samples of the first side in the best plan of both sides.
        planned_s, measured_s: of that step.
        chosen: samples of the first side in the planner's choice, one side alone among them.
        chosen_s, best_s: measured in turn, at the choice and at the best of all points.
        best: samples of the first side there.
        said, true: `hybrid` or `single`.
        margin: by how much the better of the two is shorter, measured in turn.
        drift: of computing at equal shares, after all steps against before: what the machine itself did meanwhile.
        points: (samples of the first side, planned, measured, interquartile range, count).
    """

    model: str
    link: str
    batch: int
    planned: int
    planned_s: float
    measured_s: float
    chosen: int
    chosen_s: float
    best: int
    best_s: float
    said: str
    true: str
    margin: float
    drift: float
    points: tuple[tuple[int, float, float, float, int], ...]

    @property
    def error(self) -> float:
        """Of the planned step."""
        return self.planned_s / self.measured_s - 1

    @property
    def loss(self) -> float:
        """By how much the choice is longer than the best."""
        return self.chosen_s / self.best_s - 1

    @property
    def verdict_right(self) -> bool:
        """Whether the verdict is that of the measured steps, or these are too near to each other to tell."""
        return self.said == self.true or self.margin <= VERDICT_MARGIN


@dataclass(frozen=True, slots=True)
class Model:
    """One model of the bench; `task` has equal shares."""

    name: str
    task: SplitTask


def model_of(name: str) -> Model:
    """Return a model by the name of its document."""
    workload = intake.read_text((FOLDER / f"{name}.yaml").read_text(encoding="utf-8")).workload
    layers = tuple((block.kind, block.sizes, block.repeats) for block in workload.blocks)
    half = workload.batch // 2
    rows = (workload.batch - half, half)
    return Model(name, SplitTask("data", layers, workload.batch, rows, optimizer=workload.optimizer, dtype=workload.dtype))


def shares_of(task: SplitTask, first: int) -> SplitTask:
    """Return a task with so many samples on the first side."""
    return replace(task, rows=(first, task.batch - first))


def calibrated(session: SplitSession, task: SplitTask, effort: Effort) -> Calibrated:
    """Measure the pieces of a step at a few shares, and each side alone with the whole batch."""
    session.shape(LinkSpec())
    batch = task.batch
    firsts = sorted({round(batch * part) for part in EIGHTHS[1:-1:2]} | {batch // 2})
    together = [(first, batch - first) for first in firsts]
    return calibrate(session, task, together, ((batch,), (batch,)), seconds=effort.window_s, rounds=effort.windows)


def exchanges(session: SplitSession, task: SplitTask, found: Calibrated, rate: float | None) -> Calibrated:
    """Return a calibration with the exchanges of another link, which stays shaped."""
    session.shape(LinkSpec(bytes_per_s=rate))
    traded = calibrate(session, task, (), ((), ()), rounds=0)
    return replace(found, exchanges=traded.exchanges, sends=traded.sends)


def with_shares(session: SplitSession, task: SplitTask, found: Calibrated, first: int, effort: Effort) -> Calibrated:
    """Return a calibration that also holds the pieces at planned shares, and more samples of the shares on both sides of them.

    The neighbours are measured again so that a machine that has become faster or slower since favours none of the three.
    """
    known = [rows for rows, _ in found.pace(0, "compute", loaded=True)]
    near = [
        max((rows for rows in known if rows < first), default=first),
        min((rows for rows in known if rows > first), default=first),
    ]
    together = [(rows, task.batch - rows) for rows in sorted({first, *near})]
    return found.with_more(calibrate(session, task, together, ((), ()), (4096,), effort.window_s, effort.windows))


def planned(session: SplitSession, model: Model, found: Calibrated, effort: Effort) -> tuple[Calibrated, int]:
    """Return the samples of the first side in the best plan of both, planned again until its shares were calibrated."""
    first = 0
    for _ in range(PLANS):
        problem = data_problem(found, ("jax", "torch"), model.task.batch, least_pools=2)
        assert problem is not None
        plan = plan_data(problem)
        assert plan is not None
        first = plan.shares[0].samples
        if first in dict(found.pace(0, "compute", loaded=True)):
            break
        found = with_shares(session, model.task, found, first, effort)
    return found, first


def sweep(session: SplitSession, model: Model, points: dict[str, list[Point]], effort: Effort, seed: int) -> None:
    """Run every point of every link in rounds of random order; what jax compiles for a share it keeps."""
    order = [(link, point) for link, several in points.items() for point in several]
    shuffled = random.Random(seed)
    for number in range(effort.rounds):
        shuffled.shuffle(order)
        for link, point in order:
            session.shape(LinkSpec(bytes_per_s=LINKS[link]))
            task = shares_of(model.task, point.rows)
            ran = run(session, task, effort.point_s, fresh=False, prove=False, warm=1 if number else 2)
            point.samples_s.extend(ran.step_s)


def duel(session: SplitSession, model: Model, link: str, pair: tuple[Point, Point], effort: Effort) -> tuple[float, float]:
    """Run two points in turn and return their median steps: the least of many noisy ones is too low to hold others against."""
    session.shape(LinkSpec(bytes_per_s=LINKS[link]))
    samples: tuple[list[float], list[float]] = ([], [])
    for number in range(effort.duels):
        for which in (0, 1) if number % 2 else (1, 0):
            task = shares_of(model.task, pair[which].rows)
            samples[which].extend(run(session, task, effort.point_s, fresh=False, prove=False, warm=1).step_s)
    return median(samples[0]), median(samples[1])


def judged(
    session: SplitSession,
    model: Model,
    link: str,
    found: Calibrated,
    first: int,
    points: list[Point],
    drift: float,
    effort: Effort,
) -> Result:
    """Hold the plan of one link to what was measured."""
    batch = model.task.batch
    alone = [single_s(found, side, batch) or float("inf") for side in (0, 1)]
    by_rows = {point.rows: point for point in points}
    plan_s = by_rows[first].planned_s or float("inf")
    said = "hybrid" if plan_s < min(alone) else "single"
    chosen = first if said == "hybrid" else (batch if alone[0] < alone[1] else 0)
    best = min(points, key=lambda point: point.step_s)
    chosen_s, best_s = best.step_s, best.step_s
    if best.rows != chosen:
        chosen_s, best_s = duel(session, model, link, (by_rows[chosen], best), effort)
    alone_best = min((by_rows[0], by_rows[batch]), key=lambda point: point.step_s)
    hybrid, single = duel(session, model, link, (by_rows[first], alone_best), effort)
    told = tuple(
        (p.rows, p.planned_s or 0.0, p.step_s, iqr(p.samples_s), len(p.samples_s)) for p in sorted(points, key=lambda p: p.rows)
    )
    return Result(
        model.name, link, batch, first, plan_s, by_rows[first].step_s, chosen, chosen_s, best.rows, best_s,
        said, "hybrid" if hybrid < single else "single", 1 - min(hybrid, single) / max(hybrid, single), drift, told,
    )  # fmt: skip


def measure(session: SplitSession, model: Model, effort: Effort) -> tuple[list[Result], list[str]]:
    """Return the results of all links, and the comparisons with one runtime that do not hold."""
    session.shape(LinkSpec())
    proof = run(session, model.task, 0.0)
    faults = [f"{model.name}: {check.what} {check.difference:.1e}" for check in proof.checks if not check.holds]
    base = calibrated(session, model.task, effort)
    found: dict[str, Calibrated] = {}
    firsts: dict[str, int] = {}
    points: dict[str, list[Point]] = {}
    for link, rate in LINKS.items():
        found[link], firsts[link] = planned(session, model, exchanges(session, model.task, base, rate), effort)
        base = replace(base, costs=found[link].costs)
        problem = data_problem(found[link], ("jax", "torch"), model.task.batch)
        assert problem is not None
        swept = swept_rows(model.task.batch, firsts[link])
        points[link] = [Point(rows, planned_s(problem, (rows, model.task.batch - rows), found[link])) for rows in swept]
    sweep(session, model, points, effort, seed=len(model.name))
    drift = drifted(session, model.task, base, effort)
    return [judged(session, model, link, found[link], firsts[link], points[link], drift, effort) for link in LINKS], faults


def drifted(session: SplitSession, task: SplitTask, base: Calibrated, effort: Effort) -> float:
    """Return by how much the computing of equal shares takes longer now than when it was calibrated, both sides in the mean."""
    session.shape(LinkSpec())
    now = calibrate(session, task, [task.rows], ((), ()), (4096,), effort.window_s, effort.windows)
    ratios = [
        now.pace(side, "compute", loaded=True)[0][1] / dict(base.pace(side, "compute", loaded=True))[task.rows[side]]
        for side in (0, 1)
    ]
    return sum(ratios) / len(ratios) - 1


def swept_rows(batch: int, planned: int) -> list[int]:
    """Return the samples of the first side at every point: eighths of the batch, the planned one in place of one beside it."""
    eighths = {round(batch * part) for part in EIGHTHS}
    return sorted({rows for rows in eighths if abs(rows - planned) > batch * NEAR or rows in (0, batch)} | {planned})


def sides() -> tuple[SideSpec, SideSpec]:
    """Return JAX and PyTorch, each on a core of its own where there are two."""
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else [0]
    return (
        SideSpec("jax", "jax", "cpu", sys.executable, cores=(cores[0],)),
        SideSpec("torch", "torch-eager", "cpu", sys.executable, cores=(cores[-1],)),
    )


def table(results: list[Result]) -> str:
    """Return one line a model and link."""
    head = (
        f"{'model':<14}{'link':<10}{'share':>7}{'planned':>10}{'measured':>10}{'error':>8}"
        f"{'choice':>8}{'its step':>10}{'best':>6}{'its step':>10}{'longer':>8}{'said':>8}{'true':>8}{'margin':>8}{'drift':>8}"
    )
    rows = [head]
    rows.extend(
        f"{one.model:<14}{one.link:<10}{one.planned / one.batch:>7.0%}"
        f"{one.planned_s * 1e3:>7.1f} ms{one.measured_s * 1e3:>7.1f} ms"
        f"{one.error:>+8.1%}{one.chosen / one.batch:>8.0%}{one.chosen_s * 1e3:>7.1f} ms{one.best / one.batch:>6.0%}"
        f"{one.best_s * 1e3:>7.1f} ms{one.loss:>+8.1%}{one.said:>8}{one.true:>8}{one.margin:>8.1%}{one.drift:>+8.1%}"
        for one in results
    )
    return "\n".join(rows)


def curves(results: list[Result]) -> str:
    """Return planned and measured steps of every point."""
    lines: list[str] = []
    for one in results:
        points = "  ".join(f"{rows / one.batch:.0%} {plan * 1e3:.0f}/{step * 1e3:.0f}" for rows, plan, step, _, _ in one.points)
        lines.append(f"{one.model}, {one.link}: share of jax, planned/measured ms: {points}")
    return "\n".join(lines)


def verdict(results: list[Result], faults: list[str], taken_s: float) -> tuple[bool, str]:
    """Return whether the bounds hold, and the line that says so with the figures."""
    error = median([abs(one.error) for one in results])
    every = median([abs(plan / step - 1) for one in results for _, plan, step, _, _ in one.points if plan])
    loss = max(one.loss for one in results)
    wrong = [f"{one.model} {one.link}" for one in results if not one.verdict_right]
    holds = error <= STEP_BOUND and loss <= SHARE_BOUND and not wrong and not faults
    told = (
        f"planned step off by {error:.1%} in the median (bound {STEP_BOUND:.0%}; {every:.1%} over all points of the sweeps), "
        f"choice at most {loss:.1%} longer than the best (bound {SHARE_BOUND:.0%}), {len(wrong)} verdicts wrong"
    )
    unequal = f"; NOT EQUAL: {'; '.join(faults)}" if faults else "; every comparison with one runtime holds"
    drift = max((one.drift for one in results), key=abs)
    which = f" ({', '.join(wrong)})" if wrong else ""
    about = f"the machine itself drifted by {drift:+.1%} at most; {taken_s:.0f} s"
    return holds, f"{'holds' if holds else 'FALLS SHORT'}: {told}{which}{unequal}; {about}"


def main() -> int:
    """Measure, print, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quick", action="store_true", help="shorter windows, one round")
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    asked = parser.parse_args()
    begin_s = time.perf_counter()
    results: list[Result] = []
    faults: list[str] = []
    with tempfile.TemporaryDirectory() as home:
        settings = Settings(Path(home), "", "", leases=Path(home) / "leases")
        try:
            for name in asked.models:
                with SplitSession(sides(), settings) as session:
                    session.open(LinkSpec())
                    found, unequal = measure(session, model_of(name), QUICK if asked.quick else FULL)
                results += found
                faults += unequal
        except SideLost as lost:
            print(f"FALLS SHORT: {lost.side}: {lost.stage}: {lost}")
            return 1
    holds, words = verdict(results, faults, time.perf_counter() - begin_s)
    if asked.json:
        print(json.dumps({"schema_version": 1, "holds": holds, "results": [asdict(one) for one in results], "faults": faults}))
    else:
        print(table(results), curves(results), words, sep="\n")
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
