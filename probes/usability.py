"""Whether a runtime can use a device, and if not, the reason and the command that would mend it.

Two kinds of reasons: what is known of the device and of the catalog stands whatever a framework says; what is inferred from
packages and drivers gives way to the framework's own view where that was asked (`probes.views`). Nothing is imported or started
for the inference but an interpreter that tells its packages, and that only when a GPU or TPU is attached.
"""

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from catalog import environments_of, runtime_specs
from catalog.runtimes import support_of_family
from core.device import Device
from core.errors import one_line
from core.format import memory
from core.hardware import Board
from core.probe import RUNTIME_IDS, Runtime
from probes import builds
from probes.packages import packages_in
from probes.runtimes import BASE
from probes.views import View

ASSERTED = "asserted when its worker starts: a fall-back to the CPU is a failure"
TAKEN_SHARE = 0.5
"""Share of a GPU's memory that others may hold. JAX takes three quarters and TensorFlow nearly all unless told otherwise, a
desktop a few per cent: whoever holds more than half computes there too, and a probe beside it would measure both."""
_COMMAND = re.compile(r"\./tandem (?:app|runtimes install [\w-]+)")
_WRITTEN = {"cpu": "CPU", "cuda": "CUDA", "rocm": "ROCm", "tpu": "TPU"}
_MEASURED_ON_TPU = ("jax", "keras-jax", "torch-xla", "torch-tpu")


@dataclass(frozen=True, slots=True)
class Usability:
    """Whether one runtime can use one device, and if not, why and what would mend it."""

    device: str
    runtime: str
    ok: bool
    reason: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Pair:
    """All that is asked about one device and one runtime.

    Args:
        device, runtime: the two.
        packages: of the runtime's interpreter, its own versions among them.
        told: whether the interpreter told all that it holds.
        environ: variables that a worker inherits from.
        root: where system libraries are looked for.
    """

    device: Device
    runtime: Runtime
    packages: Mapping[str, str]
    told: bool
    environ: Mapping[str, str]
    root: Path

    @property
    def board(self) -> Board:
        """The facts of the device; for one that was stored before facts were known, its vendor alone."""
        name = self.device.name.lower()
        vendor = "Google" if self.device.kind == "tpu" else "AMD" if "amd" in name or "instinct" in name else "NVIDIA"
        return self.device.board or Board(vendor, "")


Fault = tuple[str, str] | None
"""Reason and remedy."""


def usable_by(
    devices: Sequence[Device],
    runtimes: Sequence[Runtime],
    views: Sequence[View] = (),
    packages: Callable[[str], Mapping[str, str] | None] = packages_in,
    environ: Mapping[str, str] | None = None,
    root: Path = Path("/"),
) -> tuple[Usability, ...]:
    """Return for each device and runtime whether they go together, with the reason and the remedy when not.

    Args:
        devices, runtimes: each with each.
        views: what frameworks said themselves, when they were asked.
        packages: what an interpreter holds.
        environ: variables as in `os.environ`, which is the default.
        root: where system libraries are looked for.
    """
    around = os.environ if environ is None else environ
    seen = {(view.runtime, view.kind): view for view in views}
    return tuple(
        _usable(device, runtime, seen.get((runtime.id, device.kind)), packages, around, root)
        for device in devices for runtime in runtimes
    )  # fmt: skip


def _usable(
    device: Device,
    runtime: Runtime,
    view: View | None,
    packages: Callable[[str], Mapping[str, str] | None],
    environ: Mapping[str, str],
    root: Path,
) -> Usability:
    def answer(ok: bool, reason: str, remedy: str = "") -> Usability:
        return Usability(device.id, runtime.id, ok, reason, remedy)

    if elsewhere := _only_elsewhere(runtime, device):
        return answer(False, elsewhere)
    if not runtime.installed:
        return answer(False, runtime.reason, _to_install(runtime, device))
    if device.fault is not None:
        return answer(False, device.fault.reason, device.fault.remedy)
    if device.kind == "cpu":
        return answer(True, "") if view is None or view.ok else answer(False, view.reason, view.remedy)
    held = packages(runtime.interpreter)
    pair = Pair(device, runtime, {**(held or {}), **dict(runtime.versions)}, held is not None, environ, root)
    fault = _first(pair, _STANDING)
    if fault is not None:
        return answer(False, *fault)
    if view is not None:
        return answer(True, f"asked just now: it sees {view.words}") if view.ok else answer(False, view.reason, view.remedy)
    fault = _first(pair, _INFERRED)
    return answer(True, ASSERTED) if fault is None else answer(False, *fault)


