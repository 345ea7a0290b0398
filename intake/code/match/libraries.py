"""Libraries that tie code to a device or a launcher: by package and by distribution."""

import re

_PACKAGES = {
    "flash_attn": "flash-attn", "flash_attn_interface": "flash-attn", "xformers": "xformers", "bitsandbytes": "bitsandbytes",
    "apex": "apex",
    "transformer_engine": "transformer-engine", "nvidia.dali": "dali", "deepspeed": "deepspeed", "megatron": "megatron",
    "nemo": "nemo", "fairscale": "fairscale", "colossalai": "colossalai", "horovod": "horovod", "byteps": "horovod",
    "tensorrt": "tensorrt",
    "torch_tensorrt": "tensorrt", "torch2trt": "tensorrt", "vllm": "vllm", "sglang": "vllm", "pytorch_lightning": "lightning",
    "lightning": "lightning", "lightning_fabric": "lightning", "accelerate": "accelerate", "cudf": "rapids", "cuml": "rapids",
    "cugraph": "rapids", "rmm": "rapids", "dask_cuda": "rapids", "torch_scatter": "torch-scatter",
    "torch_sparse": "torch-scatter",
    "torch_cluster": "torch-scatter", "torch_spline_conv": "torch-scatter", "pyg_lib": "torch-scatter", "spconv": "spconv",
    "MinkowskiEngine": "spconv", "torchsparse": "spconv", "dgl": "dgl", "onnxruntime": "onnxruntime", "hugectr": "hugectr",
    "merlin": "hugectr", "mamba_ssm": "mamba", "causal_conv1d": "mamba", "tinycudann": "tiny-cuda", "nvdiffrast": "tiny-cuda",
    "pytorch3d": "tiny-cuda", "kaolin": "tiny-cuda", "gsplat": "tiny-cuda", "auto_gptq": "quantised-kernels",
    "awq": "quantised-kernels",
    "gptqmodel": "quantised-kernels", "exllamav2": "quantised-kernels", "torchao": "torchao", "mmcv": "mmcv", "tensorflow_addons":
        "tensorflow-addons", "tensorflow_probability": "tensorflow-probability", "haiku": "haiku", "trax": "haiku",
        "tensor2tensor": "haiku",
    "torchtext": "torchtext", "jetstream": "jetstream", "optimum.tpu": "jetstream", "torch_tpu": "torch-tpu",
    "torchax": "torchax",
    "warp": "warp", "isaacgym": "warp", "torchrec": "torchrec", "fbgemm_gpu": "torchrec", "liger_kernel": "liger",
    "unsloth": "liger",
    "fla": "liger", "deep_gemm": "liger", "flashinfer": "liger", "natten": "liger", "modulus": "warp",
}
_DISTRIBUTIONS = {
    "flash-attn": "flash-attn", "xformers": "xformers", "bitsandbytes": "bitsandbytes", "apex": "apex", "transformer-engine":
        "transformer-engine", "deepspeed": "deepspeed", "megatron-core": "megatron", "megatron-lm": "megatron",
        "nemo-toolkit": "nemo",
    "fairscale": "fairscale", "colossalai": "colossalai", "horovod": "horovod", "byteps": "horovod", "tensorrt": "tensorrt",
    "nvidia-tensorrt": "tensorrt", "torch-tensorrt": "tensorrt", "vllm": "vllm", "sglang": "vllm",
    "pytorch-lightning": "lightning",
    "lightning": "lightning", "accelerate": "accelerate", "torch-scatter": "torch-scatter", "torch-sparse": "torch-scatter",
    "torch-cluster": "torch-scatter", "torch-spline-conv": "torch-scatter", "pyg-lib": "torch-scatter",
    "minkowskiengine": "spconv",
    "torchsparse": "spconv", "onnxruntime-gpu": "onnxruntime", "onnxruntime": "onnxruntime", "onnxruntime-rocm": "onnxruntime",
    "hugectr": "hugectr", "mamba-ssm": "mamba", "causal-conv1d": "mamba", "nvdiffrast": "tiny-cuda", "pytorch3d": "tiny-cuda",
    "kaolin": "tiny-cuda", "gsplat": "tiny-cuda", "auto-gptq": "quantised-kernels", "autoawq": "quantised-kernels", "gptqmodel":
        "quantised-kernels", "exllamav2": "quantised-kernels", "torchao": "torchao", "mmcv": "mmcv", "mmcv-full": "mmcv",
    "tensorflow-addons": "tensorflow-addons", "tensorflow-probability": "tensorflow-probability", "dm-haiku": "haiku",
    "trax": "haiku",
    "tensor2tensor": "haiku", "torchtext": "torchtext", "google-jetstream": "jetstream", "optimum-tpu": "jetstream",
    "torch-tpu": "torch-tpu", "torchax": "torchax", "warp-lang": "warp", "torchrec": "torchrec", "fbgemm-gpu": "torchrec",
    "liger-kernel": "liger", "unsloth": "liger", "flash-linear-attention": "liger", "flashinfer-python": "liger",
    "natten": "liger",
    "triton": "=triton-kernel", "pytorch-triton": "=triton-kernel", "pynvml": "=nvidia-tool", "nvidia-ml-py": "=nvidia-tool",
    "nvidia-ml-py3": "=nvidia-tool", "gputil": "=nvidia-tool", "pycuda": "=python-cuda", "cuda-python": "=python-cuda",
    "tinycudann": "tiny-cuda",
}
_STARTS = (("cupy", "=python-cuda"), ("nvidia-dali", "dali"), ("cudf", "rapids"), ("cuml", "rapids"), ("spconv", "spconv"),
    ("dgl-cu", "dgl"),
           ("cugraph", "rapids"), ("libcudf", "rapids"), ("transformer-engine", "transformer-engine"), ("jetstream-pytorch",
               "jetstream"),
           ("tensorrt", "tensorrt"))
_PACKAGE_ROOTS = frozenset(name.split(".")[0] for name in _PACKAGES)


def library_rule(dotted: str) -> str | None:
    """Return the rule of the library that a full name belongs to, or None.

    Args:
        dotted: such as `flash_attn.flash_attn_func`.
    """
    parts = dotted.split(".", 2)
    if parts[0] not in _PACKAGE_ROOTS:
        return None
    found = _PACKAGES.get(parts[0]) or _PACKAGES.get(".".join(parts[:2]))
    return None if found is None else f"library-{found}"


def distribution_rule(name: str) -> str | None:
    """Return the rule of the library that a distribution holds, or None.

    Args:
        name: of the distribution, in any spelling.
    """
    plain = re.sub(r"[-_.]+", "-", name).lower()
    found = _DISTRIBUTIONS.get(plain) or next((rule for start, rule in _STARTS if plain.startswith(start)), None)
    if found is None:
        return None
    return found[1:] if found.startswith("=") else f"library-{found}"
