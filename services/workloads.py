"""Workloads as people give them: a preset, a file, a paste, or a form; always one document and what was understood of it."""

import json
import sys
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import catalog
import intake
from advisor import one_chip_parts
from core.errors import BadInput
from core.workload import OBJECTIVES, OPTIMIZERS, TASKS, Workload
from services import models
from services.context import context

_MOST_STDIN_CHARACTERS = 2**20


@dataclass(frozen=True, slots=True)
class Understood:
    """A workload and the document that gives it again."""

    workload: Workload
    document: dict[str, Any]

    @property
    def batch_words(self) -> str:
        """The batch; how many requests are taken at once where the document leaves that open to each pool."""
        if intake.leaves_batch_open(self.document, self.workload.task):
            return f"requests at once left open ({self.workload.batch:,} shown here)"
        return f"batch {self.workload.batch:,}"


@dataclass(frozen=True, slots=True)
class Description:
    """What a workload amounts to; counts in FLOPs and bytes, for one step."""

    parameter_count: int
    flop_forward: int
    flop_backward: int
    flop_per_step: int
    activation_bytes: int
    operations: tuple[tuple[str, int], ...]
    memory: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True)
class FormField:
    """One thing that a form may change.

    Args:
        name: last part of the path.
        label: for people.
        kind: `int`, `float`, `choice`, `text` or `flag`.
        value: what the document says, or the default behind it.
        choices: when kind is `choice`.
        minimum, maximum: bounds of a number, None when there is none.
        help: one phrase.
        path: where in the document, joined by dots (`model.layers`).
    """

    name: str
    label: str
    kind: str
    value: Any
    choices: tuple[str, ...]
    minimum: float | None
    maximum: float | None
    help: str
    path: str


def preset_names() -> tuple[str, ...]:
    """Return the names of the presets of the catalog."""
    return catalog.preset_names()


def preset_document(name: str, task: str) -> dict[str, Any]:
    """Return the whole document of a preset, for a form to change."""
    return dict(intake.preset_document(name, task))


def understand(text: str) -> Understood:
    """Understand a preset name or a pasted document.

    Raises:
        BadInput: it cannot be used; one line.
    """
    return _opened(intake.read_text(text))


def understand_upload(name: str, data: bytes) -> Understood:
    """Understand a file that somebody handed in: a workload, or a model in a format that is read.

    Args:
        name: of the file.
        data: all of it.

    Raises:
        BadInput: neither, or refused; one line.
    """
    if not models.bytes_look_like_model(name, data):
        try:
            return understand(data.decode("utf-8"))
        except UnicodeDecodeError:
            expected = f"a workload as YAML or JSON, or a model as {', '.join(models.titles())}"
            raise BadInput(f"{name[:80]}, which is neither text nor a model that is read", expected, "export the model") from None
    return of_model(data, name, {})


def of_model(source: Path | bytes, name: str, asked: Mapping[str, Any]) -> Understood:
    """Understand a model file.

    Args:
        source: a path, or the bytes.
        name: of the file; the last part of the path when empty.
        asked: keys of the document that are known: task, batch, length, dtype, optimizer.

    Raises:
        BadInput: no model that is read, or refused; one line.
    """
    return understand(json.dumps(models.model_document(source, name, asked)))


def read(argument: str, asked: Mapping[str, Any] | None = None) -> Understood:
    """Understand what the command line was given: a workload file, a model file or folder, `-` for standard input, or a preset.

    Args:
        argument: of the command line.
        asked: keys of the document that options give: task, batch, length, dtype, optimizer; they overrule the file's.

    Raises:
        BadInput: it cannot be used; one line.
    """
    given = {key: value for key, value in (asked or {}).items() if value is not None}
    path = path_of(argument)
    named = argument.lower().endswith(tuple({*models.suffixes()} - {".json"}))
    if named or (path is not None and models.looks_like_model(path)):
        return of_model(Path(argument), "", given)
    found = _read(argument)
    return understand(json.dumps({**found.document, **given})) if given else found


def on_any_pool(given: Understood) -> Understood:
    """Return a workload without the pools that its document names, so that all of the catalog is looked at.

    Args:
        given: as understood.
    """
    return understand(json.dumps({key: value for key, value in given.document.items() if key != "pools"}))


