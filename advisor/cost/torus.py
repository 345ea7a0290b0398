"""How many of a TPU's links a collective uses: those of the axes that it runs along, both ways where an axis closes to a ring.

The catalog gives the rate of all links of a chip together. On a ring a chip sends and receives over two links of that axis; on
an open line whatever the chip at its end receives comes over one. A sum over a whole slice runs along all axes at once.

Source: Cloud TPU system architecture (topologies and wrap-around links); Chan, Heimlich, Purkayastha and van de Geijn,
Collective communication: theory, practice, and experience (2007), bucket algorithms on meshes.
"""

from functools import cache

import catalog


@cache
def links_used(key: str, chips: int) -> tuple[float, float]:
    """Return the part of a chip's links that is used (over a whole slice, along one of its axes).

    Both are 1 for what is no TPU, for one chip, and where no slice has that many chips.

    Args:
        key: of the catalog.
        chips: that work together.
    """
    version = catalog.generations().get(key)
    known = catalog.slice_of(key, chips) if version is not None and chips > 1 else None
    if version is None or known is None:
        return 1.0, 1.0
    each = 1.0 / (2.0 * version.axes)
    axes = [(2.0 if wrapped else 1.0) * each for size, wrapped in zip(known.topology, known.wraps, strict=True) if size > 1]
    return min(1.0, sum(axes)), max(axes, default=1.0)
