"""What a published row must hold to be a run: refused is what cannot be, with the column that says so and what was expected."""

from collections.abc import Mapping

from core.errors import BadInput
from intake.published.architecture import sketch_from
from intake.published.reference import reference_of
from intake.published.spelling import group_of, is_date, number

COLUMNS = (
    "id", "task", "model", "params_b", "arch_notes", "n_layers", "d_model", "n_heads", "n_kv_heads", "d_ff", "vocab",
    "moe_experts", "moe_topk", "seq_len", "global_batch", "per_device_batch", "precision", "accelerator", "n_devices",
    "framework", "framework_version", "parallelism", "metric", "value", "source", "date", "notes",
)  # fmt: skip
SIZES = {
    "params_b": 1e6, "n_layers": 1e5, "d_model": 1e7, "n_heads": 1e5, "n_kv_heads": 1e5, "d_ff": 1e8, "vocab": 1e9,
    "moe_experts": 1e6, "moe_topk": 1e6,
}  # fmt: skip
_PARTS = (("moe_topk", "moe_experts"), ("n_kv_heads", "n_heads"))
"""Columns that count a part of what another counts."""
_AMOUNTS = {"seq_len": 1e9, "global_batch": 1e9, "per_device_batch": 1e9, "n_devices": 1e7}
"""Largest number that a column may hold; sizes may be 0 where a model has none of it, amounts may not."""
LEAST_PARAMS_B = 1e-6
"""Billions of parameters below which nothing is a model."""
_PARAMETERS_OFF = 6.0
"""Times that stated parameters may be off what the sizes of a model give: some tell a part of a model (an encoder without its
decoder, experts without what is shared), but nothing tells a wrong unit."""
LINE = "#line"
"""Key of a row's line, beside its columns."""
_SHAPES = ("n_layers", "d_model", "n_heads", "d_ff")
"""Columns that make a transformer without its parameters being said."""


def as_compared(cell: str) -> str:
    """Return a cell as it is held against another: a number however it is written, and any other text as it is.

    Args:
        cell: of a row.
    """
    value = number(cell)
    return cell if value is None else repr(value)


def check_row(row: Mapping[str, str]) -> None:
    """Refuse a row whose task is none that is predicted, or whose numbers cannot be those of a run.

    Args:
        row: by column.

    Raises:
        BadInput: naming the column.
    """
    if row["task"].lower() == "microbench":
        raise BadInput("a measurement of one kernel", "a run of a model", "./tandem probe measures kernels")
    if group_of(row["task"]) == "other":
        raise BadInput(f"the task {row['task'][:40]!r}", "one with train, finetune, infer, prefill, decode or serve in its name",
                       "name what was run")  # fmt: skip
    for names, least in ((SIZES, "from 0"), (_AMOUNTS, "above 0")):
        for name, most in names.items():
            text, value = row.get(name, ""), number(row.get(name))
            if value is None and text:
                raise BadInput(f"{name} {text[:40]!r}", f"a number {least}", "write the number alone, or leave it empty")
            if value is not None and not (0 <= value <= most and (value > 0 or names is SIZES)):
                raise BadInput(f"{name} {text[:40]}", f"a number {least} up to {most:g}", "mend it or leave it empty")
    _check_parts(row)
    if row.get("date") and not is_date(row["date"]):
        raise BadInput(f"date {row['date'][:40]!r}", "a day, month or year from 2010 on, as 2025-06", "mend it or leave it empty")


def _check_parts(row: Mapping[str, str]) -> None:
    """Refuse parts that are more than the whole, experts of which a token uses none, and a model of less than a thing.

    Raises:
        BadInput: naming the columns.
    """
    for part, whole in _PARTS:
        some, all_ = number(row.get(part)), number(row.get(whole))
        if some is not None and all_ is not None and some > all_:
            raise BadInput(f"{part} {some:g} of {whole} {all_:g}", "no more than there are", "correct one of them")
        if some == 0 and all_:
            raise BadInput(f"{part} 0 of {whole} {all_:g}", "at least one of them", "correct one of them, or leave it empty")
    named = reference_of(row.get("model", ""), row.get("arch_notes", "")) is not None
    shaped = all(number(row.get(name)) for name in _SHAPES) and not named
    if number(row.get("moe_experts")) and number(row.get("moe_topk")) is None and shaped:
        raise BadInput(f"moe_experts {row['moe_experts']} without moe_topk", "how many of them a token uses", "fill moe_topk")
    parameters = number(row.get("params_b"))
    if parameters is not None and 0 < parameters < LEAST_PARAMS_B:
        expected = f"billions of parameters from {LEAST_PARAMS_B:g} on"
        raise BadInput(f"params_b {parameters:g}", expected, "mend it or leave it empty")


def check_parameters(row: Mapping[str, str]) -> None:
    """Refuse parameters that are none of a model of the row's sizes or name; nothing is told where those say too little.

    Args:
        row: by column.

    Raises:
        BadInput: naming both.
    """
    stated = (number(row.get("params_b")) or 0.0) * 1e9
    try:
        counted = sketch_from({**row, "params_b": ""}).parameters
    except BadInput:
        return
    if stated > 0 and counted > 0 and not 1 / _PARAMETERS_OFF <= stated / counted <= _PARAMETERS_OFF:
        got = f"params_b {stated / 1e9:g} where the model's sizes give {counted / 1e9:.3g}"
        raise BadInput(got, f"within a factor of {_PARAMETERS_OFF:g} of it", "correct params_b or the sizes")
