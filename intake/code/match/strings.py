"""Rules that a text makes apply: names of devices, of backends and of environment variables.

Docstrings and comments never get here.
"""

import ast
import re

from intake.code.view import View

_FILLED = r"\{[\w.\[\]]*(![rsa])?(:[^{}]*)?\}|%\(\w+\)[0-9]*[dis]|%[0-9]*[dis]"
"""A place in a text that is filled in later: `{}`, `{rank:d}`, `%d`, `%(rank)s`."""
_DEVICE = re.compile(rf"cuda(:(\d+|{_FILLED}|))?")
_DEVICE_START = re.compile(r"cuda:?")
_TF_DEVICE = re.compile(r"/?((job:[\w]+/)?(task:\d+/)?(replica:\d+/)?)?(/?device:)?gpu:"
                        rf"(\d+|{_FILLED}|\*|)", re.IGNORECASE)
_NCCL = re.compile(r"nccl|(cpu:gloo,)?cuda:nccl|horovod:nccl", re.IGNORECASE)
_TENSOR_TYPE = re.compile(r"torch\.cuda\.\w+Tensor")
_GPU_VARIABLE = re.compile(r"(CUDA|NCCL|CUBLAS|CUDNN|NVIDIA|HIP|ROCR|MIOPEN|HSA|TORCH_NCCL|TORCH_CUDA|PYTORCH_CUDA"
                           r"|PYTORCH_HIP|NVTE|TF_GPU|TF_CUDNN)"
                           r"_[A-Z][A-Z0-9_]*|TF_FORCE_GPU_ALLOW_GROWTH")
_XLA_VARIABLE = re.compile(r"(PJRT|XRT|XLA_USE|XLA_DOWNCAST|XLA_EXPERIMENTAL|XLA_IR|XLA_HLO|XLA_SAVE|XLA_NO"
                           r"|XLA_PERSISTENT|XLA_TENSOR|XLA_DISABLE"
                           r"|XLA_DUMP|PT_XLA|LIBTPU|TPU)(_[A-Z][A-Z0-9_]*)?")
_JAX_VARIABLE = re.compile(r"XLA_PYTHON_CLIENT_[A-Z_]+|--xla_gpu_\w+.*")
_X64 = re.compile(r"jax_enable_x64|JAX_ENABLE_X64")
_NATIVE = re.compile(r"[\w./-]+\.cuh?|cudart|cublas|cusparse|cudnn|curand|nvcc")
_BUILDERS = ("setuptools", "distutils", "torch.utils.cpp_extension", "Cython")


def match_text(node: ast.Constant, view: View) -> None:
    """Report a text that names a device, a backend, a variable or a CUDA source."""
    if not isinstance(node.value, str) or not 3 < len(node.value) < 120:
        return
    text = node.value
    rule = _rule_of(text, node, view)
    if rule is not None:
        view.emit(rule, node.lineno, node.col_offset)


def match_joined(node: ast.JoinedStr, view: View) -> None:
    """Report an f-string that makes up the name of a device."""
    first = node.values[0] if node.values else None
    if not isinstance(first, ast.Constant) or not isinstance(first.value, str):
        return
    if len(node.values) == 2 and _uses_devices(view) and _DEVICE_START.fullmatch(first.value):
        view.emit("cuda-device", node.lineno, node.col_offset)
    if view.frameworks & {"tensorflow", "keras"} and re.fullmatch(r"/?(device:)?gpu:", first.value, re.IGNORECASE):
        view.emit("tf-device", node.lineno, node.col_offset)


def _rule_of(text: str, node: ast.Constant, view: View) -> str | None:
    if _DEVICE.fullmatch(text) and _uses_devices(view) and (view.frameworks or "device" in _line(node, view)):
        return "cuda-device"
    if _NCCL.fullmatch(text):
        return "nccl"
    if _TENSOR_TYPE.fullmatch(text):
        return "cuda-tensor-type"
    if _TF_DEVICE.fullmatch(text) and view.frameworks & {"tensorflow", "keras"}:
        return "tf-device"
    if _JAX_VARIABLE.fullmatch(text):
        return "jax-gpu"
    if _GPU_VARIABLE.fullmatch(text):
        return "gpu-environment"
    if _X64.fullmatch(text):
        return "jax-x64"
    if _XLA_VARIABLE.fullmatch(text) and "_" in text:
        return "xla-environment"
    built = any(one.name.split(".")[0] in _BUILDERS or one.name.startswith("torch.utils.cpp_extension") for one in view.imports)
    return "cuda-extension" if built and _NATIVE.fullmatch(text) else None


def _line(node: ast.Constant, view: View) -> str:
    at = node.lineno + view.offset
    return view.lines[at - 1].lower() if 0 < at <= len(view.lines) else ""


def _uses_devices(view: View) -> bool:
    """Whether a text `cuda` is a device here: not in files of other frameworks only."""
    return not view.frameworks or "torch" in view.frameworks
