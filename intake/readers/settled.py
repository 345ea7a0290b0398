"""Reads a graph again and again until its sizes are settled: one that turns out to be fixed, or to follow others, is pinned."""

from collections.abc import Callable, Mapping, Sequence

from core.errors import BadInput, one_line
from core.graph import Graph
from core.symbols import Extent, Polynomial
from intake.readers.symbol_names import BATCH_VALUE, LENGTH_VALUE, Names, Open, symbols_of
from intake.readers.symbolic import Extents, Pinned, Unclear

MOST_READINGS = 24


def settled(
    inputs: Sequence[tuple[Open | None, str]], notes: list[str], options: Mapping[str, object],
    walk: Callable[[Names, Extents, int, int], Graph], what: str, remedy: str,
) -> Graph:  # fmt: skip
    """Return the graph that a walk gives once no size of it has to be pinned any more.

    Args:
        inputs: shape and dtype of each, with names for open extents.
        notes: of the file; what is pinned is added.
        options: `batch` and `length`, the values to take for these symbols.
        walk: reads the whole graph with the names, extents, batch and length that it is given.
        what: the format with its article.
        remedy: what to do with a file whose shapes cannot be followed.

    Raises:
        BadInput: shapes that cannot be followed; one line.
    """
    batch, length = _option(options, "batch", BATCH_VALUE), _option(options, "length", LENGTH_VALUE)
    expected = f"{what} whose shapes follow from its inputs"
    pinned: dict[str, Extent] = {}
    for _ in range(MOST_READINGS):
        names = symbols_of(inputs, batch, length, pinned)
        extents = Extents(dict(names.values), dict.fromkeys(notes))
        try:
            return walk(names, extents, batch, length)
        except Pinned as error:
            for one, extent in error.replacements.items():
                pinned[one] = extent
                how = f"follows {extent}" if isinstance(extent, Polynomial) else f"is fixed at {extent}"
                notes.append(one_line(f"{one} {how}: {error.why}", 300))
        except Unclear as error:
            raise BadInput(one_line(str(error), 200), f"{what} within Tandem's bounds", remedy) from None
        except (ValueError, RecursionError) as error:
            raise BadInput(one_line(f"shapes that cannot be followed ({error})", 200), expected, remedy) from None
    raise BadInput(f"over {MOST_READINGS} sizes that depend on each other", expected, remedy)


def _option(options: Mapping[str, object], name: str, default: int) -> int:
    value = options.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 1 << 31 else default
