"""`./tandem advise WORKLOAD`: understands it, probes it in this process, and says what to do."""

import click

from cli import shapes
from cli.main import DONE, FINDING
from cli.output import document, progress, write
from cli.parts import Number, json_flag, runtime_flag, tell_answer, tell_progress, titled
from core.errors import TandemError
from core.run import RunOptions
from core.workload import OBJECTIVES
from services import runs, work, workloads
from services.fleet import devices_for
from services.pools import echoes, pools_for


@click.command()
@click.argument("workload")
@click.option("--objective", type=click.Choice(OBJECTIVES), help="What to rank for; without it the workload's own.")
@click.option("--pools", metavar="KEY=N,...|attached|all",
              help="Accelerators to consider, by keys with counts of chips or by other names (v5p-8, A100-80GB:8), what is "
              "attached, or all; without it those that WORKLOAD names beside what is attached, or all where it names none.")
@click.option("--probe", type=click.Choice(("settle", "quick", "none")),
              help="How much to measure here: until the choice is settled, each layer once, or nothing. Without it each layer "
              "once, or nothing where --pools names none that is attached.")
@click.option("--budget-s", type=Number(1, 86400), default=RunOptions().budget_s, show_default=True,
              help="Seconds of probing at most.")
@runtime_flag
@json_flag
def advise(
    workload: str, objective: str | None, pools: str | None, probe: str | None, budget_s: float, runtimes: tuple[str, ...], *,
    as_json: bool,
) -> int:
    """WORKLOAD is a YAML or JSON file, - for standard input, or a preset: NAME or NAME:TASK (gpt2-small:train)."""
    understood = workloads.read(workload)
    if pools == "all" and understood.workload.pools:
        progress("--pools all: everything that is allowed is looked at, and what the workload names as pools is put aside")
        understood = workloads.on_any_pool(understood)
    pools = pools or RunOptions().pools
    here = any(pool.attached for pool in pools_for(understood.workload, devices_for(()), pools))
    options = RunOptions(probe or ("quick" if here else "none"), budget_s, runtimes, pools, objective)
    run_id = runs.create(understood.document, options)
    progress(f"run {run_id}: {titled(understood.workload)}")
    if not here and probe is None:
        progress("nothing is measured: none of these pools is attached; --probe quick measures this machine beside them")
    for said in echoes(pools):
        progress(f"understood: {said}")
    work.work(run_id, tell_progress)
    run = runs.open_run(run_id)
    if run.recommendation is None:
        raise TandemError(f"run {run_id} ended without advice ({run.state}): {run.error}")
    if as_json:
        document(shapes.recommendation(run.recommendation, run_id))
    else:
        tell_answer(run)
        write(f"\nKept: ./tandem show {run_id}; ./tandem report {run_id} --format html -o report.html")
    return DONE if run.recommendation.best is not None else FINDING
