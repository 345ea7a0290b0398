"""Whether a runtime can use a device: each failure has its own reason and the command that mends it."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from catalog import runtime_specs
from core.device import Device
from core.hardware import Board, Fault, Partition, Slot, Tenant
from core.probe import Runtime
from probes.builds import cudnn_clash, too_old
from probes.packages import installed, packages_in, wish
from probes.usability import ASSERTED, Usability, usable_by
from probes.views import Seen, View

H100 = Device("gpu:0", "gpu", "NVIDIA H100 80GB HBM3", "GPU-1", 80 * 2**30, None, "h100-sxm", board=Board(
    "NVIDIA", "NVML", "580.95.05", "13.0", "9.0", Slot("0000:1b:00.0"), memory_used_bytes=2**29, tenants=()))  # fmt: skip
V100 = Device("gpu:0", "gpu", "Tesla V100-SXM2-16GB", "GPU-2", 16 * 2**30, None, "v100-16", board=Board(
    "NVIDIA", "NVML", "580.95.05", "13.0", "7.0"))  # fmt: skip
MI300X = Device("gpu:0", "gpu", "AMD Instinct MI300X", "GPU-3", 192 * 2**30, None, "mi300x", board=Board("AMD", "amdsmi"))
V6E = Device("tpu:0", "tpu", "Cloud TPU v6e", "0000:00:04.0", 32 * 10**9, None, "tpu-v6e", board=Board(
    "Google", "PCI bus", path="/dev/vfio/0", tenants=(), reachable=True))  # fmt: skip
NOWHERE = Path("/none")
CUDA13 = {"jax": "0.10.2", "jax-cuda13-plugin": "0.10.2", "torch": "2.13.0", "nvidia-cuda-runtime": "13.0.96",
          "nvidia-cudnn-cu13": "9.20.0.48"}  # fmt: skip
CUDA12 = {"jax": "0.10.2", "jax-cuda12-plugin": "0.10.2", "torch": "2.13.0+cu126", "tensorflow": "2.21.0",
          "nvidia-cudnn-cu12": "9.3.0.75"}  # fmt: skip


def _runtime(name: str, *versions: tuple[str, str]) -> Runtime:
    spec = runtime_specs()[name]
    return Runtime(name, spec.framework, spec.mode, versions, "/python", installed=True)


def _judge(
    device: Device, name: str, held: Mapping[str, str] | None, view: View | None = None, path: str = "", root: Path = NOWHERE
) -> Usability:
    views = () if view is None else (view,)
    (pair,) = usable_by((device,), (_runtime(name),), views, lambda _: held, {"LD_LIBRARY_PATH": path}, root)
    return pair


def _with(device: Device, **facts: object) -> Device:
    assert device.board is not None
    return replace(device, board=replace(device.board, **facts))


@pytest.mark.parametrize(("device", "name", "held"), [
    (H100, "jax", CUDA13), (H100, "torch-eager", CUDA13), (H100, "torch-compile", CUDA12), (H100, "tf-graph", CUDA12),
    (H100, "keras-jax", CUDA12), (V100, "jax", CUDA12), (MI300X, "torch-eager", {"torch": "2.13.0+rocm6.4"}),
    (MI300X, "jax", {"jax-rocm7-plugin": "0.10.2"}), (V6E, "jax", {"libtpu": "0.0.42.1", wish("jax"): "==0.0.42.*"}),
    (V6E, "torch-tpu", {"libtpu": "0.0.50"}), (H100, "mxnet", {"mxnet-cu112": "1.9.1"}),
])  # fmt: skip
def test_what_goes_together_is_usable_and_still_asserted(device: Device, name: str, held: dict[str, str]) -> None:
    assert _judge(device, name, held) == Usability(device.id, name, ok=True, reason=ASSERTED, remedy="")


@pytest.mark.parametrize(("device", "name", "held", "reason", "remedy"), [
    (H100, "torch-eager", {"torch": "2.13.0+cpu"}, "CPU build of torch", "./tandem runtimes install torch-cuda"),
    (H100, "jax", {"jax": "0.10.2"}, "CPU build of jax, and it would fall back to the CPU", "runtimes install jax-cuda13"),
    (H100, "keras-tensorflow", {"tensorflow-cpu": "2.21.0"}, "CPU build of tensorflow",
     "./tandem runtimes install tensorflow-cuda"),
    (MI300X, "torch-eager", {"torch": "2.13.0+cu130"}, "CUDA build of torch; a device of AMD needs the ROCm build", "ROCm build"),
    (H100, "torch-eager", {"torch": "2.13.0+rocm6.4"}, "ROCm build of torch; a device of NVIDIA needs", "install torch-cuda"),
    (V6E, "jax", {"jax": "0.10.2", "jax-cuda13-plugin": "0.10.2"}, "CUDA build of jax", "runtimes install jax-tpu"),
    (_with(H100, driver="535.104.05"), "jax", CUDA13, "driver 535.104.05 is too old for CUDA 13", "runtimes install jax-cuda12"),
    (_with(H100, driver="470.57.02"), "torch-eager", CUDA12, "too old for CUDA 12.6", "update the NVIDIA driver to 525"),
    (_with(H100, driver="470.57.02"), "jax", CUDA13, "needs 580 or newer", "update the NVIDIA driver to 580"),
    (V100, "jax", CUDA13, "compute capability 7.5 and newer, the GPU has 7.0", "runtimes install jax-cuda12"),
    (V100, "torch-eager", CUDA13, "compute capability 7.5", "CUDA 12 build of torch"),
    (H100, "tf-graph", {"tensorflow": "2.21.0"}, "would fall back to the CPU with a line", "runtimes install tensorflow-cuda"),
    (H100, "torch-xla", {"torch_xla": "2.9.0"}, "CUDA support was removed", "use jax"),
    (V6E, "mxnet", {"mxnet": "1.9.1"}, "never had a TPU backend", "use jax or keras-jax"),
    (V6E, "torch-eager", {"torch": "2.13.0"}, "plain PyTorch has no TPU device", "use jax"),
    (V6E, "tf-graph", {"tensorflow-tpu": "2.20.0"}, "is not measured on TPUs", "use jax"),
    (MI300X, "mxnet", {"mxnet": "1.9.1"}, "no AMD build", "use torch-eager"),
    (H100, "torch-tpu", {"torch_tpu": "0.2.0"}, "TorchTPU is for TPU only", "use jax"),
    (V6E, "torch-xla", {"libtpu": "0.0.50", wish("torch_xla"): "==0.0.21"}, "wants libtpu ==0.0.21, its environment holds 0.0.50",
     "torch_xla[tpu]"),
    (_with(H100, partitioned=True, partitions=(Partition("MIG-1", "3g.40gb"),)), "jax", CUDA13,
     "sees one of its instances (3g.40gb)", "sudo nvidia-smi -i 0000:1b:00.0 -mig 0"),
    (_with(H100, partitioned=True), "jax", CUDA13, "without an instance", "-mig 0"),
    (_with(H100, memory_used_bytes=75 * 2**30, tenants=(Tenant(4242, "python train.py", "ana", 74 * 2**30),)), "jax", CUDA13,
     "75.0 GiB of 80.0 GiB are taken by process 4242 (python train.py, user ana)", "kill 4242"),
    (_with(H100, memory_used_bytes=75 * 2**30), "jax", CUDA13, "cannot be seen from here", "nvidia-smi"),
    (_with(V6E, tenants=(Tenant(77, "python serve.py", "ben"),)), "jax", {"libtpu": "1"},
     "in use by process 77 (python serve.py, user ben)", "kill 77"),
    (_with(V6E, locked_by="/tmp/libtpu_lockfile"), "jax", {"libtpu": "1"}, "left the lock", "sudo rm -f /tmp/libtpu_lockfile"),
    (_with(V6E, reachable=False), "jax", {"libtpu": "1"}, "may not open /dev/vfio/0", "sudo chmod a+rw /dev/vfio/0"),
    (replace(H100, fault=Fault("the driver is not loaded", "sudo modprobe nvidia")), "jax", CUDA13, "not loaded", "modprobe"),
])  # fmt: skip
def test_what_does_not_go_together_has_reason_and_remedy(
    device: Device, name: str, held: dict[str, str], reason: str, remedy: str
) -> None:
    pair = _judge(device, name, held)
    assert not pair.ok
    assert reason in pair.reason
    assert remedy in pair.remedy


def test_a_measuring_process_of_tandem_is_waited_for_not_refused() -> None:
    worker = Tenant(9, "/venv/bin/python -m probes.worker 8 5 6", "ana", 75 * 2**30)
    assert _judge(_with(H100, memory_used_bytes=76 * 2**30, tenants=(worker,)), "jax", CUDA13).ok
    assert _judge(_with(V6E, tenants=(worker,)), "jax", {"libtpu": "1"}).ok


def test_an_interpreter_that_does_not_tell_is_not_judged_by_its_packages() -> None:
    assert _judge(H100, "jax", None).ok


def test_an_older_cudnn_before_the_right_one_is_a_clash(tmp_path: Path) -> None:
    (tmp_path / "libcudnn.so.9.1.0").touch()
    (tmp_path / "libcudnn.so.9").touch()
    pair = _judge(H100, "jax", CUDA13, path=f"/nowhere:{tmp_path}")
    assert not pair.ok
    assert f"cuDNN 9.1.0 of {tmp_path} before cuDNN 9.20.0.48" in pair.reason
    assert pair.remedy == "unset LD_LIBRARY_PATH"


@pytest.mark.parametrize(("file", "clashes"), [
    ("libcudnn.so.8.9.7", True), ("libcudnn.so.9.21.0", False), ("libcudnn.so.9", False),
])  # fmt: skip
def test_only_an_older_or_another_major_cudnn_clashes(tmp_path: Path, file: str, clashes: bool) -> None:
    (tmp_path / file).touch()
    assert (cudnn_clash(CUDA13, str(tmp_path)) is not None) == clashes


def test_a_system_cudnn_is_enough_for_tensorflow(tmp_path: Path) -> None:
    folder = tmp_path / "usr/local/cuda/lib64"
    folder.mkdir(parents=True)
    (folder / "libcudnn.so.9").touch()
    assert _judge(H100, "tf-graph", {"tensorflow": "2.21.0"}, root=tmp_path).ok


@pytest.mark.parametrize(("driver", "cuda", "least"), [
    ("525.60.13", "12.6", None), ("525.59.01", "12.6", "525"), ("580.65.06", "13.0", None), ("575.57.08", "13", "580"),
    ("1", "", None),
])  # fmt: skip
def test_the_least_driver_of_each_cuda_is_kept(driver: str, cuda: str, least: str | None) -> None:
    assert too_old(driver, cuda) == least


def test_what_a_framework_sees_stands_above_what_its_packages_say() -> None:
    sees = View("jax", "gpu", True, devices=(Seen("gpu", "NVIDIA H100", None),) * 2)
    pair = _judge(H100, "jax", {"jax": "0.10.2"}, sees)
    assert (pair.ok, pair.reason) == (True, "asked just now: it sees 2 x NVIDIA H100")


def test_a_silent_fall_back_that_was_seen_is_a_no() -> None:
    blind = View("tf-graph", "gpu", False, reason="it found no CUDA libraries and would use the CPU", remedy="pip install x")
    pair = _judge(H100, "tf-graph", CUDA12, blind)
    assert (pair.ok, pair.reason, pair.remedy) == (False, blind.reason, blind.remedy)


def test_a_framework_that_sees_a_partition_does_not_make_it_a_whole_gpu() -> None:
    sees = View("jax", "gpu", True, devices=(Seen("gpu", "NVIDIA H100 MIG 1g.10gb", None),))
    assert not _judge(_with(H100, partitioned=True), "jax", CUDA13, sees).ok


def test_a_command_in_the_reason_of_a_missing_runtime_is_its_remedy() -> None:
    missing = Runtime("torch-xla", "torch", "xla", reason="not there; run ./tandem runtimes install torch-xla, which builds it")
    (pair,) = usable_by((H100,), (missing,))
    assert pair.remedy == "./tandem runtimes install torch-xla"


def test_packages_are_told_by_this_and_by_another_interpreter(tmp_path: Path) -> None:
    here = packages_in("")
    assert here == installed()
    assert here["jax"]
    assert here[wish("jax")].startswith("==")
    assert packages_in(str(tmp_path / "no-python")) is None
