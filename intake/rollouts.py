"""How samples of reinforcement learning come about: prompts, answers of unlike lengths, environments, how stale they may be."""

from core.workload import Rollouts
from intake.fields import Section
from intake.wording import fault

_KEYS = ("prompt", "output", "deviation", "longest", "most_stale", "environment_steps_per_s")
_MOST_TOKENS = 10**7


def read_rollouts(top: Section, task: str, length: int | None) -> Rollouts | None:
    """Return how samples come about, or None where nothing is said of it.

    Args:
        top: the document.
        task: of the workload; only `rl` has rollouts.
        length: of a sample in training, which prompt and answer may not exceed.

    Raises:
        BadInput: another task, no answers, or a value that cannot be used.
    """
    section = top.section("rollouts", _KEYS)
    if section is None:
        return None
    if task != "rl":
        raise fault("rollouts", task, "task rl", "write task: rl, or leave rollouts out")
    prompt, output = section.whole("prompt", 1, _MOST_TOKENS), section.whole("output", 1, _MOST_TOKENS)
    if prompt is None or output is None:
        raise fault("rollouts", ", ".join(section.values), "prompt and output", "add what is missing")
    longest = section.whole("longest", output, _MOST_TOKENS)
    if length is not None and prompt + output > length:
        raise fault("rollouts", f"{prompt} + {output} tokens", f"at most the length of {length}", "raise length, or shorten them")
    stale = section.whole("most_stale", 0, 10**4)
    return Rollouts(
        prompt, output, section.number("deviation", 0, _MOST_TOKENS) or 0.0, longest, 1 if stale is None else stale,
        section.number("environment_steps_per_s", 1e-9, 1e15),
    )