def _first(pair: Pair, rules: "Sequence[Callable[[Pair], Fault]]") -> Fault:
    return next((fault for rule in rules if (fault := rule(pair)) is not None), None)


def _only_elsewhere(runtime: Runtime, device: Device) -> str:
    """Return why a runtime can never use a kind of device, since all that it needs is for others; empty when it can."""
    spec, own = runtime_specs()[runtime.id], environments_of(runtime.id)
    if runtime.installed or spec.requirements == BASE or any(one.kind in ("cpu", device.kind) for one in own):
        return ""
    kinds = " and ".join(sorted({one.kind.upper() for one in own}))
    return f"{spec.title} runs on a {kinds} alone, and this is a {device.kind.upper()}"


def _environment(runtime: Runtime, device: Device, vendor: str = "", older: bool = False) -> str:
    """Return the command that builds the environment of its own for a runtime on a device; empty when there is none.

    Args:
        runtime, device: the two.
        vendor: of the device; empty for a CPU.
        older: the second of those that fit, whose CUDA is the older one.
    """
    fitting = [one.id for one in environments_of(runtime.id) if (one.kind, one.vendor) == (device.kind, vendor)]
    if len(fitting) <= older:
        return ""
    gone = f" && ./tandem runtimes remove {fitting[0]}" if older and f"{fitting[0]}-" in runtime.interpreter else ""
    return f"./tandem runtimes install {fitting[older]}{gone}"


def _to_install(runtime: Runtime, device: Device) -> str:
    if own := _environment(runtime, device, device.board.vendor if device.board else ""):
        return own
    said = _COMMAND.search(runtime.reason)
    return said.group() if said else f"point {variable(runtime)} at a Python that has {runtime.framework}"


def variable(runtime: Runtime) -> str:
    """Return the variable that names a runtime's interpreter."""
    return f"TANDEM_PYTHON_{runtime.id.upper().replace('-', '_')}"


def _alternatives(family: str, but: str) -> str:
    known = [name for name in RUNTIME_IDS if name != but and name in runtime_specs()]
    good = [name for name in known if support_of_family(name, family).status == "first-class"]
    return f"use {' or '.join(good)}" if good else "use another device"


def _no_way(pair: Pair) -> Fault:
    """A runtime that was never made for this vendor's chips."""
    vendor, key = pair.board.vendor, pair.device.accelerator or ""
    family = "TPU" if pair.device.kind == "tpu" else f"{vendor} GPU"
    name = pair.runtime.id
    fact = support_of_family(name, family, key)
    if fact.status == "unsupported":
        return one_line(f"{name} has no way to this device: {fact.restrictions}"), _alternatives(family, name)
    if family == "TPU" and name not in _MEASURED_ON_TPU:
        return one_line(f"{name} is not measured on TPUs: {fact.restrictions}"), _alternatives(family, name)
    return None


def _partitioned(pair: Pair) -> Fault:
    """A GPU in MIG mode: a framework would see one instance, and its figures would be taken for the whole GPU's."""
    if not pair.board.partitioned:
        return None
    names = ", ".join(part.name or part.uuid for part in pair.board.partitions)
    what = f"a framework sees one of its instances ({names}), not the GPU" if names else "without an instance CUDA sees nothing"
    address = pair.board.slot.address if pair.board.slot else pair.device.uuid
    return f"MIG mode is on: {what}; Tandem measures whole GPUs", f"sudo nvidia-smi -i {address} -mig 0"


def _taken(pair: Pair) -> Fault:
    """Memory that others hold."""
    used, total = pair.board.memory_used_bytes, pair.device.memory_bytes
    tenants = pair.board.tenants or ()
    own = sum(one.memory_bytes or 0 for one in tenants if one.is_tandem)
    if pair.device.kind != "gpu" or not used or not total or used - own < TAKEN_SHARE * total:
        return None
    others = sorted((one for one in tenants if not one.is_tandem), key=lambda one: -(one.memory_bytes or 0))
    who = "; ".join(one.label for one in others[:3]) or "processes that cannot be seen from here"
    remedy = f"kill {others[0].pid}  # if it is yours; else ask its owner, or wait" if others else "nvidia-smi  # on the host"
    return f"{memory(used - own)} of {memory(total)} are taken by {who}", remedy


def _busy(pair: Pair) -> Fault:
    """A TPU that somebody owns, that a stale lock bars, or that this user may not open."""
    board = pair.board
    others = [one for one in board.tenants or () if not one.is_tandem]
    if pair.device.kind != "tpu":
        return None
    if others:
        reason = f"in use by {others[0].label}, and one process owns a TPU at a time"
        return reason, f"kill {others[0].pid}  # if it is yours; else ask its owner, or wait"
    if board.locked_by:
        reason = f"a process that is gone left the lock {board.locked_by}, and libtpu takes it for a TPU in use"
        return reason, f"sudo rm -f {board.locked_by}"
    if board.reachable is False:
        return f"this user may not open {board.path}", f"sudo chmod a+rw {board.path}"
    return None


