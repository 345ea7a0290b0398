"""The sections of a document around the model: total, existing code, data, targets and places."""

from typing import cast

from core.errors import BadInput
from core.workload import DataPipeline, Existing, Targets, Total, Where
from intake.fields import Section
from intake.wording import fault, nearest, unknown

FRAMEWORKS = ("jax", "torch", "torch-xla", "torch-tpu", "tensorflow", "keras", "mxnet")
_ALIASES = {"pytorch": "torch", "tf": "tensorflow", "torch_xla": "torch-xla", "pytorch-xla": "torch-xla", "torchtpu": "torch-tpu",
            "torch_tpu": "torch-tpu", "flax": "jax"}
CLOUDS = {"google": "gcp", "google cloud": "gcp", "amazon": "aws", "microsoft": "azure", "oracle": "oci"}
"""Other names of clouds, and how they are written here."""
TARGET_TASKS = {"latency_ms": ("infer", "serve", "preprocess"), "requests_per_s": ("serve",)}
"""Targets that mean something to some tasks alone, and these."""
_MOST = 1e30


def read_total(top: Section) -> Total:
    """Return how much is to be done; at most one of tokens, steps and samples.

    Raises:
        BadInput: more than one, or not a positive number.
    """
    section = top.section("total", ("tokens", "steps", "samples"))
    if section is None:
        return Total()
    if len(section.values) > 1:
        raise fault("total", " and ".join(section.values), "one of tokens, steps, samples", "keep one of them")
    return Total(section.number("tokens", 1, _MOST), section.number("steps", 1, _MOST), section.number("samples", 1, _MOST))


def read_existing(top: Section) -> Existing:
    """Return what is there already.

    Raises:
        BadInput: a value that cannot be used, or a framework that is misspelt.
    """
    section = top.section(
        "existing",
        (
            "framework",
            "code",
            "libraries",
            "custom_kernels",
            "ops",
            "distinct_shapes",
            "serial_steps",
            "host_reads_per_step",
            "versions",
            "evidence",
        ),
    )
    if section is None:
        return Existing()
    return Existing(
        framework=_framework(section), code=section.text("code"), libraries=section.texts("libraries"),
        custom_kernels=section.texts("custom_kernels"), ops=section.texts("ops"),
        distinct_shapes=section.whole("distinct_shapes", 0, 10**9), serial_steps=section.whole("serial_steps", 0, 10**9),
        host_reads_per_step=section.whole("host_reads_per_step", 0, 10**9), versions=_versions(section),
        evidence=section.texts("evidence"),
    )


def read_data(top: Section) -> DataPipeline:
    """Return what one sample costs before it reaches the device.

    Raises:
        BadInput: a value that cannot be used.
    """
    section = top.section("data", ("bytes_per_sample", "decode", "host_vcpus", "source_bytes_per_s"))
    if section is None:
        return DataPipeline()
    return DataPipeline(
        section.number("bytes_per_sample", 0, 1e15),
        section.text("decode"),
        section.whole("host_vcpus", 1, 10**5),
        section.number("source_bytes_per_s", 1, 1e15),
    )


def read_targets(top: Section, task: str) -> Targets:
    """Return what must be reached.

    Args:
        top: the document.
        task: one of `TASKS`.

    Raises:
        BadInput: a value that cannot be used, or a target that means nothing to the task.
    """
    section = top.section("targets", ("deadline_h", "budget_usd", "latency_ms", "requests_per_s"))
    if section is None:
        return Targets()
    for key, tasks in TARGET_TASKS.items():
        if section.has(key) and task not in tasks:
            got, expected = f"targets.{key} with task {task}", f"{key} with task {' or '.join(tasks)} alone"
            raise BadInput(got, expected, f"remove targets.{key}, or correct task")
    return Targets(
        section.number("deadline_h", 1e-6, 1e7),
        section.number("budget_usd", 0, 1e12),
        section.number("latency_ms", 1e-6, 1e9),
        section.number("requests_per_s", 1e-9, 1e12),
    )


def read_where(top: Section) -> Where:
    """Return where accelerators may be rented.

    Raises:
        BadInput: a value that cannot be used.
    """
    section = top.section("where", ("clouds", "regions", "spot", "own_only"))
    if section is None:
        return Where()
    wanted = tuple(cloud.strip().lower() for cloud in section.texts("clouds"))
    clouds = tuple(CLOUDS.get(cloud, cloud) for cloud in wanted)
    return Where(clouds, section.texts("regions"), section.flag("spot"), section.flag("own_only"))


def _framework(section: Section) -> str | None:
    given = section.text("framework")
    if given is None:
        return None
    name = _ALIASES.get(given.lower(), given.lower())
    if name not in FRAMEWORKS and nearest(name, (*FRAMEWORKS, *_ALIASES)):
        raise unknown("existing", "framework", given, (*FRAMEWORKS, *_ALIASES))
    return name


def _versions(section: Section) -> tuple[tuple[str, str], ...]:
    value = section.values.get("versions")
    if value is None:
        return ()
    if not isinstance(value, dict):
        raise fault("existing.versions", value, 'a mapping such as {cuda: "12.4"}', "write name: version")
    plain = cast("dict[str, object]", value)
    for key, version in plain.items():
        if not isinstance(version, str):
            raise fault(f"existing.versions.{key}", version, "a version in quotes", f'write {key}: "{version}"')
    return tuple(sorted((key, str(version)[:60]) for key, version in plain.items()))
