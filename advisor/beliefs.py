"""Every coefficient that the advisor believes in, in one table, so that it can be calibrated in one place.

Figures marked (prior) are judgement, kept wide by the sigma of their tier until residuals replace them.
"""

from dataclasses import dataclass

from core.quantity import TIER_SIGMA


@dataclass(frozen=True, slots=True)
class Beliefs:
    """How wrong each kind of number tends to be.

    Args:
        tier_sigma: standard deviation of ln(truth / estimate) of one block's time by tier.
        alone_sigma: further error of a block that was measured by itself against the bare frame, and not in a chain of its like:
            inside its model it shares caches, buffers and fusion with its neighbours.
        contended_sigma: further error of a measurement that others disturbed by using the processor meanwhile.
        block_correlation: correlation between the errors of the blocks of one model.
        composition_sigma: further error of a whole model made of measured blocks (fusion across blocks, cache state), by mode
            of runtime; the key "" holds for the modes that are not named.
        extrapolation_sigma: added for each unit of |ln(batch / measured batch)| when one batch was measured.
        interpolation_sigma: the same when the batch lies between measured ones.
        version_sigma: added when only another version of the framework was measured.
        fixed_share: most of a block's time that its optimizer update may stand for when a batch is scaled.
        slope_limits: least and greatest slope of ln(efficiency) over ln(batch) that is followed beyond the measured batches.
        compile_growth: compile time of r equal blocks is that of one times r to this power; compilers here unroll.
        compile_sigma: error of a compile time put together from blocks.
        memory_sigma: error of counted activations and workspace.
        same_device_correlation: correlation of the errors of two candidates on one kind of chip, by tier; two compilers on
            one chip differ far less than a datasheet differs from the truth.
        common_correlation: the same for two candidates on different chips: what a workload does to every chip alike.
        power_share: low and high share of the board power limit that a busy chip draws.
        idle_share: low and high share of it that a chip draws which holds a model and waits (prior).
        overlap: share of communication that can hide behind computation.
        link_share: share of a link's rate that collectives reach.
        tie: P(other is better) above which a candidate cannot be told apart from the best.
    """

    tier_sigma: tuple[tuple[str, float], ...] = tuple(TIER_SIGMA.items())
    alone_sigma: float = 0.12
    contended_sigma: float = 0.30
    block_correlation: float = 0.5
    composition_sigma: tuple[tuple[str, float], ...] = (("", 0.0),)
    extrapolation_sigma: float = 0.15
    interpolation_sigma: float = 0.05
    version_sigma: float = 0.10
    fixed_share: float = 0.6
    slope_limits: tuple[float, float] = (-0.25, 1.0)
    compile_growth: float = 1.0
    compile_sigma: float = 0.5
    memory_sigma: float = 0.2
    same_device_correlation: tuple[tuple[str, float], ...] = (
        ("measured", 0.3), ("interpolated", 0.3), ("transferred", 0.3), ("published", 0.9), ("datasheet", 0.9),
    )
    common_correlation: tuple[tuple[str, float], ...] = (
        ("measured", 0.0), ("interpolated", 0.0), ("transferred", 0.0), ("published", 0.3), ("datasheet", 0.3),
    )
    power_share: tuple[float, float] = (0.6, 0.9)
    idle_share: tuple[float, float] = (0.1, 0.2)
    overlap: float = 0.7
    link_share: float = 0.8
    tie: float = 0.25

    def sigma(self, tier: str) -> float:
        """Return the standard deviation that a tier starts with."""
        return dict(self.tier_sigma)[tier]

    def composition(self, mode: str) -> float:
        """Return the further error of a whole model in one mode of runtime."""
        table = dict(self.composition_sigma)
        return table.get(mode, table[""])

    def shared(self, tier: str) -> float:
        """Return the correlation of errors between candidates of one tier on one kind of chip."""
        return dict(self.same_device_correlation)[tier]

    def common(self, tier: str) -> float:
        """Return the correlation of errors between candidates of one tier on different chips."""
        return dict(self.common_correlation)[tier]


BELIEFS = Beliefs()


