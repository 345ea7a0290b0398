"""Seconds by term, each worked out by hand from the sizes, degrees and rates of one small case."""

from dataclasses import replace

import numpy as np
import pytest

import catalog
from advisor.cost import columns_of, silicon_of
from advisor.cost.columns import host_s, routing_s, turns_images
from advisor.cost.silicon import Silicon, attention_share, generation_of, padding_of, unknown_link
from advisor.cost.terms import bubble_of, combined_forward, combined_training, forward_terms, training_terms
from core.sketch import DECODE, FORWARD, PREFILL, TRAINING, Layout, Setup, Sketch

DENSE = Sketch(
    "dense", "decoder", linear_flop=2 * 8e9, head_flop=2e8, attention_flop=4 * 4096 * 32, vector_elements=4e6, logits=1e5,
    parameters=8e9, layers=32, width=4096, head_width=128, hidden=14336, cached_elements=65536, kernels=480, causal=True,
)  # fmt: skip
MIXTURE = replace(
    DENSE,
    name="mixture",
    kind="mixture",
    expert_flop=2 * 4e9,
    expert_parameters=32e9,
    parameters=40e9,
    experts=64,
    experts_used=8,
)


def silicon(key: str = "h100-sxm", dtype: str = "bf16", *, widens: bool = False) -> Silicon:
    found = silicon_of(catalog.accelerator(key), dtype, widens)
    assert isinstance(found, Silicon), found
    return found


def setup(
    sketch: Sketch = DENSE, chips: float = 8, dtype: str = "bf16", batch: float = 64, regime: str = TRAINING, **more: object
) -> Setup:
    length = more.pop("length", 4096.0)
    layout, stack = more.pop("layout", Layout(data=int(max(1, chips)))), more.pop("stack", "torch/nemo")
    return Setup(sketch, regime, "h100-sxm", chips, stack, dtype, batch, length, layout=layout, **more)  # pyright: ignore[reportArgumentType]


def terms(one: Setup, chip: Silicon | None = None) -> dict[str, float]:
    columns = columns_of([(one, chip or silicon(dtype=one.dtype))])
    found = training_terms(columns) if one.regime == TRAINING else forward_terms(columns)
    return {name: float(np.broadcast_to(value, (1,))[0]) for name, value in found.items()}


def test_products_of_a_dense_decoder_take_six_flop_a_parameter_and_token() -> None:
    chip = silicon()
    whole = 6 * 8e9 * 64 * 4096 / 8
    rows, columns = 64 / 8 * 4096, 14336
    tiles = rows / 128 * columns / 128
    reached = chip.linear_flop_per_s * chip.matmul_share * 0.92 * tiles / (tiles + chip.fill_tiles)
    assert terms(setup())["product"] == pytest.approx(whole / reached, rel=1e-9)


def test_recomputation_adds_a_third_to_the_products() -> None:
    plain, again = (terms(setup(layout=Layout(data=8, recompute=part))) for part in (0.0, 1.0))
    assert again["product"] == pytest.approx(plain["product"] * 4 / 3)
    assert terms(setup(layout=Layout(data=8, recompute=0.5)))["product"] == pytest.approx(plain["product"] * 7 / 6)


@pytest.mark.parametrize(("stages", "virtual", "parts"), [(1, 1, 4), (4, 1, 8), (8, 4, 16), (16, 2, 3)])
def test_a_pipeline_waits_its_stages_less_one_over_interleaved_parts(stages: int, virtual: int, parts: int) -> None:
    chips = stages * 2
    layout = Layout(data=2, pipeline=stages, virtual=virtual, micro_batch=32 / parts)
    found = bubble_of(columns_of([(setup(chips=chips, batch=64, layout=layout), silicon())]))
    assert found[0] == pytest.approx((stages - 1) / (virtual * parts))


def test_tensor_parallelism_moves_four_times_the_activations_of_every_layer() -> None:
    layout = Layout(data=2, tensor=4)
    tokens = 64 * 4096 / 8
    sent = 4 * 32 * (tokens * 4) * 4096 * 2 * 3 / 4
    assert terms(setup(layout=layout))["tensor"] == pytest.approx(sent / silicon().link_bytes_per_s)
    assert terms(setup())["tensor"] == 0


def test_plain_replicas_sum_their_gradients_over_the_ring() -> None:
    sent = 2 * 8e9 * 2 * 7 / 8
    assert terms(setup())["sync"] == pytest.approx(sent / silicon().link_bytes_per_s)


