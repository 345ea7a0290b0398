"""Rules about shapes: what padded tiles, unit axes and half-empty waves cost. The cost model counts them; these say why."""

import re
from functools import cache
from math import ceil

from advisor.beliefs import CHIP_HABITS, TWO_CORES, WIDE_TILE_TPUS
from advisor.memory import parameter_bytes
from advisor.rules import Finding, job_rule, rule
from advisor.rules.ages import PRACTICE, SILICON, TPU_ONLY, facts
from advisor.rules.case import Case, Code
from advisor.rules.graph import Product
from core.device import Accelerator

BOOK = "jax-ml.github.io/scaling-book (2025-02 snapshot)"
GUIDE = "cloud.google.com/tpu/docs/performance-guide"
WHEN_TPU = 'cloud.google.com/tpu/docs/intro-to-tpu, "When to use TPUs" (2026)'
STAS = "stas00/ml-engineering (@744d01e, 2026-08-22)"
MATMUL_GUIDE = "NVIDIA deep learning performance guide, matrix multiplication, by way of ml-engineering training/performance"
LANES, SUBLANES = 128, 8
FULL_ENOUGH = 0.97
TILE = (128, 256)
"""Rows and columns of the output that one block of threads computes in large matrix products on NVIDIA and AMD."""


def _up(size: int, step: int) -> int:
    return ceil(size / step) * step


def _inner(one: Product) -> int:
    """Return the features that are summed over; those of a first convolution on a few channels are folded with its kernel."""
    return one.inner if one.inner >= SUBLANES else one.depth


def _efficiency(products: tuple[Product, ...], width: int) -> float | None:
    """Return useful over padded FLOPs when both feature axes are padded to a width; None without products."""
    useful = sum(one.flop for one in products)
    padded = sum(one.flop * _up(one.columns, width) / one.columns * _up(_inner(one), width) / _inner(one) for one in products)
    return useful / padded if padded else None


def _worst(products: tuple[Product, ...], width: int) -> int:
    """Return the feature size whose padding costs most FLOPs."""
    costs = ((one.flop * (_up(size, width) / size - 1), size) for one in products for size in (one.columns, _inner(one)))
    return max(costs)[1]


@rule("R035", facts(
    "op_slow", "warn", "vector units have 1/65 of the matrix rate on v5p; share computed from the case", f"{WHEN_TPU}; {BOOK}",
    SILICON, explains=True, kinds=TPU_ONLY,
))
def vector_work_is_slow_on_tpu(case: Case) -> Finding | None:
    """Work that is mostly elementwise, or branches, leaves the matrix units of a TPU idle."""
    share = case.code.graph.matrix_share
    branches = case.code.names("branching", "cond", "while-loop", "data-dependent-loop")
    if branches:
        return Finding("warn", f"{', '.join(branches)} in the step: branches keep the matrix units of a TPU idle")
    if share is None or share >= 0.5:
        return None
    return Finding(
        "warn",
        f"{1 - share:.0%} of the arithmetic is not matrix work: it runs on vector units, which have about 1/65 of the matrix "
        "rate",
    )


@rule("R036", facts(
    "tile_padding", "warn", "d / (ceil(d / 128) x 128), or 256 on v6e and v7; computed from the case", f"{BOOK}; {GUIDE}",
    SILICON,
    explains=True, kinds=TPU_ONLY,
))
def features_are_padded_to_the_matrix_unit(case: Case) -> Finding | None:
    """Feature axes are padded to the width of the matrix unit: 128, or 256 on v6e and v7."""
    products = case.code.graph.products
    width = 256 if case.key in WIDE_TILE_TPUS else LANES
    efficiency = _efficiency(products, width)
    if efficiency is None or efficiency >= FULL_ENOUGH:
        return None
    return Finding(
        "warn",
        f"padding feature axes to {width} leaves {efficiency:.0%} of the matrix work useful: axes such as "
        f"{_worst(products, width):,} want multiples of {width}",
    )