@dataclass(frozen=True, slots=True)
class ChipHabits:
    """What share of its datasheet a kind of chip reaches, before small shapes are counted (prior).

    Args:
        matmul, attention, conv, depthwise, rnn, other: share of the dense peak that large shapes reach.
        vector_share: rate of element-wise arithmetic as a share of the dense 16-bit peak.
        memory_share: share of the peak memory rate that streaming reaches; `lookup_share` for scattered rows.
        tile_rows, tile_columns: matmul dims are padded to multiples of these.
        fill_tiles: output tiles at which half of the chip is busy.
        launch_s: seconds between two kernels of one program; `eager_launch_s` when Python starts each operation.
        serial_s: seconds for one dependent step of a recurrent layer.
        hop_s: latency of one step of a collective.
        frame_s: bare cost of calling one step from the host.
        reserve_bytes: kept by the runtime on each chip.
    """

    matmul: float
    attention: float
    conv: float
    depthwise: float
    rnn: float
    other: float
    vector_share: float
    memory_share: float
    lookup_share: float
    tile_rows: int
    tile_columns: int
    fill_tiles: float
    launch_s: float
    eager_launch_s: float
    serial_s: float
    hop_s: float
    frame_s: float
    reserve_bytes: float


CHIP_HABITS: dict[str, ChipHabits] = {
    "gpu": ChipHabits(
        matmul=0.57, attention=0.37, conv=0.42, depthwise=0.05, rnn=0.30, other=0.03, vector_share=0.07,
        memory_share=0.75, lookup_share=0.4, tile_rows=64, tile_columns=64, fill_tiles=60.0,
        launch_s=3e-6, eager_launch_s=8e-6, serial_s=8e-6, hop_s=5e-6, frame_s=5e-5, reserve_bytes=0.8 * 2**30,
    ),
    "tpu": ChipHabits(
        matmul=0.80, attention=0.45, conv=0.45, depthwise=0.015, rnn=0.30, other=0.01, vector_share=0.015,
        memory_share=0.75, lookup_share=0.2, tile_rows=8, tile_columns=128, fill_tiles=2.0,
        launch_s=1e-6, eager_launch_s=20e-6, serial_s=5e-6, hop_s=1e-6, frame_s=8e-5, reserve_bytes=0.5 * 2**30,
    ),
    "cpu": ChipHabits(
        matmul=0.60, attention=0.30, conv=0.45, depthwise=0.10, rnn=0.30, other=0.05, vector_share=0.10,
        memory_share=0.75, lookup_share=0.3, tile_rows=1, tile_columns=16, fill_tiles=64.0,
        launch_s=2e-6, eager_launch_s=8e-6, serial_s=10e-6, hop_s=5e-6, frame_s=3e-5, reserve_bytes=0.5 * 2**30,
    ),
}
CHIP_HABITS["other"] = CHIP_HABITS["gpu"]

ACHIEVABLE = {
    "a100-40": 0.87, "a100-80": 0.87, "h100-sxm": 0.80, "h100-pcie": 0.80, "h200": 0.80, "gh200": 0.84,
    "b200": 0.78, "gb200": 0.73, "b300": 0.78, "gb300": 0.73, "mi300x": 0.51, "mi325x": 0.60, "mi355x": 0.68,
    "gaudi2": 0.97, "gaudi3": 0.74,
}
"""Share of the dense peak that the best matmul reaches; siblings take the figure of their generation.

Source: rule R066 of the collected rules (stas00/ml-engineering @744d01e, 2026-08-22, maximum achievable matmul FLOPS).
"""
ORDINARY_MATMUL = 0.68
"""Matmuls of a real step against the best matmul of the chip (prior)."""

WIDE_TILE_TPUS = ("tpu-v6e", "tpu-v7", "tpu-8i", "tpu-8t")
"""TPUs whose matrix unit is 256 wide. Source: jax-ml.github.io/scaling-book."""
TWO_CORES = ("tpu-v2", "tpu-v3")
"""TPUs on which a program sees one core and half of the chip's memory. Source: cloud.google.com/tpu/docs/v2, v3."""

FUSED_TRAFFIC = {"elementwise": 0.35, "norm": 0.6, "matmul": 1.0}
"""Share of memory traffic that is left when a compiler fuses a chain of element-wise operations (prior)."""

EAGER_RUNTIMES = ("torch-eager", "keras-torch", "mxnet")
"""Runtimes that start operations one by one and fuse nothing; hybridized MXNet starts them from its engine."""
UNCOMPILED_RUNTIMES = ("torch-eager", "keras-torch")
"""Runtimes whose first call makes no program; hybridized MXNet makes a graph."""
