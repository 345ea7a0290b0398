"""Kernels: what they compute by formulas of their own, what work they claim, and over which sizes they are swept."""

from dataclasses import replace
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import intake
from core.device import Device
from core.errors import BadInput
from core.ops import Op
from core.probe import Runtime
from probes.backends.reference import answer
from probes.case import Case, materials
from probes.kernels import kernel_modules
from probes.plan import kernel_probes, sized_kernel
from probes.shapes import shape_probes, shapes_of
from probes.sweeps import beyond_caches, vectors, working_sets

CPU = Device("cpu:0", "cpu", "test", "cpu-test", 24 * 2**30, 2, None, 2**25)
GPU = Device("gpu:0", "gpu", "test", "GPU-1", 141 * 10**9)
RUNTIMES = (Runtime("jax", "jax", "jit"), Runtime("torch-eager", "torch", "eager"))
ALL = kernel_modules()
ONE_PASS = (*(name for name in ALL if name.startswith("memory_")), "softmax", "normalisation", "convolution", "attention")
SHAPE = {"batch": 3, "m": 4, "n": 6, "k": 5}


def sizes_of(name: str) -> dict[str, Any]:
    module = ALL[name]
    return module.small((module.full(CPU) or module.quick(CPU) or (SHAPE,))[0])