@rule("R037", facts(
    "tile_padding", "warn", "rows padded to a multiple of 8 on each core; computed from the case", GUIDE, SILICON, explains=True,
    kinds=TPU_ONLY,
))
def rows_are_padded_to_eight(case: Case) -> Finding | None:
    """Rows on each chip are padded to multiples of 8."""
    rows = case.code.graph.rows
    if rows is None:
        return None
    own = max(1, rows // case.fewest)
    useful = own / _up(own, SUBLANES)
    if useful >= FULL_ENOUGH:
        return None
    return Finding(
        "warn",
        f"{own} rows on a chip are padded to {_up(own, SUBLANES)}: {useful:.0%} of the work is useful; make the batch of each "
        f"chip a multiple of {SUBLANES}",
    )


@rule("R038", facts(
    "tile_padding", "suggest", "total batch of 1,024 with features in multiples of 128", GUIDE, PRACTICE, explains=True,
    kinds=TPU_ONLY,
))
def small_batches_do_not_fill_a_tpu(case: Case) -> Finding | None:
    """A TPU works best with 1,024 rows or more in a step and features in multiples of 128."""
    rows = case.code.graph.rows
    if rows is None or rows >= 1024 or not case.workload.trains:
        return None
    return Finding(
        "suggest",
        f"a step has {rows} rows: a total batch of 1,024, with features in multiples of 128, fills a TPU best",
    )


@rule("R039", facts(
    "tile_padding", "warn", "up to 4 times the work; computed from the case", f"{BOOK}; matrix units of the accelerator table",
    SILICON, explains=True, kinds=TPU_ONLY,
))
def narrow_heads_waste_wide_units(case: Case) -> Finding | None:
    """Heads narrower than the matrix unit leave it half empty: width 64 fills a quarter where it is 256 wide."""
    widths = case.code.graph.head_widths
    if not widths or widths[0] >= LANES:
        return None
    unit = 256 if case.key in WIDE_TILE_TPUS else LANES
    filled = widths[0] / unit
    return Finding(
        "warn",
        f"heads of width {widths[0]} fill {filled:.0%} of a matrix unit that is {unit} wide: fewer, wider heads do the same "
        "arithmetic faster",
    )


@rule("R040", facts(
    "padding_waste", "warn", "multiples of 8 at 16 bits, of 16 at 8 bits; share computed from the case", MATMUL_GUIDE, SILICON,
    explains=True, kinds=("gpu",),
))
def misaligned_shapes_miss_the_fast_tiles(case: Case) -> Finding | None:
    """Tensor cores want feature axes in multiples of 8 at 16 bits, of 16 at 8 bits."""
    step = {"bf16": 8, "fp16": 8, "int8": 16, "fp8": 16}.get(case.workload.dtype)
    if case.vendor != "nvidia" or step is None:
        return None
    products = case.code.graph.products
    total = sum(one.flop for one in products)
    crooked = [one for one in products if one.columns % step or one.depth % step]
    share = sum(one.flop for one in crooked) / total if total else 0.0
    if share < 0.02:
        return None
    size = next(size for size in (crooked[0].columns, crooked[0].depth) if size % step)
    return Finding(
        "warn",
        f"{share:.0%} of the matrix work has axes such as {size:,} that are no multiple of {step}: it falls to slower tiles in "
        f"{case.workload.dtype}",
    )


@job_rule("R041", facts(
    "padding_waste", "suggest", "pad to a multiple of 64; computed from the case", STAS, PRACTICE, explains=True,
))
def vocabularies_want_padding(code: Code) -> Finding | None:
    """A vocabulary that is no multiple of 64 makes the largest product of a model a crooked one."""
    size = code.graph.vocabulary
    if size is None or size % 64 == 0:
        return None
    return Finding("suggest", f"pad the vocabulary from {size:,} to {_up(size, 64):,}, a multiple of 64")


@cache
def multiprocessors(chip: Accelerator) -> int | None:
    """Return how many multiprocessors a chip has by its notes; None when they do not say."""
    found = re.search(r"\b(\d{2,3}) (?:SM|CU)\b", chip.notes)
    return None if found is None else int(found.group(1))


@rule("R042", facts(
    "small_work", "warn", "waves / ceil(waves); computed from the case", STAS, SILICON, explains=True, kinds=("gpu",),
))
def last_waves_are_half_empty(case: Case) -> Finding | None:
    """A product whose tiles do not fill whole waves leaves multiprocessors idle in the last one."""
    processors = None if case.chip is None else multiprocessors(case.chip)
    products = case.code.graph.products
    if processors is None or not products:
        return None
    useful = sum(one.flop for one in products)
    busy = sum(one.flop / _waves(one, case.fewest, processors) for one in products)
    if useful / busy >= 0.75:
        return None
    worst = max(products, key=lambda one: one.flop / _waves(one, case.fewest, processors) - one.flop)
    tiles = _tiles(worst, case.fewest)
    return Finding(
        "warn",
        f"tiles of {TILE[0]} x {TILE[1]} fill {useful / busy:.0%} of the waves over {processors} multiprocessors, all products "
        f"together; most is lost by those of {tiles:,} tile{'' if tiles == 1 else 's'} each",
    )


def _tiles(one: Product, chips: int) -> int:
    return one.batch * ceil(max(1, one.rows // chips) / TILE[0]) * ceil(one.columns / TILE[1])


def _waves(one: Product, chips: int, processors: int) -> float:
    """Return which part of its waves a product fills."""
    waves = _tiles(one, chips) / processors
    return waves / ceil(waves)


@rule("R043", facts(
    "custom_kernel_correctness", "warn", "last two axes in multiples of 8 and 128, or whole",
    "jax documentation, Pallas (@cec06d1)",
    PRACTICE, kinds=TPU_ONLY,
))
def pallas_blocks_have_a_shape(case: Case) -> Finding | None:
    """The last two axes of a Pallas block are multiples of 8 and 128, or the whole axes of the array."""
    if not {"pallas", "megablox", "splash-attention"} & (case.code.kernels | case.code.libraries):
        return None
    return Finding(
        "warn",
        "the last two axes of a Pallas block must be multiples of 8 and 128 or whole axes: check that every size divides, and "
        "compare one small run with a reference",
    )


@rule("R044", facts(
    "tile_padding", "warn", "8 x 128 x 1 x 1 becomes 8 x 128 x 8 x 128: 1,024 times the memory",
    "jax documentation, Pallas (@cec06d1)",
    SILICON, explains=True, kinds=TPU_ONLY,
))
def unit_axes_are_blown_up(case: Case) -> Finding | None:
    """Trailing axes of length 1 are padded to 8 and 128 on a TPU."""
    found = case.code.graph.unit_axes
    if not found:
        return None
    return Finding(
        "warn",
        f"{', '.join(found)} over a last axis of length 1: it is padded to {LANES} (two such axes to {SUBLANES} x {LANES}, "
        "1,024 times the memory); move or merge unit axes",
    )


@rule("R216", facts(
    "tile_padding", "warn", "from 1.5 times the memory of a pass; computed from the case",
    "what XLA reported of github.com/tensorflow/tensorflow issue 30803, pytorch/xla issue 6674 and google/flax issue 1733",
    SILICON, kinds=TPU_ONLY,
))
def arrays_are_blown_up(case: Case) -> Finding | None:
    """The two last axes of an array are filled up to 8 and 128 on a TPU where the compiler does not lay others innermost."""
    peaks = case.workload.peaks
    plain, tiled = _held_bytes(case)
    if peaks is None or not tiled:
        return None
    most = f", an array of {peaks.inflated} {peaks.inflated_times:.3g} times" if peaks.inflated else ""
    return Finding(
        "warn",
        f"what a pass holds grows {tiled / plain:.3g} times in tiles of {SUBLANES} x {LANES} as it is written{most}: put long "
        "axes last, or merge short ones",
    )


@rule("R217", facts(
    "per_chip_memory", "penalise", "rank x 0.5; bytes in tiles computed from the case",
    "programs that fitted without padding and failed: tensorflow/tensorflow issue 30803, pytorch/xla issue 6674, google/flax "
    "issue 1733, DifferentiableUniverseInitiative/flowpm issue 27", PRACTICE, kinds=TPU_ONLY,
))
def arrays_may_not_fit_once_padded(case: Case) -> Finding | None:
    """What a pass holds fits in a core of a TPU, and no longer does when arrays are padded as they are written."""
    plain, tiled = (held / case.fewest for held in _held_bytes(case))
    if not tiled or case.chip is None:
        return None
    own = parameter_bytes(case.workload) * case.code.parameters / case.fewest
    cores = 2 if case.key in TWO_CORES else 1
    room = case.chip.memory_bytes / cores - CHIP_HABITS["tpu"].reserve_bytes - own
    if not plain <= room < tiled:
        return None
    return Finding(
        "penalise",
        f"padded to tiles as it is written, a pass holds {tiled / 1e9:.3g} GB where a program has "
        f"{room / 1e9:.3g} ({plain / 1e9:.3g} without padding): it does not fit unless the compiler lays other axes innermost; "
        "put long axes last",
        0.5,
    )


def _held_bytes(case: Case) -> tuple[int, int]:
    """Return what the pass of the task holds, and what in tiles; of the latter 0 where it is not much more."""
    peaks = case.workload.peaks
    if peaks is None:
        return 0, 0
    if case.workload.trains:
        return peaks.training_bytes, peaks.tiled_training_bytes
    return peaks.forward_bytes, peaks.tiled_forward_bytes
