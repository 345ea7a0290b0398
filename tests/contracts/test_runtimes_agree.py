"""Every runtime that is installed here gives the answer of the float64 reference, for every block, forward and in training.

Run through real workers, as in a session: what is compared is what would be timed.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from catalog import environment_specs
from core.probe import Probe, Runtime
from core.reduced import REDUCED_MODEL, reduced_block
from intake import read_document
from probes.blocks import block_modules
from probes.environment import worker_environment
from probes.launcher import Limits, WorkerHandle
from probes.messages import Finish, Finished, Open, Prepare, Prepared, Ready
from probes.reduced import ReducedModel
from tests.here import ENVIRONMENTS, RUNTIMES

pytestmark = pytest.mark.slow

LAYER: dict[str, Any] = {
    "batch": 2,
    "length": 8,
    "width": 32,
    "heads": 2,
    "kv_heads": 2,
    "head_width": 16,
    "hidden": 64,
    "gated": 0,
    "activation": "gelu_new",
    "norm": "layer",
    "norm_first": 1,
    "bias": 1,
    "causal": 1,
    "rotary": 0,
    "cache": 0,
    "fused_qkv": 1,
}
ENDS: dict[str, Any] = {
    "batch": 2,
    "length": 6,
    "width": 16,
    "vocabulary": 48,
    "positions": 8,
    "segments": 0,
    "embed_norm": 0,
    "final_norm": "layer",
    "transform": 0,
    "tied": 1,
    "head_bias": 0,
}
BOTTLENECK: dict[str, Any] = {
    "batch": 2,
    "height": 8,
    "width": 8,
    "in_channels": 16,
    "mid_channels": 4,
    "out_channels": 16,
    "stride": 1,
    "projection": 0,
    "stride_first": 0,
    "conv_bias": 0,
}
CASES: tuple[tuple[str, dict[str, Any], str], ...] = (
    ("transformer_layer", LAYER, "train"),
    ("transformer_layer", LAYER | {"norm_first": 0, "causal": 0, "activation": "gelu", "fused_qkv": 0}, "train"),
    (
        "transformer_layer",
        LAYER | {"gated": 1, "activation": "silu", "norm": "rms", "bias": 0, "rotary": 1, "kv_heads": 1, "fused_qkv": 0},
        "train",
    ),
    ("transformer_layer", LAYER | {"cache": 6, "length": 1, "rotary": 1}, "forward"),
    ("token_ends", ENDS, "train"),
    ("token_ends", ENDS | {"segments": 2, "embed_norm": 1, "final_norm": "none", "transform": 1, "head_bias": 1}, "train"),
    ("token_ends", ENDS | {"positions": 0, "tied": 0, "final_norm": "rms"}, "forward"),
    ("patch_ends", {"batch": 2, "image": 8, "patch": 4, "channels": 3, "width": 16, "classes": 10}, "train"),
    (
        "conv_stem",
        {
            "batch": 2,
            "height": 16,
            "width": 16,
            "in_channels": 3,
            "out_channels": 8,
            "kernel": 7,
            "stride": 2,
            "pool": 1,
            "activation": "relu",
            "conv_bias": 0,
        },
        "train",
    ),
    ("conv_bottleneck", BOTTLENECK, "train"),
    (
        "conv_bottleneck",
        BOTTLENECK | {"in_channels": 8, "stride": 2, "projection": 1, "stride_first": 1, "conv_bias": 1},
        "train",
    ),
    (
        "inverted_residual",
        {"batch": 2, "height": 8, "width": 8, "in_channels": 4, "expansion": 6, "out_channels": 4, "stride": 1},
        "train",
    ),
    (
        "inverted_residual",
        {"batch": 2, "height": 8, "width": 8, "in_channels": 4, "expansion": 6, "out_channels": 6, "stride": 2},
        "forward",
    ),
    ("conv_head", {"batch": 2, "height": 4, "width": 4, "in_channels": 8, "features": 12, "classes": 10}, "train"),
    (
        "conv_double",
        {"batch": 2, "height": 8, "width": 8, "in_channels": 8, "skip_channels": 4, "out_channels": 6, "before": "up"},
        "train",
    ),
    ("pixel_head", {"batch": 2, "height": 4, "width": 4, "in_channels": 8, "classes": 5}, "train"),
    ("lstm_layer", {"batch": 2, "length": 5, "inputs": 8, "hidden": 8, "biases": 2}, "train"),
    ("embedding_bag", {"batch": 4, "tables": 3, "rows": 20, "width": 8, "per_bag": 3}, "train"),
    ("dense_tower", {"batch": 4, "widths": (12, 16, 8), "activation": "relu", "last_activation": "none", "first": 0}, "train"),
    ("dot_interaction", {"batch": 3, "features": 4, "width": 8}, "train"),
    ("class_head", {"batch": 4, "inputs": 8, "classes": 10, "loss": "cross_entropy"}, "train"),
    ("class_head", {"batch": 4, "inputs": 8, "classes": 1, "loss": "binary"}, "train"),
)
KERNELS: dict[str, dict[str, Any]] = {
    "vector_fma": {"elements": 64, "flop_each": 8},
    "memory_gather": {"bytes": 1024},
    "softmax": {"rows": 4, "width": 32},
    "attention": {"batch": 2, "length": 8, "heads": 2, "width": 16, "causal": 1},
}
"""Kernels whose operations no block uses; the others' are held to above."""
ONE_OF_EACH = (2, 3, 5, 7, 8, 10, 11, 13, 14, 15, 16, 17, 18, 19, 21)
COMPILED_SLOWLY = {"torch-compile": (0, 10, 20), "torch-xla": ONE_OF_EACH, "tf-xla": ONE_OF_EACH, "keras-jax": ONE_OF_EACH}
"""Runtimes that are held to these cases only, one of each kind of layer or of each kind of block: inductor takes most of a minute
of one core for a graph, XLA up to a third. Their layers are those of torch-eager, tf-graph and keras-tensorflow, held to all."""
UNOPTIMISED = {"XLA_FLAGS": "--xla_backend_optimization_level=0"}
"""XLA takes twice as long and more where the machine code's own passes are run; the program that is compared is the same. The
probes of a run are compiled as users compile them, also where other tests ask for some."""
ONE_THREAD = {"OMP_NUM_THREADS": "1"}
"""Threads that wait for a share of some hundred numbers burn the cores that other tests need."""
WIRED = ("gpt2-small", "unet", "dlrm-small")
WIRED_ALL, WIRED_SLOWLY = "torch-eager", ("torch-compile", "torch-xla", "tf-xla", "keras-jax")
"""Models that every runtime is held to, one way of joining parts each. The wiring is the same code: the runtime that starts a
model soonest is held to all, and those whose compilers take most of a minute for a model to the last."""


