"""Rows of a measurement file, grouped into runs: what was run, and each figure that was published of it, as seconds of a step."""

import csv
import io
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import lru_cache

import catalog
from core.device import Accelerator
from core.errors import BadInput, TandemError
from core.sketch import DECODE, FORWARD, PREFILL, SERVING, TRAINING, Setup, Sketch
from intake.published.architecture import in_words, sketch_from
from intake.published.arrangement import amounts_of, answering, check_batches, guessed_of, layout_of
from intake.published.checks import LINE, SIZES, as_compared, check_parameters, check_row
from intake.published.reference import target_of
from intake.published.spelling import (
    accelerator_key,
    framework_of,
    group_of,
    number,
    positive,
    precision_of,
    refuse_unrunnable,
)
from intake.wording import refuse_other_separators

NEEDED = ("id", "task", "model", "accelerator", "metric", "value")
MOST_BYTES, MOST_ROWS = 64 * 2**20, 200_000
MOST_VALUE, MOST_COUNT = 1e15, 1e30
_MODEL_COLUMNS = ("model", "arch_notes", *SIZES)
_CONFIGURED = (
    "task", "model", *SIZES, "seq_len", "global_batch", "per_device_batch", "precision", "accelerator", "n_devices", "framework",
    "framework_version", "parallelism",
)  # fmt: skip
"""Columns that rows of one run share; rows of one id that differ in them are different runs."""
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
        line: of its first row in the file.
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
    line: int = 0


def read_runs(text: str) -> tuple[PublishedRun, ...]:
    """Read a table of published measurements.

    Args:
        text: CSV in the format of `catalog/data/measurements.csv`; columns that are missing count as empty.

    Returns:
        One run for each id and configuration, in the order of the file; a figure that is given twice makes a run of its own.

    Raises:
        BadInput: it is no such table; the message names the line or the column.
    """
    if len(text) > MOST_BYTES:
        raise BadInput(f"a table of {len(text)} characters", f"at most {MOST_BYTES}", "split the file")
    reader = csv.DictReader(io.StringIO(text.removeprefix("\ufeff"), newline=""))
    try:
        return tuple(_run(rows) for rows in _grouped(reader))
    except csv.Error as error:
        raise BadInput(f"line {reader.line_num + 1}, which is no CSV ({error})", "a CSV table", "mend the line") from error


def _grouped(reader: "csv.DictReader[str]") -> list[list[Mapping[str, str]]]:
    """Return the rows of each run.

    Raises:
        BadInput: columns are missing, or there are too many rows.
    """
    reader.fieldnames = [name.strip().lower() for name in reader.fieldnames or ()]
    refuse_other_separators(reader.fieldnames)
    twice = next((name for name in reader.fieldnames if name and reader.fieldnames.count(name) > 1), None)
    if twice is not None:
        raise BadInput(f"a heading with {twice[:40]!r} twice", "each column once", "remove or rename one of them")
    missing = [name for name in NEEDED if name not in reader.fieldnames]
    if missing:
        raise BadInput(f"a table without {', '.join(missing)}", f"the columns {', '.join(NEEDED)} at least",
                       "see catalog/data/measurements.csv for the format")  # fmt: skip
    grouped: dict[tuple[str, ...], list[Mapping[str, str]]] = {}
    times: dict[tuple[str, ...], int] = {}
    for index, row in enumerate(reader):
        if index >= MOST_ROWS:
            raise BadInput(f"more than {MOST_ROWS} rows", f"at most {MOST_ROWS}", "split the file")
        clean = {key: (value or "").strip() for key, value in row.items() if isinstance(key, str) and not isinstance(value, list)}
        clean[LINE] = str(reader.line_num)
        clean["id"] = clean["id"] or f"line {reader.line_num}"
        run = (clean["id"], *(as_compared(clean.get(name, "")) for name in _CONFIGURED))
        figure = (*run, clean["metric"].lower())
        times[figure] = times.get(figure, 0) + 1
        grouped.setdefault((*run, str(times[figure])), []).append(clean)
    return list(grouped.values())