def _read(argument: str) -> Understood:
    weak = context().settings.weak_sandbox
    if argument == "-":
        return _opened(intake.read_text(sys.stdin.read(_MOST_STDIN_CHARACTERS + 1), Path.cwd(), weak_sandbox=weak))
    looks_like_file = "/" in argument or argument.endswith((".yaml", ".yml", ".json"))
    if looks_like_file or path_of(argument) is not None:
        return _opened(intake.read_file(argument, weak_sandbox=weak))
    return understand(argument)


def path_of(argument: str) -> Path | None:
    """Return the path of a file or folder that is there; None where the text is none, or the name of a preset."""
    if argument in {"", "-"} or argument.partition(":")[0] in preset_names():
        return None
    try:
        path = Path(argument)
        return path if path.exists() else None
    except (OSError, ValueError):
        return None


def _opened(understood: intake.Understood) -> Understood:
    return Understood(understood.workload, json.loads(understood.document))


def describe(workload: Workload) -> Description:
    """Return what a workload amounts to: FLOPs by kind of operation, largest first, and memory of one chip that holds it all."""
    by_kind: dict[str, int] = {}
    for block in workload.blocks:
        for op in workload.ops_of(block):
            by_kind[op.kind] = by_kind.get(op.kind, 0) + op.flop * block.repeats
    for op in workload.ops:
        by_kind[op.kind] = by_kind.get(op.kind, 0) + op.flop
    operations = tuple(sorted(by_kind.items(), key=lambda item: -item[1]))
    return Description(
        workload.parameter_count,
        workload.flop_forward,
        workload.flop_backward,
        workload.flop_per_step,
        workload.activation_bytes,
        operations,
        one_chip_parts(workload),
    )


def form_fields(document: Mapping[str, Any]) -> tuple[FormField, ...]:
    """Return every field of a document that a form can change, the job first and then the model.

    Raises:
        BadInput: the document cannot be used.
    """
    workload = intake.read_document(document)
    fields = [
        _text("name", "Name", document.get("name") or workload.name, "shown in the history and on reports"),
        _choice("task", "Task", document.get("task") or workload.task, TASKS, "what a step does"),
        _batch(document, workload),
    ]
    for name, label, high in (
        ("length", "Length", 10**7),
        ("image", "Image", 16384),
        ("prompt", "Prompt", 10**7),
        ("output", "Output", 10**7),
    ):
        if document.get(name) is not None:
            fields.append(_whole(name, label, document[name], 1, high, "pixels a side" if name == "image" else "tokens"))
    dtypes = intake.TRAINING_DTYPES if workload.trains else intake.DTYPES
    fields.append(_choice("dtype", "Number format", workload.dtype, dtypes, "that the arithmetic is done in"))
    if workload.trains:
        fields.append(_choice("optimizer", "Optimizer", workload.optimizer, OPTIMIZERS, "decides memory and update traffic"))
    if workload.task in intake.ADAPTED:
        rank = None if workload.lora is None else workload.lora.rank
        note = "of adapters, which alone are trained; empty: all weights are"
        fields.append(_whole("lora", "LoRA rank", rank, 1, intake.MOST_RANK, note, "lora.rank"))
    fields.append(_choice("objective", "Rank for", workload.objective, OBJECTIVES, "what best means"))
    if workload.task == "serve" and workload.targets.requests_per_s is not None:
        fields.append(_real(document, "total.samples", "Requests in all", "that cost is told for", 1))
    else:
        fields.append(_real(document, "total.steps", "Steps in all", "of the whole job; empty: per 1,000 steps", 1))
    fields += [_real(document, path, label, note) for tasks, path, label, note in _TARGETS if workload.task in tasks]
    return (*fields, *_model_fields(document))


_WHOLE_JOBS = ("train", "finetune", "rl", "infer", "preprocess")
_TARGETS: tuple[tuple[tuple[str, ...], str, str, str], ...] = (
    (_WHOLE_JOBS, "targets.deadline_h", "Deadline (h)", "of the whole job; needs its steps"),
    (_WHOLE_JOBS, "targets.budget_usd", "Budget (USD)", "of the whole job; needs its steps"),
    (("infer", "serve"), "targets.latency_ms", "Latency (ms)", "which one in a hundred may exceed at a rate; else of a step"),
    (("serve",), "targets.requests_per_s", "Requests a second", "that come at random; clear the batch to leave it to each pool"),
)
"""What may be asked for: of which tasks, path, label and a phrase for people."""


