"""Runtimes that Tandem knows, and on which accelerators each of them works.

Support is a fact of the published packages, read from `framework_support.csv`: one row for a family of accelerators, and where
single chips differ from their family a row that names them, which then wins.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

from catalog.tables import rows_of
from core.device import Accelerator
from core.errors import NotFound

STATUSES = ("first-class", "supported", "community", "deprecated", "unsupported")
FAMILIES = ("TPU", "NVIDIA GPU", "AMD GPU", "CPU", "Intel Gaudi", "AWS Neuron")


@dataclass(frozen=True, slots=True)
class RuntimeSpec:
    """What a runtime is and what it needs.

    Args:
        id: one of `core.probe.RUNTIME_IDS`.
        framework: `jax`, `torch`, `tensorflow`, `keras`, `mxnet`.
        mode: `jit`, `eager`, `compile`, `graph`, `xla`, `tpu`, or keras' backend.
        title: how it is written for people.
        distributions: what is installed for it in the default CPU environment; versions are kept with a measurement.
        alternatives: (name out of `distributions`, another that holds the same modules), for builds with an accelerator.
        modules: import names that must all be found for it to start.
        requirements: the file of this repository that installs it.
    """

    id: str
    framework: str
    mode: str
    title: str
    distributions: tuple[str, ...]
    alternatives: tuple[tuple[str, str], ...]
    modules: tuple[str, ...]
    requirements: str


@dataclass(frozen=True, slots=True)
class Support:
    """How well a runtime works on an accelerator.

    Args:
        status: one of `STATUSES`.
        restrictions: what to know before relying on it; empty when there is nothing.
        source, source_date: where that comes from.
        confidence: `high`, `medium` or `low`.
    """

    status: str
    restrictions: str
    source: str
    source_date: str
    confidence: str = "high"


@cache
def runtime_specs() -> Mapping[str, RuntimeSpec]:
    """Return every runtime by its id, in the order of the file."""
    return MappingProxyType({row["id"]: _spec(row) for row in rows_of("runtimes.csv")})


def _spec(row: dict[str, str]) -> RuntimeSpec:
    pairs = (entry.split("=") for entry in row["alternatives"].split())
    alternatives = tuple((name, other) for name, other in pairs)
    distributions, modules = tuple(row["distributions"].split()), tuple(row["modules"].split())
    named = row["id"], row["framework"], row["mode"], row["title"]
    return RuntimeSpec(*named, distributions, alternatives, modules, row["requirements"])


def family_of(accelerator: Accelerator) -> str:
    """Return which of `FAMILIES` an accelerator belongs to."""
    if accelerator.kind == "tpu":
        return "TPU"
    if accelerator.kind == "cpu":
        return "CPU"
    if accelerator.kind == "gpu":
        return f"{accelerator.vendor} GPU"
    return "AWS Neuron" if accelerator.vendor == "AWS" else f"{accelerator.vendor} Gaudi"


def support(runtime_id: str, accelerator: Accelerator) -> Support:
    """Return how well a runtime works on an accelerator of the catalog.

    Raises:
        NotFound: the runtime is not known.
    """
    return support_of_family(runtime_id, family_of(accelerator), accelerator.key)


def support_of_family(runtime_id: str, family: str, key: str = "") -> Support:
    """Return how well a runtime works on a family of accelerators, for devices that are in no catalog.

    Args:
        runtime_id: one of `core.probe.RUNTIME_IDS`.
        family: one of `FAMILIES`; anything else is unsupported.
        key: key of the accelerator, for chips that differ from their family.

    Raises:
        NotFound: the runtime is not known.
    """
    if runtime_id not in runtime_specs():
        raise NotFound(f"runtime {runtime_id[:60]!r}", f"one of {', '.join(runtime_specs())}", "correct the name")
    known = _support()
    fallback = Support(
        "unsupported", f"nothing is known of {runtime_id} on {family}", "catalog/data/framework_support.csv", "2026-11-30", "low"
    )
    return known.get((runtime_id, family, key)) or known.get((runtime_id, family, "")) or fallback


@cache
def _support() -> dict[tuple[str, str, str], Support]:
    found: dict[tuple[str, str, str], Support] = {}
    for row in rows_of("framework_support.csv"):
        answer = Support(row["status"], row["restrictions"], row["source"], row["source_date"], row["confidence"])
        for runtime_id in row["runtimes"].split():
            for key in row["accelerators"].split() or ("",):
                found[(runtime_id, row["family"], key)] = answer
    return found
