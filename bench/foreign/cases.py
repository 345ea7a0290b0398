"""What both sides time: plain shapes that Tandem's probes and the foreign harnesses read alike."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Case:
    """One thing that is timed by two harnesses.

    Args:
        name: of the row.
        kind: `matmul`, `dense`, `transformer`, `triad` or `scale`.
        side: n of a product, width of a layer, bytes of a vector.
        batch: samples; 1 where there are none.
        length: positions of a sequence; 1 where there are none.
        train: with backward pass and AdamW update.
        first: whether the backward pass ends at the weights, since the input is data.
    """

    name: str
    kind: str
    side: int
    batch: int = 1
    length: int = 1
    train: bool = False
    first: bool = False


HEAD_WIDTH = 64
VECTOR_BYTES = 256 * 2**20

CASES = (
    Case("matmul 512", "matmul", 512),
    Case("matmul 1024", "matmul", 1024),
    Case("matmul 2048", "matmul", 2048),
    Case("dense", "dense", 1024, 512),
    Case("dense train", "dense", 1024, 512, train=True),
    Case("transformer", "transformer", 768, 2, 128),
    Case("transformer train", "transformer", 768, 2, 128, train=True),
)
MEMORY_CASES = (Case("scale", "scale", VECTOR_BYTES), Case("triad", "triad", VECTOR_BYTES))


def case(name: str) -> Case:
    """Return a case by name; raises StopIteration when there is none."""
    return next(one for one in (*CASES, *MEMORY_CASES) if one.name == name)
