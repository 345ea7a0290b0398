"""What is kept beside the parameters is told by its name, where a format does not tell it otherwise."""

import pytest

from intake.readers.buffer_names import is_buffer_name, is_counter


@pytest.mark.parametrize("name", [
    "model.rotary_emb.inv_freq", "rotary_emb.original_inv_freq", "bn1.running_mean", "layer/bn/running_var",
    "bn.num_batches_tracked", "embeddings.position_ids", "attn.relative_position_index", "inv_freq", "h.0.attn.masked_bias",
])
def test_a_table_or_a_statistic_is_no_parameter(name: str) -> None:
    assert is_buffer_name(name)


@pytest.mark.parametrize("name", [
    "embeddings.mask_token", "attn.bias", "rope.freqs", "relative_position_bias_table", "mask_embed.weight", "grid_proj.weight",
    "cosine.scale", "running_mean_proj.weight",
])
def test_a_parameter_whose_name_only_resembles_one_is_kept(name: str) -> None:
    assert not is_buffer_name(name)


@pytest.mark.parametrize(("dtype", "counts"), [
    ("int64", True), ("bool", True), ("uint32", True), ("fp32", False), ("int8", False),
])
def test_whole_numbers_of_many_bits_are_no_weights(dtype: str, counts: bool) -> None:
    assert is_counter(dtype) is counts
