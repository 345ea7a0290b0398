"""Rows of a measurement file, grouped into runs: what was run, and each figure that was published of it, as seconds of a step."""

import csv
import io
import re
from collections.abc import Mapping
from dataclasses import dataclass

import catalog
from core.device import Accelerator
from core.errors import BadInput, NotFound, TandemError
from core.sketch import DECODE, FORWARD, PREFILL, SERVING, TRAINING, Setup, Sketch
from intake.published.architecture import in_words, number, sketch_from
from intake.published.arrangement import amounts_of, layout_of
from intake.published.reference import samples_to_target

COLUMNS = (
    "id", "task", "model", "params_b", "arch_notes", "n_layers", "d_model", "n_heads", "n_kv_heads", "d_ff", "vocab",
    "moe_experts", "moe_topk", "seq_len", "global_batch", "per_device_batch", "precision", "accelerator", "n_devices",
    "framework", "framework_version", "parallelism", "metric", "value", "source", "date", "notes",
)  # fmt: skip
NEEDED = ("id", "task", "model", "accelerator", "metric", "value")
MOST_BYTES, MOST_ROWS = 64 * 2**20, 200_000
_KEYS = {
    "v100": "v100-16", "v2": "tpu-v2", "v3": "tpu-v3", "v4": "tpu-v4", "v5e": "tpu-v5e", "v5p": "tpu-v5p", "v6e": "tpu-v6e",
    "v7": "tpu-v7", "v7x": "tpu-v7", "a100": "a100-80", "h100": "h100-sxm", "trn1": "trainium1", "trn2": "trainium2",
}  # fmt: skip
"""Names that tables of measurements use where they mean one thing."""
TWO_DEVICES = ("mi250x",)
"""Chips that software sees as two devices: a row's device is half of one. Source: their notes in the catalog."""
_ORDER = (
    "step_time_s",
    "tokens_per_s_per_device",
    "tokens_per_s_total",
    "samples_per_s",
    "latency_ms",
    "tflops_per_device",
    "mfu",
)


@dataclass(frozen=True, slots=True)
class Metric:
    """One published figure: its name, its value, and whether more is better."""

    name: str
    value: float


@dataclass(frozen=True, slots=True)
class PublishedRun:
    """One run.

    Args:
        id, task, model, source, date, grade, notes: as in the file; grade is A, B or C.
        group: `training`, `inference` or `other`.
        setup: what was run; None when the row does not say enough.
        refusal: why there is no setup, or why no figure of it can be predicted; empty otherwise.
        metric: the best figure: a time or a rate before one that rests on somebody's count of FLOPs.
        seconds: of one step (training), of the first token, of one token of all sequences, or of one forward pass.
        metrics: all figures.
    """

    id: str
    task: str
    group: str
    model: str
    source: str
    date: str
    grade: str
    notes: str
    precision: str
    accelerator: str
    framework: str
    setup: Setup | None
    refusal: str
    metric: Metric | None
    seconds: float | None
    metrics: tuple[Metric, ...] = ()


def read_runs(text: str) -> tuple[PublishedRun, ...]:
    """Read a table of published measurements.

    Args:
        text: CSV in the format of `catalog/data/measurements.csv`; columns that are missing count as empty.

    Returns:
        One run for each id, in the order of the file.

    Raises:
        BadInput: it is no such table; the message names the line or the column.
    """
    if len(text) > MOST_BYTES:
        raise BadInput(f"a table of {len(text)} characters", f"at most {MOST_BYTES}", "split the file")
    reader = csv.DictReader(io.StringIO(text.removeprefix("\ufeff")))
    fields = tuple(reader.fieldnames or ())
    missing = [name for name in NEEDED if name not in fields]
    if missing:
        raise BadInput(f"a table without {', '.join(missing)}", f"the columns {', '.join(NEEDED)} at least",
                       "see catalog/data/measurements.csv for the format")  # fmt: skip
    grouped: dict[str, list[Mapping[str, str]]] = {}
    for index, row in enumerate(reader):
        if index >= MOST_ROWS:
            raise BadInput(f"more than {MOST_ROWS} rows", f"at most {MOST_ROWS}", "split the file")
        clean = {key: (value or "").strip() for key, value in row.items() if isinstance(key, str) and not isinstance(value, list)}
        if number(clean["value"]) is None:
            raise BadInput(f"{clean['value'][:40]!r} as value in line {reader.line_num}", "a number", "mend the line")
        grouped.setdefault(clean["id"], []).append(clean)
    return tuple(_run(rows) for rows in grouped.values())


