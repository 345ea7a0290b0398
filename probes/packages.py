"""Which builds of the frameworks an interpreter holds, asked of package metadata: no framework is imported for it.

Run as a file by an interpreter that Tandem did not choose (`PYTHON probes/packages.py`), so it uses the standard library only and
the syntax of old Pythons. Besides versions it tells what each package wants of libtpu, for two stacks on one TPU clash there.
"""

import json
import sys
from collections.abc import Mapping
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Optional, cast

WATCHED = (
    "jax", "jaxlib", "jax-cuda12-plugin", "jax-cuda13-plugin", "jax-rocm60-plugin", "jax-rocm7-plugin", "libtpu", "mxnet",
    "mxnet-cu112", "nvidia-cublas-cu12", "nvidia-cuda-runtime", "nvidia-cuda-runtime-cu11", "nvidia-cuda-runtime-cu12",
    "nvidia-cudnn-cu11", "nvidia-cudnn-cu12", "nvidia-cudnn-cu13", "tensorflow", "tensorflow-cpu", "tensorflow-rocm",
    "tensorflow-tpu", "torch", "torch_tpu", "torch_xla",
)  # fmt: skip
WANTS_LIBTPU = ("jax", "tensorflow-tpu", "torch_tpu", "torch_xla")
LIMIT_S = 10.0


def wish(package: str) -> str:
    """Return the key under which is told what a package wants of libtpu."""
    return f"{package} wants libtpu"


def installed() -> "dict[str, str]":
    """Return versions of what this interpreter holds of `WATCHED`, and under `wish(package)` a version of libtpu."""
    found: dict[str, str] = {}
    for name in WATCHED:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
        for line in (metadata.requires(name) or []) if name in WANTS_LIBTPU else []:
            wanted = line.partition(";")[0].strip()
            if wanted.startswith("libtpu") and not wanted.startswith("libtpu-"):
                found[wish(name)] = wanted[len("libtpu") :].strip(" ()")
    return found


@cache
def packages_in(interpreter: str) -> "Optional[Mapping[str, str]]":  # noqa: UP045 - read by old Pythons too
    """Return what an interpreter holds, or None when it does not tell.

    Args:
        interpreter: path of a Python; asked once in the life of this process.
    """
    if interpreter in ("", sys.executable):
        return installed()
    from probes.asking import ask

    try:
        answer = ask((interpreter, str(Path(__file__).resolve())), LIMIT_S)
        told = None if answer.code or answer.obstacle else json.loads(answer.text)
    except (OSError, ValueError):
        return None
    if not isinstance(told, dict):
        return None
    return {str(name): str(version) for name, version in cast("dict[object, object]", told).items()}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(installed()))
