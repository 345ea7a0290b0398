"""The environment of each runtime's process, complete before its interpreter starts.

Platform, backend and caches are chosen by variables that frameworks read at import; setting them later does nothing.
"""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from core.device import Device

ROOT = Path(__file__).resolve().parent.parent
_KEPT = (
    "PATH",
    "HOME",
    "USER",
    "LANG",
    "LC_ALL",
    "TMPDIR",
    "LD_LIBRARY_PATH",
    "CUDA_HOME",
    "XDG_CACHE_HOME",
    "CC",
    "CXX",
    "TANDEM_RUN_ID",
)
_BY_RUNTIME = {
    "jax": {"JAX_PLATFORMS": "{jax}"},
    "torch-xla": {"PJRT_DEVICE": "{pjrt}"},
    "keras-jax": {"KERAS_BACKEND": "jax", "JAX_PLATFORMS": "{jax}"},
    "keras-tensorflow": {"KERAS_BACKEND": "tensorflow"},
    "keras-torch": {"KERAS_BACKEND": "torch"},
}
_JAX_PLATFORM = {"cpu": "cpu", "gpu": "cuda", "tpu": "tpu"}
_JAX_GPU = {"AMD": "rocm"}
"""By vendor, where it is not CUDA: the alias `gpu` fails when one of its platforms is not there."""
_PJRT_DEVICE = {"cpu": "CPU", "gpu": "CUDA", "tpu": "TPU"}


def runtimes_folder(home: Path) -> Path:
    """Return the folder of the environments that Tandem builds itself.

    Args:
        home: data directory.
    """
    return home / "runtimes"


CPUS = "TANDEM_WORKER_CPUS"
PARTNER = "TANDEM_WORKER_PARTNER"
MEMORY = "TANDEM_WORKER_MEMORY"


@dataclass(frozen=True, slots=True)
class Setting:
    """What a worker needs from its start on, beyond its runtime; each setting has a worker of its own.

    Args:
        devices: CPU devices that the framework should see, or processes that it should be made of; 0: as it comes.
        cpus: logical cores that the worker may use; 0: all.
        partner: runtime id of a second process that the worker hands data to; empty for none.
    """

    devices: int = 0
    cpus: int = 0
    partner: str = ""


def setting_environment(setting: Setting, device_kind: str, partner_interpreter: str, memory_bytes: int) -> dict[str, str]:
    """Return the variables that a setting adds to a worker's environment.

    Args:
        setting: of the worker.
        device_kind: `cpu`, `gpu` or `tpu`; real devices are not made up.
        partner_interpreter: Python of the partner's runtime; empty for none.
        memory_bytes: resident size that the worker is killed at.
    """
    result = {MEMORY: str(memory_bytes)}
    if setting.devices and device_kind == "cpu":
        result["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={setting.devices}"
    if setting.devices and sys.platform.startswith("linux"):
        result["GLOO_SOCKET_IFNAME"] = "lo"
    if setting.cpus:
        result |= {CPUS: str(setting.cpus), "OMP_NUM_THREADS": str(setting.cpus), "MKL_NUM_THREADS": str(setting.cpus)}
    if setting.partner:
        result[PARTNER] = partner_interpreter
    return result


def hold_to_cpus(wanted: str | None) -> None:
    """Keep this process, and what it starts, on its first `wanted` cores; frameworks size their pools by that at import."""
    if wanted and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: int(wanted)])


def only_device(device: Device) -> dict[str, str]:
    """Return the variables that show a worker no other GPU than its own; nothing for what NVIDIA's driver does not name.

    Args:
        device: that the worker is for.
    """
    return {"CUDA_VISIBLE_DEVICES": device.uuid} if device.kind == "gpu" and device.uuid.startswith("GPU-") else {}


def worker_environment(
    runtime: str, device_kind: str, inherited: Mapping[str, str], home: Path, run_id: str, vendor: str = ""
) -> dict[str, str]:
    """Return the whole environment of one worker.

    Args:
        runtime: a runtime id.
        device_kind: `cpu`, `gpu` or `tpu`; on `cpu` every GPU is hidden.
        inherited: the launcher's own environment; only what a process needs is passed on.
        home: data directory, for compile caches.
        run_id: marks the process, so that a sweep finds it.
        vendor: of the device; empty when unknown.
    """
    result = {name: inherited[name] for name in _KEPT if name in inherited}
    result |= {name: value for name, value in inherited.items() if name.startswith(("OPENBLAS_", "OMP_", "MKL_"))}
    result |= {
        "PYTHONPATH": str(ROOT),
        "PYTHONUNBUFFERED": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONNOUSERSITE": "1",
        "TF_CPP_MIN_LOG_LEVEL": "2",
        "TORCHINDUCTOR_CACHE_DIR": str(home / "cache" / "inductor"),
        "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
        "TF_FORCE_GPU_ALLOW_GROWTH": "true",
        "KERAS_HOME": str(home / "cache" / "keras"),
        "HF_HUB_OFFLINE": "1",
    }
    if run_id:
        result["TANDEM_RUN_ID"] = run_id
    if device_kind == "cpu":
        result |= {"CUDA_VISIBLE_DEVICES": "-1", "HIP_VISIBLE_DEVICES": "-1"}
    jax = _JAX_GPU.get(vendor, _JAX_PLATFORM["gpu"]) if device_kind == "gpu" else _JAX_PLATFORM[device_kind]
    for name, value in _BY_RUNTIME.get(runtime, {}).items():
        result[name] = value.format(jax=jax, pjrt=_PJRT_DEVICE[device_kind])
    return result
