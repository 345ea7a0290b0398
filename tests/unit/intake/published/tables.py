"""Tables of published measurements as somebody else would write them."""

import csv
import io

from intake.published import PublishedRun, read_runs
from intake.published.checks import COLUMNS

TRAINING = {
    "id": "new-1", "task": "train_pretrain", "model": "NewLM-9B", "params_b": "9", "arch_notes": "SwiGLU; GQA", "n_layers": "40",
    "d_model": "4096", "n_heads": "32", "n_kv_heads": "8", "d_ff": "14336", "vocab": "128256", "seq_len": "4096",
    "global_batch": "64", "precision": "bf16", "accelerator": "H100-SXM", "n_devices": "8", "framework": "pytorch/fsdp",
    "parallelism": "fsdp8", "metric": "tokens_per_s_per_device", "value": "7000", "source": "https://example.org/new",
    "date": "2025-06", "notes": "q=A",
}  # fmt: skip
SERVING = TRAINING | {
    "id": "new-2", "task": "infer_serve", "framework": "vllm", "parallelism": "tp8", "metric": "tokens_per_s_total",
    "value": "5000", "notes": "ISL 1024 OSL 256",
}  # fmt: skip


def table(*rows: dict[str, str], columns: tuple[str, ...] = COLUMNS) -> str:
    out = io.StringIO(newline="")
    writer = csv.DictWriter(out, columns, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def one(row: dict[str, str], **changes: str) -> PublishedRun:
    (found,) = read_runs(table(row | changes))
    return found
