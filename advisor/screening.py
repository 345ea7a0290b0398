"""Applies the rules to every runtime and chip once, and turns what they say into verdicts, exclusions and penalties.

A rule that is past the day on which it had to be looked at again still counts; its verdict says so.
"""

from collections.abc import Iterable, Mapping
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
        factors: (size of the smallest pool that it holds for, factor) of everything that lowers the rank.
    """

    verdicts: tuple[Verdict, ...]
    exclusion: Exclusion | None
    factors: tuple[tuple[int, float], ...]

    @property
    def penalty(self) -> float:
        """Product of the factors that hold for pools of every size, 1 when none."""
        return self.penalty_of(1)

    def penalty_of(self, chips: int) -> float:
        """Return the product of the factors that hold for a pool, 1 when none.

        Args:
            chips: of the pool.
        """
        return prod(factor for least, factor in self.factors if least <= chips)


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
    return Screening(verdicts, exclusion, tuple((found.least_chips, found.factor) for _, found in said if found.factor < 1))


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
        verdicts: of all pairs, and of the workload alone.
        pairs: every (runtime, accelerator) that is a candidate or was put out by a rule.
    """
    groups: dict[tuple[str, str, str, float], list[Verdict]] = {}
    for verdict in verdicts:
        groups.setdefault((verdict.rule, verdict.effect, verdict.reason, verdict.factor), []).append(verdict)
    on, of = _sides(pairs)
    told = [replace(same[0], runtime=runtime, accelerator=accelerator)
            for same in groups.values() for runtime, accelerator in _places(same, pairs, on, of)]
    return tuple(sorted(told, key=lambda v: (v.rule, v.runtime, v.accelerator, v.reason)))


def _sides(pairs: frozenset[tuple[str, str]]) -> tuple[dict[str, set[tuple[str, str]]], dict[str, set[tuple[str, str]]]]:
    """Return the pairs of each accelerator and of each runtime."""
    on: dict[str, set[tuple[str, str]]] = {}
    of: dict[str, set[tuple[str, str]]] = {}
    for pair in pairs:
        of.setdefault(pair[0], set()).add(pair)
        on.setdefault(pair[1], set()).add(pair)
    return on, of


def _places(
    same: Iterable[Verdict], pairs: frozenset[tuple[str, str]], on: Mapping[str, set[tuple[str, str]]],
    of: Mapping[str, set[tuple[str, str]]],
) -> tuple[tuple[str, str], ...]:
    """Return where one thing is said, in as few places as the empty name for all runtimes or all accelerators allows."""
    said = {(one.runtime, one.accelerator) for one in same}
    if len(pairs) > 1 and said >= pairs:
        return ("", ""), *sorted(said - pairs)
    chips = {accelerator for accelerator, whole in on.items() if len(whole) > 1 and said >= whole}
    runtimes = {runtime for runtime, whole in of.items() if len(whole) > 1 and said >= whole}
    by_chip = _covered(said, chips, runtimes, chips_first=True)
    by_runtime = _covered(said, chips, runtimes, chips_first=False)
    return min(by_chip, by_runtime, key=len)


def _covered(
    said: set[tuple[str, str]], chips: set[str], runtimes: set[str], *, chips_first: bool
) -> tuple[tuple[str, str], ...]:
    """Return places that cover all pairs: whole accelerators first and whole runtimes for the rest, or the other way round."""
    first = {("", name) for name in chips} if chips_first else {(name, "") for name in runtimes}
    left = {pair for pair in said if pair[1 if chips_first else 0] not in (chips if chips_first else runtimes)}
    position, wholes = (0, runtimes) if chips_first else (1, chips)
    second = {(pair[0], "") if chips_first else ("", pair[1]) for pair in left if pair[position] in wholes}
    return (*sorted(first), *sorted(second), *sorted(pair for pair in left if pair[position] not in wholes))
