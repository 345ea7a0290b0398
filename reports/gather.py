"""Puts what is said of many candidates into one row: a catalog has dozens of accelerators, and a reader one afternoon.

Texts are gathered when they differ only in the candidate that they name. Nothing is left out: the one row lists them all.
"""

from collections.abc import Iterable, Sequence

from catalog import accelerators

_NAMED = "\0"


def concerns(pairs: Sequence[tuple[str, str]]) -> str:
    """Return whom something concerns: `jax, keras-jax on mi455x; torch-tpu on a100-40, a100-80`.

    Args:
        pairs: (runtime, accelerator); empty means all of them.
    """
    places: dict[str, list[str]] = {}
    for runtime, accelerator in dict.fromkeys(pairs):
        places.setdefault(runtime or "every runtime", []).append(accelerator or "every accelerator")
    runtimes: dict[tuple[str, ...], list[str]] = {}
    for runtime, where in places.items():
        runtimes.setdefault(tuple(where), []).append(runtime)
    return "; ".join(f"{', '.join(names)} on {', '.join(where)}" for where, names in runtimes.items())


def without_accelerator(text: str, accelerator: str) -> str:
    """Return a reason with the name of its accelerator taken out, so that equal reasons can be found."""
    chip = accelerators().get(accelerator)
    names = [accelerator] if chip is None else [chip.name, accelerator]
    for name in names:
        text = text.replace(name, _NAMED) if name else text
    return text


def gathered_phrases(phrases: Iterable[tuple[str, str, str]]) -> dict[str, list[str]]:
    """Return phrases with the labels of the candidates that lack it, in the order of their first appearance.

    Args:
        phrases: (phrase, name of the candidate as it stands in phrases, label of the candidate).
    """
    groups: dict[str, list[tuple[str, str]]] = {}
    for phrase, name, label in phrases:
        groups.setdefault(phrase.replace(name, _NAMED), []).append((phrase, label))
    gathered: dict[str, list[str]] = {}
    for shape, members in groups.items():
        text = members[0][0] if len(members) == 1 else shape.replace(_NAMED, "the candidates named")
        gathered[text] = [label for _, label in members]
    return gathered


def listed(labels: Sequence[str], most: int = 4) -> str:
    """Return the first labels and how many more there are."""
    rest = len(labels) - most
    return ", ".join(labels[:most]) + (f" and {rest} more" if rest > 0 else "")
