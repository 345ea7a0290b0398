"""What a scan says of the `existing` section of a workload, each value with the lines that say so.

Nothing is guessed: what the code does not show stays empty. A library that is only imported in a `try` is left out of the
facts, since
the code runs without it; its finding stays.
"""

from collections import Counter
from collections.abc import Iterable

from core.finding import STEP, CodeFacts, Fact, Finding, Place, Scan
from intake.code.match.libraries import distribution_rule, library_rule

_SHOWN = 5
_FRAMEWORKS = (
    ("torch-tpu", ("torch_tpu",)), ("torch-xla", ("torch_xla",)), ("mxnet", ("mxnet",)), ("torch", ("torch", "torchvision",
        "pytorch_lightning")),
    ("jax", ("jax", "flax", "haiku", "optax")), ("keras", ("keras", "tf_keras")), ("tensorflow", ("tensorflow",)),
)
_OPERATIONS = {
    "nonzero": "nonzero", "unique": "unique", "masked-select": "masked-select", "boolean-index": "boolean-mask",
    "boolean-mask": "boolean-mask",
    "where-one-argument": "where-indices", "data-loop": "data-dependent-loop", "data-shape": "dynamic-shape",
    "packed-sequence": "dynamic-shape",
    "ragged-tensor": "dynamic-shape", "eig": "eig", "complex128": "complex128", "fp64": "fp64", "fft": "fft", "sort": "sort",
    "gather-scatter": "gather", "sparse-tensor": "sparse", "conv3d": "conv3d", "linalg": "linalg", "detection-op": "nms",
    "complex": "complex64",
}
_KERNELS = {"cuda-source": "cuda", "cuda-extension": "cuda", "python-cuda": "cuda", "triton-kernel": "triton",
    "pallas-gpu": "triton",
            "pallas-kernel": "pallas", "hip-source": "hip", "native-op": "c++"}
_LIBRARIES = {"library-dali": "nvidia-dali", "library-megatron": "megatron-lm", "library-lightning": "pytorch-lightning",
              "library-nemo": "nemo-toolkit", "library-spconv": "spconv", "library-quantised-kernels": "auto-gptq",
              "library-liger": "liger-kernel",
              "library-mamba": "mamba-ssm", "library-tiny-cuda": "tiny-cuda-nn"}
_READS = frozenset({"host-item", "host-copy", "host-float", "host-print"})
_VERSIONED = frozenset({"torch", "torchvision", "tensorflow", "keras", "jax", "jaxlib", "flax", "mxnet", "torch-xla",
    "torch-tpu", "numpy",
                        "tensorflow-gpu", "tensorflow-tpu", "tensorflow-cpu", "libtpu", "transformers", "deepspeed",
                        "flash-attn", "vllm",
                        "onnxruntime-rocm", "onnxruntime", "cudatoolkit", "pytorch-cuda", "triton", "tpu-inference"})


def facts(scan: Scan) -> CodeFacts:
    """Return what code says of a workload.

    Args:
        scan: of the code.
    """
    steps = any(one.where == STEP for one in scan.findings)
    reads = [one for one in scan.findings if one.rule in _READS and one.where == STEP and not one.periodic]
    return CodeFacts(
        _framework(scan), _libraries(scan), _named(scan.findings, _KERNELS), _named(scan.findings, _OPERATIONS),
        len(reads) if steps else None, tuple(one.place for one in reads[:_SHOWN]), _versions(scan),
    )


def _framework(scan: Scan) -> Fact | None:
    """Return the framework that most files import; one that builds upon another counts before it."""
    files: dict[str, list[Place]] = {}
    for one in scan.imports:
        for name, packages in _FRAMEWORKS:
            if one.name.split(".")[0] in packages and not one.optional:
                files.setdefault(name, []).append(one.place)
    if not files:
        return None
    counts = Counter({name: len({place.file for place in places}) for name, places in files.items()})
    order = [name for name, _ in _FRAMEWORKS]
    best = max(counts, key=lambda name: (counts[name], -order.index(name)))
    if best == "torch" and counts["torch-xla"] * 4 >= counts["torch"]:
        best = "torch-xla"
    if best == "tensorflow" and counts["keras"] * 2 >= counts["tensorflow"]:
        best = "keras"
    return Fact(best, tuple(files[best][:_SHOWN]))


def _libraries(scan: Scan) -> tuple[Fact, ...]:
    places: dict[str, list[Place]] = {}
    told = {one.rule for one in scan.findings}
    for one in scan.imports:
        rule = library_rule(one.name)
        if rule is not None and rule in told and not one.optional:
            places.setdefault(rule, []).append(one.place)
    for asked in scan.requirements:
        rule = distribution_rule(asked.name)
        if rule is not None and rule.startswith("library-"):
            places.setdefault(rule, []).append(asked.place)
    named = ((_LIBRARIES.get(rule, rule.removeprefix("library-")), found) for rule, found in sorted(places.items()))
    return tuple(Fact(name, tuple(found[:_SHOWN])) for name, found in named)


def _named(findings: Iterable[Finding], names: dict[str, str]) -> tuple[Fact, ...]:
    places: dict[str, list[Place]] = {}
    for one in findings:
        if one.rule in names:
            places.setdefault(names[one.rule], []).append(one.place)
    return tuple(Fact(name, tuple(found[:_SHOWN])) for name, found in sorted(places.items()))


def _versions(scan: Scan) -> tuple[Fact, ...]:
    """Return exact pins of frameworks; of pins that differ each is told."""
    places: dict[str, list[Place]] = {}
    for one in scan.requirements:
        if one.name in _VERSIONED and one.pinned is not None:
            places.setdefault(f"{one.name}=={one.pinned}", []).append(one.place)
    return tuple(Fact(value, tuple(found[:_SHOWN])) for value, found in sorted(places.items()))