def _wrong_build(pair: Pair) -> Fault:
    """A build for the CPU, or for another vendor's chips."""
    if not pair.told and "torch" not in pair.packages:
        return None  # only torch writes its build into its version
    needed, library = builds.NEEDED.get(pair.board.vendor, ""), builds.library_of(pair.runtime)
    made = builds.builds_of(pair.runtime, pair.packages)
    if needed in made or not needed:
        return None
    has = " and ".join(_WRITTEN[kind] for kind in made)
    falls = ", and it would fall back to the CPU without an error" if library in ("jax", "tensorflow") else ""
    lacks = "" if made == {"cpu": ""} else f"; a device of {pair.board.vendor} needs the {_WRITTEN[needed]} build"
    return f"this is the {has} build of {library}{lacks}{falls}", _right_build(pair, needed, library)


def _right_build(pair: Pair, needed: str, library: str, older: bool = False) -> str:
    """Return the command that gives a runtime the build that it needs; `older` asks for CUDA 12 in place of 13."""
    if own := _environment(pair.runtime, pair.device, pair.board.vendor, older):
        return own
    if (library, needed) == ("torch", "tpu"):
        place = "~/tandem-torch-xla-tpu"
        made = f"python3 -m venv {place} && {place}/bin/pip install 'torch_xla[tpu]' numpy"
        return f"{made} && export {variable(pair.runtime)}={place}/bin/python"
    build = "CUDA 12" if older else _WRITTEN.get(needed, needed)
    return f"install the {build} build of {library} as its own site tells, then export {variable(pair.runtime)}=/its/bin/python"


def _driver(pair: Pair) -> Fault:
    """A driver, or a chip, that is too old for the CUDA of the build."""
    board = pair.board
    cuda = builds.builds_of(pair.runtime, pair.packages).get("cuda", "")
    library = builds.library_of(pair.runtime)
    if board.vendor != "NVIDIA" or not cuda:
        return None
    newest = builds.numbers(cuda)[0] >= 13
    least = builds.too_old(board.driver, cuda) if board.driver else None
    if least:
        can = newest and builds.too_old(board.driver or "", "12") is None
        remedy = _right_build(pair, "cuda", library, older=True) if can else f"update the NVIDIA driver to {least} or newer"
        return f"driver {board.driver} is too old for CUDA {cuda} of this {library}: it needs {least} or newer", remedy
    weak = builds.too_weak(board.capability, cuda) if board.capability else None
    if weak:
        remedy = _right_build(pair, "cuda", library, older=True) if newest else _alternatives("NVIDIA GPU", pair.runtime.id)
        reason = f"CUDA {cuda} of this {library} is built for compute capability {weak} and newer, the GPU has {board.capability}"
        return reason, remedy
    return None


def _libraries(pair: Pair) -> Fault:
    """CUDA libraries that are missing, or that another folder puts before the right ones."""
    path = pair.environ.get("LD_LIBRARY_PATH", "")
    if not pair.told or pair.board.vendor != "NVIDIA":
        return None
    clash = builds.cudnn_clash(pair.packages, path)
    if clash:
        folder, found, own = clash
        reason = f"LD_LIBRARY_PATH puts cuDNN {found} of {folder} before cuDNN {own} that it was built with"
        return reason, "unset LD_LIBRARY_PATH"
    if builds.library_of(pair.runtime) == "tensorflow" and not builds.cudnn_is_near(pair.packages, path, pair.root):
        reason = "no CUDA libraries are here for TensorFlow, and it would fall back to the CPU with a line in its log"
        return reason, _right_build(pair, "cuda", "tensorflow")
    return None


def _libtpu(pair: Pair) -> Fault:
    """A libtpu that another stack of the same environment brought."""
    if pair.device.kind != "tpu":
        return None
    library = {"torch-xla": "torch_xla", "torch-tpu": "torch_tpu"}.get(pair.runtime.id, builds.library_of(pair.runtime))
    clash = builds.libtpu_clash(pair.packages, library)
    if clash is None:
        return None
    wanted, found = clash
    reason = f"{library} wants libtpu {wanted}, its environment holds {found}: another TPU stack brought it"
    return reason, _right_build(pair, "tpu", builds.library_of(pair.runtime))


_STANDING = (_no_way, _partitioned, _taken, _busy)
_INFERRED = (_wrong_build, _driver, _libraries, _libtpu)
