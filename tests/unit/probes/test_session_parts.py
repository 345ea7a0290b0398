"""Parts of a session that need no worker: what is held at once, and how many samples a slow call gets."""

import random
from pathlib import Path

import pytest

import intake
from core.device import Device
from core.probe import Probe, Runtime
from core.settings import Settings
from probes.blocks import block_modules
from probes.depths import CHAIN_DEPTHS, SINGLE_DEPTHS, depths_of
from probes.launcher import Limits
from probes.plan import Planned, block_probes
from probes.session import ROUNDS, Session, fewest_samples

CPU = Device("cpu:0", "cpu", "test", "cpu-test", 1000, 2)


def _planned(held: int) -> Planned:
    return Planned(Probe("launch", "kernel", (), "fp32", "jax", "cpu:0"), 0, 0, held_bytes=held)


@pytest.mark.parametrize(
    ("held", "expected"),
    [
        ((100, 100, 100), [3]),
        ((300, 300, 300), [1, 1, 1]),
        ((200, 200, 300, 50), [2, 2]),
        ((5000, 1), [1, 1]),
        ((0,) * 8, [8]),
    ],
)
def test_probes_are_measured_together_as_memory_allows(tmp_path: Path, held: tuple[int, ...], expected: list[int]) -> None:
    session = Session(CPU, {}, Settings(tmp_path, "", ""), lambda _: None, lambda: False, Limits(), random.Random(0))
    parts = list(session._in_memory([_planned(size) for size in held]))
    assert [len(part) for part in parts] == expected


def test_a_large_model_holds_more_than_a_small_one() -> None:
    runtime = (Runtime("jax", "jax", "jit", (), "/python", installed=True),)
    cpu = Device("cpu:0", "cpu", "test", "cpu-test", 24 * 2**30, 2)
    held = {
        name: max(p.held_bytes for p in block_probes(intake.read_text(f"{name}:train").workload, runtime, cpu))
        for name in ("gpt2-demo", "llama-3-8b")
    }
    assert held["gpt2-demo"] < 2**30 < 8 * 2**30 < held["llama-3-8b"]


@pytest.mark.parametrize(("call_s", "expected"), [(0.001, 4), (0.1, 3), (0.3, 1), (10.0, 1)])
def test_slow_calls_are_sampled_less_often_but_always(call_s: float, expected: int) -> None:
    assert fewest_samples(call_s, ROUNDS * 0.33) == expected


def test_a_layer_that_feeds_the_next_is_chained_and_a_giant_one_is_not() -> None:
    layer = {
        "batch": 1,
        "length": 8,
        "width": 64,
        "heads": 2,
        "kv_heads": 2,
        "head_width": 32,
        "hidden": 128,
        "gated": 0,
        "activation": "gelu",
        "norm": "layer",
        "norm_first": 1,
        "bias": 1,
        "causal": 1,
        "rotary": 0,
        "cache": 0,
        "fused_qkv": 0,
    }
    module = block_modules()["transformer_layer"]
    probe = Probe("transformer_layer", "block", (), "fp32", "jax", "cpu:0")
    assert depths_of(module, layer, probe) == CHAIN_DEPTHS
    assert depths_of(module, layer | {"width": 8192, "hidden": 28672, "head_width": 4096}, probe) == SINGLE_DEPTHS


def test_ends_are_held_against_the_bare_frame() -> None:
    sizes = {"batch": 1, "inputs": 8, "classes": 2, "loss": "cross_entropy"}
    assert (
        depths_of(block_modules()["class_head"], sizes, Probe("class_head", "block", (), "fp32", "jax", "cpu:0")) == SINGLE_DEPTHS
    )
