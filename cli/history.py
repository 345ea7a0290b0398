"""`./tandem history`: earlier runs, newest first."""

import click

from cli import shapes
from cli.output import document, table, write
from cli.parts import json_flag
from core import format as fmt
from core.errors import one_line
from core.run import RUN_STATES
from core.workload import TASKS
from services import runs


@click.command()
@click.option("--search", default="", metavar="TEXT", help="Only runs whose name, note, id or recommendation holds this text.")
@click.option("--task", type=click.Choice(TASKS), help="Only runs of this task.")
@click.option("--state", type=click.Choice(RUN_STATES), help="Only runs in this state.")
@click.option("--limit", type=click.IntRange(1, 10000), default=20, show_default=True, help="How many at most.")
@json_flag
def history(search: str, task: str | None, state: str | None, limit: int, *, as_json: bool) -> None:
    """Newest first."""
    runs.sweep()
    found = runs.history(one_line(search, 200), task, state, limit=limit)
    if as_json:
        document({"runs": [shapes.run_summary(one) for one in found]})
    elif not found:
        narrowed = search or task or state
        write("No run matches." if narrowed else "No run yet. Try: ./tandem advise gpt2-small:train")
    else:
        table(("run", "created (UTC)", "state", "name", "task", "best", "step", "owner"), [
            (one.id, one.created_at[:16].replace("T", " "), one.state, one.name, one.task, one.best or fmt.MISSING,
             fmt.seconds(one.step_time_s), one.owner) for one in found
        ], right=(6,))