def _run(rows: list[Mapping[str, str]]) -> PublishedRun:
    row = rows[0]
    figures = ((each["metric"].lower(), positive(each["value"])) for each in rows)
    metrics = tuple(Metric(name, value) for name, value in figures if value is not None and value <= MOST_VALUE)
    setup, metric, seconds, refusal = None, None, None, ""
    try:
        check_row(row)
        key, counted = accelerator_key(row["accelerator"])
        chip = catalog.accelerator(key)
        chips = number(row.get("n_devices")) or counted
        if chips is None:
            raise BadInput("a run without a number of chips", "n_devices", "fill the column")
        refuse_unrunnable(row.get("framework", ""), chip)
        row = {**row, "n_devices": str(chips)}
        setup = _setup(row, chip)
        if not metrics:
            expected = f"a number above 0 and up to {MOST_VALUE:g}"
            raise BadInput(f"{rows[0]['value'][:40]!r} as value", expected, "mend the line")
        metric = _best(metrics, row["model"])
        seconds = _seconds(metric, setup, chip, row)
        if not 0 < seconds < MOST_VALUE:
            raise BadInput(f"{metric.name} {metric.value:g}, a step of {seconds:g} s", "a step that takes time", "mend the line")
    except TandemError as error:
        metric, seconds, refusal = None, None, str(error)
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
        int(row[LINE]),
    )


def source_of(run: PublishedRun) -> str:
    """Return the source of a run without its commit: what is left out as a whole when the fit is tried."""
    return run.source.split("@")[0]


def _grade(notes: str) -> str:
    found = re.search(r"q=([ABC])", notes)
    return found.group(1) if found else "B"


def _regime(task: str) -> str:
    plain = task.lower()
    if group_of(plain) == "training":
        return TRAINING
    named = (("prefill", PREFILL), ("decod", DECODE), ("serv", SERVING), ("generat", SERVING))
    return next((regime for word, regime in named if word in plain), FORWARD)


def _setup(row: Mapping[str, str], chip: Accelerator) -> Setup:
    sketch = _sketch(tuple(row.get(name, "") for name in _MODEL_COLUMNS))
    regime = _regime(row["task"])
    if regime == FORWARD and sketch.kind in ("decoder", "mixture") and row["metric"].lower().startswith("tokens"):
        expected = "infer_prefill, infer_decode or infer_serve"
        raise BadInput(f"the task {row['task'][:40]!r} of a model that makes tokens", expected, "say what was timed")
    amounts = amounts_of(row, sketch.length, sketch.kind)
    length, output, split = amounts.length, 0.0, ()
    if regime in (DECODE, SERVING):
        length, output, split = _prompt_and_output(row.get("notes", ""), amounts.length)
    chips = number(row.get("n_devices")) or 1.0
    if chip.key in TWO_DEVICES:
        chips /= 2
    layout, guessed = layout_of(row, amounts.batch, chip.kind == "tpu"), guessed_of(row)
    check_batches(row, layout)
    divided: tuple[str, ...] = ()
    if "division" in guessed and chips > 1 and regime in (PREFILL, DECODE, SERVING) and sketch.attention_flop:
        layout = answering(layout, sketch.heads, chip.max_domain_chips or round(chips))
        divided = (f"divided as {layout.words}: not stated",)
    dtype = precision_of(row.get("precision", ""))
    unsaid = () if dtype else (f"precision bf16: {row.get('precision') or 'not stated'}",)
    setup = Setup(
        sketch,
        regime,
        chip.key,
        chips,
        stack_of(row, chip),
        dtype or "bf16",
        amounts.batch,
        length,
        output,
        layout,
        _year(row.get("date", "")),
        _packed(row, sketch, regime),
        _fixed_cache(row, amounts.length, regime),
        "lora" in row["task"].lower(),
        (*amounts.assumed, *split, *unsaid, *divided),
        _binned(row, sketch, regime),
        guessed,
    )
    if not 0 < length < MOST_COUNT or not 0 <= output < MOST_COUNT:
        raise BadInput(f"{length:g} positions and {output:g} tokens", "at least one position", "correct seq_len and the notes")
    return setup


@lru_cache(maxsize=4096)
def _sketch(told: tuple[str, ...]) -> Sketch:
    """Return the sketch of what a row tells of its model, see `_MODEL_COLUMNS`."""
    row = dict(zip(_MODEL_COLUMNS, told, strict=True))
    sketch = sketch_from(row)
    counts = [getattr(sketch, one.name) for one in fields(sketch)]
    if not all(0 <= count < MOST_COUNT for count in counts if isinstance(count, float)):
        raise BadInput("sizes that no model has", "counts of a forward pass from 0 on", "correct the row's columns and notes")
    check_parameters(row)
    return sketch


