"""What of a chip the cost terms need: its rates for a dtype, how well large products use it, how its links are joined.

Shares that large products and attention reach are published maxima, not fitted ones; the fitted correction stands on top.
"""

from dataclasses import dataclass
from functools import cache

from core.device import Accelerator
from core.ops import DTYPE_BYTES

_MATMUL = {
    "v100-16": 0.80, "v100-32": 0.80, "t4": 0.62, "a100-40": 0.87, "a100-80": 0.87, "a10g": 0.75, "l4": 0.60, "l40s": 0.75,
    "h100-sxm": 0.80, "h100-pcie": 0.70, "h200": 0.80, "gh200": 0.84, "b200": 0.78, "gb200": 0.73, "b300": 0.78, "gb300": 0.73,
    "mi300x": 0.51, "mi325x": 0.60, "mi355x": 0.68, "mi250x": 0.55, "gaudi2": 0.97, "gaudi3": 0.74, "tpu-v2": 0.80,
    "tpu-v3": 0.80, "tpu-v4": 0.88, "tpu-v5e": 0.94, "tpu-v5p": 0.88, "tpu-v6e": 0.80, "tpu-v7": 0.85,
}  # fmt: skip
"""Share of the dense peak of the best large product.

Source: stas00/ml-engineering @744d01e, 2026-08-22 (GPUs and Gaudi, maximum achievable matmul FLOPS); Jouppi et al.,
arXiv:2304.01433 and jax-ml.github.io/scaling-book (TPUs up to v5p); the others by their generation.
"""
_KIND_MATMUL = {"gpu": 0.75, "tpu": 0.85, "cpu": 0.60, "other": 0.70}
_GENERATIONS = (
    ("v100", "volta"), ("t4", "turing"), ("a100", "ampere"), ("a10", "ampere"), ("l4", "ada"), ("rtx4", "ada"),
    ("h100", "hopper"), ("h200", "hopper"), ("gh200", "hopper"), ("b200", "blackwell"), ("gb200", "blackwell"),
    ("b300", "blackwell"), ("gb300", "blackwell"), ("rtx5", "blackwell"), ("rtxpro", "blackwell"), ("rubin", "rubin"),
    ("mi", "instinct"), ("gaudi", "gaudi"), ("train", "trainium"), ("infer", "trainium"), ("tpu", "tpu"), ("cpu", "cpu"),
)  # fmt: skip
NARROW = ("fp8", "int8", "fp4", "int4")


@dataclass(frozen=True, slots=True)
class Silicon:
    """A chip for one dtype.

    Args:
        key, kind, generation: what it is.
        linear_flop_per_s: dense peak of products in the dtype. half_flop_per_s: of 16-bit (or the wider dtype's own) products.
        element_bytes: of an activation. weight_bytes: of a weight as it is read for inference.
        bytes_per_s: of memory.
        matmul_share: of the peak that the best large product reaches.
        link_bytes_per_s: of one chip inside its domain. network_bytes_per_s: of one chip beyond it.
        domain: chips that the fast link joins.
        hop_s: of a small sum over such chips.
        tile_columns, tile_depth: sizes that products are rounded up to. fill_tiles: tiles of 128 x 128 at which half is busy.
        launch_s: from one kernel of a program to the next.
        memory_bytes: of one chip.
        power_w: board power limit, None when it is not known.
    """

    key: str
    kind: str
    generation: str
    linear_flop_per_s: float
    half_flop_per_s: float
    element_bytes: float
    weight_bytes: float
    bytes_per_s: float
    matmul_share: float
    link_bytes_per_s: float
    network_bytes_per_s: float
    domain: int
    hop_s: float
    tile_columns: int
    tile_depth: int
    fill_tiles: float
    launch_s: float
    memory_bytes: float
    power_w: float | None


@cache
def silicon_of(chip: Accelerator, dtype: str, widens: bool = False) -> Silicon | str:
    """Return a chip as the cost terms see it, or in one phrase why it cannot run that dtype.

    Args:
        chip: of the catalog.
        dtype: of the products.
        widens: whether narrow weights may be widened as they are read, as servers do with quantised weights on chips without
            units for them; products then run in 16 bits.
    """
    half = _half(chip)
    linear = _linear(chip, dtype, half)
    if linear is None and widens and dtype in NARROW:
        linear = half
    if linear is None or chip.memory_bytes_per_s is None:
        return (
            f"{chip.name} has no {dtype} units and no documented stand-in" if linear is None else f"no memory rate of {chip.name}"
        )
    wide = dtype in ("fp32", "tf32", "fp64")
    network, link, domain = _links(chip)
    return Silicon(
        chip.key,
        chip.kind,
        generation_of(chip.key),
        linear,
        linear if wide or half is None else half,
        4.0 if wide else 2.0,
        DTYPE_BYTES.get(dtype, 2.0),
        chip.memory_bytes_per_s,
        _MATMUL.get(chip.key, _KIND_MATMUL[chip.kind]),
        link,
        network,
        domain,
        _hop_s(chip),
        *_tiles(chip),
        2e-6 if chip.kind == "tpu" else 4e-6,
        chip.memory_bytes,
        chip.power_w,
    )


