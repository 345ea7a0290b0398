"""Applies the rules to every runtime and chip once, and turns what they say into verdicts, exclusions and penalties.

A rule that is past the day on which it had to be looked at again still counts; its verdict says so.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from math import prod
from typing import TypeAlias, cast

from advisor.rules import Finding, Rule, Subject, job_rules, rules_about, rules_of_chip, split_rules
from advisor.rules.case import Case, Code, case_of
from advisor.rules.split_case import SplitCase, asked_split
from core.advice import Exclusion, Verdict
from core.device import Accelerator
from core.probe import Runtime
from core.workload import Workload

Said: TypeAlias = tuple[Rule[Case], Finding]


@dataclass(frozen=True, slots=True)
class Screening:
    """What the rules say of one runtime on one chip.

    Args:
        verdicts: everything that a rule said, exclusions included.
        exclusion: the first rule that keeps the pair out, or None.
        penalty: product of the factors, 1 when none.
    """

    verdicts: tuple[Verdict, ...]
    exclusion: Exclusion | None
    penalty: float


def screen(
    workload: Workload, code: Code, runtime: Runtime, kind: str, chip: Accelerator | None, name: str,
    counts: tuple[int, ...] | None = None,
) -> Screening:
    """Apply every rule that speaks of a runtime on a chip.

    Args:
        workload: the job.
        code: from `code_of`.
        runtime: with versions when known.
        kind: of the chip.
        chip: its catalog entry; None when it has none.
        name: catalog key or device id, as verdicts name it.
        counts: sizes of the pools of this chip, ascending; None takes those that the workload names.
    """
    case = case_of(workload, code, runtime, kind, chip, name, counts)
    own = ((rule, found) for rule in rules_about(runtime.id, kind) if (found := rule.check(case)) is not None)
    said = sorted((*_said_of_chip(case, name, counts), *own), key=lambda pair: pair[0].id)
    verdicts = tuple(_verdict(found, rule, code.today, runtime.id, name) for rule, found in said)
    out = next((v for v in verdicts if v.effect == "exclude"), None)
    exclusion = None if out is None else Exclusion(runtime.id, name, out.rule, out.flag, out.reason, out.source)
    return Screening(verdicts, exclusion, prod(v.factor for v in verdicts))


def _said_of_chip(case: Case, name: str, counts: tuple[int, ...] | None) -> tuple[Said, ...]:
    """Return what rules say of a chip in every runtime; they are asked once for a workload, chip and sizes of pools."""
    key = (case.kind, name, counts)
    if key not in case.code.told:
        asked = ((rule, rule.check(case)) for rule in rules_of_chip(case.kind))
        case.code.told[key] = tuple((rule, found) for rule, found in asked if found is not None)
    return cast("tuple[Said, ...]", case.code.told[key])


def overall(code: Code) -> tuple[Verdict, ...]:
    """Return what the rules say of a workload wherever it runs, and of two unlike pools that the user named.

    Args:
        code: from `code_of`.
    """
    said = tuple(
        _verdict(found, rule, code.today) for rule in job_rules() if (found := rule.check(code)) is not None
    )
    split = asked_split(code)
    return said if split is None else (*said, *split_verdicts(split))


def split_verdicts(split: SplitCase) -> tuple[Verdict, ...]:
    """Return what the rules say of one workload over two pools; the verdicts name the two pools as accelerator.

    Args:
        split: as a planner proposes it.
    """
    name = f"{split.sides[0].accelerator} + {split.sides[1].accelerator}"
    return tuple(
        _verdict(found, rule, split.code.today, "", name) for rule in split_rules() if (found := rule.check(split)) is not None
    )


def _verdict(found: Finding, rule: Rule[Subject], today: str, runtime: str = "", accelerator: str = "") -> Verdict:
    facts = rule.facts
    reason = found.reason
    if rule.is_stale(today):
        reason = f"{reason} (last checked {facts.as_of}, to be checked again since {facts.expires})"
    return Verdict(rule.id, facts.flag, found.effect, reason, facts.source, facts.as_of, runtime, accelerator, found.factor)


def gathered(verdicts: Iterable[Verdict], pairs: frozenset[tuple[str, str]]) -> tuple[Verdict, ...]:
    """Return verdicts without repetition: what a rule says of all accelerators, or of all runtimes, is told once.

    Args:
        verdicts: of all pairs.
        pairs: every (runtime, accelerator) that is a candidate or was put out by a rule.
    """
    runtimes, accelerators = _sides(pairs)
    by_runtime = _merged(verdicts, lambda v: v.runtime, lambda v: v.accelerator, runtimes, "accelerator")
    both = _merged(by_runtime, lambda v: v.accelerator, lambda v: v.runtime, accelerators, "runtime")
    return tuple(sorted(both, key=lambda v: (v.rule, v.runtime, v.accelerator, v.reason)))


def _sides(pairs: frozenset[tuple[str, str]]) -> tuple[dict[str, set[str]], dict[str, set[str]]]:
    """Return accelerators by runtime and runtimes by accelerator; the empty name stands for all."""
    runtimes: dict[str, set[str]] = {"": set()}
    accelerators: dict[str, set[str]] = {"": set()}
    for runtime, accelerator in pairs:
        runtimes.setdefault(runtime, set()).add(accelerator)
        accelerators.setdefault(accelerator, set()).add(runtime)
        runtimes[""].add(accelerator)
        accelerators[""].add(runtime)
    return runtimes, accelerators


def _merged(
    verdicts: Iterable[Verdict], kept: Callable[[Verdict], str], dropped: Callable[[Verdict], str],
    everywhere: Mapping[str, set[str]], field: str,
) -> tuple[Verdict, ...]:
    groups: dict[tuple[str, str, str, float, str], list[Verdict]] = {}
    for verdict in verdicts:
        key = (verdict.rule, verdict.effect, verdict.reason, verdict.factor, kept(verdict))
        groups.setdefault(key, []).append(verdict)
    told: list[Verdict] = []
    for same in groups.values():
        whole = len(same) > 1 and {dropped(v) for v in same} == everywhere.get(kept(same[0]))
        told.extend([replace(same[0], **{field: ""})] if whole else dict.fromkeys(same))
    return tuple(told)
