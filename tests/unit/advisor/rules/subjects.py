"""Real workloads, read through intake, and the subjects that rules look at."""

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import cache

import catalog
from advisor.rules import Finding, all_rules, job_rules, split_rules
from advisor.rules.case import Case, Code, case_of, code_of
from advisor.rules.split_case import Side, SplitCase, side_of
from core.probe import Runtime
from core.workload import Workload
from intake import read_document

CASE_RULES = {one.id: one for one in all_rules()}
JOB_RULES = {one.id: one for one in job_rules()}
SPLIT_RULES = {one.id: one for one in split_rules()}
LLAMA = {"model": {"preset": "llama-3-8b"}, "batch": 64, "length": 4096, "dtype": "bf16", "task": "train"}
RESNET = {"model": {"preset": "resnet-50"}, "batch": 256, "image": 224, "dtype": "bf16", "task": "train"}
MLP = {"model": {"preset": "mlp"}, "batch": 256, "dtype": "fp32", "task": "train"}
WRITES = {
    "model": {"preset": "llama-3-8b"}, "task": "infer", "batch": 4, "prompt": 1024, "output": 128, "dtype": "bf16",
}


def document(base: Mapping[str, object], **changes: object) -> dict[str, object]:
    return {"name": "asked", **base, **changes}


@cache
def _read(text: str) -> Workload:
    return read_document(json.loads(text))


def work(base: Mapping[str, object] = LLAMA, **changes: object) -> Workload:
    """A workload as intake reads it."""
    return _read(json.dumps(document(base, **changes), sort_keys=True))


def code(base: Mapping[str, object] = LLAMA, **changes: object) -> Code:
    return code_of(work(base, **changes))


def case(runtime: str, accelerator: str, base: Mapping[str, object] = LLAMA, **changes: object) -> Case:
    """A case on a chip of the real catalog, or on an attached device."""
    made = work(base, **changes)
    spec = catalog.runtime_specs()[runtime]
    chip = catalog.accelerators().get(accelerator)
    kind = accelerator.split(":", maxsplit=1)[0] if chip is None else chip.kind
    return case_of(made, code_of(made), Runtime(runtime, spec.framework, spec.mode), kind, chip, accelerator)


def side(accelerator: str, count: int = 8, **changes: object) -> Side:
    return replace(side_of(accelerator, count), **changes)  # pyright: ignore[reportArgumentType]


def split(first: Side, second: Side, base: Mapping[str, object] = LLAMA, *, asked: Mapping[str, object] | None = None,
          **known: object) -> SplitCase:
    return SplitCase(code(base, **(asked or {})), (first, second), **known)  # pyright: ignore[reportArgumentType]


def said(identity: str, subject: Case | Code | SplitCase) -> Finding | None:
    """What a rule says of a subject, as the screening asks it."""
    if isinstance(subject, Case):
        one = CASE_RULES[identity]
        return one.check(subject) if one.speaks_of(subject.runtime.id, subject.kind) else None
    return JOB_RULES[identity].check(subject) if isinstance(subject, Code) else SPLIT_RULES[identity].check(subject)