@cache
def generation_of(key: str) -> str:
    """Return the family of a chip by its key; the key itself where it is of none."""
    return next((name for start, name in _GENERATIONS if key.startswith(start)), key)


def _half(chip: Accelerator) -> float | None:
    """Return the dense peak of 16-bit products; that of fp16 where bf16 has no units."""
    if chip.key.startswith(("v100", "t4")):
        return chip.peak("fp16")
    return chip.peak("bf16") or chip.peak("fp16")


WIDE_TPUS = ("tpu-v6e", "tpu-v7", "tpu-8i", "tpu-8t")
"""TPUs whose matrix unit is 256 wide. Source: jax-ml.github.io/scaling-book (2025-02)."""


def _tiles(chip: Accelerator) -> tuple[int, int, float]:
    """Return (columns and depth that products are rounded up to, tiles at which half of the chip is busy).

    Source: NVIDIA Deep Learning Performance Guide, matrix multiplication (tiles and waves on some 100 multiprocessors);
    scaling-book (128 and 256 wide units, one or two of them).
    """
    if chip.kind == "tpu":
        wide = 256 if chip.key in WIDE_TPUS else 128
        return wide, wide, 0.5
    return (64, 8, 14.0) if chip.kind in ("gpu", "other") else (16, 1, 0.5)


def padding_of(products: tuple[tuple[float, float, float], ...], silicon: Silicon) -> float:
    """Return by how much rounding up to tiles makes the products of a model larger, 1 or more.

    Args:
        products: (columns, depth, part of the FLOPs).
        silicon: the chip.
    """
    if not products:
        return 1.0
    return sum(
        part * _rounded(columns, silicon.tile_columns) * _rounded(depth, silicon.tile_depth) for columns, depth, part in products
    ) / sum(part for _, _, part in products)


def _rounded(size: float, tile: int) -> float:
    return 1.0 if size <= 0 else -(-size // tile) * tile / size


def _linear(chip: Accelerator, dtype: str, half: float | None) -> float | None:
    own = half if dtype in ("bf16", "fp16") else chip.peak(dtype)
    if own is not None:
        return own
    if dtype in ("bf16", "fp16"):
        return half or chip.peak("fp32")
    if dtype == "tf32":
        return chip.peak("fp32") or (half / 3 if half else None)
    if dtype == "fp32":  # three to six passes of 16-bit products. Source: jax.lax.Precision
        return half / 18**0.5 if half else None
    return None


def _links(chip: Accelerator) -> tuple[float, float, int]:
    """Return (bytes/s of one chip beyond its domain, bytes/s of one chip inside, chips of a domain).

    Cards without a link of their own exchange over the host's bus, in halves of it; those that may not reach each other go
    through the host's memory. Source: NCCL on PCIe cards with and without peer access, huggingface/transformers documentation
    of several GPUs (GPT-2 on two cards with and without NVLink).
    """
    host = chip.chips_per_host or 1
    link = (chip.link_bytes_per_s or chip.host_bytes_per_s or 16e9) * _bus_share(chip)
    domain = chip.max_domain_chips or host
    network = chip.internode_bytes_per_s or 12.5e9
    if chip.kind == "tpu":
        return network / host, link, domain
    # the catalog gives the network of a whole host
    return network / host, link, domain if chip.link_bytes_per_s else host


def _bus_share(chip: Accelerator) -> float:
    name = chip.link_name or ""
    return 0.25 if "no P2P" in name else 0.5 if "PCIe" in name else 1.0


def _hop_s(chip: Accelerator) -> float:
    """Return seconds of a small sum over a few chips: over their own links, or started and staged by the host."""
    if chip.kind == "tpu":
        return 3e-6
    return 60e-6 if _bus_share(chip) < 1 else 12e-6


def unknown_link(chip: Accelerator, count: int) -> str:
    """Return which rate is not known that chips of a pool would exchange by, empty when all are known.

    Args:
        chip: of the catalog.
        count: chips of the pool.
    """
    if count > 1 and chip.link_bytes_per_s is None and chip.host_bytes_per_s is None:
        return f"the link rate between chips of {chip.key} is not known"
    _, _, domain = _links(chip)
    if count > domain and chip.internode_bytes_per_s is None:
        return f"the rate of {chip.key} beyond {domain} chips is not known"
    return ""


def attention_share(silicon: Silicon, head_width: float, length: float, year: float, dtype: str) -> float:
    """Return the share of the dense 16-bit peak that fused attention reaches, forward and backward together.

    Source: Dao, arXiv:2307.08691 (versions 1 and 2 on A100 and H100); Shah et al., arXiv:2407.08608 (version 3 on H100).
    """
    if silicon.kind == "tpu":
        share = 0.5
    elif silicon.generation == "ampere":
        share = 0.33 if year < 2023.7 else 0.55
    elif silicon.generation == "hopper":
        share = 0.14 if year < 2023.7 else 0.36 if year < 2024.4 else 0.5
    else:
        share = 0.42 if silicon.generation == "blackwell" else 0.3
    if dtype in ("fp32", "tf32"):
        share = max(share, 0.45)
    if 0 < head_width < 128:
        share *= 0.6 if silicon.kind == "tpu" else 0.8
    return share * (0.6 if length <= 1024 else 1.0)
