"""PyTorch by hand, timed by `torch.utils.benchmark.Timer` with all threads of the process.

Source: https://docs.pytorch.org/docs/stable/benchmark_utils.html; `blocked_autorange` chooses the calls of a block by itself.
"""

from collections.abc import Callable, Sequence
from functools import reduce
from math import sqrt

import torch
from torch import nn
from torch.utils import benchmark

from bench.foreign.cases import HEAD_WIDTH, Case

VERSION = torch.__version__
TURNS = 4


def threads() -> int:
    """Return the threads of one operation."""
    return torch.get_num_threads()


def time_calls(steps: Sequence[Callable[[], object]], seconds: float) -> list[list[float]]:
    """Return seconds of a call for each block that the Timer takes, of the steps in turn, all of them for so long.

    Turns are short, so that a step finds caches and allocator as the other one left them, as it does in Tandem's worker.
    """
    timers = [benchmark.Timer("step()", globals={"step": step}, num_threads=torch.get_num_threads()) for step in steps]
    taken: list[list[float]] = [[] for _ in steps]
    for _ in range(TURNS):
        for timer, calls in zip(timers, taken, strict=True):
            calls.extend(timer.blocked_autorange(min_run_time=seconds / TURNS / len(timers)).times)
    return taken


def build(one: Case, copies: int) -> Callable[[], object]:
    """Return one step of so many copies of a case."""
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("highest")
    match one.kind:
        case "matmul":
            x, scale = torch.randn(one.side, one.side), 1 / sqrt(one.side)
            weights = [torch.randn(one.side, one.side) for _ in range(copies)]
            return _inferred(lambda: reduce(lambda y, w: torch.matmul(y, w) * scale, weights, x))
        case "scale" | "triad":
            return _inferred(_moving(one, copies))
        case "dense":
            stack = [part for _ in range(copies) for part in (nn.Linear(one.side, one.side), nn.ReLU())]
            return _layer(nn.Sequential(*stack), torch.randn(one.batch, one.side), one)
        case _:
            stack = [Layer(one.side) for _ in range(copies)]
            return _layer(nn.Sequential(*stack), torch.randn(one.batch, one.length, one.side), one)


def _moving(one: Case, copies: int) -> Callable[[], object]:
    """Return one pass over memory into a result that is there, or next to nothing for no copy."""
    x, y, result = (torch.randn(one.side // 4) if copies else torch.zeros(1) for _ in range(3))
    if not copies:
        return lambda: x
    if one.kind == "scale":
        return lambda: torch.mul(x, 3.0, out=result)
    return lambda: torch.add(x, y, alpha=3.0, out=result)


def _inferred(call: Callable[[], object]) -> Callable[[], object]:
    def step() -> object:
        with torch.inference_mode():
            return call()

    return step


def _layer(module: nn.Module, x: torch.Tensor, one: Case) -> Callable[[], object]:
    if not one.train:
        module.eval()
        return _inferred(lambda: module(x))
    optimizer = torch.optim.AdamW(module.parameters(), lr=1e-6)
    x.requires_grad_(not one.first)
    arriving = torch.randn_like(x) * 1e-2

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        x.grad = None
        module(x).backward(arriving)
        optimizer.step()

    return step


class Layer(nn.Module):
    """A pre-norm layer of GPT-2."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm_1, self.norm_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.heads = width // HEAD_WIDTH

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return (batch, length, width)."""
        batch, length, width = x.shape
        parts = self.qkv(self.norm_1(x)).split(width, dim=-1)
        query, key, value = (part.view(batch, length, self.heads, -1).transpose(1, 2) for part in parts)
        attended = nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(nn.functional.gelu(self.up(self.norm_2(x)), approximate="tanh"))
