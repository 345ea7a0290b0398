"""Small workloads, chips, devices and outcomes that the tests of the advisor share; figures are chosen, never measured."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from advisor import Question
from catalog import RuntimeSpec, Support
from core.device import Accelerator, Device, Pool
from core.errors import NotFound
from core.ops import Op
from core.probe import Measurement, Outcome, Probe, ProbeFailure, Runtime, Timing
from core.workload import Block, Existing, Workload

TODAY = "2026-11-30"
TAKEN = "2026-11-29T10:00:00Z"
CPU = Device("cpu:0", "cpu", "Test CPU", "cpu-uuid", 16 * 2**30, cores=8)
HERE = Pool("cpu:0", 1, "cpu", 0.0, "attached", attached=True)
MODES = {
    "jax": ("jax", "jit"), "torch-eager": ("torch", "eager"), "torch-compile": ("torch", "compile"),
    "torch-xla": ("torch", "xla"),
    "torch-tpu": ("torch", "tpu"), "tf-graph": ("tensorflow", "graph"), "tf-xla": ("tensorflow", "xla"),
    "keras-jax": ("keras", "jax"), "keras-tensorflow": ("keras", "tensorflow"), "keras-torch": ("keras", "torch"),
    "mxnet": ("mxnet", "eager"),
}


def runtime(identity: str, *versions: tuple[str, str], installed: bool = True) -> Runtime:
    framework, mode = MODES[identity]
    there = ("/usr/bin/python3", True, "") if installed else ("", False, "it is not there")
    return Runtime(identity, framework, mode, versions, *there)


def dense(name: str, batch: int, inputs: int, outputs: int, repeats: int = 1, dtype: str = "fp32") -> Block:
    forward = (Op("matmul", (1, batch, outputs, inputs), dtype), Op("elementwise", (batch * outputs, 1, 8), dtype))
    backward = (
        Op("matmul", (1, batch, inputs, outputs), dtype, phase="backward"),
        Op("matmul", (1, inputs, outputs, batch), dtype, phase="backward"),
        Op("elementwise", (batch * outputs, 2, 8), dtype, phase="backward"),
    )
    sizes = (("activation", "relu"), ("batch", batch), ("widths", (inputs, outputs)))
    saved = 2 * 4 * batch * (inputs + outputs)
    return Block(name, "dense_tower", sizes, repeats, forward, backward, inputs * outputs + outputs, saved)


def layer(batch: int, length: int, width: int, repeats: int, dtype: str = "bf16", causal: int = 1) -> Block:
    rows, heads = batch * length, width // 64
    shapes = ((3 * width, width), (width, width), (4 * width, width), (width, 4 * width))
    attention = (batch, heads, heads, length, length, 64)
    forward = (
        *(Op("matmul", (1, rows, n, k), dtype) for n, k in shapes),
        Op("attention", attention, dtype), Op("norm", (rows, width), dtype, 2),
        Op("elementwise", (rows * 4 * width, 1, 8), dtype), Op("elementwise", (rows * width, 2, 1), dtype, 2),
    )
    backward = (
        *(Op("matmul", (1, rows, k, n), dtype, phase="backward") for n, k in shapes),
        *(Op("matmul", (1, k, n, rows), dtype, phase="backward") for n, k in shapes),
        Op("attention", attention, dtype, 2, "backward"), Op("norm", (rows, width), dtype, 4, "backward"),
        Op("elementwise", (rows * 4 * width, 2, 8), dtype, phase="backward"),
    )
    sizes = (
        ("batch", batch), ("cache", 0), ("causal", causal), ("head_width", 64), ("heads", heads), ("hidden", 4 * width),
        ("kv_heads", heads), ("length", length), ("width", width),
    )
    saved = rows * width * 34
    return Block("layer", "transformer_layer", sizes, repeats, forward, backward, 12 * width * width, saved)


def tower(batch: int = 64, task: str = "train", dtype: str = "fp32", **changes: object) -> Workload:
    """Two dense blocks: `first` once, `middle` four times."""
    blocks = (dense("first", batch, 512, 1024, dtype=dtype), dense("middle", batch, 1024, 1024, 4, dtype))
    optimizer = "adamw" if task in ("train", "finetune", "rl") else "none"
    made = Workload("tower", task, blocks, batch, "samples", float(batch), dtype, optimizer)
    return replace(made, **changes)  # pyright: ignore[reportArgumentType]


def transformer(
    batch: int = 64, length: int = 512, width: int = 1024, repeats: int = 24, task: str = "train", **changes: object
) -> Workload:
    optimizer = "adamw" if task == "train" else "none"
    blocks = (layer(batch, length, width, repeats),)
    tokens = float(batch * length)
    made = Workload("transformer", task, blocks, batch, "tokens", tokens, "bf16", optimizer, length=length)
    return replace(made, **changes)  # pyright: ignore[reportArgumentType]


def existing(**changes: object) -> Existing:
    return replace(Existing(), **changes)  # pyright: ignore[reportArgumentType]


def measurement(
    probe: Probe, seconds: float, *, spread: float = 0.02, samples: int = 20, flop: int = 0, traffic: int = 0,
    compile_s: float | None = None, trusted: bool = True, warnings: tuple[str, ...] = (), taken_at: str = TAKEN,
    uuid: str = "cpu-uuid", versions: tuple[tuple[str, str], ...] = (),
) -> Measurement:
    """A measurement whose median is exactly `seconds` (odd number of samples around it)."""
    count = samples | 1
    steps = [(2 * i / (count - 1) - 1) * spread if count > 1 else 0.0 for i in range(count)]
    timing = Timing(1, 1, tuple(round(seconds * (1 + step) * 1e9) for step in steps), (), compile_s)
    return Measurement(probe, (timing,), "direct", flop, traffic, None, warnings, trusted, versions, uuid, taken_at)


def block_probe(workload: Workload, block: Block, runtime_id: str, batch: int | None = None) -> Probe:
    trains = workload.trains
    sizes = tuple((k, batch if k == "batch" and batch is not None else v) for k, v in block.sizes)
    return Probe(block.kind, "block", sizes, workload.dtype, runtime_id, "cpu:0", "train" if trains else "forward",
                 workload.optimizer if trains else "none")


def block_measurements(workload: Workload, runtime_id: str, seconds: Mapping[str, float], **more: object) -> list[Outcome]:
    probes = {block.name: block_probe(workload, block, runtime_id) for block in workload.blocks}
    return [measurement(probes[name], value, **more) for name, value in seconds.items()]  # pyright: ignore[reportArgumentType]


def kernel(subject: str, sizes: Mapping[str, int], seconds: float, runtime_id: str, *, flop: int = 0, traffic: int = 0,
           dtype: str = "fp32", mode: str = "forward") -> Measurement:
    probe = Probe(subject, "kernel", tuple(sorted(sizes.items())), dtype, runtime_id, "cpu:0", mode)
    return measurement(probe, seconds, flop=flop, traffic=traffic)


def kernels(runtime_id: str, flop_per_s: float = 1e11, bytes_per_s: float = 1e10) -> list[Outcome]:
    matmuls = [kernel("matmul_chain", {"n": n}, 2 * n**3 / flop_per_s, runtime_id, flop=2 * n**3) for n in (256, 1024, 2048)]
    sizes = (2**20, 2**26)
    copies = [kernel("memory_copy", {"bytes": n}, 2 * n / bytes_per_s, runtime_id, traffic=2 * n) for n in sizes]
    return [kernel("launch", {"n": 1}, 2e-6, runtime_id), *matmuls, *copies]


def failure(probe: Probe, stage: str = "compile", error: str = "it broke") -> ProbeFailure:
    return ProbeFailure(probe, stage, error, None, "", TAKEN)


def chip(key: str = "h100-sxm", kind: str = "gpu", vendor: str = "NVIDIA", **changes: object) -> Accelerator:
    made = Accelerator(
        key, vendor, kind, f"{vendor} {key}", 2023, 80e9, 3.35e12,
        (("fp64", 34e12), ("fp32", 67e12), ("tf32", 494e12), ("bf16", 989e12), ("fp16", 989e12)),
        "NVLink", 450e9, 63e9, 400e9, 700.0, 8, 8, "aws gcp", "", "vendor page", "2026-01-01", "high",
    )
    return replace(made, **changes)  # pyright: ignore[reportArgumentType]


TPU = chip(
    "tpu-v6e", "tpu", "Google", memory_bytes=32e9, memory_bytes_per_s=1.638e12, flop_per_s=(("bf16", 918e12), ("int8", 1836e12)),
    link_name="ICI", link_bytes_per_s=400e9, internode_bytes_per_s=100e9, power_w=None, max_domain_chips=256,
)
GPU = chip()
OLD = chip(
    "v100-32", flop_per_s=(("fp64", 7.8e12), ("fp32", 15.7e12), ("fp16", 125e12)), memory_bytes=32e9,
    memory_bytes_per_s=9e11, link_bytes_per_s=150e9, power_w=300.0,
)


@dataclass(frozen=True)
class SmallFacts:
    """A catalog of a few chips, on which every runtime works unless it is named as unsupported."""

    chips: Mapping[str, Accelerator] = field(default_factory=lambda: {c.key: c for c in (TPU, GPU, OLD)})
    unsupported: frozenset[tuple[str, str]] = frozenset()

    def accelerator(self, key: str) -> Accelerator:
        if key not in self.chips:
            raise NotFound(f"accelerator {key!r}", "a key of the test", "correct it")
        return self.chips[key]

    def support(self, runtime_id: str, accelerator: Accelerator) -> Support:
        return self.support_of_family(runtime_id, accelerator.kind)

    def support_of_family(self, runtime_id: str, family: str, key: str = "") -> Support:
        status = "unsupported" if (runtime_id, family.lower()) in self.unsupported else "supported"
        return Support(status, "", "the test", TODAY)

    def runtime_specs(self) -> Mapping[str, RuntimeSpec]:
        return {}


def pool(key: str, count: int = 1, price: float | None = None, kind: str | None = None) -> Pool:
    kinds = {"tpu-v6e": "tpu"}
    return Pool(key, count, kind or kinds.get(key, "gpu"), price, "somewhere")


def question(workload: Workload, outcomes: tuple[Outcome, ...] | list[Outcome] = (), **changes: object) -> Question:
    runtimes = (runtime("jax"), runtime("torch-eager"))
    made = Question(workload, (HERE,), (CPU,), runtimes, tuple(outcomes), "time", TODAY, facts=SmallFacts())
    return replace(made, **changes)  # pyright: ignore[reportArgumentType]
