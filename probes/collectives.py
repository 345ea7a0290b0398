"""What a collective must answer, in numpy, and what it moves: shared by every framework's own.

A message's size S is counted as in nccl-tests: all-reduce, reduce-scatter and all-to-all by what each rank puts in, all-gather by
what each rank gets out. Source: NVIDIA/nccl-tests, doc/PERFORMANCE.md.
"""

from typing import Any

from probes.rig import random_floats

COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all")
FLOAT_BYTES = 4


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
    """Draw what one rank puts in, float32 of shape (count,)."""
    return random_floats(count, seed + 1000 * (rank + 1))


def rows(ranks: int, count: int, seed: int) -> Any:
    """Draw what all ranks put in, float32 of shape (ranks, count)."""
    import numpy as np

    return np.stack([row(rank, count, seed) for rank in range(ranks)])


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
