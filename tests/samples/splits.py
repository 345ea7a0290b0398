"""Hand-made splits: uneven data parallelism of a GPU and a TPU pool, by arithmetic that a reader can do; and one that was run.

Alone, eight H100 take 10 s and sixteen v6e take 8 s for 1,024 samples, so together, without a link, 455 and 569 samples take
4.44 s. Both ways together 16 GB of gradients cross the link, in 16e9 / rate seconds; nothing of it is hidden.
"""

from dataclasses import replace

from core.advice import Verdict
from core.device import Link, Pool
from core.quantity import Quantity, log_normal
from core.split import Bar, BreakEven, Check, Curve, Move, Share, Single, Split, Verified

GPU = Pool("h100-sxm", 8, "gpu", 8 * 3.93, "aws us-east-1")
TPU = Pool("tpu-v6e", 16, "tpu", 16 * 2.70, "gcp us-east5", hosts=4)
BATCH, GPU_SAMPLES, TPU_SAMPLES = 1024, 455, 569
GPU_ALONE_S, TPU_ALONE_S = 10.0, 8.0
CROSSING_BYTES = 16e9
FAST, SLOW = 25e9, 1e9
"""Bytes a second: the split saves 36 % over the one, and loses by 156 % over the other."""
SIGMA = 0.15
HOSTILE = "<script>alert(1)</script> $x$ [a](javascript:b)"


def ideal_s(fraction: float) -> float:
    """Return seconds of a step without the link, the GPU pool having `fraction` of the samples."""
    return max(GPU_ALONE_S * fraction, TPU_ALONE_S * (1 - fraction))


def sample_split(rate: float = FAST, runtime: str = "jax", objective: str = "time") -> Split:
    """Return the split over a link of `rate` bytes a second."""
    fraction = GPU_SAMPLES / BATCH
    compute, crossing = ideal_s(fraction), CROSSING_BYTES / rate
    step = compute + crossing
    hourly = (GPU.price_usd_per_h or 0) + (TPU.price_usd_per_h or 0)
    singles = (_single(GPU, GPU_ALONE_S, runtime), _single(TPU, TPU_ALONE_S, runtime))
    saving = 1 - step / TPU_ALONE_S
    good = saving >= 0.2
    lanes = ("8 x h100-sxm", "16 x tpu-v6e")
    busy = (GPU_ALONE_S * fraction, TPU_ALONE_S * (1 - fraction))
    percent = f"{abs(saving):.0%}".replace("%", " %")
    return Split(
        "data",
        objective,
        "hybrid" if good else "single",
        saving,
        0.2,
        Link(1e-3, rate),
        log_normal(step, SIGMA, "datasheet", "pace of each pool", "link as given"),
        log_normal(1000 * step / 3600 * hourly, SIGMA, "datasheet"),
        None,
        (("compute", compute), ("communication", crossing)),
        (
            Share(GPU, runtime, fraction, GPU_SAMPLES, "samples", busy[0], step - busy[0], 60 * 2**30, "5 turns of 91"),
            Share(TPU, "", 1 - fraction, TPU_SAMPLES, "samples", busy[1], step - busy[1], None, "3 turns of 190"),
        ),
        (Move("gradients", lanes[0], lanes[1], CROSSING_BYTES, crossing, crossing),),
        (
            Bar(lanes[0], 0, busy[0], "compute", "455 samples"),
            Bar(lanes[1], 0, busy[1], "compute", "569 samples"),
            Bar(lanes[0], busy[0], step - 0.05, "wait", "waits for the other side's gradients"),
            Bar(lanes[1], busy[1], step - 0.05, "wait", "waits for the other side's gradients"),
            Bar("link", compute, step, "move", "gradients, both ways"),
            Bar(lanes[0], step - 0.05, step, "update", "AdamW"),
            Bar(lanes[1], step - 0.05, step, "update", "AdamW"),
        ),
        (_share_curve(crossing, fraction), _bandwidth_curve(compute, rate)),
        (
            BreakEven("bandwidth", "B/s", rate, 4.5e9, "Worth it from 36 Gbit/s on."),
            BreakEven("price", "USD/h", None, None, "No price turns the choice."),
        ),
        singles,
        singles[1],
        (("local", 4.5, "copies meet every 50 steps"), ("pipeline", None, "activations are too large for the link")),
        (Verdict("R109", "cross-vendor", "warn", "No collective spans NCCL and ICI", "https://openxla.org/xla", "2026-08-01"),),
        ("price of the link's traffic",),
        f"Split it: {percent} less time." if good else f"Use one pool: hybrid loses by {percent}.",
        "Both finish together, and the gradients cross in time." if good else "The gradients take longer than the work.",
    )


