"""Writes docs/rules.md: every rule of the advisor as the code states it."""

from collections.abc import Iterable, Sequence

from advisor.rules import Rule, Subject, all_rules, job_rules, split_rules

NOTE = "<!-- Written by docs/generate.py: change the source, then run `.venv/bin/python -m docs.generate`. -->"
HEADINGS = ("rule", "flag", "what it says", "effect", "how much", "source", "as of", "look again")


def rules_page() -> str:
    """Return the page of rules."""
    return "\n".join([
        "# Rules", "", NOTE, "",
        "What is known of frameworks, accelerators and libraries beyond what can be measured here. A rule excludes a candidate,",
        "lowers its rank, warns or suggests; it is silent when the workload does not say enough to decide.", "",
        "A rule that only explains (marked *explains*) says in words where a number of the cost model comes from; it never moves",
        "the rank, since the loss is counted already. From the day in the last column on a rule must be looked at again: until",
        "that is done it still counts, and what it says carries the day on which it was last checked.", "",
        "## Of one runtime on one kind of chip", "", *_table(all_rules()), "",
        "## Of a workload, wherever it runs", "", *_table(job_rules()), "",
        "## Of one workload over two unlike pools", "", *_table(split_rules()), "",
    ])


def _table(rules: Sequence[Rule[Subject]]) -> list[str]:
    lines = ["| " + " | ".join(HEADINGS) + " |", "|" + "---|" * len(HEADINGS)]
    return [*lines, *(_line(_cells(one)) for one in rules)]


def _cells(one: Rule[Subject]) -> tuple[str, ...]:
    facts = one.facts
    effect = ", ".join(facts.effects) + (", *explains*" if facts.explains else "")
    return one.id, f"`{facts.flag}`", one.title, effect, facts.magnitude, facts.source, facts.as_of, facts.expires


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
