"""Understands a workload: the name of a preset, YAML, JSON, a form or a model configuration becomes a `core.workload.Workload`.

This room reads and counts; it runs nothing, imports no framework, and opens no file but those that a document names.
"""

from intake.families import families
from intake.layers import layer_kinds, make_block
from intake.understand import DTYPES, TRAINING_DTYPES, Understood, preset_document, read_document, read_file, read_text

__all__ = [
    "DTYPES",
    "TRAINING_DTYPES",
    "Understood",
    "families",
    "layer_kinds",
    "make_block",
    "preset_document",
    "read_document",
    "read_file",
    "read_text",
]
