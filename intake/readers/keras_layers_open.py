"""Shapes that a Keras config states with open places: symbols, the sides of an image, or what the input says there."""

from core.errors import BadInput
from core.graph import Shape
from core.symbols import BATCH, LENGTH, Extent
from intake.readers.keras_layers_base import Trace
from intake.readers.plain_json import is_list, sequence


def stated_shape(value: object, name: str) -> tuple[int | None, ...]:
    """Return a shape as a config states it, None where it is open.

    Args:
        value: list of numbers and None.
        name: of what has it, for the error.

    Raises:
        BadInput: anything else.
    """
    items = sequence(value)
    kept = tuple(one for one in items if one is None or (isinstance(one, int) and 0 <= one < 2**40))
    if not is_list(value) or len(kept) != len(items):
        raise BadInput(
            f"shape {value!r:.60} of {name:.60}", "a list of whole numbers and null", "save the model again with Keras"
        )
    return kept


def open_shape(trace: Trace, value: object, name: str, like: Shape = ()) -> Shape:
    """Return a shape whose open extents are symbols, the sides of an image, or those of another tensor.

    Args:
        trace: that knows the symbols.
        value: as a config states it.
        name: of what has it, for the error.
        like: a tensor's shape that open places follow where it has as many axes; empty for an input.

    Raises:
        BadInput: no shape.
    """
    items = stated_shape(value, name)
    loose = [at for at, one in enumerate(items) if one is None and at]
    if len(like) == len(items):
        if len(loose) > 1:
            trace.note(f"the sides that {name:.80} leaves open are taken to be its input's")
        return tuple(like[at] if one is None else one for at, one in enumerate(items))
    image = len(loose) > 1 and len(items) > 3
    if image:
        trace.note(f"sides that the config leaves open are {trace.image}")
    found: list[Extent] = []
    for at, one in enumerate(items):
        free = trace.extent(BATCH) if at == 0 else trace.image if image else trace.extent(LENGTH)
        found.append(free if one is None else one)
    return tuple(found)
