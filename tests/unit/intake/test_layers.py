"""Block kinds: what each counts, and that it is the same thing as the block that is probed."""

import pytest

from core.errors import BadInput
from core.workload import Block
from intake import layer_kinds, make_block
from intake.families import families
from probes.blocks import block_modules

TRANSFORMER = {
    "batch": 2,
    "length": 8,
    "width": 32,
    "heads": 4,
    "kv_heads": 2,
    "head_width": 8,
    "hidden": 64,
    "gated": 1,
    "activation": "silu",
    "norm": "rms",
    "norm_first": 1,
    "bias": 0,
    "causal": 1,
    "rotary": 1,
    "cache": 0,
    "fused_qkv": 0,
}
SIZES: dict[str, tuple[dict[str, object], ...]] = {
    "transformer_layer": (
        TRANSFORMER,
        TRANSFORMER | {"gated": 0, "bias": 1, "norm": "layer", "fused_qkv": 1, "kv_heads": 4, "activation": "gelu"},
        TRANSFORMER | {"length": 1, "cache": 16},
    ),
    "token_ends": (
        {
            "batch": 2,
            "length": 8,
            "width": 16,
            "vocabulary": 50,
            "positions": 8,
            "segments": 2,
            "embed_norm": 1,
            "final_norm": "none",
            "transform": 1,
            "tied": 1,
            "head_bias": 1,
        },
        {
            "batch": 2,
            "length": 8,
            "width": 16,
            "vocabulary": 50,
            "positions": 0,
            "segments": 0,
            "embed_norm": 0,
            "final_norm": "rms",
            "transform": 0,
            "tied": 0,
            "head_bias": 0,
        },
    ),
    "patch_ends": ({"batch": 2, "image": 16, "patch": 4, "channels": 3, "width": 32, "classes": 10},),
    "conv_stem": (
        {
            "batch": 2,
            "height": 32,
            "width": 32,
            "in_channels": 3,
            "out_channels": 8,
            "kernel": 7,
            "stride": 2,
            "pool": 1,
            "activation": "relu",
            "conv_bias": 0,
        },
    ),
    "conv_bottleneck": (
        {
            "batch": 2,
            "height": 8,
            "width": 8,
            "in_channels": 16,
            "mid_channels": 8,
            "out_channels": 32,
            "stride": 2,
            "projection": 1,
            "stride_first": 0,
            "conv_bias": 1,
        },
    ),
    "inverted_residual": (
        {"batch": 2, "height": 8, "width": 8, "in_channels": 8, "expansion": 6, "out_channels": 8, "stride": 1},
        {"batch": 2, "height": 8, "width": 8, "in_channels": 8, "expansion": 1, "out_channels": 4, "stride": 2},
    ),
    "conv_head": (
        {"batch": 2, "height": 4, "width": 4, "in_channels": 8, "features": 16, "classes": 10},
        {"batch": 2, "height": 4, "width": 4, "in_channels": 8, "features": 0, "classes": 10},
    ),
    "conv_double": (
        {"batch": 2, "height": 8, "width": 8, "in_channels": 8, "skip_channels": 4, "out_channels": 4, "before": "up"},
        {"batch": 2, "height": 8, "width": 8, "in_channels": 8, "skip_channels": 0, "out_channels": 16, "before": "pool"},
        {"batch": 2, "height": 8, "width": 8, "in_channels": 3, "skip_channels": 0, "out_channels": 8, "before": "none"},
    ),
    "pixel_head": ({"batch": 2, "height": 8, "width": 8, "in_channels": 8, "classes": 2},),
    "lstm_layer": ({"batch": 2, "length": 5, "inputs": 8, "hidden": 16, "biases": 1},),
    "embedding_bag": ({"batch": 4, "tables": 3, "rows": 20, "width": 8, "per_bag": 2},),
    "dense_tower": ({"batch": 4, "widths": (8, 16, 4), "activation": "relu", "last_activation": "none"},),
    "dot_interaction": ({"batch": 4, "features": 5, "width": 8},),
    "class_head": (
        {"batch": 4, "inputs": 8, "classes": 3, "loss": "cross_entropy"},
        {"batch": 4, "inputs": 8, "classes": 1, "loss": "binary"},
    ),
}
CASES = [(kind, sizes) for kind, group in SIZES.items() for sizes in group]


def test_the_kinds_that_are_counted_are_the_kinds_that_are_probed() -> None:
    assert set(layer_kinds()) == set(block_modules()) == set(SIZES)


@pytest.mark.parametrize(("kind", "sizes"), CASES)
def test_a_counted_block_has_the_parameters_of_the_probed_block(kind: str, sizes: dict[str, object]) -> None:
    block = make_block(kind, "x", sizes, 1, "fp32")
    assert block.parameter_count == sum(
        layer.parameter_count for layer in block_modules()[kind].layers(dict(block.sizes)).values()
    )