MODELS: dict[str, dict[str, Any]] = {
    "gpt2-small": {"model": {"layers": 2, "width": 16, "heads": 2, "vocabulary": 40, "positions": 8}, "length": 8},
    "llama-3-8b": {
        "model": {"layers": 2, "width": 16, "heads": 2, "kv_heads": 1, "hidden": 24, "vocabulary": 40},
        "length": 8,
    },
    "bert-base": {"model": {"layers": 2, "width": 16, "heads": 2, "vocabulary": 40, "positions": 8}, "length": 8},
    "vit-b16": {"model": {"layers": 2, "width": 16, "heads": 2, "patch": 4, "classes": 5}, "image": 8},
    "resnet-50": {"model": {"depths": [2, 2], "channels": [16, 32], "stem_channels": 8, "classes": 5}, "batch": 3, "image": 32},
    "mobilenet-v2": {
        "model": {
            "expansions": [1, 6, 6],
            "channels": [4, 6, 8],
            "depths": [1, 2, 2],
            "strides": [1, 2, 2],
            "stem_channels": 8,
            "features": 12,
            "classes": 5,
        },
        "batch": 3,
        "image": 32,
    },
    "unet": {"model": {"base_channels": 4, "depth": 2, "classes": 3}, "image": 8},
    "lstm-lm": {"model": {"layers": 2, "width": 8, "vocabulary": 30}, "length": 5},
    "dlrm-small": {"model": {"bottom": [8, 4], "tables": 3, "rows": 20, "per_bag": 2, "top": [8, 6]}},
    "mlp": {"model": {"inputs": 12, "hidden": [16, 8], "classes": 5}},
}
"""One tiny model of each family, small enough to be held against the reference as a whole."""


