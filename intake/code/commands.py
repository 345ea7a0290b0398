"""Shell scripts, containers, settings and native sources: read line by line, comments left out."""

import re

from core.finding import Place, Requirement
from intake.code.requirements import of_command
from intake.code.view import View

_LAUNCHERS = re.compile(
    r"(?:^|[\s;&|(\"'`])(?:torchrun|horovodrun|deepspeed|accelerate\s+launch|torch_xla\.distributed\.xla_dist|mpirun|mpiexec|xla_dist"
    r"|python\S*\s+-m\s+(?:torch\.distributed\.(?:launch|run)|torch_xla\.distributed\.\w+|paddle\.distributed\.launch|accelerate\.commands\.launch))"
    r"(?=\s|$|\\)")
_NVIDIA = re.compile(r"(?:^|[\s;&|(\"'`$])(?:ds_ssh\s+)?(?:nvidia-smi|nvcc|nsys|ncu|nvprof|nvidia-docker|dcgmi"
                     r"|cuda-memcheck)(?=\s|$|\))")
_GPU_VARIABLE = re.compile(r"\b(CUDA_(?:VISIBLE_DEVICES|LAUNCH_BLOCKING|DEVICE_\w+|HOME|PATH|DEVICE_ORDER)|NCCL_[A-Z_]+"
                           r"|TORCH_CUDA_ARCH_LIST"
                           r"|PYTORCH_CUDA_ALLOC_CONF|CUBLAS_WORKSPACE_CONFIG|NVIDIA_[A-Z_]+|HIP_VISIBLE_DEVICES)\s*[=:]")
_XLA_VARIABLE = re.compile(r"\b((?:PJRT|XRT)_[A-Z_]+|XLA_(?:USE|EXPERIMENTAL|IR|HLO|SAVE|DOWNCAST|DISABLE|PERSISTENT"
                           r"|TENSOR|NO|PERSISTENT)[A-Z_0-9]*"
                           r"|PT_XLA_[A-Z_]+|TPU_[A-Z_]+)\s*=")
_IMAGE = re.compile(r"(nvcr\.io/\S+|nvidia/cuda\S*|(?:pytorch/pytorch|tensorflow/tensorflow)\S*(?:cuda|gpu)\S*)", re.IGNORECASE)
_GPUS = re.compile(r"--gpus[\s=]|--runtime[\s=]nvidia|--gres=gpu|nvidia\.com/gpu")
_SETTING = re.compile(r"^\s*+-?\s*+[\w.]++\s*+:\s*+['\"]?(cuda(?::\d+)?|nccl)['\"]?\s*+(?:#.*)?$", re.IGNORECASE)
_CUDA_INDEX = re.compile(r"whl/(?:nightly/)?cu\d{2,3}|jax_cuda_releases")
_NATIVE = re.compile(
    r"__global__|__device__|__shared__|__syncthreads|<<<|\bcuda[A-Z]\w+\s*\(|\b(?:cublas|cudnn|cufft|curand|cusparse|cusolver|nccl)[A-Z]\w+\s*\("
    r"|\bcub::|\bthrust::|(?:at|c10|torch)::cuda\b|\bCUDA_KERNEL_LOOP|\bhip[A-Z]\w+\s*\(|#\s*include\s*[<\"](?:cuda|cub/|thrust/|ATen/cuda|c10/cuda"
    r"|cutlass|hip/|cublas|cudnn|nccl|curand)")
_BINDING = re.compile(r"\b(?:TORCH_LIBRARY(?:_IMPL|_FRAGMENT)?|PYBIND11_MODULE|REGISTER_OP|REGISTER_KERNEL_BUILDER"
                      r"|MXNET_REGISTER_OP_PROPERTY"
                      r"|NNVM_REGISTER_OP|XLA_FFI_DEFINE_HANDLER\w*)\s*\(")
_INSTALLS = re.compile(r"\s*(RUN\s+)?(pip3?|python\S* -m pip|echo|conda|mamba|uv)\s")
_TORCH_HEADER = re.compile(r"#\s*include\s*[<\"](?:torch/|ATen/|tensorflow/core/framework|mxnet/|xla/ffi)")


