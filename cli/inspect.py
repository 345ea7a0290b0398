"""`./tandem inspect`: what Tandem understood of a workload, a model file or a code base, before anything is measured."""

import click

from cli import shapes
from cli.output import document, table, write
from cli.parts import json_flag
from core import format as fmt
from core.finding import TARGETS
from core.graph import SetAside
from core.picture import Picture
from core.workload import OPTIMIZERS, TASKS
from services import code, models, workloads
from services.code import TARGET_NAMES, CodeReport
from services.workloads import Description, Understood


@click.command()
@click.argument("subject", metavar="MODEL_OR_CODE")
@click.option("--task", type=click.Choice(TASKS), help="In place of the workload's own.")
@click.option("--batch", type=click.IntRange(1, 10**6), help="Samples of a step.")
@click.option("--length", type=click.IntRange(1, 10**7), help="Tokens of a sequence.")
@click.option("--dtype", help="That the arithmetic is done in.")
@click.option("--optimizer", type=click.Choice(OPTIMIZERS), help="Of training.")
@click.option("--target", type=click.Choice(TARGETS), help="Of code: show each finding on this one; without it the scores.")
@json_flag
def inspect(
    subject: str, target: str | None, task: str | None, batch: int | None, length: int | None, dtype: str | None,
    optimizer: str | None, *, as_json: bool,
) -> None:
    """MODEL_OR_CODE is a model, training code (a file, a folder or a zip), a workload file, - for standard input, or a preset.

    Model files and code are read as data in a sandbox and never run.
    """
    path = workloads.path_of(subject)
    if path is not None and code.looks_like_code(path) and not models.looks_like_model(path):
        report = code.scan(path)
        if as_json:
            document(shapes.code_report(report))
        else:
            _tell_code(report, target)
        return
    asked = {"task": task, "batch": batch, "length": length, "dtype": dtype, "optimizer": optimizer}
    understood = workloads.read(subject, asked)
    described, picture = workloads.describe(understood.workload), models.picture_of(understood.document)
    if as_json:
        document(shapes.inspection(understood.workload, described, picture))
        return
    _tell(understood, described)
    if picture is not None:
        _tell_picture(picture, adapted=understood.workload.lora is not None)
    if understood.workload.existing.evidence:
        write("\nFrom the code: " + "; ".join(understood.workload.existing.evidence) + ".")
    if understood.workload.assumptions:
        write("\nAssumed: " + "; ".join(understood.workload.assumptions) + ".")


def _tell(understood: Understood, described: Description) -> None:
    job = understood.workload
    write(job.name)
    write(f"task {job.task}, {understood.batch_words}" + (f", length {job.length:,}" if job.length else "")
          + f", {job.dtype}, optimizer {job.optimizer}" + (f", LoRA of rank {job.lora.rank}" if job.lora else ""))
    backward = f", {fmt.count(job.flop_backward, 'FLOP')} backward" if job.trains else ""
    write(f"{fmt.count(job.parameter_count)} parameters; {fmt.count(job.flop_forward, 'FLOP')} forward{backward}; "
          f"{fmt.count(job.units_per_step)} {job.unit} a step")
    write("\nLayers:")
    heads = ("name", "kind", "times", "parameters", "forward", "backward", "saved")
    rows = [
        (one.name, one.kind, str(one.repeats), fmt.count(one.parameter_count), fmt.count(one.flop_forward, "FLOP"),
         fmt.count(job.flop_backward_of(one), "FLOP"), fmt.memory(one.activation_bytes)) for one in job.blocks
    ]
    shown = slice(None) if job.trains else slice(5)
    table(heads[shown], [row[shown] for row in rows], right=tuple(range(2, len(heads[shown]))))
    parts = ", ".join(f"{name} {fmt.memory(size)}" for name, size in described.memory)
    write(f"\nMemory of a chip that holds it all: {fmt.memory(sum(size for _, size in described.memory))} ({parts})")


def _tell_picture(picture: Picture, *, adapted: bool) -> None:
    """Write what only a model that was read tells: exact parameters, facts, optimizers, adapters, what moves badly."""
    write(f"\nRead as {picture.format}: {picture.parameter_count:,} parameters; the backward pass was "
          f"{'derived from the forward one' if picture.derived else 'traced'}; follows "
          + (", ".join(name for name, _ in picture.symbols if name != "word") or "no size")
          + f"; sandbox of level {models.sandbox_of(picture)}")
    for name, value in models.facts(picture):
        write(f"{name}: {value:,}")
    states = ", ".join(f"{one.name} {fmt.memory(one.size_bytes)}" for one in models.optimizer_states(picture))
    write(f"\nOptimizer state: {states}")
    found = models.adapter(picture)
    if found.parameter_count and not adapted:  # else the job's own adapters are told
        write(f"LoRA of rank {found.rank} on all matrices of the layers: {fmt.count(found.parameter_count)} trained parameters, "
              f"{fmt.memory(found.state_bytes)} of AdamW")
    if told := models.program_memory(picture):
        write("\nMemory of the program in the file, run as it is written:")
        rows = [(one.title, *_sizes(one.memory), one.how) for one in told]
        table(("for", "arguments", "results", "beside", "together", "from"), rows, right=(1, 2, 3, 4))
    if picture.operations:
        write("\nWhat decides portability:")
        rows = [(one.mark.replace("_", " "), one.detail, f"{one.count:,}", one.where,
                 f"{one.padded / one.extent:.1f} x" if one.padded > one.extent > 0 else "") for one in picture.operations]
        table(("what", "which", "times", "first in", "in tiles"), rows, right=(2, 4))


def _sizes(memory: SetAside | None) -> tuple[str, ...]:
    """Return arguments, results, what lies beside and all together; empty texts where nothing is told."""
    if memory is None:
        return ("",) * 4
    sizes = (memory.arguments_bytes, memory.results_bytes, memory.temporary_bytes, memory.total_bytes)
    return tuple(fmt.memory(size) for size in sizes)


def _tell_code(report: CodeReport, target: str | None) -> None:
    """Write the scores of a code base, what it says of a workload, and the findings on one target."""
    files = ", ".join(f"{count:,} {how}" for how, count in report.scan.read)
    write(f"{report.name}: {len(report.scan.findings):,} findings ({files})")
    rows = [
        (TARGET_NAMES[one.target], one.target, f"{one.score}", code.work_of(one),
         *(str(sum(found.severity == severity for found in one.findings)) for severity in ("blocks", "work", "check")))
        for one in report.scores
    ]  # fmt: skip
    write("\nHow far it is from each target (100: nothing found):")
    table(("target", "id", "score", "work", "blocks", "to change", "to look at"), rows, right=(2, 4, 5, 6))
    told = code.existing_of(report).get("evidence", [])
    if told:
        write("\nWhat it says of the workload:")
        for line in told[:20]:
            write(f"- {line}")
    if target is not None:
        write(f"\nOn {TARGET_NAMES[target]}:")
        for one in code.findings_on(report, target):
            where = f"{one.file}:{one.line}" if one.cell is None else f"{one.file}:cell {one.cell}:{one.line}"
            write(f"{where}: {one.severity}: {one.title}: {one.meaning}; {one.remedy}")
    for note in report.scan.notes[:10]:
        write(f"note: {note}")