def ran(name: str, sizes: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    case = Case(ALL[name], sizes, 1, "forward", "none", "fp32")
    inputs = materials(case).inputs
    return answer(case)[0], {key: a.astype(np.float64) if a.dtype.kind == "f" else a for key, a in inputs.items()}


def test_a_chain_of_multiply_adds_is_a_geometric_series() -> None:
    got, inputs = ran("vector_fma", {"elements": 16, "flop_each": 12})
    factor, summand = inputs["factor"], inputs["summand"]
    assert 0.5 <= factor[0] <= 0.9
    expected = inputs["x"] * factor**6 + summand * (1 - factor**6) / (1 - factor)
    np.testing.assert_allclose(got, expected, rtol=1e-10)


@pytest.mark.parametrize("causal", [0, 1])
def test_attention_weighs_values_position_by_position(causal: int) -> None:
    got, inputs = ran("attention", {"batch": 2, "length": 5, "heads": 2, "width": 4, "causal": causal})
    query, key, value = (inputs[name] for name in ("x", "key", "value"))
    for b, position, head in np.ndindex(2, 5, 2):
        seen = position + 1 if causal else 5
        scores = np.array([query[b, position, head] @ key[b, other, head] for other in range(seen)]) / 2.0
        weights = np.exp(scores) / np.exp(scores).sum()
        expected = weights @ value[b, :seen, head]
        np.testing.assert_allclose(got[b, position, 4 * head : 4 * head + 4], expected, rtol=1e-10)


def test_gathered_elements_are_those_of_their_places() -> None:
    got, inputs = ran("memory_gather", {"bytes": 64})
    assert list(got) == [inputs["x"][place] for place in inputs["places"]]


def test_rows_of_a_softmax_sum_to_one_in_the_order_of_their_inputs() -> None:
    got, inputs = ran("softmax", {"rows": 3, "width": 7})
    np.testing.assert_allclose(got.sum(-1), 1.0)
    assert (got.argsort(-1) == inputs["x"].argsort(-1)).all()


def test_a_read_depends_on_the_one_before() -> None:
    module = ALL["memory_read"]
    two = answer(Case(module, {"bytes": 256}, 2, "forward", "none", "fp32"))[0]
    one, inputs = ran("memory_read", {"bytes": 256})
    np.testing.assert_allclose(two, one @ inputs["w"] / 8**0.5, rtol=1e-10)


def test_counted_operations_of_a_launch_are_run() -> None:
    once, inputs = ran("launch_add", {"n": 4, "count": 1})
    np.testing.assert_allclose(ran("launch_add", {"n": 4, "count": 3})[0] - once, 2 * inputs["w"])


@pytest.mark.parametrize("name", ONE_PASS)
def test_traffic_of_a_pass_is_every_array_once(name: str) -> None:
    sizes = sizes_of(name)
    module = ALL[name]
    output, inputs = ran(name, sizes)
    weights = sum(layer.parameter_count for layer in module.layers(sizes).values()) if name == "convolution" else 0
    elements = sum(array.size for array in inputs.values()) + output.size + weights
    assert module.traffic(sizes, 4) == 4 * elements


@pytest.mark.parametrize(
    ("name", "op"),
    [
        ("softmax", lambda s: Op("softmax", (s["rows"], s["width"]), "fp32")),
        ("normalisation", lambda s: Op("norm", (s["rows"], s["width"]), "fp32")),
        (
            "attention",
            lambda s: Op("attention", (s["batch"], s["heads"], s["heads"], s["length"], s["length"], s["width"]), "fp32"),
        ),
    ],
)
def test_operations_are_counted_as_those_of_a_workload(name: str, op: Any) -> None:
    for sizes in ALL[name].full(CPU):
        assert ALL[name].flop(sizes) == op(sizes).flop


def test_a_convolution_counts_two_for_each_product() -> None:
    for sizes in ALL["convolution"].full(CPU):
        side = -(-sizes["side"] // sizes["stride"])
        channels, kernel = (sizes["in_channels"], sizes["out_channels"]), sizes["kernel"]
        op = Op("conv", (8, sizes["side"], sizes["side"], channels[0], side, side, channels[1], kernel, kernel, 1), "fp32")
        assert ALL["convolution"].flop(sizes) == op.flop


@given(st.integers(2**28, 2**42))
def test_working_sets_grow_by_four_and_leave_three_quarters_of_memory(memory_bytes: int) -> None:
    sets = working_sets(Device("cpu:0", "cpu", "any", "u", memory_bytes))
    assert sets[0] == 2**16
    assert all(after == 4 * before for before, after in pairwise(sets))
    assert sets[-1] <= min(2**32, memory_bytes / 4) < 4 * sets[-1] or sets[-1] == 2**32


@given(st.integers(2**10, 2**28), st.sampled_from((2, 3)))
def test_vectors_of_a_working_set_cache_nothing_that_it_does_not(size: int, arrays: int) -> None:
    (sizes,) = vectors((size,), arrays)
    assert size <= arrays * sizes["bytes"] < size + 1024 * arrays
    assert sizes["bytes"] % 1024 == 0


def test_the_quick_tier_passes_over_more_than_any_cache_holds() -> None:
    for name in ("memory_copy", "memory_triad"):
        (sizes,) = ALL[name].quick(CPU)
        assert ALL[name].traffic(sizes, 4) >= 4 * CPU.cache_bytes
    assert beyond_caches(GPU) == 2**31


def test_the_quick_tier_is_short_and_the_full_one_holds_every_kernel_of_a_device() -> None:
    quick, full = kernel_probes(RUNTIMES[:1], CPU, "quick"), kernel_probes(RUNTIMES[:1], CPU, "full")
    assert len(quick) <= 14
    assert {p.probe.subject for p in full} == set(ALL) - {"matmul_shape"}
    assert 100 <= len(full) <= 140
    assert {p.probe.dtype for p in full} == {"fp32", "bf16"}


def test_a_cpu_leaves_out_what_takes_it_minutes_and_an_accelerator_does_not() -> None:
    def sides(device: Device) -> set[object]:
        found = kernel_probes(RUNTIMES, device, "full", "matmul_chain")
        return {dict(one.probe.sizes)["n"] for one in found if one.probe.dtype == "fp32"}

    assert max(sides(CPU)) == 2048  # type: ignore[type-var]
    assert max(sides(replace(CPU, cores=8))) == 4096  # type: ignore[type-var]
    assert max(sides(GPU)) == 16384  # type: ignore[type-var]


def test_a_kernel_that_the_quick_tier_leaves_out_is_measured_when_asked_for() -> None:
    assert len(kernel_probes(RUNTIMES[:1], CPU, "quick", "softmax")) == 1


@pytest.mark.parametrize("dtype", ["tf32", "fp16", "fp8"])
def test_a_dtype_that_no_runtime_is_verified_in_is_refused(dtype: str) -> None:
    with pytest.raises(BadInput, match="no runtime here sets it"):
        kernel_probes(RUNTIMES, CPU, "quick", None, dtype)


def test_what_a_kernel_holds_is_at_least_its_arrays() -> None:
    (planned,) = sized_kernel("memory_triad", {"bytes": 2**30}, RUNTIMES[:1], CPU, "full", "fp32")
    assert planned.held_bytes >= 2 * 2 * 2**30 + 3 * 2**30


def workload(task: str) -> Any:
    return intake.read_document(dict(intake.preset_document("gpt2-small", task)) | {"batch": 2, "length": 64})


def test_shapes_of_a_workload_are_its_products_each_once() -> None:
    model = workload("train")
    found = dict(shapes_of(model))
    assert (1, 128, 768, 3072) in found or (1, 128, 3072, 768) in found
    products = [(op, b.repeats) for b in model.blocks for op in (*b.ops_forward, *b.ops_backward) if op.kind == "matmul"]
    assert set(found) == {op.dims for op, _ in products}
    assert sum(found.values()) == sum(op.flop * repeats for op, repeats in products)
    assert list(found.values()) == sorted(found.values(), reverse=True)


def test_shapes_are_probed_in_every_runtime_and_cut_only_where_they_take_too_long() -> None:
    model = workload("train")
    known = {shape for shape, _ in shapes_of(model)}
    planned = shape_probes(model, RUNTIMES, GPU, "full")
    asked = [tuple(dict(p.probe.sizes)[name] for name in ("batch", "m", "n", "k")) for p in planned]
    assert set(asked) == known
    assert len(asked) == 2 * len(known) <= 80
    assert all(p.flop >= 2 * prod(shape) for p, shape in zip(planned, asked, strict=True))
    large = intake.read_document(dict(intake.preset_document("gpt2-small", "train")) | {"batch": 512, "length": 1024})
    assert all(p.flop <= 5.01e11 for p in shape_probes(large, RUNTIMES, CPU, "full"))
