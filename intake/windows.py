"""How far attention looks back: which part of the layers of a configuration look at a window of positions, and how wide it is."""

from collections.abc import Mapping

from core.sketch import Windows
from intake.sizes import items_of

LOCAL = ("sliding_attention", "chunked_attention", "local_attention")
WIDTHS = ("sliding_window", "attention_chunk_size")
"""Keys of transformers' configurations; what looks at chunks looks back at one at most."""
_OFF = ("qwen2", "qwen3", "qwen2_moe", "qwen3_moe")
"""Types of model that have no windows unless `use_sliding_window` says so."""
FACTS = ("window", "windowed_layers", "attention_layers")
"""Names of the facts of a graph that say the same."""


def windows_of(values: Mapping[str, object]) -> Windows:
    """Return (part of the attention layers, positions that they look back at most); nothing where all look at everything.

    Args:
        values: of a `config.json`, or of a configuration class, which fills in the kinds of its layers.
    """
    width = next((found for key in WIDTHS if (found := _whole(values, key))), 0)
    named = values.get("use_sliding_window")
    if not width or not (named if isinstance(named, bool) else values.get("model_type") not in _OFF):
        return ()
    kinds, layers = items_of(values.get("layer_types")), _whole(values, "num_hidden_layers")
    first = values.get("max_window_layers")
    if kinds:
        attending = [kind for kind in kinds if kind in LOCAL or kind == "full_attention"]
        part = sum(kind in LOCAL for kind in attending) / max(1, len(attending))
    else:
        part = max(0.0, 1 - first / layers) if isinstance(first, int) and layers else 1.0
    return ((part, width),) if part > 0 else ()


def facts_of_windows(windows: Windows, layers: int) -> tuple[tuple[str, int], ...]:
    """Return windows as facts of a graph, whole numbers that its operations do not show.

    Args:
        windows: from `windows_of`. layers: that attend.
    """
    told = ((int(width), round(part * layers), layers) for part, width in windows)
    return tuple(pair for values in told for pair in zip(FACTS, values, strict=True))


def windows_from(facts: Mapping[str, int]) -> Windows:
    """Return the windows that facts of a graph say.

    Args:
        facts: by name.
    """
    width, local, layers = (facts.get(name, 0) for name in FACTS)
    return ((local / layers, width),) if width and local and layers else ()


def window_words(windows: Windows) -> str:
    """Return in one phrase how far layers look back, as an assumption."""
    part, width = windows[0]
    which = "attention looks" if part >= 1 else f"attention of {part:.0%} of the layers looks"
    return f"{which} back at {width:,.0f} positions at most (sliding window), and no more keys and values are kept there"


def _whole(values: Mapping[str, object], key: str) -> int:
    value = values.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
