"""What one framework sees of this machine, told by itself in its own process: `python -m probes.view RUNTIME`.

The environment is set before this starts (`probes.environment`), as for a worker. One JSON line is the answer; whatever a
framework writes to its standard output goes to the error stream, where its warnings are looked for. Frameworks are imported by
name: a worker's backend asserts its platform, this one tells what is there even when that is nothing.
"""

import json
import os
import sys
import traceback
from collections.abc import Callable
from importlib import import_module
from typing import Any, cast

from core.errors import one_line

Seen = list[dict[str, Any]]
"""One mapping with `kind`, `name` and `memory_bytes` (None when it does not tell) for each device."""


def _mapping(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def see_jax() -> tuple[str, Seen]:
    """Return version and devices as jax tells them."""
    jax = import_module("jax")
    found: Seen = []
    for device in jax.devices():
        name, platform = str(device.device_kind), str(device.platform)
        told = _mapping(device.memory_stats()).get("bytes_limit")
        found.append({"kind": "gpu" if platform in ("cuda", "rocm") else platform, "name": name, "memory_bytes": told})
    return str(jax.__version__), found


def see_torch() -> tuple[str, Seen]:
    """Return version and devices as torch tells them; ROCm calls itself `cuda` too."""
    torch = import_module("torch")
    found: Seen = [{"kind": "cpu", "name": f"CPU, {torch.get_num_threads()} threads", "memory_bytes": None}]
    hidden = os.environ.get("CUDA_VISIBLE_DEVICES") == "-1"
    if not hidden and not torch.cuda.is_available() and torch.backends.cuda.is_built():
        torch.cuda.init()  # raises with the reason that `is_available` keeps to itself
    for index in range(torch.cuda.device_count()):
        facts = torch.cuda.get_device_properties(index)
        found.append({"kind": "gpu", "name": str(facts.name), "memory_bytes": int(facts.total_memory)})
    return str(torch.__version__), found


def see_torch_xla() -> tuple[str, Seen]:
    """Return version and devices as torch_xla tells them; it falls back to the CPU with a warning."""
    torch_xla = import_module("torch_xla")
    runtime = import_module("torch_xla.runtime")
    name = str(runtime.device_type() or "").lower()
    count = int(runtime.addressable_device_count())
    return str(torch_xla.__version__), [{"kind": name, "name": name.upper(), "memory_bytes": None}] * count


def see_torch_tpu() -> tuple[str, Seen]:
    """Return version and devices as TorchTPU tells them."""
    torch, torch_tpu = import_module("torch"), import_module("torch_tpu")
    count = int(torch.tpu.device_count())
    return str(getattr(torch_tpu, "__version__", "")), [{"kind": "tpu", "name": "TPU", "memory_bytes": None}] * count


def see_tensorflow() -> tuple[str, Seen]:
    """Return version and devices as tensorflow tells them; where a library is missing, it writes a line and lists no GPU."""
    tensorflow = import_module("tensorflow")
    found: Seen = []
    for device in tensorflow.config.list_physical_devices():
        told = str(device.device_type).lower()
        if told in ("cpu", "gpu", "tpu"):
            facts = _mapping(tensorflow.config.experimental.get_device_details(device))
            found.append({"kind": told, "name": str(facts.get("device_name", told.upper())), "memory_bytes": None})
    return str(tensorflow.__version__), found


def see_mxnet() -> tuple[str, Seen]:
    """Return version and devices as mxnet tells them."""
    mxnet = import_module("mxnet")
    gpus = int(mxnet.context.num_gpus())
    found: Seen = [{"kind": "cpu", "name": "CPU", "memory_bytes": None}]
    return str(mxnet.__version__), found + [{"kind": "gpu", "name": "GPU", "memory_bytes": None}] * gpus


SEERS: dict[str, Callable[[], tuple[str, Seen]]] = {
    "jax": see_jax,
    "torch-eager": see_torch,
    "torch-compile": see_torch,
    "torch-xla": see_torch_xla,
    "torch-tpu": see_torch_tpu,
    "tf-graph": see_tensorflow,
    "tf-xla": see_tensorflow,
    "keras-jax": see_jax,
    "keras-tensorflow": see_tensorflow,
    "keras-torch": see_torch,
    "mxnet": see_mxnet,
}


def _place(fault: Exception) -> str:
    """Return where a fault without words was raised, such as a bare `assert`."""
    last = traceback.extract_tb(fault.__traceback__)[-1]
    return f"{os.path.basename(last.filename)}: {last.line}"  # noqa: PTH119 - a name out of a trace, no file


def main(runtime: str) -> int:
    """Write one JSON line with `version`, `devices` and `error`; returns the exit code."""
    answer = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    version, devices, error = "", [], ""
    try:
        version, devices = SEERS[runtime]()
        if runtime.startswith("keras"):
            version = f"{import_module('keras').__version__} on {version}"
    except Exception as fault:  # noqa: BLE001 - whatever a framework throws is the answer
        error = one_line(f"{type(fault).__name__}: {str(fault) or _place(fault)}")
    with answer:
        answer.write(json.dumps({"version": version, "devices": devices, "error": error}) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