def test_sharded_replicas_gather_twice_and_scatter_once_for_every_part() -> None:
    whole = terms(setup(layout=Layout(data=8, sharded=8)))["sync"]
    assert whole == pytest.approx(3 * 8e9 * 2 * 7 / 8 / silicon().link_bytes_per_s)
    assert terms(setup(layout=Layout(data=8, sharded=8, micro_batch=2)))["sync"] == pytest.approx(4 * whole)


def test_low_rank_training_exchanges_only_its_adapters_and_updates_little() -> None:
    full, adapters = terms(setup()), terms(setup(low_rank=True))
    assert adapters["sync"] == pytest.approx(full["sync"] * 0.005)
    assert adapters["update"] == pytest.approx(full["update"] * 0.005)
    assert adapters["product"] == pytest.approx(full["product"] * 2 / 3)


def test_a_host_further_the_network_bounds_the_exchange() -> None:
    inside, beyond = terms(setup(chips=8)), terms(setup(chips=16, batch=128, layout=Layout(data=16)))
    chip = silicon()
    assert chip.domain == 8
    rate = min(chip.link_bytes_per_s, chip.network_bytes_per_s * 8)
    assert beyond["sync"] == pytest.approx(2 * 8e9 * 2 * 15 / 16 / rate)
    assert beyond["sync"] > inside["sync"]


def test_islands_exchange_once_more_over_the_network() -> None:
    chip = silicon("tpu-v5e")
    one, two = (setup(chips=512, batch=1024, layout=Layout(data=512, sharded=256, islands=count)) for count in (1, 2))
    assert terms(one, chip)["islands"] == 0
    assert terms(two, chip)["islands"] == pytest.approx(2 * 8e9 * 2 / 256 / chip.network_bytes_per_s)


def test_experts_are_work_of_their_own_and_exchange_tokens() -> None:
    plain, spread = (terms(setup(MIXTURE, layout=Layout(data=8, expert=ways))) for ways in (1, 8))
    assert plain["expert"] == pytest.approx(plain["product"] / 2)
    tokens = 64 * 4096 / 8
    sent = 32 * tokens * 4096 * 8 * 2 * 4 * 7 / 8
    assert spread["exchange"] == pytest.approx(sent / silicon().link_bytes_per_s)
    assert plain["exchange"] == 0


@pytest.mark.parametrize(("key", "dtype", "rate"), [
    ("h100-sxm", "bf16", 989.4e12), ("h100-sxm", "fp16", 989.4e12), ("h100-sxm", "fp8", 1978.9e12),
    ("h100-sxm", "tf32", 494.7e12), ("a100-80", "bf16", 312e12), ("a100-80", "tf32", 156e12), ("a100-80", "fp32", 19.5e12),
    ("v100-32", "fp16", 125e12), ("v100-32", "bf16", 125e12), ("t4", "fp16", 65e12), ("tpu-v5p", "bf16", 459e12),
])  # fmt: skip
def test_a_dtype_runs_at_the_rate_of_its_data_sheet(key: str, dtype: str, rate: float) -> None:
    assert silicon(key, dtype).linear_flop_per_s == pytest.approx(rate, rel=0.01)


def test_wide_dtypes_move_four_bytes_and_narrow_ones_only_their_weights_less() -> None:
    chips = [silicon(dtype=dtype) for dtype in ("fp32", "tf32", "bf16", "fp8")]
    assert [(chip.element_bytes, chip.weight_bytes) for chip in chips] == [
        (4, 4), (4, 4), (2, 2), (2, 1),
    ]  # fmt: skip


def test_fp8_makes_products_faster_and_leaves_attention_as_it_was() -> None:
    sixteen, eight = terms(setup()), terms(setup(dtype="fp8"))
    assert eight["product"] == pytest.approx(sixteen["product"] / 2, rel=0.01)
    assert (eight["attention"], eight["head"]) == pytest.approx((sixteen["attention"], sixteen["head"]))
    assert (sixteen["narrowing"], eight["narrowing"] > 0) == (0, True)


def test_a_chip_without_units_for_a_dtype_says_so_unless_weights_may_be_widened() -> None:
    assert "fp8" in str(silicon_of(catalog.accelerator("a100-80"), "fp8"))
    widened = silicon("a100-80", "fp8", widens=True)
    assert (widened.linear_flop_per_s, widened.weight_bytes) == (pytest.approx(312e12), 1.0)