def _prompt_and_output(notes: str, total: float) -> tuple[float, float, tuple[str, ...]]:
    """Return tokens of a prompt and of an answer, and what was assumed of them.

    Raises:
        BadInput: a prompt that leaves nothing of the length for an answer.
    """
    prompt = in_words(r"(?:ISL|prompts?|input)(?: of)?[ =:]+(\d+)", notes)
    output = in_words(r"(?:OSL|outputs?|answers?)(?: of)?[ =:]+(\d+)", notes) or in_words(r"(\d+) new tokens", notes)
    if prompt is not None and output is not None:
        return prompt, output, ()
    if "ShareGPT" in notes:  # mean prompt and answer of that data set, cut at the length of the cache
        return min(220.0, total / 2), min(200.0, total / 2), ()
    prompt = prompt or (total - output if output is not None and output < total else total / 2)
    if output is None and prompt >= total:
        got = f"a prompt of {prompt:g} tokens of {total:g} in all"
        raise BadInput(got, "how many tokens are answered", "add OSL N to the notes")
    output = output or max(1.0, total - prompt)
    return prompt, output, (f"prompt of {prompt:g} and answer of {output:g} tokens: not stated",)


def _fixed_cache(row: Mapping[str, str], length: float, regime: str) -> float:
    """Return the positions of a cache that compiled programs read in full, 0 for servers that read what is there."""
    return length if regime == SERVING and row.get("framework", "").startswith("jetstream") else 0.0


def _packed(row: Mapping[str, str], sketch: Sketch, regime: str) -> float:
    """Return the part of the positions that is computed where padding is removed: half of Wikipedia at 512, as in MLPerf.

    Source: mlcommons/training language_model (unpadded sequences).
    """
    if sketch.kind != "encoder" or regime != TRAINING:
        return 1.0
    told = f"{row.get('notes', '')} {row.get('source', '')}".lower()
    return 0.5 if "padding removed" in told or "mlperf" in told or "mlcommons" in told else 1.0


def _binned(row: Mapping[str, str], sketch: Sketch, regime: str) -> bool:
    """Whether sequences are binned by length, as NVIDIA's BERT loaders do from 21.11 on where most of 512 would be padding.

    Source: NVIDIA/LDDL, language datasets and data loaders (binning).
    """
    release = re.search(r"NGC (\d\d\.\d\d)", row.get("framework_version", ""))
    binned = release is not None and release.group(1) >= "21.11" and row.get("framework", "") in ("pytorch", "paddlepaddle")
    long = (number(row.get("seq_len")) or 0.0) >= 512
    return binned and long and sketch.kind == "encoder" and regime == TRAINING and "pretrain" in row["task"]


def stack_of(row: Mapping[str, str], chip: Accelerator) -> str:
    """Return framework and library as the cost model names them."""
    framework = framework_of(row.get("framework", ""))
    if framework == "tensorflow":
        return "tensorflow+xla" if "XLA" in row.get("framework_version", "") or chip.kind == "tpu" else "tensorflow"
    return "torch/xla" if framework == "torch" and chip.kind == "tpu" else framework


def _year(date: str) -> float:
    """Return when a row was current, in the middle of its month or year; 2025 where no sensible date is given."""
    found = re.match(r"(20[1-4]\d)(?:-(0[1-9]|1[0-2])\b)?", date)
    if not found:
        return 2025.0
    return float(found.group(1)) + (float(found.group(2)) - 0.5) / 12 if found.group(2) else float(found.group(1)) + 0.5


def _best(metrics: tuple[Metric, ...], model: str) -> Metric:
    known = {metric.name: metric for metric in metrics}
    for name in _ORDER:
        if name in known and known[name].value > 0:
            return known[name]
    if "time_to_train_min" in known and target_of(model) is not None:
        return known["time_to_train_min"]
    if "time_to_train_min" in known:
        raise BadInput("a time to a target of quality", "a rate or the time of a step",
                       "give samples_per_s: how many samples the target took is not in the row")  # fmt: skip
    raise BadInput(f"the metric {metrics[0].name[:40]!r}", f"one of {', '.join(_ORDER)}", "convert the figure")


def _seconds(metric: Metric, setup: Setup, chip: Accelerator, row: Mapping[str, str]) -> float:
    value, batch = metric.value, setup.batch
    positions = batch * (1.0 if setup.sketch.counts_samples else setup.length)
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
        target = target_of(row["model"])
        return value * 60 * batch / target.samples(batch) if target else 0.0
    flop = counted_flop(setup, row)
    if metric.name == "tflops_per_device":
        return flop / setup.chips / (value * 1e12)
    peak = chip.peak("bf16") or chip.peak("fp16")
    if value > 1.2:
        raise BadInput(f"an mfu of {value:g}", "a fraction of the 16-bit peak such as 0.45", "divide a percentage by 100")
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
    positions = setup.batch * (1.0 if sketch.counts_samples else length)
    keys = (0.5 if causal else 1.0) * (sketch.length or length)
    inside = sketch.length if sketch.kind == "vision" and sketch.length else 1.0
    return 3.0 * positions * (sketch.matrix_flop + sketch.attention_flop * keys * inside)
