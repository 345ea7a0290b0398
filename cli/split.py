"""`./tandem split WORKLOAD --pool KEY=N --pool KEY=N`: these pools together, or one of them alone?"""

import click

from cli import shapes
from cli.main import DONE, FINDING
from cli.output import document, progress, write
from cli.parts import Number, json_flag, tell_progress, tell_sections, titled
from core.errors import BadInput, TandemError
from core.split import MODES, Split, SplitOptions, SplitRun, Verified
from core.workload import OBJECTIVES
from reports.split_run_text import verified_sections
from reports.split_text import sections
from services import runs, work, workflows, workloads
from services import split as service


@click.command()
@click.argument("workload")
@click.option("--pool", "pools", multiple=True, metavar="KEY=N[@RUNTIME]",
              help="One pool; give it twice or more. An attached device by its id (cpu:0@jax), a chip as in --pools of advise.")
@click.option("--link-gbps", type=Number(1e-6, 1e6), help="Gbit/s between the pools, each way; else the slower hosts' network.")
@click.option("--link-latency-ms", type=Number(0, 60000), help="One way, with --link-gbps; 0.1 unless said.")
@click.option("--mode", type=click.Choice(MODES), help="How to divide; without it every way that the workload allows.")
@click.option("--objective", type=click.Choice(OBJECTIVES), help="What is to be saved; without it the workload's own.")
@click.option("--least-saving", type=Number(0, 0.99), default=0.2, show_default=True,
              help="Fraction that two stacks have to save to be worth it.")
@click.option("--verify", is_flag=True, help="Run the plan on the attached devices, and hold it to what is measured.")
@click.option("--budget-s", type=Number(1, 86400), default=120.0, show_default=True, help="Seconds of running at most.")
@json_flag
def split(
    workload: str, pools: tuple[str, ...], link_gbps: float | None, link_latency_ms: float | None, mode: str | None,
    objective: str | None, least_saving: float, budget_s: float, *, verify: bool, as_json: bool,
) -> int:
    """WORKLOAD is a YAML or JSON file, - for standard input, a preset (llama-3-8b:train), or a file of a workflow or portfolio.

    The latter two name their own pools, so that they take no --pool.
    """
    if workflows.recognised(workload):
        _refuse_for_documents(pools, link_gbps, link_latency_ms, mode, objective, verify=verify)
        return _tell_workflow(workflows.plan_file(workload, least_saving), as_json=as_json)
    understood = workloads.read(workload)
    rate = None if link_gbps is None else link_gbps * 1e9 / 8
    if link_gbps is None and link_latency_ms is not None:
        raise BadInput("--link-latency-ms without --link-gbps", "both, or neither", "add --link-gbps")
    latency_s = None if link_gbps is None else (0.1 if link_latency_ms is None else link_latency_ms) / 1e3
    options = SplitOptions(pools, mode or "", rate, latency_s, least_saving, verify, budget_s)
    run_id = service.create(understood.document, options, objective)
    progress(f"run {run_id}: {titled(understood.workload)}")
    work.work(run_id, tell_progress)
    run = runs.open_run(run_id)
    if run.split is None:
        raise TandemError(f"run {run_id} ended without a split ({run.state}): {run.error}")
    if as_json:
        document(shapes.split(run.split, run_id))
    else:
        if run.split.verified is not None:
            _tell_verified(run.split.verified)
            write("\nThe plan:")
        tell_sections(sections(run.split.split, run.workload))
        if run.split.split.seconds is None and not verify and all(one.pool.attached for one in run.split.split.singles):
            write("\nNothing of these pools was measured yet: --verify measures, plans and runs it.")
        write(f"\nKept: ./tandem show {run_id}; ./tandem report {run_id} --format html -o report.html")
    return _code(run.split, verify=verify)


def _refuse_for_documents(*given: object, verify: bool) -> None:
    """Refuse options that a workflow or portfolio says itself."""
    if any(given) or verify:
        expected = "only --least-saving and --json: it names its own pools, links and objective, and is not run"
        raise BadInput("other options with a workflow or portfolio", expected, "write them into the file, or leave them out")


def _code(told: SplitRun, *, verify: bool) -> int:
    """Return the exit code: a run that ended early or is not equal to one side alone is a finding, and so is no plan at all."""
    found = told.verified
    if verify:
        return DONE if found is not None and not found.ended and all(check.holds for check in found.checks) else FINDING
    return DONE if told.split.seconds is not None or told.split.best_single is not None else FINDING


def _tell_verified(found: Verified) -> None:
    """Write what came of running the plan."""
    how = f", planned from {'; '.join(found.planned_s.evidence)}" if found.planned_s is not None else ""
    write(f"\nRun for real, mode {found.mode}{how}:")
    tell_sections(verified_sections(found))


def _tell_workflow(told: Split, *, as_json: bool) -> int:
    """Write the plan of a workflow or portfolio, which is no run and is not kept."""
    if as_json:
        document(shapes.split(SplitRun(told), None))
    else:
        tell_sections(sections(told))
    return DONE if any(share.fraction > 0 for share in told.shares) else FINDING