def scan_shell(text: str, view: View, first: int = 1) -> list[Requirement]:
    """Report what a script starts and sets; return what it installs.

    Args:
        text: of the script.
        view: of the file.
        first: number of its first line.
    """
    found: list[Requirement] = []
    continued = False
    for number, line in enumerate(text.split("\n"), first):
        found.extend(scan_command(line, number, view, continued=continued))
        continued = line.rstrip().endswith("\\")
    return found


def scan_command(line: str, number: int, view: View, *, continued: bool = False) -> list[Requirement]:
    """Report what one command starts and sets; return what it installs.

    Args:
        line: of the script, a comment or not.
        number: of the line.
        view: of the file.
        continued: whether the line before ends in a backslash, so that this one begins no command.
    """
    code = _uncommented(line)[:4000]
    if not code:
        return []
    for rule, pattern in (("launcher", _LAUNCHERS), ("nvidia-tool", _NVIDIA), ("gpu-environment", _GPU_VARIABLE),
        ("xla-environment", _XLA_VARIABLE),
                          ("cuda-image", _IMAGE), ("cuda-image", _GPUS), ("pin-cuda-build", _CUDA_INDEX)):
        hit = pattern.search(code)
        if hit is not None and not (rule == "launcher" and (continued or _INSTALLS.match(code))):
            view.emit(rule, number, hit.start())
    return list(of_command(code, Place(view.name, number, view.cell)))


def scan_container(text: str, view: View) -> list[Requirement]:
    """Report base images and commands of a container file; return what it installs.

    Args:
        text: of the file.
        view: of the file.
    """
    found: list[Requirement] = []
    held, start = "", 1
    for number, line in enumerate(text.split("\n"), 1):
        scan_command(line, number, view, continued=bool(held))
        part = _uncommented(line)
        start = start if held else number
        held += part[:-1] + " " if part.endswith("\\") else part
        if not part.endswith("\\") or len(held) > 20_000:
            found.extend(of_command(held, Place(view.name, start)))
            held = ""
    return [one for one in found if one.name not in ("install", "y")]


def scan_settings(text: str, view: View) -> None:
    """Report devices and backends that a settings file names.

    Args:
        text: of a YAML file, read line by line.
        view: of the file.
    """
    for number, line in enumerate(text.split("\n"), 1):
        hit = _SETTING.match(line[:400])
        if hit is not None:
            view.emit("nccl" if hit.group(1).lower() == "nccl" else "cuda-device", number, hit.start(1))
        elif _IMAGE.search(_uncommented(line)[:400]):
            view.emit("cuda-image", number)


def scan_native(text: str, view: View) -> None:
    """Report CUDA and HIP code and registered operations of a native source.

    Args:
        text: of the file.
        view: of the file.
    """
    code = _without_comments(text)
    framework = _TORCH_HEADER.search(code) is not None
    for number, line in enumerate(code.split("\n"), 1):
        head = line[:4000]
        hit = _NATIVE.search(head)
        if hit is not None:
            view.emit("hip-source" if hit.group().startswith(("hip", "#")) and "hip" in hit.group() else "cuda-source", number,
                hit.start())
        binding = _BINDING.search(head)
        if binding is not None and framework:
            view.emit("native-op", number, binding.start())


def _uncommented(line: str) -> str:
    stripped = line.strip()
    if stripped.startswith("#"):
        return ""
    return re.sub(r"\s#.*$", "", stripped)


def _without_comments(text: str) -> str:
    """Return native source with comments and texts blanked, lines kept; one pass, so that no input makes it slow."""
    pattern = re.compile(r"//[^\n]*|/\*.*?(?:\*/|\Z)|\"(?:\\.|[^\"\\\n])*\"", re.DOTALL)

    def blank(found: re.Match[str]) -> str:
        part = found.group()
        return part if part.startswith('"') else "\n" * part.count("\n")

    return pattern.sub(blank, text)