def _run(rows: list[Mapping[str, str]]) -> PublishedRun:
    row = rows[0]
    metrics = tuple(Metric(each["metric"], number(each["value"]) or 0.0) for each in rows)
    setup, metric, seconds, refusal = None, None, None, ""
    try:
        chip = catalog.accelerator(_key(row["accelerator"]))
        setup = _setup(row, chip)
        metric = _best(metrics, row["model"])
        seconds = _seconds(metric, setup, chip, row)
    except (BadInput, NotFound) as error:
        refusal = str(error)
    except TandemError as error:
        refusal = str(error)
    return PublishedRun(
        row["id"],
        row["task"],
        group_of(row["task"]),
        row["model"],
        row.get("source", ""),
        row.get("date", ""),
        "C" if metric is not None and metric.name == "time_to_train_min" else _grade(row.get("notes", "")),
        row.get("notes", ""),
        row.get("precision", ""),
        row["accelerator"],
        row.get("framework", ""),
        setup,
        refusal,
        metric,
        seconds,
        metrics,
    )


def group_of(task: str) -> str:
    """Return `training`, `inference` or `other` for the task of a row."""
    if task.startswith("train") or task.endswith("train") or task == "gnn":
        return "training"
    return "inference" if "infer" in task else "other"


def source_of(run: PublishedRun) -> str:
    """Return the source of a run without its commit: what is left out as a whole when the fit is tried."""
    return run.source.split("@")[0]


def _key(name: str) -> str:
    plain = name.strip().lower()
    return _KEYS.get(plain, plain)


def _grade(notes: str) -> str:
    found = re.search(r"q=([ABC])", notes)
    return found.group(1) if found else "B"


def _regime(task: str) -> str:
    if group_of(task) == "training":
        return TRAINING
    return {"infer_prefill": PREFILL, "infer_decode": DECODE, "infer_serve": SERVING}.get(task, FORWARD)


def _setup(row: Mapping[str, str], chip: Accelerator) -> Setup:
    if row["task"] == "microbench":
        raise BadInput("a measurement of one kernel", "a run of a model", "./tandem probe measures kernels")
    if number(row.get("n_devices")) is None:
        raise BadInput("a run without a number of chips", "n_devices", "fill the column")
    sketch = sketch_from(row)
    regime = _regime(row["task"])
    amounts = amounts_of(row, sketch.length, sketch.kind)
    length, output = amounts.length, 0.0
    notes = row.get("notes", "")
    if regime in (DECODE, SERVING):
        length, output = _prompt_and_output(notes, amounts.length)
    chips = number(row.get("n_devices")) or 1.0
    if chip.key in TWO_DEVICES:
        chips /= 2
    layout = layout_of(row, amounts.batch, chip.kind == "tpu")
    return Setup(
        sketch,
        regime,
        chip.key,
        chips,
        stack_of(row, chip),
        row.get("precision") or "bf16",
        amounts.batch,
        length,
        output,
        layout,
        _year(row.get("date", "")),
        _packed(row, sketch, regime),
        _fixed_cache(row, amounts.length, regime),
        row["task"] == "train_lora",
        amounts.assumed,
    )


def _prompt_and_output(notes: str, total: float) -> tuple[float, float]:
    prompt = in_words(r"ISL (\d+)", notes) or in_words(r"prompt (\d+)", notes)
    output = in_words(r"OSL (\d+)", notes) or in_words(r"(\d+) new tokens", notes)
    if prompt is not None and output is not None:
        return prompt, output
    if "ShareGPT" in notes:  # mean prompt and answer of that data set, cut at the length of the cache
        return min(220.0, total / 2), min(200.0, total / 2)
    return (prompt or total / 2), (output or max(1.0, total - (prompt or total / 2)))


def _fixed_cache(row: Mapping[str, str], length: float, regime: str) -> float:
    """Return the positions of a cache that compiled programs read in full, 0 for servers that read what is there."""
    return length if regime == SERVING and row.get("framework", "").startswith("jetstream") else 0.0


