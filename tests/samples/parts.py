"""Parts of the sample run: workload, device, runtimes and outcomes.

The figures are made up, but consistent: operations give FLOPs, samples give medians, and `runs.py` derives every estimate
from those medians as the advisor would. They are fixtures for tests of what is shown, never evidence of speed.
"""

import json
from random import Random

from core.device import Device
from core.ops import Op
from core.probe import Measurement, Outcome, Probe, ProbeFailure, Runtime, Timing
from core.workload import Block, Total, Workload

BATCH, LENGTH, WIDTH, HEADS, HIDDEN, VOCABULARY, LAYERS = 16, 128, 768, 12, 3072, 50257, 12
TOKENS = BATCH * LENGTH
NAME = "GPT-2 small on our support tickets"
HOSTILE_NAME = '<script>alert(1)</script> {{x}} =HYPERLINK("http://x")'
TAKEN_AT = "2026-05-04T09:31:07Z"
VERSIONS = {
    "jax": (("jax", "0.10.2"), ("jaxlib", "0.10.2")),
    "torch": (("torch", "2.13.0"),),
    "tensorflow": (("tensorflow-cpu", "2.21.0"),),
    "keras": (("keras", "3.15.1"),),
}
RUNTIMES = {
    "jax": ("jax", "jit"),
    "torch-eager": ("torch", "eager"),
    "torch-compile": ("torch", "compile"),
    "tf-graph": ("tensorflow", "graph"),
    "tf-xla": ("tensorflow", "xla"),
    "keras-jax": ("keras", "jax"),
    "keras-tensorflow": ("keras", "tensorflow"),
    "keras-torch": ("keras", "torch"),
}
BLOCK_SECONDS = {
    "jax": (0.672, 3.42),
    "torch-eager": (0.731, 3.61),
    "torch-compile": (0.655, 3.38),
    "tf-graph": (0.918, 4.37),
    "tf-xla": (0.764, 3.95),
    "keras-jax": (0.699, 3.52),
    "keras-tensorflow": (0.981, 4.52),
    "keras-torch": (0.842, 4.03),
}
"""Seconds of one layer and of the ends, by runtime."""
COMPILE_S = {"jax": 4.8, "torch-compile": 31.5, "tf-graph": 2.9, "tf-xla": 11.2, "keras-jax": 6.1, "keras-tensorflow": 3.6}