@pytest.mark.parametrize(("kind", "sizes"), CASES)
def test_a_block_scales_with_its_batch(kind: str, sizes: dict[str, object]) -> None:
    once, twice = (make_block(kind, "x", sizes | {"batch": factor * int(str(sizes["batch"]))}, 1, "fp32") for factor in (1, 2))
    assert twice.flop_forward == 2 * once.flop_forward
    assert twice.flop_backward == 2 * once.flop_backward
    assert twice.activation_bytes == 2 * once.activation_bytes
    assert twice.parameter_count == once.parameter_count


@pytest.mark.parametrize(("kind", "sizes"), CASES)
def test_half_the_bytes_of_an_element_halve_the_traffic(kind: str, sizes: dict[str, object]) -> None:
    wide, narrow = (make_block(kind, "x", sizes, 1, dtype) for dtype in ("fp32", "bf16"))
    traffic = [sum(op.bytes_read + op.bytes_written for op in block.ops_forward + block.ops_backward) for block in (wide, narrow)]
    assert traffic[0] == 2 * traffic[1] > 0
    assert narrow.flop_forward == wide.flop_forward


@pytest.mark.parametrize("kind", sorted(SIZES))
def test_every_size_is_kept_sorted_and_none_is_missing(kind: str) -> None:
    block = make_block(kind, "x", SIZES[kind][0], 3, "fp32")
    assert [name for name, _ in block.sizes] == sorted(spec.name for spec in layer_kinds()[kind].sizes)
    assert block.repeats == 3


@pytest.mark.parametrize("kind", sorted(SIZES))
def test_every_size_and_every_kind_says_what_it_is(kind: str) -> None:
    assert layer_kinds()[kind].title
    assert all(spec.meaning for spec in layer_kinds()[kind].sizes)


def _matmul(block: Block, kinds: tuple[str, ...] = ("matmul", "attention")) -> int:
    return sum(op.flop for op in block.ops_forward if op.kind in kinds)


def test_a_layer_with_a_cache_attends_to_cached_and_new_keys() -> None:
    block = make_block("transformer_layer", "x", TRANSFORMER | {"length": 1, "cache": 99}, 1, "bf16")
    attention = next(op for op in block.ops_forward if op.kind == "attention")
    assert attention.flop == 4 * 2 * 4 * 8 * 100


def test_a_causal_mask_is_not_halved() -> None:
    assert _matmul(make_block("transformer_layer", "x", TRANSFORMER, 1, "bf16")) == _matmul(
        make_block("transformer_layer", "x", TRANSFORMER | {"causal": 0}, 1, "bf16")
    )


def test_fusing_queries_keys_and_values_changes_no_flop() -> None:
    assert _matmul(make_block("transformer_layer", "x", TRANSFORMER, 1, "bf16")) == _matmul(
        make_block("transformer_layer", "x", TRANSFORMER | {"fused_qkv": 1}, 1, "bf16")
    )


def test_a_kind_that_is_misspelt_is_named_with_the_nearest() -> None:
    with pytest.raises(BadInput, match="did you mean 'conv_stem'"):
        make_block("conv_stm", "x", {}, 1, "fp32")


def test_a_dtype_that_is_misspelt_is_named_with_the_nearest() -> None:
    with pytest.raises(BadInput, match="did you mean 'bf16'"):
        make_block("class_head", "x", SIZES["class_head"][0], 1, "bf61")


@pytest.mark.parametrize(
    ("kind", "change", "named"),
    [
        ("transformer_layer", {"heads": 3}, "kv_heads"),
        ("transformer_layer", {"head_width": 7}, "head_width"),
        ("conv_bottleneck", {"projection": 0}, "projection"),
        ("conv_double", {"in_channels": 7}, "in_channels"),
        ("dense_tower", {"widths": (8,)}, "widths"),
        ("dense_tower", {"widths": 8}, "widths"),
        ("patch_ends", {"image": 17}, "image"),
        ("token_ends", {"length": 9}, "length"),
        ("embedding_bag", {"rows": 0}, "rows"),
        ("dot_interaction", {"features": 1}, "features"),
    ],
)
def test_sizes_that_do_not_go_together_are_named(kind: str, change: dict[str, object], named: str) -> None:
    with pytest.raises(BadInput, match=named):
        make_block(kind, "x", SIZES[kind][0] | change, 1, "fp32")


def test_every_family_says_what_its_keys_are() -> None:
    assert set(families()) == {"decoder", "dlrm", "encoder", "mlp", "mobilenet", "recurrent", "resnet", "unet", "vit"}
    assert all(spec.meaning for family in families().values() for spec in family.specs)
