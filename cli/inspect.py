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
    write(f"{fmt.count(job.parameter_count)} parameters; {fmt.count(job.flop_forward, 'FLOP')} forward, "
          f"{fmt.count(job.flop_backward, 'FLOP')} backward; {fmt.count(job.units_per_step)} {job.unit} a step")
    write("\nLayers:")
    table(("name", "kind", "times", "parameters", "forward", "backward", "saved"), [
        (one.name, one.kind, str(one.repeats), fmt.count(one.parameter_count), fmt.count(one.flop_forward, "FLOP"),
         fmt.count(one.flop_backward, "FLOP"), fmt.memory(one.activation_bytes)) for one in job.blocks
    ], right=(2, 3, 4, 5, 6))
    parts = ", ".join(f"{name} {fmt.memory(size)}" for name, size in described.memory)
    write(f"\nMemory of a chip that holds it all: {fmt.memory(sum(size for _, size in described.memory))} ({parts})")
    if job.assumptions:
        write("\nAssumed: " + "; ".join(job.assumptions) + ".")
