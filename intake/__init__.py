"""Understands a workload: the name of a preset, YAML, JSON, a form or a model configuration becomes a `core.workload.Workload`.

This room reads and counts; it runs nothing, imports no framework, and opens no file but those that a document names.
"""

from intake.batches import batches_of, leaves_batch_open
from intake.families import families
from intake.layers import layer_kinds, make_block
from intake.lora import ADAPTED, MOST_RANK
from intake.pools import is_device, request_of
from intake.presets import preset_document
from intake.price_list import read_price_list
from intake.price_list_skypilot import cloud_of_path
from intake.price_rows import LeftOut, PriceList
from intake.price_rows import Origin as PriceOrigin
from intake.sections import TARGET_TASKS
from intake.understand import (
    DTYPES,
    TRAINING_DTYPES,
    Understood,
    read_document,
    read_file,
    read_text,
)
from intake.wording import unknown

__all__ = [
    "ADAPTED",
    "DTYPES",
    "MOST_RANK",
    "TARGET_TASKS",
    "TRAINING_DTYPES",
    "LeftOut",
    "PriceList",
    "PriceOrigin",
    "Understood",
    "batches_of",
    "cloud_of_path",
    "families",
    "is_device",
    "layer_kinds",
    "leaves_batch_open",
    "make_block",
    "preset_document",
    "read_document",
    "read_file",
    "read_price_list",
    "read_text",
    "request_of",
    "unknown",
]
