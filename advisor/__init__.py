"""Thinks: turns outcomes and catalog facts into estimates with bands, applies rules, ranks and explains.

Everything here is a pure function of the `Question`: no input or output, no clock, no randomness without its seed.
That is why an answer can be recomputed, compared and tested, and why it is the same whatever the order of pools or outcomes.
"""

from advisor.answer import advise
from advisor.memory import one_chip_parts
from advisor.question import Facts, Question

__all__ = ["Facts", "Question", "advise", "one_chip_parts"]
