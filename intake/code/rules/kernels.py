"""Rules of hand-written kernels and custom operations."""

from functools import partial

from intake.code.rules.declare import HIP, JAX_DOCS, MXNET, TF_DOCS, TORCH_DOCS, TPU_GUIDE, Rule, declared

_rule = partial(declared, "kernels")
_PORT = "write it in plain operations first, then in Pallas where that is too slow"
_BLOCKED = ("blocks", "CUDA code does not run on a TPU", _PORT)
_BOUND = ("check", "still runs on GPUs, but has to be bound to the other framework",
    "bind it by the other framework's foreign functions")

RULES: tuple[Rule, ...] = (
    _rule("cuda-source", "CUDA source", f"{TPU_GUIDE}; {HIP}", (8, 80, 0.5, 6), {
        "JTX": _BLOCKED, "A": ("work", "has to be translated to HIP and tuned for wavefronts of 64",
        "hipify it, then test and time it"),
        "F": _BOUND,
    }),
    _rule("hip-source", "HIP source", f"{TPU_GUIDE}; {HIP}", (8, 80, 0.5, 6), {
        "JTX": ("blocks", "HIP code does not run on a TPU", _PORT), "N": ("work", "is for AMD GPUs",
            "compile it by hipcc for NVIDIA, or write CUDA"),
        "F": _BOUND,
    }),
    _rule("cuda-extension", "an extension of CUDA or C++ code is built", f"{TPU_GUIDE}; {HIP}", (4, 60, 0.5, 4), {
        "JTX": _BLOCKED, "A": ("work", "torch hipifies extensions when they are built; inline PTX is not translated",
        "build and test it"),
        "F": _BOUND,
    }),
    _rule("native-op", "an operation is registered from C++", TPU_GUIDE, (4, 40, 1, 8), {
        "JTX": ("work", "runs on the host at best: no TPU kernel comes with it", _PORT),
        "A": ("check", "its GPU part has to be built for HIP", "build and test it"), "F": _BOUND,
    }),
    _rule("triton-kernel", "a Triton kernel", f"{TPU_GUIDE}; triton-lang.org (recalled)", (8, 60, 2, 16), {
        "JTX": ("blocks", "Triton has no TPU backend", _PORT), "A": ("work", "Triton has an AMD backend; block sizes differ",
            "tune and test it"),
        "F": ("work", "is bound to PyTorch", "use jax-triton, or write it in Pallas"),
    }),
    _rule("python-cuda", "CUDA from Python (cupy, numba.cuda, pycuda, CUTLASS)", TPU_GUIDE, (4, 40, 0.5, 3), {
        "JTX": _BLOCKED, "A": ("work", "only cupy has a ROCm build, an experimental one", "replace it by tensor operations"),
        "F": ("check", "arrays have to be handed over by DLPack", "use __dlpack__"),
    }),
    _rule("torch-custom-op", "custom operations of torch.ops or torch.library", TORCH_DOCS, (2, 24, 0.5, 4), {
        "J": ("work", "unknown to JAX", _PORT), "TX": ("work",
            "needs an implementation for that device, or falls back to the CPU", _PORT),
        "A": ("check", "needs a build for ROCm", "build and test it"), "F": ("work", "unknown there", _PORT),
    }),
    _rule("autograd-function", "a hand-written gradient (autograd.Function)", TORCH_DOCS, (1, 4, 0.5, 3), {
        "J": ("work", "gradients are written otherwise", "jax.custom_vjp"),
        "TX": ("check", "runs when its operations do; graph breaks are likely under torch.compile", "test it"),
        "F": ("work", "gradients are written otherwise", "use the other framework's custom gradient"),
    }),
    _rule("pallas-gpu", "a Pallas kernel for GPUs, or Triton in JAX", JAX_DOCS, (8, 60, 2, 16), {
        "JTX": ("blocks", "is for GPUs", "write it for the TPU: other block shapes and memories"),
        "A": ("work", "Mosaic GPU is for NVIDIA; the Triton way reaches AMD", "test it"), "F": ("work", "is bound to JAX",
            "write it in Triton"),
    }),
    _rule("pallas-kernel", "a Pallas kernel", JAX_DOCS, (4, 40, 1, 8), {
        "J": ("check", "block sizes depend on the TPU generation", "the last two sides divide by 8 and 128"),
        "TX": ("work", "has to be called through the framework's kernel bridge",
            "torch_xla has one; none is documented for TorchTPU 0.2.0"),
        "AN": ("work", "a TPU kernel does not compile for GPUs", "write it for GPUs, or use plain operations"),
        "F": ("work", "is bound to JAX", "write it in plain operations"),
    }),
    _rule("jax-ffi", "a foreign function of JAX", JAX_DOCS, (4, 40, 1, 8), {
        "JTX": ("blocks", "foreign functions are for CPU and GPU", _PORT), "A": ("work", "has to be built for HIP",
            "build it for ROCm"),
        "F": ("work", "is bound to JAX", _PORT),
    }),
    _rule("tf-custom-op", "a custom operation or gradient of TensorFlow", TF_DOCS, (2, 40, 0.5, 8), {
        "J": ("work", "unknown to JAX", "jax.custom_vjp for gradients; kernels anew in plain operations"),
        "TX": ("work", "unknown to PyTorch", "torch.autograd.Function for gradients; kernels anew"),
        "A": ("check", "kernels need a build for ROCm", "build and test it"), "F": ("work", "unknown there", _PORT),
    }),
    _rule("mx-custom-op", "a custom operation of MXNet", MXNET, (4, 24, 1, 6), {
        "J": ("work", "unknown to JAX", "jax.custom_vjp; jax.pure_callback for what stays in numpy"),
        "TX": ("work", "unknown to PyTorch", "torch.autograd.Function"), "F": ("work", "unknown there", _PORT),
        "A": ("blocks", "MXNet has no AMD build", "move to another framework first"),
    }),
)
