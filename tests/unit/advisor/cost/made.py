"""Runs that were never measured: a known truth over the roofline, by which a fit can be held to account."""

from dataclasses import replace

import numpy as np

import catalog
from advisor.cost import Observation, columns_of, silicon_of
from advisor.cost.fitting import baseline_of
from advisor.cost.silicon import Silicon
from core.sketch import TRAINING, Layout, Setup, Sketch

PLAIN = Sketch(
    "8B", "decoder", linear_flop=1.4e10, head_flop=1e9, attention_flop=5.2e5, vector_elements=4e6, logits=1.28e5,
    parameters=8e9, layers=32, width=4096, head_width=128, hidden=14336, cached_elements=65536, kernels=480, causal=True,
)  # fmt: skip
CHIPS, STACKS = ("h100-sxm", "a100-80", "tpu-v5p"), ("torch/nemo", "jax/maxtext")


def silicon(key: str = "h100-sxm", dtype: str = "bf16") -> Silicon:
    found = silicon_of(catalog.accelerator(key), dtype)
    assert isinstance(found, Silicon)
    return found


def run(key: str = "h100-sxm", stack: str = "torch/nemo", chips: int = 8, batch: float = 64, **more: object) -> Setup:
    made = Setup(PLAIN, TRAINING, key, chips, stack, "bf16", batch, 4096.0, layout=Layout(data=chips), year=2025.0)
    return replace(made, **more)  # pyright: ignore[reportArgumentType]


def baseline_s(setup: Setup) -> float:
    return float(baseline_of(columns_of([(setup, silicon(setup.accelerator, setup.dtype))]), training=True).seconds[0])


def published(
    sources: int, each: int, seed: int, *, common: float = 0.05, own: float = 0.05, truth: dict[str, float] | None = None
) -> list[Observation]:
    """Return runs whose ln(time / roofline) is 0.3 and what `truth` says of their chip and stack, with errors of known size."""
    random = np.random.default_rng(seed)
    found: list[Observation] = []
    for source in range(sources):
        shared = common * random.standard_normal()
        for _ in range(each):
            setup = run(
                str(random.choice(CHIPS)), str(random.choice(STACKS)), int(random.choice([8, 16, 32])),
                float(random.choice([64, 128, 256])),
            )  # fmt: skip
            shift = 0.3 + sum((truth or {}).get(label, 0.0) for label in (setup.accelerator, setup.stack))
            seconds = baseline_s(setup) * np.exp(shift + shared + own * random.standard_normal())
            found.append(Observation(setup, silicon(setup.accelerator), float(seconds), f"source {source}"))
    return found
