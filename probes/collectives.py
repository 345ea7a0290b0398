"""What a collective must answer, in numpy, and what it moves: shared by every framework's own.

A message's size S is counted as in nccl-tests: all-reduce, reduce-scatter and all-to-all by what each rank puts in, all-gather by
what each rank gets out. Source: NVIDIA/nccl-tests, doc/PERFORMANCE.md.
"""

from typing import Any

from probes.rig import random_floats

COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all")
FLOAT_BYTES = 4
DRAWN = 2**20 - 3
"""Odd, so that no power of two parts a message into equal pieces."""


def floats_of_rank(name: str, message_bytes: int, ranks: int) -> int:
    """Return how many floats each rank puts in, a multiple of the number of ranks.

    Args:
        name: one of `COLLECTIVES`, or `ring`.
        message_bytes: S.
        ranks: how many take part.
    """
    put_in = message_bytes // (ranks if name == "all_gather" else 1)
    return max(1, put_in // FLOAT_BYTES // ranks) * ranks


def row(rank: int, count: int, seed: int) -> Any:
    """Draw what one rank puts in, float32 of shape (count,): random, and repeated from `DRAWN` values on, which is quick."""
    import numpy as np

    return np.resize(random_floats(min(count, DRAWN), seed + 1000 * (rank + 1)), count)


def rows(ranks: int, count: int, seed: int) -> Any:
    """Draw what all ranks put in, float32 of shape (ranks, count)."""
    import numpy as np

    return np.stack([row(rank, count, seed) for rank in range(ranks)])


def expected(name: str, rank: int, ranks: int, count: int, seed: int) -> Any:
    """Return what one rank must get out, as `reference` says it, without holding what all ranks put in.

    Args:
        name: one of `COLLECTIVES`, or `ring`.
        rank, ranks: which of how many.
        count: floats that each puts in.
        seed: of the data.
    """
    import numpy as np

    share = count // ranks
    part = slice(rank * share, (rank + 1) * share) if name in ("reduce_scatter", "all_to_all") else slice(None)
    if name == "ring":
        return row((rank - 1) % ranks, count, seed)
    pieces = (row(other, count, seed)[part] for other in range(ranks))
    if name in ("all_gather", "all_to_all"):
        return np.concatenate(list(pieces))
    total = np.zeros(count if name == "all_reduce" else count // ranks, np.float32)
    for piece in pieces:
        total += piece
    return total


def reference(name: str, put_in: Any) -> Any:
    """Return what each rank must get out, one row a rank.

    Args:
        name: one of `COLLECTIVES`, or `ring`, where each rank gets what the one before it had.
        put_in: float32 of shape (ranks, count).

    Raises:
        ValueError: another name.
    """
    import numpy as np

    ranks = put_in.shape[0]
    total = put_in.astype(np.float64).sum(axis=0).astype(np.float32)
    match name:
        case "all_reduce":
            return np.broadcast_to(total, put_in.shape)
        case "all_gather":
            return np.broadcast_to(put_in.reshape(-1), (ranks, put_in.size))
        case "reduce_scatter":
            return total.reshape(ranks, -1)
        case "all_to_all":
            return put_in.reshape(ranks, ranks, -1).transpose(1, 0, 2).reshape(ranks, -1)
        case "ring":
            return np.roll(put_in, 1, axis=0)
        case _:
            raise ValueError(f"got {name!r}; expected ring or one of {', '.join(COLLECTIVES)}")