def _batch(document: Mapping[str, Any], workload: Workload) -> FormField:
    """Return the batch, empty where each pool takes as many requests at once as serve it best."""
    note = "samples in one step, over all chips"
    served = workload.task == "serve" and workload.targets.requests_per_s is not None
    value = document.get("batch", None if served else workload.batch)
    return _whole("batch", "Batch", value, 1, 10**6, note + "; empty: as many requests at once as serve best" * served)


def _real(document: Mapping[str, Any], path: str, label: str, note: str, low: float = 0) -> FormField:
    """Return a number that stands in a section of the document, or may."""
    section, _, name = path.partition(".")
    held = cast("Mapping[str, Any]", document.get(section) or {})
    return FormField(name, label, "float", held.get(name), (), low, None, note, path)


def _model_fields(document: Mapping[str, Any]) -> tuple[FormField, ...]:
    given = document.get("model")
    if not isinstance(given, Mapping) or "preset" not in given:
        return ()
    model = cast("Mapping[str, Any]", given)
    chosen = catalog.preset(str(model["preset"]))
    result: list[FormField] = []
    for spec in intake.families()[chosen.family].specs:
        value = model.get(spec.name, chosen.config.get(spec.name, spec.default))
        path, label = f"model.{spec.name}", spec.name.replace("_", " ").capitalize()
        if spec.form == "whole":
            result.append(_whole(spec.name, label, value, spec.low, spec.high, spec.meaning, path))
        elif spec.form == "flag":
            result.append(FormField(spec.name, label, "flag", bool(value), (), None, None, spec.meaning, path))
        elif spec.form == "word":
            result.append(_choice(spec.name, label, value, spec.words, spec.meaning, path))
        else:
            shown = ", ".join(str(item) for item in cast("tuple[int, ...]", value))
            result.append(
                FormField(spec.name, label, "text", shown, (), None, None, f"{spec.meaning}; whole numbers with commas", path)
            )
    return tuple(result)


def apply_fields(document: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the document with values set by path; None removes a value, a text with commas becomes a list where one is due.

    Raises:
        BadInput: a path that the form does not offer.
    """
    offered = {field.path: field for field in form_fields(document)}
    result = deepcopy(dict(document))
    for path, value in changes.items():
        if path not in offered:
            raise BadInput(f"field {path!r}", f"one of {', '.join(offered)}", "use the fields of the form")
        target = result
        *parents, leaf = path.split(".")
        for parent in parents:
            if not isinstance(target.get(parent), dict):
                target[parent] = {}
            target = target[parent]
        if value is None:
            target.pop(leaf, None)
        else:
            target[leaf] = _listed(value) if path.startswith("model.") and offered[path].kind == "text" else value
    if result.get("task") not in intake.ADAPTED:
        result.pop("lora", None)
    for target, tasks in intake.TARGET_TASKS.items():
        if result.get("task") not in tasks and isinstance(result.get("targets"), dict):
            result["targets"].pop(target, None)
    return {key: value for key, value in result.items() if key not in ("total", "targets", "lora") or value}


def _listed(value: Any) -> list[Any]:
    """Return the whole numbers of a text with commas; what is not one stays a text for intake to refuse by name."""
    parts = [part.strip() for part in str(value).split(",") if part.strip()]
    return [int(part) if part.isdigit() else part for part in parts]


def _text(name: str, label: str, value: Any, note: str) -> FormField:
    return FormField(name, label, "text", value, (), None, None, note, name)


def _choice(name: str, label: str, value: Any, choices: tuple[str, ...], note: str, path: str = "") -> FormField:
    return FormField(name, label, "choice", value, tuple(choices), None, None, note, path or name)


def _whole(name: str, label: str, value: Any, low: int, high: int, note: str, path: str = "") -> FormField:
    return FormField(name, label, "int", value, (), low, high, note, path or name)
