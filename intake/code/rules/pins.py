"""Rules of pinned versions: builds for one device, ends of life, and pins that cannot be installed together."""

from functools import partial

from intake.code.rules.declare import METADATA, MXNET, Rule, declared

_rule = partial(declared, "pinned versions")

RULES: tuple[Rule, ...] = (
    _rule("pin-cuda-build", "a build for one version of CUDA", METADATA, (0.5, 2, 0.1, 0.25), {
        "JTX": ("work", "brings CUDA, not libtpu", "install the TPU build"), "A": ("work", "brings CUDA",
            "install the ROCm build"),
        "N": ("check", "needs the driver of that CUDA; older CUDA has no kernels for newer chips",
            "see that driver and chip fit"),
        "F": ("check", "two frameworks rarely share CUDA libraries", "one environment each"),
    }),
    _rule("pin-old-torch", "PyTorch below 2", METADATA, (2, 16, 0.25, 1), {
        "J": ("check", "is left behind when the code moves", "nothing, or torch CPU for conversion"),
        "T": ("blocks", "TorchTPU 0.2.0 needs torch 2.11 to 2.15", "update torch first"), "X": ("blocks",
            "torch_xla 2.9 needs torch 2.9", "update torch first"),
        "AN": ("work", "has no build for chips after 2022", "update torch first"), "F": ("check", "is left behind", "nothing"),
    }),
    _rule("pin-torch-not-tpu", "a PyTorch that TorchTPU refuses", METADATA, (0.5, 6, 0.1, 0.5), {
        "T": ("work", "TorchTPU 0.2.0 needs torch 2.11 to 2.15", "update the pin"), "X": ("check",
            "torch_xla has to be of the same version, 2.9 at most", "pin both"),
    }),
    _rule("pin-old-tensorflow", "TensorFlow 1", METADATA, (4, 40, 0.5, 2), {
        "JTXF": ("check", "is left behind when the code moves", "nothing"),
        "AN": ("blocks", "has no build for current Python, CUDA or ROCm", "update to TensorFlow 2"),
    }),
    _rule("pin-tensorflow-gpu", "tensorflow-gpu", METADATA, (0.25, 1, 0.1, 0.25), {
        "JTX": ("work", "brings CUDA", "tensorflow-cpu for the input pipeline"), "A": ("work", "brings CUDA", "tensorflow-rocm"),
        "N": ("work", "was withdrawn: it installs nothing", "tensorflow[and-cuda]"),
    }),
    _rule("pin-tensorflow-tpu", "a TPU build of TensorFlow", METADATA, (1, 8, 0.25, 1), {
        "J": ("work", "frozen: 2.20 is the last, none on TPU7x", "Keras 3 on JAX"), "TX": ("work", "is of TensorFlow",
            "written anew"),
        "AN": ("work", "is for TPUs", "tensorflow"), "F": ("work", "is of TensorFlow", "leave it out"),
    }),
    _rule("pin-mxnet", "MXNet", MXNET, (2, 8, 0.25, 1), {
        "JTX": ("blocks", "MXNet has no TPU backend", "move to another framework"), "A": ("blocks", "MXNet has no AMD build",
            "move to another framework"),
        "N": ("work", "retired: 1.9.1 with CUDA 11.2, numpy below 2", "plan to move"), "F": ("work", "retired", "move"),
    }),
    _rule("pin-jax-cuda11", "JAX for CUDA 11", METADATA, (0.5, 2, 0.1, 0.25), {
        "J": ("work", "brings CUDA, not libtpu", "jax[tpu]"), "N": ("work", "CUDA 11 builds ended; 12 and 13 are built",
            "jax[cuda13] or jax[cuda12]"),
        "A": ("work", "brings CUDA", "jax[rocm7-local]"), "TXF": ("check", "is left behind", "nothing"),
    }),
    _rule("pin-old-jax", "a JAX before 0.4", METADATA, (1, 12, 0.25, 1), {
        "JAN": ("work", "current libtpu and CUDA need a current JAX; many names went since", "update jax"), "TXF": ("check",
            "is left behind", "nothing"),
    }),
    _rule("pin-torch-xla", "PyTorch/XLA", "pytorch/xla README (@41398bf); package metadata, 2026-11-30", (1, 8, 0.25, 1), {
        "T": ("work", "shares no environment with TorchTPU (libtpu 0.0.21 against 0.0.50)", "leave it out"), "X": ("check",
            "2.9.0 (2025-11) is the last", "pin torch 2.9 with it"),
        "J": ("work", "shares no environment with current JAX (libtpu)", "leave it out"), "AN": ("work",
            "has no GPU support since 2.8", "leave it out"), "F": ("check", "is left behind", "nothing"),
    }),
    _rule("pin-python", "a Python that current builds refuse", METADATA, (0.5, 4, 0.1, 0.5), {
        "J": ("work", "jax 0.12 needs Python 3.12, 0.10.2 is the last for 3.11", "allow a newer Python"), "T": ("work",
            "TorchTPU needs Python 3.11", "allow a newer Python"),
        "X": ("check", "torch_xla 2.9 needs Python 3.10 to 3.13", "allow one of them"), "AN": ("check",
            "current torch needs Python 3.10", "allow a newer Python"),
        "F": ("check", "current frameworks need Python 3.10 or newer", "allow a newer Python"),
    }),
    _rule("pin-conflict", "pins that cannot be installed together", METADATA, (0.5, 4, 0.25, 1), {
        "JTXANF": ("work", "no set of versions fulfils them", "one environment each, or move one pin"),
    }),
)
