"""What both sides time: plain shapes that Tandem's probes and the foreign harnesses read alike."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Case:
    """One thing that is timed by two harnesses.

    Args:
        name: of the row.
        kind: `matmul`, `dense`, `transformer`, `triad` or `scale`.
        side: n of a product, width of a layer, bytes of a vector.
        depths: of the two stacks that the foreign harness times, every copy with its own weights; as Tandem's probe has them.
        batch: samples; 1 where there are none.
        length: positions of a sequence; 1 where there are none.
        train: with backward pass and AdamW update.
        first: whether the backward pass ends at the weights, since the input is data.
    """

    name: str
    kind: str
    side: int
    depths: tuple[int, int] = (0, 1)
    batch: int = 1
    length: int = 1
    train: bool = False
    first: bool = False


HEAD_WIDTH = 64
PRODUCTS, LAYERS = (1, 5), (1, 3)
CACHES = 4
"""Least length of a vector in STREAM's rules, in last-level caches."""
LEAST_VECTOR_BYTES = 256 * 2**20

CASES = (
    Case("matmul 512", "matmul", 512, PRODUCTS),
    Case("matmul 1024", "matmul", 1024, PRODUCTS),
    Case("matmul 2048", "matmul", 2048, PRODUCTS),
    Case("dense", "dense", 1024, LAYERS, 512),
    Case("dense train", "dense", 1024, LAYERS, 512, train=True),
    Case("transformer", "transformer", 768, LAYERS, 2, 128),
    Case("transformer train", "transformer", 768, LAYERS, 2, 128, train=True),
)
MEMORY = ("scale", "triad")


def memory_cases(cache_bytes: int) -> tuple[Case, ...]:
    """Return the passes over memory with vectors that no cache of this size holds.

    Args:
        cache_bytes: of the last level; 0 when it is not known.
    """
    side = max(LEAST_VECTOR_BYTES, CACHES * cache_bytes)
    return tuple(Case(name, name, side) for name in MEMORY)

