"""What pinned versions mean: builds for one device, ends of life, and pins that exclude each other.

Nothing is resolved or looked up. A conflict is only told where the facts of the catalog say that two pins exclude each other.
Source: package metadata and pip resolver, 2026-11-30 (framework_support and environments of the catalog).
"""

import re
from collections.abc import Iterable

from core.finding import Requirement
from intake.code.match.libraries import distribution_rule

_CUDA_SUFFIX = re.compile(r"\+cu\d{2,3}|cuda\d*|cudnn")
_CUDA_NAMES = re.compile(r"(nvidia-\w+(-\w+)*-cu\d{2}|cudatoolkit|pytorch-cuda|cuda-toolkit|cuda|cudnn|torch-?\w*-cu\d+"
                         r"|tensorflow-cuda)")
_CUDA_EXTRAS = re.compile(r"(cuda\d*(-\w+)*|and-cuda|cu\d{2,3}|gpu)")
_TPU_RANGE = ((2, 11), (2, 15))


def rules_of_requirement(one: Requirement) -> tuple[str, ...]:
    """Return the rules that one requirement makes apply.

    Args:
        one: what is asked for.
    """
    found: list[str] = []
    library = distribution_rule(one.name)
    if library is not None:
        found.append(library)
    upper = _most(one)
    if one.name in ("torch", "pytorch"):
        found.extend(_torch(one, upper))
    if one.name in ("tensorflow", "tensorflow-gpu", "tensorflow-cpu", "tf-nightly-gpu") and upper is not None and upper < (2, 0):
        found.append("pin-old-tensorflow")
    if one.name in ("tensorflow-gpu", "tf-nightly-gpu"):
        found.append("pin-tensorflow-gpu")
    if one.name in ("tensorflow-tpu", "tf-nightly-tpu"):
        found.append("pin-tensorflow-tpu")
    if one.name == "mxnet" or one.name.startswith("mxnet-"):
        found.append("pin-mxnet")
    if one.name == "torch-xla":
        found.append("pin-torch-xla")
    if one.name in ("jax", "jaxlib"):
        found.extend(_jax(one, upper))
    elif (_CUDA_NAMES.fullmatch(one.name) or _CUDA_SUFFIX.search(one.specifier)
          or any(_CUDA_EXTRAS.fullmatch(extra) for extra in one.extras)):
        found.append("pin-cuda-build")
    return tuple(dict.fromkeys(found))


def conflicts(requirements: Iterable[Requirement]) -> tuple[tuple[Requirement, str], ...]:
    """Return (requirement, why) for pins of one file that exclude each other.

    Args:
        requirements: of one file.
    """
    by_name: dict[str, Requirement] = {}
    for one in requirements:
        by_name.setdefault(one.name, one)
    found: list[tuple[Requirement, str]] = []
    torch, xla, tpu = by_name.get("torch"), by_name.get("torch-xla"), by_name.get("torch-tpu")
    if xla is not None and torch is not None:
        first, second = _exact(torch), _exact(xla)
        if first is not None and second is not None and first[:2] != second[:2]:
            found.append((xla, "torch_xla has to be of torch's version"))
        elif first is not None and first[:2] >= (2, 10):
            found.append((xla, "torch_xla has no build for torch 2.10 and newer"))
    if xla is not None and tpu is not None:
        found.append((xla, "torch_xla pins libtpu 0.0.21, TorchTPU needs 0.0.50"))
    if tpu is not None and torch is not None:
        version = _exact(torch) or _most(torch)
        if version is not None and not _TPU_RANGE[0] <= version[:2] <= _TPU_RANGE[1]:
            found.append((torch, "TorchTPU 0.2.0 needs torch 2.11 to 2.15"))
    mxnet = next((one for name, one in by_name.items() if name.startswith("mxnet")), None)
    numpy = by_name.get("numpy")
    if mxnet is not None and numpy is not None and _reaches(numpy, (1, 24)):
        found.append((numpy, "MXNet needs numpy below 1.24"))
    serving = by_name.get("tpu-inference") or by_name.get("vllm-tpu")
    jax = by_name.get("jax")
    if serving is not None and jax is not None and _reaches(jax, (0, 12)):
        found.append((serving, "tpu-inference 0.32 pins jax 0.11.2"))
    jaxlib = by_name.get("jaxlib")
    if jax is not None and jaxlib is not None:
        first, second = _exact(jax), _exact(jaxlib)
        if first is not None and second is not None and second > first:
            found.append((jaxlib, "jaxlib may not be newer than jax"))
    return tuple(found)


def refuses_python(text: str) -> bool:
    """Whether what a project says of Python excludes every version that current builds have (3.11 and newer).

    Args:
        text: such as `>=3.6,<3.9`.
    """
    upper: list[tuple[int, ...]] = []
    for sign, version in re.findall(r"(?:^|[,\s])(<=|<|===?|~=|=)\s*([\d.]+)", text):
        numbers = _numbers(version)
        if sign == "<":
            upper.append(_below(numbers))
        else:
            upper.append(numbers)
    return bool(upper) and min(one if len(one) > 1 else (*one, 99) for one in upper) < (3, 11)


def _reaches(one: Requirement, version: tuple[int, ...]) -> bool:
    least = _least(one)
    return least is not None and least >= version


def _torch(one: Requirement, upper: tuple[int, ...] | None) -> list[str]:
    if upper is None:
        return []
    if upper < (2, 0):
        return ["pin-old-torch"]
    return ["pin-torch-not-tpu"] if upper[:2] < _TPU_RANGE[0] or (_least(one) or (0,))[:2] > _TPU_RANGE[1] else []


def _jax(one: Requirement, upper: tuple[int, ...] | None) -> list[str]:
    old = any(re.match(r"cuda(11|10|_|$)",
        extra) or extra == "cuda" for extra in one.extras) or "cuda11" in one.specifier or "cuda10" in one.specifier
    newer = any(re.match(r"cuda1[2-9]", extra) for extra in one.extras) or "cuda12" in one.specifier
    found = ["pin-jax-cuda11"] if old else ["pin-cuda-build"] if newer else []
    return [*found, "pin-old-jax"] if upper is not None and upper < (0, 4) else found


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d{1,9}", version.split("+", maxsplit=1)[0])[:4]) or (0,)


def _below(numbers: tuple[int, ...]) -> tuple[int, ...]:
    """Return a version just below another, such as 2.1 for 2.2 and 1.99 for 2 or 2.0."""
    kept = list(numbers)
    while len(kept) > 1 and kept[-1] == 0:
        kept.pop()
    kept[-1] -= 1
    return (*kept, 99)


def _exact(one: Requirement) -> tuple[int, ...] | None:
    return _numbers(one.pinned) if one.pinned is not None else None


def _most(one: Requirement) -> tuple[int, ...] | None:
    """Return a version at or above which nothing is allowed any more, or None when there is no bound."""
    bounds: list[tuple[int, ...]] = []
    for sign, version in re.findall(r"(?:^|,)\s*(===?|<=|<|~=|=)\s*([^,=\s]+)", one.specifier):
        numbers = _numbers(version)
        if sign == "<":
            bounds.append(_below(numbers))
        elif sign == "~=":
            bounds.append((*numbers[:-2], numbers[-2], 99) if len(numbers) > 1 else numbers)
        else:
            bounds.append(numbers)
    return min(bounds) if bounds else None


def _least(one: Requirement) -> tuple[int, ...] | None:
    bounds = [_numbers(version) for _, version in re.findall(r"(?:^|,)\s*(===?|>=|>|~=|=)\s*([^,=\s]+)", one.specifier)]
    return max(bounds) if bounds else None
