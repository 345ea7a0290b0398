"""What the usual optimizers keep of each parameter, in bytes, beside the parameter and its gradient.

States are kept in fp32, as the reference implementations keep them under mixed precision, unless an optimizer is about just that.
"""

from collections.abc import Iterable
from math import prod

FP32_BYTES = 4
BLOCK, SMALL = 256, 4096
"""bitsandbytes: elements that share one scale, and elements below which a tensor keeps its states in fp32."""
PRECONDITIONED = 1024
"""Distributed Shampoo: the longest side of a block that gets a preconditioner of its own."""

OPTIMIZER_SOURCES: dict[str, str] = {
    "sgd": "nothing",
    "momentum": "one momentum (torch.optim.SGD with momentum)",
    "adam": "two moments (Kingma and Ba, arXiv:1412.6980)",
    "adamw": "two moments (Loshchilov and Hutter, arXiv:1711.05101)",
    "adafactor": "row and column means of the squares, no momentum (Shazeer and Stern, arXiv:1804.04235)",
    "lion": "one momentum (Chen et al., arXiv:2302.06675)",
    "adamw-8bit": "two moments of 8 bits with a scale for each 256 (Dettmers et al., arXiv:2110.02861)",
    "shampoo": "factor matrices and their roots of blocks up to 1,024, grafting, momentum (Shi et al., arXiv:2309.06497)",
    "muon": "one momentum for matrices, two moments for the rest and for embeddings (Jordan et al., 2024)",
}
"""What is counted for each, with its source."""


def state_bytes(optimizer: str, shapes: Iterable[tuple[tuple[int, ...], int]], tables: frozenset[int] = frozenset()) -> int:
    """Return the bytes that an optimizer keeps.

    Args:
        optimizer: a key of `OPTIMIZER_SOURCES`.
        shapes: of trained parameters, each with how often it occurs.
        tables: rows of embedding tables and output heads, which Muon leaves to AdamW.
    """
    return sum(count * _of_one(optimizer, shape, tables) for shape, count in shapes)


def _of_one(optimizer: str, shape: tuple[int, ...], tables: frozenset[int]) -> int:
    elements = prod(shape)
    match optimizer:
        case "sgd":
            return 0
        case "momentum" | "lion":
            return FP32_BYTES * elements
        case "adam" | "adamw":
            return 2 * FP32_BYTES * elements
        case "adafactor":
            return FP32_BYTES * (prod(shape[:-2]) * (shape[-2] + shape[-1]) if len(shape) > 1 else elements)
        case "adamw-8bit":
            return 2 * (elements + FP32_BYTES * -(-elements // BLOCK) if elements >= SMALL else FP32_BYTES * elements)
        case "muon":
            return (1 if len(shape) > 1 and shape[0] not in tables else 2) * FP32_BYTES * elements
        case "shampoo":
            return FP32_BYTES * (2 * elements + 2 * _factors(shape))
        case _:
            raise ValueError(f"got optimizer {optimizer!r}; expected one of {', '.join(OPTIMIZER_SOURCES)}")


def _factors(shape: tuple[int, ...]) -> int:
    """Return the elements of the factor matrices: a square for each side of each block; sides of 1 are merged away."""
    sides = [side for side in shape if side > 1] or [1]
    total = 0
    for at, side in enumerate(sides):
        others = prod(-(-other // PRECONDITIONED) for i, other in enumerate(sides) if i != at)
        whole, rest = divmod(side, PRECONDITIONED)
        total += others * (whole * PRECONDITIONED**2 + rest**2)
    return total
