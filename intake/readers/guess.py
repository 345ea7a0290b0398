"""Guesses an architecture from the names and shapes of parameters: a `config.json` with its reasons, said as a guess.

What shapes do not say (how many heads, which expert is active, strides) is assumed as most models have it, and each such
assumption is told.
"""

from collections.abc import Mapping, Sequence

from core.graph import Tensor
from intake.readers.guess_names import Guess, names_of
from intake.readers.guess_other import OTHER, adapter
from intake.readers.guess_text import TEXT


def guessed(tensors: Sequence[Tensor], told: Mapping[str, object]) -> Guess:
    """Return the guess that parameters speak for.

    Args:
        tensors: with names and shapes.
        told: settings that the file itself states (a `config.json` beside it, its metadata); they win.
    """
    if "model_type" in told or "_class_name" in told:
        return Guess(
            dict(told), (f"{told.get('model_type') or told.get('_class_name')!s:.60}: a config.json stands beside the weights",)
        )
    names = names_of(tensors)
    for rule in (adapter, *TEXT, *OTHER):
        names.notes.clear()
        found = rule(names)
        if found is not None:
            config = {key: value for key, value in found[0].items() if value is not None} | dict(told)
            kind = config.get("model_type") or config.get("_class_name") or config.get("peft_type")
            stated = (f"stated beside it: {', '.join(sorted(told))}"[:300],) if told else ()
            return Guess(
                config,
                (f"{kind}: {found[1]}"[:300], *stated),
                tuple(f"a guess from names and shapes: {note}" for note in names.notes),
            )
    if told:
        return Guess(dict(told), (f"stated beside it: {', '.join(sorted(told))}"[:300],))
    return Guess(None, (), ("the names of the parameters are of no architecture that is known here",))
