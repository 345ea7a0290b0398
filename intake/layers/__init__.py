"""Block kinds: one file each says which sizes it has and counts it.

A file offers `SIZES` (tuple of `SizeSpec`) and `count(sizes, dtype) -> Counts`, and may offer `check(where, sizes)`, which
raises BadInput when sizes do not go together. Files are found by scanning; one that lacks its part stops the start with its name.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from core.ops import DTYPE_BYTES
from core.workload import Block
from intake.counting import Counts
from intake.sizes import Sizes, SizeSpec, read_sizes, whole_number
from intake.wording import unknown

MOST_REPEATS = 10**8


@dataclass(frozen=True, slots=True)
class LayerKind:
    """One block kind: its name, its sizes, and the functions that check and count them."""

    name: str
    title: str
    sizes: tuple[SizeSpec, ...]
    count: Callable[[Sizes, str], Counts]
    check: Callable[[str, Sizes], None] | None = None


@cache
def layer_kinds() -> Mapping[str, LayerKind]:
    """Return every block kind by name.

    Raises:
        ImportError: a file lacks its part; the message names both.
    """
    found: dict[str, LayerKind] = {}
    for entry in iter_modules(__path__):
        module = import_module(f"{__name__}.{entry.name}")
        missing = [part for part in ("SIZES", "count") if not hasattr(module, part)]
        if missing:
            raise ImportError(f"got layer file {entry.name} without {', '.join(missing)}; expected SIZES and count")
        title = (module.__doc__ or "").partition("\n")[0].rstrip(".")
        found[entry.name] = LayerKind(entry.name, title, module.SIZES, module.count, getattr(module, "check", None))
    return found


def make_block(kind: str, name: str, sizes: Mapping[str, object], repeats: int, dtype: str) -> Block:
    """Return one counted block.

    Args:
        kind: a block kind, `transformer_layer`, `conv_stem`, ...
        name: shown to people, unique in its workload.
        sizes: by name; those that have a default may be left out.
        repeats: equal ones in a row.
        dtype: compute dtype, a key of `core.ops.DTYPE_BYTES`.

    Raises:
        BadInput: an unknown kind or dtype, or sizes that are unknown, missing, out of bounds or do not go together.
    """
    kinds = layer_kinds()
    if kind not in kinds:
        raise unknown(f"block {name}", "kind", str(kind), kinds)
    if dtype not in DTYPE_BYTES:
        raise unknown(f"block {name}", "dtype", str(dtype), DTYPE_BYTES)
    where = f"block {name} ({kind})"
    layer = kinds[kind]
    checked = read_sizes(where, layer.sizes, sizes)
    if layer.check is not None:
        layer.check(where, checked)
    counts = layer.count(checked, dtype)
    repeats = whole_number(f"{where}.repeats", repeats, 1, MOST_REPEATS)
    return Block(name, kind, checked.sorted(), repeats, counts.ops_forward, counts.ops_backward, counts.parameter_count,
                 counts.activation_bytes)