@pytest.fixture(scope="module", params=RUNTIMES, ids=lambda r: f"{r.id}@")
def worker(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Runtime, WorkerHandle]]:
    handle = _opened(request.param, tmp_path_factory.mktemp("home"))
    yield request.param, handle
    handle.close()


def _opened(runtime: Runtime, home: Path) -> WorkerHandle:
    environment = worker_environment(runtime.id, "cpu", os.environ, home, "") | UNOPTIMISED | ONE_THREAD
    handle = WorkerHandle(runtime.interpreter, environment, Limits())
    assert isinstance(handle.ask(Open(runtime.id, "cpu"), 180), Ready)
    return handle


def test_every_runtime_that_can_be_had_on_this_machine_is_held_to_it() -> None:
    own = [spec for spec in environment_specs().values() if spec.kind == "cpu" and not ENVIRONMENTS.obstacle(spec)]
    wanted = {runtime for spec in own for runtime in spec.runtimes}
    assert wanted <= {runtime.id for runtime in RUNTIMES}, "./tandem runtimes install builds what is missing"


def test_every_kind_of_block_has_a_case() -> None:
    assert {kind for kind, _, _ in CASES} == set(block_modules()) == {CASES[case][0] for case in ONE_OF_EACH}


@pytest.mark.parametrize("case", range(len(CASES)), ids=[f"{kind}-{i}-{mode}" for i, (kind, _, mode) in enumerate(CASES)])
def test_a_runtime_agrees_with_the_reference(worker: tuple[Runtime, WorkerHandle], case: int) -> None:
    """Compiling is what takes long, in torch-compile most of a minute: C++ for each graph."""
    runtime, handle = worker
    if case not in COMPILED_SLOWLY.get(runtime.id, (case,)):
        pytest.skip("each graph takes long to compile: it is held to one of each kind")
    kind, sizes, mode = CASES[case]
    _agrees(handle, Probe(kind, "block", tuple(sorted(sizes.items())), "fp32", runtime.id, "cpu:0", mode, _optimizer(mode)))


@pytest.mark.parametrize("name", KERNELS)
def test_a_runtime_agrees_on_a_kernel(worker: tuple[Runtime, WorkerHandle], name: str) -> None:
    runtime, handle = worker
    _agrees(handle, Probe(name, "kernel", tuple(sorted(KERNELS[name].items())), "fp32", runtime.id, "cpu:0"))


def test_gradients_do_not_depend_on_when_the_same_step_updates_a_weight(tmp_path: Path) -> None:
    sizes = next(tuple(sorted(sizes.items())) for kind, sizes, _ in CASES if kind == "dense_tower")
    runtime = next(r for r in RUNTIMES if r.id == "keras-tensorflow")
    handle = _opened(runtime, tmp_path)
    for seed in range(12):
        _agrees(handle, Probe("dense_tower", "block", sizes, "fp32", runtime.id, "cpu:0", "train", "sgd", seed=seed))
    handle.close()


@pytest.mark.parametrize("preset", MODELS)
def test_a_runtime_wires_a_reduced_model_as_the_reference_does(worker: tuple[Runtime, WorkerHandle], preset: str) -> None:
    runtime, handle = worker
    if runtime.id != WIRED_ALL and preset not in (WIRED[-1:] if runtime.id in WIRED_SLOWLY else WIRED):
        return
    changed = MODELS[preset]
    model = {"preset": preset} | changed["model"]
    workload = read_document({"schema": 1, "task": "train", "batch": 2, "dtype": "fp32"} | changed | {"model": model})
    reduced = reduced_block(workload.blocks)
    assert reduced is not None
    subject = ReducedModel(dict(reduced.sizes))
    assert subject.wired
    assert subject.is_small
    _agrees(handle, Probe(REDUCED_MODEL, "model", reduced.sizes, "fp32", runtime.id, "cpu:0", "train", "sgd"))


def _optimizer(mode: str) -> str:
    return "sgd" if mode == "train" else "none"


def _agrees(handle: WorkerHandle, probe: Probe) -> None:
    reply = handle.ask(Prepare(probe), 240)
    assert isinstance(reply, Prepared), reply
    finished = handle.ask(Finish(), 60)
    assert isinstance(finished, Finished)
    assert finished.largest_error is not None
    assert finished.largest_error < 2e-4
