"""`./tandem work RUN_ID`: what a run's own process runs; started by `services.runs`, not by people."""

import click

from services import work as service


@click.command(hidden=True)
@click.argument("run_id")
def work(run_id: str) -> None:
    """Do one queued run to its end."""
    service.work(run_id)