def test_a_token_reads_the_weights_once_and_the_cache_of_every_sequence() -> None:
    chip = silicon()
    found = terms(setup(chips=1, batch=4, regime=DECODE, length=1024.0, output=512.0, layout=Layout()))
    assert found["weights"] == pytest.approx(8e9 * 2 / (chip.bytes_per_s * 0.8))
    one_group = DENSE.attention_flop / 4 * 2 / DENSE.cached_elements
    read = 4 * (1024 + 256) * 65536 * 2 * one_group**0.25
    assert found["cache"] == pytest.approx(read / (chip.bytes_per_s * 0.7))


def test_a_replica_that_makes_tokens_serves_its_own_share_of_the_sequences() -> None:
    alone = terms(setup(chips=2, batch=16, regime=DECODE, length=512.0, output=64.0, layout=Layout(tensor=2)))
    four = terms(setup(chips=8, batch=64, regime=DECODE, length=512.0, output=64.0, layout=Layout(data=4, tensor=2)))
    assert four == pytest.approx(alone)


@pytest.mark.parametrize("experts", [64.0, 0.0])
def test_a_token_of_a_mixture_reads_the_experts_that_it_uses(experts: float) -> None:
    sketch = replace(MIXTURE, experts=experts, experts_used=8.0 if experts else 0.0)
    found = {batch: terms(setup(sketch, chips=1, batch=batch, regime=DECODE, output=8.0, layout=Layout())) for batch in (1, 1000)}
    rate = silicon().bytes_per_s * 0.8
    assert found[1]["weights"] == pytest.approx((8e9 + 32e9 / 8) * 2 / rate)
    assert found[1000]["weights"] == pytest.approx(40e9 * 2 / rate)


def test_a_prompt_is_computed_once_and_only_its_last_position_is_looked_up() -> None:
    found = terms(setup(chips=1, batch=2, regime=PREFILL, length=2048.0, layout=Layout()))
    chip = silicon()
    best = chip.linear_flop_per_s * chip.matmul_share * 0.85
    assert found["product"] == pytest.approx(2 * 8e9 * 2 * 2048 / best)
    assert found["head"] == pytest.approx(2e8 * 2 / best)
    assert found["cache"] == 0


def test_tiles_make_odd_products_larger() -> None:
    assert padding_of(((64.0, 8.0, 1.0),), silicon()) == 1.0
    assert padding_of(((65.0, 8.0, 1.0),), silicon()) == pytest.approx(128 / 65)
    assert padding_of(((100.0, 100.0, 0.5), (256.0, 256.0, 0.5)), silicon("tpu-v6e")) == pytest.approx(0.5 * 2.56**2 + 0.5)
    assert padding_of((), silicon()) == 1.0


def test_a_step_is_no_shorter_than_its_work_and_no_longer_than_all_in_turn() -> None:
    for layout in (Layout(data=8), Layout(data=2, tensor=4), Layout(data=2, pipeline=4, micro_batch=1)):
        columns = columns_of([(setup(layout=layout), silicon())])
        parts, bubble = training_terms(columns), bubble_of(columns)
        step = float(combined_training(parts, bubble)[0])
        assert float(parts["product"][0]) < step < 1.2 * sum(float(part[0]) for part in parts.values()) * (1 + float(bubble[0]))
    forward = columns_of([(setup(regime=PREFILL), silicon())])
    assert float(combined_forward(forward_terms(forward))[0]) > float(forward_terms(forward)["product"][0])


@pytest.mark.parametrize(("key", "family"), [
    ("a100-80", "ampere"), ("h200", "hopper"), ("gh200", "hopper"), ("gb300", "blackwell"), ("tpu-v6e", "tpu"),
    ("mi300x", "instinct"),    ("newcomer", "newcomer"),
])  # fmt: skip
def test_a_chip_belongs_to_its_generation(key: str, family: str) -> None:
    assert generation_of(key) == family


def test_attention_reaches_more_with_newer_kernels_wide_heads_and_long_rows() -> None:
    chip = silicon()
    assert [attention_share(chip, 128, 4096, year, "bf16") for year in (2023.0, 2024.0, 2025.0)] == [0.14, 0.36, 0.5]
    assert attention_share(chip, 64, 4096, 2025, "bf16") == pytest.approx(0.4)
    assert attention_share(chip, 128, 512, 2025, "bf16") == pytest.approx(0.3)


