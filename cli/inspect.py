"""`./tandem inspect WORKLOAD`: what Tandem understood, before anything is measured."""

import click

from cli import shapes
from cli.output import document, table, write
from cli.parts import json_flag
from core import format as fmt
from services import workloads


@click.command()
@click.argument("workload")
@json_flag
def inspect(workload: str, *, as_json: bool) -> None:
    """WORKLOAD is a YAML or JSON file, - for standard input, or a preset: NAME or NAME:TASK."""
    understood = workloads.read(workload)
    described = workloads.describe(understood.workload)
    if as_json:
        document(shapes.inspection(understood.workload, described))
        return
    job = understood.workload
    write(job.name)
    write(f"task {job.task}, batch {job.batch:,}, {job.dtype}, optimizer {job.optimizer}")
    backward = f", {fmt.count(job.flop_backward, 'FLOP')} backward" if job.trains else ""
    write(f"{fmt.count(job.parameter_count)} parameters; {fmt.count(job.flop_forward, 'FLOP')} forward{backward}; "
          f"{fmt.count(job.units_per_step)} {job.unit} a step")
    write("\nLayers:")
    heads = ("name", "kind", "times", "parameters", "forward", "backward", "saved")
    rows = [
        (one.name, one.kind, str(one.repeats), fmt.count(one.parameter_count), fmt.count(one.flop_forward, "FLOP"),
         fmt.count(one.flop_backward, "FLOP"), fmt.memory(one.activation_bytes)) for one in job.blocks
    ]
    shown = slice(None) if job.trains else slice(5)
    table(heads[shown], [row[shown] for row in rows], right=tuple(range(2, len(heads[shown]))))
    parts = ", ".join(f"{name} {fmt.memory(size)}" for name, size in described.memory)
    write(f"\nMemory of a chip that holds it all: {fmt.memory(sum(size for _, size in described.memory))} ({parts})")
    if job.assumptions:
        write("\nAssumed: " + "; ".join(job.assumptions) + ".")
