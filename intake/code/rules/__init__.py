"""The rules of the code scan: one module a topic, found by scanning this folder."""

from functools import lru_cache
from importlib import import_module
from pkgutil import iter_modules

from intake.code.rules.declare import Effect, Rule

__all__ = ["Effect", "Rule", "all_rules", "rule_of", "topics"]


@lru_cache(maxsize=1)
def all_rules() -> tuple[Rule, ...]:
    """Return every rule, by topic and id.

    Raises:
        ValueError: two rules with one id.
    """
    found: list[Rule] = []
    for module in sorted(one.name for one in iter_modules(__path__) if one.name != "declare"):
        found.extend(import_module(f"{__name__}.{module}").RULES)
    if len({one.id for one in found}) != len(found):
        raise ValueError("two rules of the code scan have one id")
    return tuple(sorted(found, key=lambda one: (one.topic, one.id)))


@lru_cache(maxsize=1)
def topics() -> dict[str, str]:
    """Return the topic of each rule by its id."""
    return {one.id: one.topic for one in all_rules()}


def rule_of(id: str) -> Rule:  # noqa: A002
    """Return a rule by its id; raises KeyError for an unknown one."""
    return _by_id()[id]


@lru_cache(maxsize=1)
def _by_id() -> dict[str, Rule]:
    return {one.id: one for one in all_rules()}