def test_a_rate_that_is_not_known_is_named() -> None:
    chip = catalog.accelerator("h100-sxm")
    assert unknown_link(chip, 64) == ""
    assert unknown_link(replace(chip, internode_bytes_per_s=None), 64) == "the rate of h100-sxm beyond 8 chips is not known"
    assert unknown_link(replace(chip, internode_bytes_per_s=None), 8) == ""
    alone = replace(chip, link_bytes_per_s=None, host_bytes_per_s=None)
    assert unknown_link(alone, 2) == "the link rate between chips of h100-sxm is not known"
    assert unknown_link(alone, 1) == ""


@pytest.mark.parametrize(("stack", "ways"), [("torch/nemo", 8), ("torch/megatron", 8), ("", 8), ("torch", 1), ("jax/t5x", 1)])
def test_plain_replicas_divide_the_update_only_where_their_library_does(stack: str, ways: int) -> None:
    chip = silicon()
    assert terms(setup(stack=stack))["update"] == pytest.approx(8e9 / ways * 28 / (chip.bytes_per_s * 0.85))


def test_sharded_replicas_divide_the_update_in_every_library() -> None:
    layout = Layout(data=8, sharded=8)
    assert terms(setup(layout=layout, stack="torch"))["update"] == pytest.approx(terms(setup(layout=layout))["update"])


def test_tokens_for_experts_far_away_take_the_network_and_those_nearby_the_link_at_once() -> None:
    chip = silicon()
    assert chip.domain == 8
    tokens, sent = 256 * 4096 / 32, 32 * 4096 * 8 * 2 * 4
    found = terms(setup(MIXTURE, chips=32, batch=256, layout=Layout(data=32, expert=32)))["exchange"]
    inside, beyond = 7 / 32 / chip.link_bytes_per_s, 24 / 32 / chip.network_bytes_per_s
    assert found == pytest.approx(tokens * sent * max(inside, beyond))
    assert beyond > inside


@pytest.mark.parametrize("ways", [1, 8])
def test_the_host_starts_the_products_of_every_expert_of_a_chip_in_turn(ways: int) -> None:
    layout = Layout(data=8, expert=ways, micro_batch=2)
    torch, compiled = (terms(setup(MIXTURE, layout=layout, stack=stack))["launch"] for stack in ("torch/nemo", "jax/maxtext"))
    operations = 32 * 4 * 3 * (12 + 3 * 64 / ways)  # layers, parts of a step, passes
    assert torch - compiled == pytest.approx(operations * (40e-6 - 4e-6))
    plain = terms(setup(layout=layout))["launch"]
    assert torch - plain == pytest.approx(operations * 40e-6)


@pytest.mark.parametrize("stack", ["torch/nemo", "torch-compile", "torch"])
def test_torch_leaves_its_graph_where_experts_are_chosen(stack: str) -> None:
    assert routing_s(stack) == host_s("torch")
    assert routing_s("torch/xla") == host_s("torch/xla") < routing_s(stack)


CONVOLUTIONS = Sketch("net", "vision", linear_flop=0.0, convolution_flop=8e9, vector_elements=4e7, parameters=25e6, layers=50)


@pytest.mark.parametrize(("dtype", "times"), [("tf32", (2.5 + 3) / 2.5), ("fp32", 1.0)])
def test_convolutions_in_tf32_turn_their_images_once_a_pass(dtype: str, times: float) -> None:
    one, sixteen = (terms(setup(CONVOLUTIONS, dtype=kind, stack="torch"))["vector"] for kind in (dtype, "fp16"))
    assert one == pytest.approx(2 * times * sixteen)  # twice the bytes of an element
    forward = [terms(setup(CONVOLUTIONS, dtype=kind, regime=FORWARD, stack="torch"))["vector"] for kind in (dtype, "fp16")]
    assert forward[0] == pytest.approx(2 * (2 if dtype == "tf32" else 1) * forward[1])


def test_models_without_images_and_other_chips_turn_nothing() -> None:
    assert terms(setup(dtype="tf32"))["vector"] == pytest.approx(2 * terms(setup())["vector"])
    assert not turns_images(setup(CONVOLUTIONS, dtype="tf32"), "tpu")
