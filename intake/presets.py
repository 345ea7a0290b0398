"""Documents of presets, and the sizes that their tasks ask for."""

from collections.abc import Mapping

from catalog import preset
from core.workload import TASKS, Size
from intake.wording import unknown

SCHEMA = 1
_PRESET_TASK = {"serve": "infer", "preprocess": "infer", "rl": "train"}


def preset_document(name: str, task: str) -> dict[str, object]:
    """Return a full document of a preset that a form can edit.

    Args:
        name: a preset.
        task: one of `TASKS`; tasks that a preset does not list are filled like the nearest that it does.

    Raises:
        NotFound: no such preset.
        BadInput: no such task.
    """
    known = preset(name)
    if task not in TASKS:
        raise unknown(f"preset {name}", "task", task, TASKS)
    asked: dict[str, object] = dict(sizes_asked(known.tasks, task))
    document: dict[str, object] = {"schema": SCHEMA, "name": known.title, "task": task, "model": {"preset": name}}
    if task == "serve":  # a rate of requests may be added, which leaves both open
        asked.pop("batch", None)
        return document | asked
    return document | asked | {"objective": "time"}


def sizes_asked(tasks: Mapping[str, Mapping[str, Size]], task: str) -> Mapping[str, Size]:
    """Return what a preset's document of a task holds; tasks that it does not list follow the nearest that it does."""
    asked = tasks.get(task) or tasks.get(_PRESET_TASK.get(task, task), {})
    if task == "preprocess" and "prompt" in asked:
        return {key: value for key, value in asked.items() if key not in ("prompt", "output")} | {"length": asked["prompt"]}
    return asked
