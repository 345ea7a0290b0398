"""When the knowledge behind the rules was read, and how long each sort of it holds before it must be looked at again."""

from advisor.rules import RuleFacts

READ = "2026-11-30"
"""The day on which the sources of the rules were read."""
PRICES = "2026-12-31"
"""Prices and what is offered change by the month."""
PACKAGES = "2027-02-28"
"""Releases, pins and support of packages change by the quarter."""
PLATFORM = "2027-05-31"
"""What clouds and vendors support changes by the half year."""
PRACTICE = "2028-11-30"
"""How compilers, models and networks behave changes over some years."""
SILICON = "2030-11-30"
"""What a chip that is sold has in it does not change; the rule is looked at again when others have replaced it."""

NVIDIA_OR_OTHER = ("gpu", "other")
TPU_ONLY = ("tpu",)


def facts(
    flag: str, effects: str, magnitude: str, source: str, expires: str, *, explains: bool = False,
    kinds: tuple[str, ...] = (), runtimes: tuple[str, ...] = (), by_runtime: bool = False,
) -> RuleFacts:
    """Return what is written down of a rule whose source was read on `READ`.

    Args:
        flag: its flag word.
        effects: what it may do, words with spaces between.
        magnitude, source: as in `RuleFacts`.
        expires: one of the dates above.
        explains, kinds, runtimes, by_runtime: as in `RuleFacts`.
    """
    return RuleFacts(flag, tuple(effects.split()), magnitude, source, READ, expires, explains, kinds, runtimes, by_runtime)
