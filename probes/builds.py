"""What a runtime's packages were built for, which driver that needs, and which libraries would clash with it.

Pure but for looking into the folders of `LD_LIBRARY_PATH`; a worker inherits that variable, and the loader takes its folders
first.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from packaging.specifiers import InvalidSpecifier, SpecifierSet

from core.probe import Runtime
from probes.packages import WANTS_LIBTPU, wish

NEEDED = {"NVIDIA": "cuda", "AMD": "rocm", "Google": "tpu"}
"""The kind of build that a vendor's devices need."""
DRIVER_FOR_CUDA = {11: (450, 80), 12: (525, 60), 13: (580, 0)}
"""Least driver for a major CUDA version. Source: NVIDIA CUDA release notes, table of minor version compatibility."""
CAPABILITY_FOR_CUDA = {12: (5, 0), 13: (7, 5)}
"""Least compute capability. Source: NVIDIA CUDA 13.0 release notes; jax docs/installation.md."""
_CUDNN = re.compile(r"libcudnn\.so\.(\d+(?:\.\d+)*)$")
_SYSTEM = ("usr/lib/x86_64-linux-gnu", "usr/lib/aarch64-linux-gnu", "usr/local/cuda/lib64", "usr/lib64")
Version = tuple[int, ...]


def library_of(runtime: Runtime) -> str:
    """Return the framework that computes: of Keras its backend."""
    return runtime.mode if runtime.framework == "keras" else runtime.framework


def builds_of(runtime: Runtime, packages: Mapping[str, str]) -> dict[str, str]:
    """Return what a runtime was built for: `cpu`, `cuda`, `rocm`, `tpu` with the version of CUDA or ROCm, empty if unknown.

    Args:
        runtime: an installed one.
        packages: versions of its interpreter's packages.
    """
    match library_of(runtime):
        case "torch" if runtime.id in ("torch-xla", "torch-tpu"):
            return {"tpu": packages["libtpu"]} if "libtpu" in packages else {"cpu": ""}
        case "torch":
            return _torch(packages)
        case "jax":
            return _jax(packages)
        case "tensorflow":
            return _tensorflow(packages)
        case _:
            return {"cuda": "11.2"} if "mxnet-cu112" in packages else {"cpu": ""}


def _torch(packages: Mapping[str, str]) -> dict[str, str]:
    _, _, tag = packages.get("torch", "").partition("+")
    if tag.startswith("cu"):
        return {"cuda": f"{tag[2:-1]}.{tag[-1]}"}
    if tag.startswith("rocm"):
        return {"rocm": tag[4:]}
    return {"cpu": ""} if tag.startswith("cpu") else {"cuda": _cuda_runtime(packages)}


def _cuda_runtime(packages: Mapping[str, str]) -> str:
    names = ("nvidia-cuda-runtime", "nvidia-cuda-runtime-cu12", "nvidia-cuda-runtime-cu11")
    told = next((packages[name] for name in names if name in packages), "")
    return ".".join(told.split(".")[:2])


def _jax(packages: Mapping[str, str]) -> dict[str, str]:
    plugins = (
        ("jax-cuda13-plugin", "cuda", "13"), ("jax-cuda12-plugin", "cuda", "12"), ("jax-rocm7-plugin", "rocm", "7"),
        ("jax-rocm60-plugin", "rocm", "6"), ("libtpu", "tpu", packages.get("libtpu", "")),
    )  # fmt: skip
    found: dict[str, str] = {}
    for name, kind, version in plugins:
        if name in packages:
            found.setdefault(kind, version)
    return found or {"cpu": ""}


def _tensorflow(packages: Mapping[str, str]) -> dict[str, str]:
    if "tensorflow-rocm" in packages:
        return {"rocm": ""}
    if "tensorflow-tpu" in packages:
        return {"tpu": packages.get("libtpu", "")}
    return {"cuda": "12.5"} if "tensorflow" in packages else {"cpu": ""}


def numbers(version: str) -> Version:
    """Return the leading numbers of a version: `(9, 20)` for `9.20.0+x` cut to what is numeric at the start of each part."""
    return tuple(int(found.group()) for part in version.split(".") if (found := re.match(r"\d+", part)))


def too_old(driver: str, cuda: str) -> str | None:
    """Return the least driver that a CUDA version needs, when the driver is older; else None."""
    least = DRIVER_FOR_CUDA.get(numbers(cuda)[0]) if numbers(cuda) else None
    return None if least is None or numbers(driver)[:2] >= least else str(least[0])


def too_weak(capability: str, cuda: str) -> str | None:
    """Return the least compute capability that a CUDA version compiles for, when the GPU has less; else None."""
    least = CAPABILITY_FOR_CUDA.get(numbers(cuda)[0]) if numbers(cuda) else None
    return None if least is None or numbers(capability) >= least else ".".join(map(str, least))


def cudnn_clash(packages: Mapping[str, str], library_path: str) -> tuple[str, str, str] | None:
    """Return (folder, its cuDNN, the environment's cuDNN) when the loader would take an older one or another major version.

    Source: jax-ml/jax issue 18032; docs.nvidia.com/deeplearning/cudnn, "API compatibility".
    """
    own = next((packages[name] for name in sorted(packages) if name.startswith("nvidia-cudnn-")), "")
    for folder in filter(None, library_path.split(":")):
        found = _cudnn(Path(folder))
        if own and found and (found[0] != numbers(own)[0] or found[:2] < numbers(own)[: len(found[:2])]):
            return folder, ".".join(map(str, found)), own
        if found:
            return None
    return None


def cudnn_is_near(packages: Mapping[str, str], library_path: str, root: Path) -> bool:
    """Return whether any cuDNN could be loaded: of the environment, of `LD_LIBRARY_PATH`, or of the system."""
    if any(name.startswith("nvidia-cudnn-") for name in packages):
        return True
    folders: Sequence[Path] = [Path(name) for name in library_path.split(":") if name]
    return any(_cudnn(folder) for folder in (*folders, *(root / name for name in _SYSTEM)))


def _cudnn(folder: Path) -> Version | None:
    """Return the most telling version in the names of a folder's cuDNN files."""
    found = (_CUDNN.search(path.name) for path in folder.glob("libcudnn.so.*"))
    return max((numbers(match.group(1)) for match in found if match), default=None)


def libtpu_clash(packages: Mapping[str, str], library: str) -> tuple[str, str] | None:
    """Return (what the framework wants of libtpu, what is installed) when they do not go together."""
    version = packages.get("libtpu")
    by = next((name for name in WANTS_LIBTPU if name.startswith(library) and wish(name) in packages), None)
    if version is None or by is None:
        return None
    try:
        fits = SpecifierSet(packages[wish(by)]).contains(version, prereleases=True)
    except InvalidSpecifier:
        return None
    return None if fits else (packages[wish(by)], version)
