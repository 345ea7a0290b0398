"""Writes `docs/code-scan.md`: every rule of the code scan, with what it means on each target."""

from core.finding import TARGETS
from intake.code.limits import DEFAULT
from intake.code.rules import Rule, all_rules
from intake.code.scoring import WEIGHTS

NOTE = "<!-- Written by docs/generate.py: change the source, then run `.venv/bin/python -m docs.generate`. -->"
_HEADINGS = ("rule", "what it finds", *TARGETS, "hours, first place", "hours, a further one", "source", "as of")


def code_scan_page() -> str:
    """Return the page of the code scan's rules."""
    weights = ", ".join(f"{name} {weight:g}" for name, weight in WEIGHTS.items())
    topics = sorted({rule.topic for rule in all_rules()})
    return "\n".join([
        "# Code scan", "", NOTE, "",
        "What ties code to a device or a framework, found without running it. Each finding has a file and a line; each rule says",
        "what that means on a target: TPU through JAX, through TorchTPU or through PyTorch/XLA, the same code on AMD's or",
        "NVIDIA's GPUs, and another framework. A cell reads *severity: meaning; remedy*. A dash: nothing is to be done.", "",
        "Behind a test for the device a finding counts one step less. So does a read by the host that is not made in every step.",
        "",
        f"**Score.** A rule with n places costs w (1 + log2 n), w by severity: {weights}.",
        "The score is 100 / 2^(P / 50), P the sum of the costs.", "",
        "**Work.** The hours of a rule's first place, and those of a further one times n^0.8 - 1; what is only to be checked",
        "counts a quarter of its upper end. The hours are the judgement of Tandem's authors, not measurements.", "",
        f"**Limits.** {DEFAULT.files} files, {DEFAULT.bytes_each >> 20} MiB each, {DEFAULT.bytes_all >> 20} MiB in all.",
        "Names are followed within a file, not across files; what a value is, is guessed from imports, annotations and methods.",
        "",
        *[line for topic in topics for line in _topic(topic)],
    ])


def _topic(topic: str) -> list[str]:
    rows = [_row(rule) for rule in all_rules() if rule.topic == topic]
    written = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in (_HEADINGS, *rows)]
    return [f"## {topic.capitalize()}", "", written[0], "|" + "---|" * len(_HEADINGS), *written[1:], ""]


def _row(rule: Rule) -> tuple[str, ...]:
    return (f"`{rule.id}`", rule.title, *(_effect(rule, target) for target in TARGETS), _hours(rule.first_h), _hours(rule.each_h),
            rule.source, rule.as_of)


def _effect(rule: Rule, target: str) -> str:
    effect = rule.effect(target)
    if effect.severity == "none":
        return "–"
    return f"**{effect.severity}**: {effect.meaning}" + (f"; {effect.remedy}" if effect.remedy else "")


def _hours(hours: tuple[float, float]) -> str:
    return f"{hours[0]:g} to {hours[1]:g}"
