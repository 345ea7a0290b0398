"""A document becomes a `Workload`: the one door through which every workload comes, from a form, a file, a paste or a preset."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from core.errors import BadInput
from core.low_rank import Matrix, matrices_of
from core.ops import COMPUTE_DTYPES as DTYPES
from core.picture import FIXED_LENGTH
from core.sketch import Windows
from core.symbols import BATCH, LENGTH
from core.workload import OBJECTIVES, OPTIMIZERS, TASKS, Block, Peaks, Size, Total, Workload
from intake.at_once import batch_while_open, held, is_at_a_rate, is_open, while_open
from intake.existing import with_code
from intake.families import Shape
from intake.fields import Section
from intake.lora import lora_words, read_lora
from intake.model import SOURCES, ModelChoice, ReadOptions, model_source, read_blocks, read_model, self_contained
from intake.picture.packed import unpacked
from intake.pictured import blocks_of, follows
from intake.pools import read_pools
from intake.presets import SCHEMA, preset_document, sizes_asked
from intake.requests import read_requests
from intake.rollouts import read_rollouts
from intake.sections import read_data, read_existing, read_targets, read_total, read_where
from intake.step_sizes import MOST_BATCH, MOST_IMAGE, MOST_LENGTH, shape_of, size_of
from intake.syntax import MOST_CHARACTERS, parse
from intake.windows import window_words, windows_from
from intake.wording import fault

KEYS = (
    "schema", "name", "task", "model", "batch", "length", "image", "prompt", "output", "dtype", "optimizer", "lora", "total",
    "existing", "data", "targets", "requests", "rollouts", "pools", "where", "objective",
)  # fmt: skip
TRAINING_DTYPES = tuple(name for name in DTYPES if name.startswith(("fp", "bf", "tf")) and name != "fp4")
MOST_BYTES = 4 * MOST_CHARACTERS
MOST_PARAMETERS, MOST_FLOP = 1e14, 1e24
USUAL_BATCH = 8
"""Of a model file that comes without one."""
_TRAINING = ("train", "finetune", "rl")
_PRESET_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(:[A-Za-z0-9_-]*)?")
_TASK_NOTES = {
    "train": "dropout is 0",
    "finetune": "dropout is 0",
    "rl": "one training step of the policy is counted, rollouts are not; dropout is 0",
    "serve": "one batch at a time, since no targets.requests_per_s is given",
    "preprocess": "one forward pass for each batch",
}
_AT_A_RATE = "requests come at random, are dealt out evenly and have equal answers"
_CAUSAL_NOTE = "attention is counted in full, as FLOP counters do, also where a causal mask hides up to half of it"


@dataclass(frozen=True, slots=True)
class Understood:
    """A workload and the document that gives it again.

    Args:
        workload: what was understood.
        document: canonical JSON of the document, with configurations in place of paths.
    """

    workload: Workload
    document: str


def read_text(text: str, folder: Path | None = None, *, weak_sandbox: bool = False) -> Understood:
    """Understand a text: the name of a preset (`gpt2-small`, `gpt2-small:train`), or a document in YAML or JSON.

    Args:
        text: as typed or pasted.
        folder: where paths in it start; None refuses paths.
        weak_sandbox: whether an administrator accepts a sandbox below the minimum for model files.

    Raises:
        BadInput: it cannot be used; one line that says what was got, what was expected and what to do.
    """
    stripped = text.strip() if len(text) <= MOST_CHARACTERS else text
    if not stripped:
        raise BadInput("an empty text", "a preset such as 'gpt2-small:train', YAML or JSON", "name a preset or paste a workload")
    if _PRESET_NAME.fullmatch(stripped):
        return _from_preset(*stripped.partition(":")[::2])
    return _understood(parse(text), folder, weak_sandbox)


def read_file(path: Path | str, *, weak_sandbox: bool = False) -> Understood:
    """Understand a workload file; paths in it start at its folder.

    Raises:
        BadInput: it cannot be read or used.
    """
    place = Path(path)
    try:
        size = place.stat().st_size
        if not place.is_file():
            raise BadInput(f"{str(path)[-80:]!r} (no regular file)", "a workload file, or a preset such as gpt2-small:train",
                           "correct the path")
        if size > MOST_BYTES:
            raise BadInput(f"{place.name}: {size:,} bytes", f"at most {MOST_BYTES:,} bytes", "give the workload file alone")
        text = place.read_text(encoding="utf-8")
    except OSError as error:
        raise BadInput(f"{str(path)[-80:]!r} ({error.strerror})", "a workload file, or a preset such as gpt2-small:train",
                       "correct the path") from None
    except ValueError:
        raise BadInput(f"{place.name}: bytes that are not UTF-8", "a YAML or JSON text in UTF-8", "save it as UTF-8") from None
    return read_text(text, place.parent, weak_sandbox=weak_sandbox)


def read_document(document: Mapping[str, object]) -> Workload:
    """Build the workload that a document describes, without paths in it.

    Args:
        document: by the keys of `KEYS`; null stands for absent.

    Raises:
        BadInput: it cannot be used; one line that names the fault.
    """
    if "model" not in document and {"hidden_size", "num_hidden_layers", "n_embd", "d_model"} & {*document}:
        remedy = 'add "model_type": "llama", or whichever it is'
        raise BadInput("a configuration without model_type", "a config.json that names it", remedy)
    top = Section("", document, KEYS)
    if top.values.get("schema", SCHEMA) != SCHEMA or isinstance(top.values.get("schema"), bool):
        raise fault("schema", top.values["schema"], f"{SCHEMA}", "set schema: 1")
    task = top.choice("task", TASKS)
    assumed: list[str] = [] if task else ["training, since no task was given"]
    task = task or "train"
    if "model" not in top.values:
        raise BadInput(
            "no key 'model'", f"a model by one of {', '.join(SOURCES)}", "write for example model: {preset: gpt2-small}"
        )
    if not isinstance(top.values["model"], Mapping):
        raise fault(
            "model", top.values["model"], f"a mapping with one of {', '.join(SOURCES)}", "write model: {preset: gpt2-small}"
        )
    model = cast("Mapping[str, object]", top.values["model"])
    match model_source(model):
        case "blocks":
            return _listed(top, task, model, assumed)
        case "picture":
            return _pictured(top, task, model["picture"], assumed)
        case _:
            return _of_family(top, task, read_model(model, None), assumed)


def _from_preset(name: str, task: str) -> Understood:
    """Return the workload with what the preset fills in as assumptions, and the document with it written out."""
    document = preset_document(name, task or "train")
    said = {key: document[key] for key in ("schema", "name", "task", "model", "objective") if key in document}
    return Understood(read_document(said), json.dumps(document, sort_keys=True, separators=(",", ":"), allow_nan=False))


def _understood(document: Mapping[str, object], folder: Path | None, weak_sandbox: bool) -> Understood:
    kept: dict[str, object] = {key: value for key, value in document.items() if value is not None}
    if isinstance(kept.get("model"), Mapping):
        _refuse_early(kept)
        asked = {key: kept[key] for key in ("dtype", "batch", "length") if isinstance(kept.get(key), str | int)}
        options = ReadOptions(cast("Mapping[str, str | int]", asked), weak_sandbox)
        kept["model"] = self_contained(cast("Mapping[str, object]", kept["model"]), folder, options)
    if folder is not None and isinstance(kept.get("existing"), Mapping):
        kept["existing"] = with_code(cast("Mapping[str, object]", kept["existing"]), folder, weak_sandbox)
    workload = read_document(kept)
    return Understood(workload, json.dumps(kept, sort_keys=True, separators=(",", ":"), allow_nan=False))


def _refuse_early(document: Mapping[str, object]) -> None:
    """Refuse what is wrong beside the model before the model is read, which may take a while."""
    top = Section("", document, KEYS)
    task = top.choice("task", TASKS) or "train"
    _arithmetic(top, task, {}, [])
    for key, most in (("batch", MOST_BATCH), ("length", MOST_LENGTH), ("image", MOST_IMAGE)):
        top.whole(key, 1, most)
    top.choice("objective", OBJECTIVES)
    read_total(top)
    read_targets(top, task)


def _of_family(top: Section, task: str, choice: ModelChoice, assumed: list[str]) -> Workload:
    defaults = sizes_asked(choice.defaults, task)
    dtype, optimizer = _arithmetic(top, task, defaults, assumed)
    batch = _batch(top, task, defaults, assumed)
    shape = shape_of(top, task, choice, Shape(batch, dtype), defaults, assumed)
    assumed.extend(choice.assumptions)
    blocks = choice.family.build(choice.config, shape)
    if shape.output is not None and shape.prompt is not None:
        assumed.append(f"each of the {shape.output} output tokens is one decode step, at the average length of the cache")
        length, units = shape.prompt + shape.output, batch * shape.output
    else:
        length = shape.length
        units = batch * length if choice.family.unit == "tokens" and length is not None else batch
    return _workload(
        top, task, blocks, (batch, length, choice.family.unit, units), (dtype, optimizer), choice.title, choice.source, assumed,
        windows=choice.windows,
    )


def _listed(top: Section, task: str, model: Mapping[str, object], assumed: list[str]) -> Workload:
    for key in ("image", "prompt", "output"):
        if top.has(key):
            raise fault(key, top.values[key], "sizes in the blocks themselves", f"remove {key}")
    dtype, optimizer = _arithmetic(top, task, {}, assumed)
    batch = _batch(top, task, {}, assumed)
    length = top.whole("length", 1, MOST_LENGTH)
    blocks = read_blocks(model, batch, length, dtype)
    unit, units = ("samples", batch) if length is None else ("tokens", batch * length)
    return _workload(
        top, task, blocks, (batch, length, unit, units), (dtype, optimizer), "Listed blocks", "blocks of the document", assumed
    )


def _pictured(top: Section, task: str, text: object, assumed: list[str]) -> Workload:
    """Return the workload of a picture; a batch and a length that nobody gave are assumed."""
    for key in ("image", "prompt", "output"):
        if top.has(key):
            raise fault(key, top.values[key], "batch and length, since the model file fixes the rest", f"remove {key}")
    if not isinstance(text, str):
        raise fault("model.picture", text, "what Tandem made of a model file", "give the model file itself")
    picture = unpacked(text)
    dtype, optimizer = _arithmetic(top, task, {}, assumed)
    if follows(picture, BATCH):
        batch = _batch(top, task, {"batch": USUAL_BATCH}, assumed, "since none was given")
    elif top.whole("batch", 1, MOST_BATCH) not in (None, 1):
        raise fault("batch", top.values["batch"], "none, since the sizes of the model file are fixed",
                    "remove batch, or export the model with a symbolic batch")
    else:
        batch = 1
        assumed.append("one call of the model, whose sizes are fixed, is a step of one sample")
    length = None
    if follows(picture, LENGTH):
        length = size_of(top, "length", MOST_LENGTH, {"length": dict(picture.symbols)[LENGTH]}, assumed, "since none was given")
    elif FIXED_LENGTH in dict(picture.facts):
        fixed = {"length": dict(picture.facts)[FIXED_LENGTH]}
        length = size_of(top, "length", MOST_LENGTH, fixed, assumed, "since none was given")
        if length != dict(picture.facts)[FIXED_LENGTH]:
            raise fault("length", length, f"{dict(picture.facts)[FIXED_LENGTH]}, for which the model was read, as its operations "
                        "change with the length", "give the model file again with this length")
    elif top.has("length"):
        raise fault("length", top.values["length"], "none, since the model file does not follow one", "remove length")
    found = blocks_of(picture, batch, length, dtype)
    assumed += picture.notes
    unit, units = ("samples", batch) if length is None else ("tokens", batch * length)
    amounts, arithmetic = (batch, length, unit, units), (dtype, optimizer)
    rest = (assumed, found.peaks, picture.matrices, picture.expert_matrices, windows_from(dict(picture.facts)))
    return _workload(top, task, found.blocks, amounts, arithmetic, picture.title, picture.format, *rest)


def _workload(
    top: Section,
    task: str,
    blocks: tuple[Block, ...],
    amounts: tuple[int, int | None, str, int],
    arithmetic: tuple[str, str],
    title: str,
    source: str,
    assumed: list[str],
    peaks: Peaks | None = None,
    matrices: tuple[Matrix, ...] | None = None,
    experts: tuple[Matrix, ...] = (),
    windows: Windows = (),
) -> Workload:
    batch, length, unit, units = amounts
    lora = read_lora(top, task, matrices_of(blocks) if matrices is None else matrices, experts)
    if lora is not None:
        assumed.append(lora_words(lora, blocks, mixture=bool(experts)))
    elif task == "finetune":
        assumed.append("all weights are trained")
    assumed += [window_words(windows)] if windows else []
    if task in _TASK_NOTES and peaks is None:  # a model that was read has its own dropout
        assumed.append(_AT_A_RATE if is_at_a_rate(top, task) else _TASK_NOTES[task])
    if any(_masks_half(block) for block in blocks):
        assumed.append(_CAUSAL_NOTE)
    total, aim = read_total(top), top.choice("objective", OBJECTIVES) or "time"
    targets = held(read_targets(top, task), at_a_rate=is_at_a_rate(top, task), total=total != Total(), assumed=assumed)
    if is_open(top, task):
        total, aim = while_open(top, total, aim, assumed)
    if total.tokens is not None and unit != "tokens":
        raise fault(
            "total.tokens", total.tokens, "steps or samples, since this model counts samples", "write total: {samples: ...}"
        )
    workload = Workload(
        name=top.text("name") or title,
        task=task,
        blocks=blocks,
        batch=batch, unit=unit, units_per_step=float(units),
        dtype=arithmetic[0],
        optimizer=arithmetic[1],
        objective=aim,
        length=length,
        total=total,
        existing=read_existing(top), data=read_data(top), targets=targets,
        pools=read_pools(top, assumed),
        where=read_where(top),
        assumptions=tuple(assumed), source=source, peaks=peaks,
        requests=read_requests(top, task),
        rollouts=read_rollouts(top, task, length), lora=lora,
        windows=windows,
    )
    return _within_reason(workload)


def _masks_half(block: Block) -> bool:
    """Whether a causal mask hides a good part of the attention that is counted: of new positions among themselves."""
    sizes = dict(block.sizes)
    length, cache = (int(str(sizes.get(name, 0))) for name in ("length", "cache"))
    return bool(sizes.get("causal")) and length > 1 and length >= cache


def _within_reason(workload: Workload) -> Workload:
    if workload.parameter_count > MOST_PARAMETERS:
        raise BadInput(
            f"a model of {workload.parameter_count:.2g} parameters",
            f"at most {MOST_PARAMETERS:.0e}",
            "check the sizes of the model",
        )
    if workload.flop_per_step > MOST_FLOP:
        got = f"a step of {workload.flop_per_step:.2g} FLOP"
        raise BadInput(got, f"at most {MOST_FLOP:.0e}", "check batch, length and model")
    return workload


def _arithmetic(top: Section, task: str, defaults: Mapping[str, Size], assumed: list[str]) -> tuple[str, str]:
    """Return dtype and optimizer."""
    training = task in _TRAINING
    dtype = top.choice("dtype", TRAINING_DTYPES if training else DTYPES)
    if dtype is None:
        dtype = str(defaults.get("dtype", "bf16"))
        assumed.append(f"{dtype}, as the preset says" if defaults else f"{dtype}, since no dtype was given")
    optimizer = top.choice("optimizer", OPTIMIZERS)
    if not training:
        if optimizer not in (None, "none"):
            assumed.append(f"{optimizer} is not used, since nothing is trained")
        return dtype, "none"
    if optimizer == "none":
        raise fault("optimizer", optimizer, f"one of {', '.join(name for name in OPTIMIZERS if name != 'none')} when training")
    if optimizer is None:
        optimizer = str(defaults.get("optimizer", "adamw"))
        assumed.append(f"{optimizer}, as the preset says" if defaults else f"{optimizer}, since no optimizer was given")
    return dtype, optimizer


def _batch(top: Section, task: str, defaults: Mapping[str, Size], assumed: list[str], why: str = "as the preset says") -> int:
    """Return the batch that the document or its preset gives, or what stands for it while it is open."""
    if not is_open(top, task):
        return size_of(top, "batch", MOST_BATCH, defaults, assumed, why)
    return batch_while_open(assumed)