def sample_hostile_split() -> Split:
    """Return a split whose every text is markup."""
    whole = sample_split()
    return replace(
        whole,
        sentence=HOSTILE,
        why=HOSTILE,
        missing=(HOSTILE,),
        moves=tuple(replace(move, what=HOSTILE) for move in whole.moves),
        shares=tuple(replace(share, detail=HOSTILE) for share in whole.shares),
        timeline=tuple(replace(bar, lane=HOSTILE, what=HOSTILE) for bar in whole.timeline),
        others=(("local", None, HOSTILE),),
        break_even=(BreakEven("bandwidth", "Gbit/s", None, None, HOSTILE),),
        verdicts=tuple(replace(verdict, reason=HOSTILE, source=HOSTILE) for verdict in whole.verdicts),
    )


def sample_verified(ended: str = "") -> Verified:
    """Return what came of a run of two sides on one processor: 20 steps around 103 ms against 100 ms planned."""
    steps = tuple(0.103 + 0.001 * (index % 5 - 2) for index in range(20))
    return Verified(
        "data",
        ("jax on cpu:0", "torch-eager on cpu:0"),
        Quantity(0.090, 0.100, 0.111, "measured", ("each side's own pace",)),
        steps,
        (0.180, 0.210),
        (0.54, 0.46),
        (
            Bar("jax on cpu:0", 0, 0.080, "compute", "7 samples"),
            Bar("torch-eager on cpu:0", 0, 0.084, "compute", "6 samples"),
            Bar("link", 0.084, 0.098, "move", "gradients"),
            Bar("jax on cpu:0", 0.080, 0.098, "wait", "waits for gradients"),
            Bar("jax on cpu:0", 0.098, 0.103, "update", "AdamW"),
        ),
        (Check("gradients of the first step", 2e-6, 1e-4), Check("weights after 3 steps", 3e-3, 1e-3)),
        tuple(4.0 - 0.1 * index for index in range(20)),
        Link(2e-4, 1.25e8),
        ended,
    )


def _single(pool: Pool, seconds: float, runtime: str) -> Single:
    price = (pool.price_usd_per_h or 0) / 3600
    cost = log_normal(1000 * seconds * price, SIGMA, "datasheet")
    return Single(pool, runtime, log_normal(seconds, SIGMA, "datasheet"), cost, None, True)


def _share_curve(crossing: float, now: float) -> Curve:
    places = sorted({*(i / 32 for i in range(33)), now, 4 / 9})
    points = [(x, ideal_s(x) + (crossing if 0 < x < 1 else 0)) for x in places]
    break_even = 1 - (TPU_ALONE_S - crossing) / TPU_ALONE_S if crossing < TPU_ALONE_S - ideal_s(4 / 9) else None
    return Curve("share", tuple(points), now, 4 / 9, break_even, TPU_ALONE_S)


def _bandwidth_curve(compute: float, rate: float) -> Curve:
    rates = sorted({*(1e8 * 10 ** (i / 10) for i in range(31)), rate})
    points = tuple((one, compute + CROSSING_BYTES / one) for one in rates)
    return Curve("bandwidth", points, rate, None, CROSSING_BYTES / (TPU_ALONE_S - compute), TPU_ALONE_S)
