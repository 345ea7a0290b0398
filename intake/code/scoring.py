"""What a scan means on a target: findings with their severity there, a score, and work as a range.

Every figure can be recomputed by hand.

The score: let n be the places of one rule and severity, w its weight (blocks 25, work 6, check 1). Its penalty is w (1 + log2 n).
The score is 100 / 2^(P / 50), P the sum of all penalties: every 50 points halve it. More findings never raise it, and the tenth
place
of one rule costs less than the first of another.
The work: the hours of a rule's first place, and those of a further one times (n^0.8 - 1), summed over rules; what is only to be
checked
counts a quarter of its upper end, and nothing of its lower end.
"""

import math
from collections import Counter
from collections.abc import Iterable

from core.finding import SEVERITIES, STEP, TARGETS, Finding, Portability, Scan, TargetFinding
from intake.code.rules import Rule, rule_of

WEIGHTS = {"blocks": 25.0, "work": 6.0, "check": 1.0}
HALVING = 50.0
GROWTH = 0.8
CHECKED = 0.25


def severity_of(rule: Rule, one: Finding, target: str) -> str:
    """Return how severe a finding is on a target.

    Args:
        rule: of the finding.
        one: what was found. Behind a test for the device it counts one step less; so does a read by the host that is not in
            every step. Nothing is made milder than a check.
        target: one of `core.finding.TARGETS`.
    """
    level = SEVERITIES.index(rule.effect(target).severity)
    milder = int(one.guarded) + int(rule.per_step and (one.where != STEP or one.periodic))
    return SEVERITIES[max(level - milder, 1)] if level else "none"


def expand(findings: Iterable[Finding], target: str) -> tuple[TargetFinding, ...]:
    """Return what findings mean on a target, worst first; those that mean nothing there are left out.

    Args:
        findings: of a scan.
        target: one of `core.finding.TARGETS`.
    """
    told: list[TargetFinding] = []
    for one in findings:
        rule = rule_of(one.rule)
        severity = severity_of(rule, one, target)
        if severity != "none":
            effect = rule.effect(target)
            told.append(TargetFinding(one.file, one.line, one.rule, target, severity, rule.title, effect.meaning, effect.remedy,
                                      rule.source, rule.as_of, one.cell))
    return tuple(sorted(told, key=lambda found: -SEVERITIES.index(found.severity)))


def score(scan: Scan, target: str) -> Portability:
    """Return how far code is from running on a target.

    Args:
        scan: of the code.
        target: one of `core.finding.TARGETS`.

    Raises:
        ValueError: an unknown target.
    """
    if target not in TARGETS:
        raise ValueError(f"target {target!r}: one of {', '.join(TARGETS)}")
    told = expand(scan.findings, target)
    counts = Counter((one.rule, one.severity) for one in told)
    penalty = sum(WEIGHTS[severity] * (1 + math.log2(count)) for (_, severity), count in counts.items())
    low = high = 0.0
    for (name, severity), count in counts.items():
        rule = rule_of(name)
        more = count**GROWTH - 1
        if severity == "check":
            high += CHECKED * (rule.first_h[1] + rule.each_h[1] * more)
        else:
            low += rule.first_h[0] + rule.each_h[0] * more
            high += rule.first_h[1] + rule.each_h[1] * more
    return Portability(target, math.floor(100 / 2 ** (penalty / HALVING)), round(low, 1), round(high, 1), told)


def scores(scan: Scan) -> tuple[Portability, ...]:
    """Return the score on every target, in the order of `core.finding.TARGETS`."""
    return tuple(score(scan, target) for target in TARGETS)
