"""Names under which frameworks keep tables and statistics beside the parameters of a model: nothing of them is trained.

Asked where a format itself does not say what is trained: ONNX files of older exporters, torch_xla's bundles, files of weights.
"""

import re

_TABLES = re.compile(
    r"(^|[._/])(?:(?:original_)?inv_freq|freqs_cis|final_logits_bias|running_mean|running_var|num_batches_tracked|masked_bias"
    r"|causal_mask|attn_mask|position_ids|token_type_ids|relative_position_index|relative_coords_table|cos_cached|sin_cached"
    r"|mask|cos|sin|anchors|grid)$"
)


def is_buffer_name(name: str) -> bool:
    """Whether a stored tensor of this name is a table or a statistic rather than a parameter."""
    return _TABLES.search(name) is not None


def is_counter(dtype: str) -> bool:
    """Whether tensors of a dtype are counters, indices or masks: weights are kept in whole numbers of at most 16 bits."""
    return dtype in {"bool", "int32", "int64", "uint32", "uint64", "string"}
