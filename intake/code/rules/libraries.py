"""Rules of libraries that tie code to a device: each with what stands for it elsewhere."""

from functools import partial

from intake.code.rules.declare import HIP, METADATA, TORCH_TPU, TPU_GUIDE, Rule, declared

_rule = partial(declared, "libraries")
_ONLY = f"{TPU_GUIDE}; {METADATA}"
_Effects = dict[str, tuple[str, str, str]]


def _cuda_only(tpu: str, amd: tuple[str, str, str], other: str = "") -> _Effects:
    """Return effects of a library that needs CUDA.

    Args:
        tpu: what stands for it on TPUs.
        amd: what it means on AMD's GPUs.
        other: what stands for it in another framework; empty when the same as on TPUs.
    """
    return {"JTX": ("blocks", "does not run on TPUs", tpu), "A": amd, "F": ("work", "is bound to its framework", other or tpu)}


_NO_ROCM = ("blocks", "has no ROCm build", "leave it out or replace it")
_PORTED = ("check", "has a ROCm build or fork", "install and test that")
_FUSED = "plain attention: fused by the compiler, or the framework's own fused attention"

RULES: tuple[Rule, ...] = (
    _rule("library-flash-attn", "flash-attn", f"{_ONLY}; {HIP}", (1, 8, 0.1, 0.5), _cuda_only(_FUSED, _PORTED)),
    _rule("library-xformers", "xFormers", _ONLY, (1, 8, 0.1, 0.5), _cuda_only(_FUSED, _PORTED)),
    _rule("library-bitsandbytes", "bitsandbytes", _ONLY, (2, 12, 0.1, 0.5),
        _cuda_only("bf16 or int8 weights of the framework; Adafactor for small state", _PORTED)),
    _rule("library-apex", "NVIDIA Apex", _ONLY, (1, 8, 0.1, 0.5), _cuda_only("plain layers and optimizers, bf16", _PORTED)),
    _rule("library-transformer-engine", "Transformer Engine", _ONLY, (4, 24, 0.25, 1),
        _cuda_only("plain layers; fp8 by the framework where the chip has it", _PORTED)),
    _rule("library-dali", "NVIDIA DALI", _ONLY, (4, 24, 0.25, 1),
        _cuda_only("tf.data or Grain on the host; or GPUs write shards beforehand", _NO_ROCM)),
    _rule("library-deepspeed", "DeepSpeed", "deepspeedai/DeepSpeed accelerator/ (@edaa722)", (8, 60, 0.25, 2), {
        "JTX": ("blocks", "has no TPU accelerator", "FSDP2 or DTensor, or shardings of JAX"), "A": ("check",
            "supported on ROCm; some operations are not", "ds_report"),
        "F": ("work", "is bound to PyTorch", "shardings of the other framework"),
    }),
    _rule("library-megatron", "Megatron-LM", "NVIDIA/Megatron-LM (2026-08)", (16, 120, 0.25, 2), {
        "JTX": ("blocks", "does not run on TPUs", "MaxText or TorchTitan"), "A": ("work", "AMD keeps a fork", "use the fork"),
        "F": ("work", "is bound to PyTorch", "MaxText"),
    }),
    _rule("library-nemo", "NVIDIA NeMo", "NVIDIA/NeMo (2026-08)", (16, 120, 0.25, 2), {
        "JTX": ("blocks", "does not run on TPUs", "MaxText or TorchTitan"), "A": _NO_ROCM, "F": ("work", "is bound to PyTorch",
            "MaxText"),
    }),
    _rule("library-fairscale", "FairScale", METADATA, (2, 16, 0.25, 1), {
        "J": ("work", "is bound to PyTorch", "shardings"), "TX": ("work", "is superseded and not for TPUs", "FSDP2 of PyTorch"),
        "AN": ("check", "is superseded", "FSDP2 of PyTorch"), "F": ("work", "is bound to PyTorch", "shardings"),
    }),
    _rule("library-colossalai", "Colossal-AI", _ONLY, (8, 60, 0.25, 2), _cuda_only("FSDP2 or DTensor, or shardings of JAX",
        ("check", "not verified on ROCm", "test it"))),
    _rule("library-horovod", "Horovod or BytePS", METADATA, (2, 16, 0.25, 1), {
        "J": ("work", "has no JAX or TPU support", "shardings"), "TX": ("work", "has no TPU support", "torch.distributed"),
        "A": ("check", "builds for ROCm", "test it"), "N": ("check", "is hardly developed any more",
            "torch.distributed or the framework's own strategy"),
        "F": ("check", "supports TensorFlow, Keras, PyTorch and MXNet", "the framework's own strategy"),
    }),
    _rule("library-tensorrt", "TensorRT", _ONLY, (4, 24, 0.5, 2), _cuda_only("serve by vLLM for TPU or from StableHLO",
        ("blocks", "is NVIDIA's", "MIGraphX"))),
    _rule("library-vllm", "vLLM or SGLang", "docs.vllm.ai (2026); package metadata, 2026-11-30", (1, 8, 0.25, 1), {
        "J": ("work", "another distribution serves on TPUs", "vllm-tpu (vLLM-JAX)"), "T": ("work",
            "another distribution serves on TPUs", "vllm-torchtpu"),
        "X": ("work", "its torch_xla path was replaced", "vllm-torchtpu"), "A": ("none", "ROCm builds exist", ""),
        "F": ("check", "serves PyTorch weights", "keep it beside the trainer"),
    }),
    _rule("library-lightning", "PyTorch Lightning", "pytorch-lightning (@7f0c343)", (2, 16, 0.1, 1), {
        "J": ("work", "is bound to PyTorch", "a plain loop"), "T": ("work", "has no TorchTPU strategy",
            "a plain loop, or torch_xla until there is one"),
        "X": ("check", "its TPU support is marked experimental", "accelerator='tpu'"), "F": ("work", "is bound to PyTorch",
            "a plain loop or Keras fit"),
    }),
    _rule("library-accelerate", "Hugging Face Accelerate", METADATA, (1, 6, 0.1, 0.5), {
        "J": ("work", "is bound to PyTorch", "a plain loop"), "T": ("check", "its TorchTPU support is not verified here",
            "test it"),
        "X": ("check", "supports torch_xla", "accelerate launch --tpu"), "A": ("none", "runs on ROCm", ""), "F": ("work",
            "is bound to PyTorch", "a plain loop"),
    }),
    _rule("library-rapids", "RAPIDS", _ONLY, (2, 16, 0.25, 1),
        _cuda_only("pandas, Polars or a GPU stage that writes files beforehand", _NO_ROCM)),
    _rule("library-torch-scatter", "torch-scatter, torch-sparse and their like", _ONLY, (2, 16, 0.25, 1),
          _cuda_only("scatter_reduce, index_add or segment sums with fixed sizes", ("work", "has to be built for ROCm",
              "torch.scatter_reduce"))),
    _rule("library-spconv", "sparse convolutions (spconv, MinkowskiEngine)", _ONLY, (8, 60, 0.5, 3),
        _cuda_only("dense or blocked convolutions", _NO_ROCM)),
    _rule("library-dgl", "DGL", _ONLY, (4, 24, 0.25, 1), _cuda_only("segment sums with padded graphs", ("work",
        "has no official ROCm build", "PyTorch Geometric"))),
    _rule("library-onnxruntime", "ONNX Runtime", "onnxruntime.ai/docs/execution-providers (recalled)", (1, 8, 0.25, 1), {
        "JTX": ("blocks", "has no execution provider for TPU", "convert to StableHLO, or keep it on the host"),
        "A": ("work", "the ROCm provider was removed in 1.23", "MIGraphX"), "F": ("check", "serves exported models of any",
            "export again"),
    }),
    _rule("library-hugectr", "HugeCTR, Merlin", _ONLY, (16, 80, 0.5, 3), _cuda_only("SparseCore embeddings, TorchRec", _NO_ROCM)),
    _rule("library-mamba", "Mamba kernels (mamba-ssm, causal-conv1d)", _ONLY, (4, 40, 0.25, 2), _cuda_only("an associative scan",
        _PORTED)),
    _rule("library-tiny-cuda", "3-D kernels (tiny-cuda-nn, nvdiffrast, PyTorch3D, Kaolin)", _ONLY, (16, 120, 0.5, 3),
        _cuda_only("plain operations", _NO_ROCM)),
    _rule("library-quantised-kernels", "quantised kernels (GPTQ, AWQ, ExLlama)", _ONLY, (2, 16, 0.25, 1),
        _cuda_only("quantise again for the target from bf16", _PORTED)),
    _rule("library-torchao", "torchao", TORCH_TPU, (1, 8, 0.25, 1), {
        "J": ("work", "is bound to PyTorch", "AQT or Qwix"), "TX": ("check", "not verified on TPU", "test each method"),
            "A": ("check", "partly supported", "test it"),
        "F": ("work", "is bound to PyTorch", "its own quantisation"),
    }),
    _rule("library-mmcv", "MMCV operations", _ONLY, (4, 40, 0.25, 2), _cuda_only("plain operations with fixed numbers of boxes",
        ("work", "has to be built for ROCm", "build it"))),
    _rule("library-tensorflow-addons", "TensorFlow Addons", "tensorflow/addons README (recalled)", (1, 8, 0.1, 1), {
        "JTX": ("work", "is bound to TensorFlow, and ended in 2024", "Keras 3 or plain operations"), "AN": ("work",
            "ended in 2024: no build for current TensorFlow", "Keras 3"),
        "F": ("work", "is bound to TensorFlow", "plain operations"),
    }),
    _rule("library-tensorflow-probability", "TensorFlow Probability", METADATA, (1, 8, 0.1, 0.5), {
        "J": ("check", "has a JAX substrate", "import tensorflow_probability.substrates.jax"), "TX": ("work",
            "is not for PyTorch", "torch.distributions"),
        "F": ("work", "is for TensorFlow and JAX", "its own distributions"),
    }),
    _rule("library-haiku", "Haiku, Trax or Tensor2Tensor", METADATA, (2, 16, 0.1, 0.5), {
        "JAN": ("check", "is maintained at most", "Flax NNX"), "TX": ("work", "is not for PyTorch", "torch.nn"), "F": ("work",
            "is not for others", "its own modules"),
    }),
    _rule("library-torchtext", "torchtext", METADATA, (0.5, 4, 0.1, 0.5), {
        "JTXANF": ("check", "ended in 2024: no build for current torch", "Hugging Face datasets and tokenizers"),
    }),
    _rule("library-jetstream", "JetStream or optimum-tpu", "README of JetStream, 2026-01-05; README of optimum-tpu, 2025-12-19",
        (4, 24, 0.25, 1), {
        "JTX": ("work", "archived or in maintenance", "vLLM for TPU"), "AN": ("work", "is for TPUs", "vLLM"), "F": ("work",
            "is for TPUs", "vLLM"),
    }),
    _rule("library-torch-tpu", "TorchTPU", TORCH_TPU, (1, 4, 0.1, 0.5), {
        "J": ("work", "is of PyTorch", "JAX"), "T": ("check", "beta 0.2.0, its first release", "pilot first"),
        "X": ("work", "shares no environment with torch_xla (libtpu)", "one of the two"), "AN": ("work", "is for TPUs",
            "device cuda"), "F": ("work", "is of PyTorch", "its own"),
    }),
    _rule("library-torchax", "torchax", METADATA, (1, 8, 0.1, 0.5), {
        "J": ("none", "runs torch modules on JAX", ""), "TX": ("work", "is of JAX", "plain PyTorch"), "F": ("work",
            "joins PyTorch and JAX", "one of them"),
    }),
    _rule("library-warp", "GPU simulation (Warp, Isaac Gym, Modulus)", _ONLY, (8, 80, 0.5, 3),
        _cuda_only("actors stay on GPUs, the learner moves", _NO_ROCM)),
    _rule("library-torchrec", "TorchRec, FBGEMM", TORCH_TPU, (4, 40, 0.25, 2), {
        "J": ("work", "is bound to PyTorch", "SparseCore embeddings of JAX"), "T": ("check", "named for TorchTPU (beta)",
            "pilot first"),
        "X": ("blocks", "needs CUDA or TorchTPU", "TorchTPU"), "A": ("check", "FBGEMM builds for ROCm", "test it"), "F": ("work",
            "is bound to PyTorch", "its embeddings"),
    }),
    _rule("library-liger", "Triton kernel libraries (Liger, FlashInfer, NATTEN and their like)", _ONLY, (2, 24, 0.25, 2),
        _cuda_only("plain operations", _PORTED)),
)