def _packed(row: Mapping[str, str], sketch: Sketch, regime: str) -> float:
    """Return the part of the positions that is computed where padding is removed or binned away.

    MLPerf's BERT removes padding, half of Wikipedia at 512; NVIDIA's BERT loaders bin sequences by length since 21.11.

    Source: mlcommons/training language_model (unpadded sequences); NVIDIA/LDDL, language datasets and data loaders (binning).
    """
    if sketch.kind != "encoder" or regime != TRAINING:
        return 1.0
    if "padding removed" in row.get("notes", "") or row["id"].startswith("mlpt"):
        return 0.5
    release = re.search(r"NGC (\d\d\.\d\d)", row.get("framework_version", ""))
    binned = release is not None and release.group(1) >= "21.11" and row.get("framework", "") in ("pytorch", "paddlepaddle")
    return 0.62 if binned and "pretrain" in row["task"] and (number(row.get("seq_len")) or 0.0) >= 512 else 1.0


def stack_of(row: Mapping[str, str], chip: Accelerator) -> str:
    """Return framework and library as the cost model names them."""
    framework = row.get("framework", "").strip().lower() or "unknown"
    version = row.get("framework_version", "")
    if framework == "tensorflow":
        return "tensorflow+xla" if "XLA" in version or chip.kind == "tpu" else "tensorflow"
    return framework.replace("pytorch", "torch", 1)


def _year(date: str) -> float:
    found = re.match(r"(\d{4})(?:-(\d{2}))?", date)
    if not found:
        return 2025.0
    return float(found.group(1)) + (float(found.group(2)) - 0.5) / 12 if found.group(2) else float(found.group(1)) + 0.5


def _best(metrics: tuple[Metric, ...], model: str) -> Metric:
    known = {metric.name: metric for metric in metrics}
    for name in _ORDER:
        if name in known and known[name].value > 0:
            return known[name]
    if "time_to_train_min" in known and samples_to_target(model) is not None:
        return known["time_to_train_min"]
    if "time_to_train_min" in known:
        raise BadInput("a time to a target of quality", "a rate or the time of a step",
                       "give samples_per_s: how many samples the target took is not in the row")  # fmt: skip
    raise BadInput(f"the metric {metrics[0].name!r}", f"one of {', '.join(_ORDER)}", "convert the figure")


def _seconds(metric: Metric, setup: Setup, chip: Accelerator, row: Mapping[str, str]) -> float:
    value, batch = metric.value, setup.batch
    positions = batch * (setup.length if setup.sketch.kind not in ("vision", "recommender", "graph") else 1.0)
    generating = setup.regime in (DECODE, SERVING)
    if metric.name == "step_time_s":
        return value
    if metric.name == "latency_ms":
        return value / 1e3
    if metric.name in ("tokens_per_s_per_device", "tokens_per_s_total"):
        total = value * (setup.chips if metric.name.endswith("device") else 1.0)
        return (batch if generating else positions) / total
    if metric.name == "samples_per_s":
        return batch / value
    if metric.name == "time_to_train_min":
        samples, _ = samples_to_target(row["model"]) or (0.0, 0.0)
        return value * 60 * batch / samples
    flop = counted_flop(setup, row)
    if metric.name == "tflops_per_device":
        return flop / setup.chips / (value * 1e12)
    peak = chip.peak("bf16") or chip.peak("fp16")
    if peak is None:
        raise BadInput("a utilisation of a chip without a known peak", "a rate", "give tokens_per_s_per_device")
    return flop / setup.chips / (value * peak)


def counted_flop(setup: Setup, row: Mapping[str, str]) -> float:
    """Return the FLOPs of a step by the convention of a row's source.

    Attention is counted in full by Megatron, NeMo, llm-foundry and, before July 2025, by MaxText; since then in half where
    it is causal.
    """
    sketch, notes = setup.sketch, row.get("notes", "")
    late_maxtext = "maxtext" in row.get("framework", "") and row.get("date", "") >= "2025-07"
    causal = late_maxtext and not re.search(r"full[- ](?:\(non-causal\) )?attention|non-causal", notes)
    length = setup.length
    positions = setup.batch * (length if sketch.kind not in ("vision", "recommender", "graph") else 1.0)
    keys = (0.5 if causal else 1.0) * (sketch.length or length)
    inside = sketch.length if sketch.kind == "vision" and sketch.length else 1.0
    return 3.0 * positions * (sketch.matrix_flop + sketch.attention_flop * keys * inside)