def _ops(shapes: tuple[tuple[int, int], ...], attention: bool) -> tuple[tuple[Op, ...], tuple[Op, ...]]:
    forward = [Op("matmul", (1, TOKENS, n, k), "fp32") for n, k in shapes]
    backward = [Op("matmul", (1, TOKENS, k, n), "fp32", phase="backward") for n, k in shapes]
    backward += [Op("matmul", (1, k, n, TOKENS), "fp32", phase="backward") for n, k in shapes]
    forward.append(Op("norm", (TOKENS, WIDTH), "fp32", 2 if attention else 1))
    if attention:
        dims = (BATCH, HEADS, HEADS, LENGTH, LENGTH, WIDTH // HEADS)
        forward += [Op("attention", dims, "fp32"), Op("elementwise", (TOKENS * HIDDEN, 1, 8), "fp32")]
        backward.append(Op("attention", dims, "fp32", 2, "backward"))
    else:
        forward.append(Op("embedding", (TOKENS, WIDTH, VOCABULARY), "fp32"))
    return tuple(forward), tuple(backward)


def sample_workload(name: str = NAME) -> Workload:
    """Return GPT-2 small, training for 2,000 steps in fp32."""
    layer_sizes = (
        ("activation", "gelu_new"),
        ("batch", BATCH),
        ("bias", 1),
        ("cache", 0),
        ("causal", 1),
        ("fused_qkv", 1),
        ("gated", 0),
        ("head_width", WIDTH // HEADS),
        ("heads", HEADS),
        ("hidden", HIDDEN),
        ("kv_heads", HEADS),
        ("length", LENGTH),
        ("norm", "layer"),
        ("norm_first", 1),
        ("rotary", 0),
        ("width", WIDTH),
    )
    end_sizes = (
        ("batch", BATCH),
        ("embed_norm", 0),
        ("final_norm", "layer"),
        ("head_bias", 0),
        ("length", LENGTH),
        ("positions", 1024),
        ("segments", 0),
        ("tied", 1),
        ("transform", 0),
        ("vocabulary", VOCABULARY),
        ("width", WIDTH),
    )
    layer_ops = _ops(((3 * WIDTH, WIDTH), (WIDTH, WIDTH), (HIDDEN, WIDTH), (WIDTH, HIDDEN)), attention=True)
    end_ops = _ops(((VOCABULARY, WIDTH),), attention=False)
    layer = Block(
        "layer", "transformer_layer", layer_sizes, LAYERS, *layer_ops, 12 * WIDTH**2 + 13 * WIDTH, 34 * TOKENS * WIDTH * 2
    )
    ends = Block(
        "embedding and head",
        "token_ends",
        end_sizes,
        1,
        *end_ops,
        VOCABULARY * WIDTH + 1024 * WIDTH + 2 * WIDTH,
        TOKENS * VOCABULARY * 8,
    )
    return Workload(
        name,
        "train",
        (layer, ends),
        BATCH,
        "tokens",
        float(TOKENS),
        "fp32",
        "adamw",
        length=LENGTH,
        total=Total(steps=2000.0),
        assumptions=(
            "fp32, as the preset says",
            "weights and optimizer states stay on the device",
            "prices are on demand, not spot",
        ),
        source="preset gpt2-small",
    )


def sample_document(name: str = NAME) -> str:
    """Return the workload file that gives `sample_workload`, canonical JSON."""
    document = {
        "schema": 1,
        "name": name,
        "task": "train",
        "model": {"preset": "gpt2-small"},
        "batch": BATCH,
        "length": LENGTH,
        "dtype": "fp32",
        "optimizer": "adamw",
        "total": {"steps": 2000},
    }
    return json.dumps(document, sort_keys=True, separators=(",", ":"))


def sample_device() -> Device:
    """Return a CPU of 8 cores."""
    return Device(
        "cpu:0", "cpu", "Example CPU 8-core 2.9 GHz", "cpu-5f3a91c0", 34_359_738_368, 8, None, 33_554_432, ("AVX-512", "1 socket")
    )


def sample_runtimes() -> tuple[Runtime, ...]:
    """Return the eight runtimes of the base environment, all installed."""
    return tuple(
        Runtime(key, framework, mode, VERSIONS[framework], "/opt/tandem/bin/python", True)
        for key, (framework, mode) in RUNTIMES.items()
    )


def _samples(random: Random, seconds: float, count: int = 9) -> tuple[int, ...]:
    return tuple(int(seconds * 1e9 * (1 + abs(random.gauss(0, 0.012)))) for _ in range(count))


def _measurement(probe: Probe, seconds: float, flop: int, traffic: int = 0, warnings: tuple[str, ...] = ()) -> Measurement:
    random = Random(f"{probe.runtime} {probe.label}")
    compile_s = COMPILE_S.get(probe.runtime)
    timings = (
        Timing(1, 1, _samples(random, seconds + 0.0004), _samples(random, 1.2 * seconds, 3), compile_s),
        Timing(3, 1, _samples(random, 3 * seconds + 0.0004), _samples(random, 3.4 * seconds, 3), compile_s),
    )
    return Measurement(
        probe,
        timings,
        "slope",
        flop,
        traffic,
        2_470_000_000,
        warnings,
        True,
        VERSIONS[RUNTIMES[probe.runtime][0]],
        sample_device().uuid,
        TAKEN_AT,
    )


def block_outcomes(workload: Workload) -> tuple[Outcome, ...]:
    """Return one outcome for each block and runtime; keras-torch dies in the ends."""
    outcomes: list[Outcome] = []
    for runtime, seconds in BLOCK_SECONDS.items():
        for block, block_s in zip(workload.blocks, seconds, strict=True):
            probe = Probe(block.kind, "block", block.sizes, "fp32", runtime, "cpu:0", "train", "adamw")
            if runtime == "keras-torch" and block.kind == "token_ends":
                outcomes.append(
                    ProbeFailure(
                        probe,
                        "lost",
                        "worker was killed by signal 9; it may have run out of memory, free some or lower the batch",
                        -9,
                        "Allocating logits\nKilled",
                        TAKEN_AT,
                    )
                )
                continue
            warnings = ("spread of 4 % between quartiles: another process was busy",) if runtime == "tf-graph" else ()
            outcomes.append(_measurement(probe, block_s, block.flop_forward + block.flop_backward, warnings=warnings))
    return tuple(outcomes)


def kernel_outcomes() -> tuple[Outcome, ...]:
    """Return the roof of the device as two runtimes saw it: matmul chains and memory sweeps."""
    outcomes: list[Outcome] = []
    for runtime, share in (("jax", 1.0), ("torch-eager", 0.96)):
        for n, rate in ((512, 148e9), (1024, 171e9), (2048, 183e9)):
            probe = Probe("matmul_chain", "kernel", (("n", n),), "fp32", runtime, "cpu:0")
            outcomes.append(_measurement(probe, 2 * n**3 / (rate * share), 2 * n**3, 3 * n * n * 4))
        for subject, rate in (("copy", 18.2e9), ("triad", 19.6e9)):
            size = 268_435_456
            probe = Probe(subject, "kernel", (("bytes", size),), "fp32", runtime, "cpu:0")
            outcomes.append(_measurement(probe, 3 * size / (rate * share), size // 2 if subject == "triad" else 0, 3 * size))
    return tuple(outcomes)
