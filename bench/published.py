"""Rates that others measured and published, for accelerators that `bench.gpu_check` may meet. Each row says from where.

Source of the choice: published figures whose method is known and can be repeated by a probe of the same shape.
"""

from dataclasses import dataclass

from core.workload import Size

_STAS = "github.com/stas00/ml-engineering compute/accelerator/README.md, read 2026-08-22"
_AZURE = "github.com/Azure/AI-benchmarking-guide Azure_Results/"
TOLERANCE = 0.10


@dataclass(frozen=True, slots=True)
class Published:
    """One published rate.

    Args:
        accelerator: catalog key.
        title: for the table.
        family, subject, sizes, dtype: of the probe that repeats it; the probe may have further sizes.
        low, high: in FLOP/s for products, bytes/s for all else.
        source: where it stands.
        needed: whether a check without it is no check.
    """

    accelerator: str
    title: str
    family: str
    subject: str
    sizes: tuple[tuple[str, Size], ...]
    dtype: str
    low: float
    high: float
    source: str
    needed: bool = False

    @property
    def unit(self) -> str:
        """`FLOP/s` or `B/s`."""
        return "FLOP/s" if self.subject.startswith("matmul") else "B/s"


def _product(key: str, n: int, dtype: str, low: float, high: float, source: str) -> Published:
    needed = dtype == "bf16"
    return Published(
        key, f"{dtype} product, {n}^3", "kernel", "matmul_chain", (("n", n),), dtype, low * 1e12, high * 1e12, source, needed
    )


def _memory(key: str, subject: str, rate: float, source: str) -> Published:
    return Published(
        key, subject.replace("_", " "), "kernel", subject, (), "fp32", rate * 1e9, rate * 1e9, source, subject == "memory_copy"
    )


def _pinned(key: str, low: float, high: float, source: str) -> Published:
    sizes = (("memory", "pinned"), ("way", "to_device"))
    return Published(key, "pinned memory to device", "system", "host_device", sizes, "fp32", low * 1e9, high * 1e9, source)


PUBLISHED = (
    _product(
        "h200", 8192, "bf16", 680, 790, f"github.com/NVIDIA/tilus issue 154 (685, cuBLAS, NVL); {_STAS} (794.5, best shape)"
    ),
    _product("h200", 16384, "fp8", 1366, 1366, f"{_AZURE}ND_H200_v5_results.md (cuBLASLt, random)"),
    _memory("h200", "memory_copy", 4010, f"{_AZURE}ND_H200_v5_results.md (BabelStream)"),
    _memory("h200", "memory_triad", 4150, f"{_AZURE}ND_H200_v5_results.md (BabelStream)"),
    _pinned("h200", 50, 57, f"{_AZURE}ND_H200_v5_results.md (52); {_STAS} (55.4)"),
    _product("h100-sxm", 8192, "bf16", 753, 795, f"marin report (753.3, JAX); {_STAS} (794.5, best shape)"),
    _memory("h100-sxm", "memory_copy", 2900, f"{_AZURE}ND_H100_v5_results.md (BabelStream)"),
    _memory("h100-sxm", "memory_triad", 2970, f"{_AZURE}ND_H100_v5_results.md (BabelStream)"),
    _pinned("h100-sxm", 51, 57, f"{_AZURE}ND_H100_v5_results.md (51)"),
    _product("a100-80", 8192, "bf16", 253, 272, f"{_AZURE}ND_A100_v4_results.md (253.7, fp16); {_STAS} (271.2, best shape)"),
    _memory("a100-80", "memory_copy", 1610, f"{_AZURE}ND_A100_v4_results.md (BabelStream)"),
    _memory("a100-80", "memory_triad", 1700, f"{_AZURE}ND_A100_v4_results.md (BabelStream)"),
    _pinned("a100-80", 26.3, 26.3, f"{_AZURE}ND_A100_v4_results.md"),
)


def published_for(accelerator: str | None) -> tuple[Published, ...]:
    """Return the rows of one accelerator; none for a device that is in no catalog."""
    return tuple(row for row in PUBLISHED if row.accelerator == accelerator)
