"""Deliberately faulty kernels, one file a framework: each makes one mistake that benchmarks of the field have made.

A file offers `RUNTIME`, `KINDS` and `open_faulty(kind)`, a real backend whose timed program makes that mistake while its small
answer is right, so that only the gates on the program itself can see it. The kind `honest` makes none.
"""

from concurrent.futures import Future, ThreadPoolExecutor
from math import sqrt
from typing import Any

from probes.case import Case, Program

SLOWER_EACH_CALL = 1.15
"""Five times slower over twelve samples: a chip that overheats falls as far, and it must show beside neighbours."""
MOST_REPEATS = 40


def is_chain(case: Case) -> bool:
    """Whether a case is the kernel that the faults are made of; the frame and memory kernels stay as they are."""
    return str(getattr(case.block, "__name__", "")).endswith("matmul_chain")


def factor(case: Case) -> float:
    """Return what each product of the chain is scaled by."""
    side = case.sizes["n"]
    assert isinstance(side, int)
    return 1 / sqrt(side)


def returns_early(program: Program) -> Program:
    """Return a program that hands out a promise of its output and does not wait for it."""
    threads = ThreadPoolExecutor(1)

    def run() -> Future[object]:
        return threads.submit(program.run)

    return Program(run, program.compiles, threads.shutdown, program.arguments)


def slows_down(program: Program) -> Program:
    """Return a program that takes longer call by call, as on a chip whose clock falls: it repeats its work more and more."""
    calls = 0

    def run() -> object:
        nonlocal calls
        calls += 1
        for _ in range(min(MOST_REPEATS, round(SLOWER_EACH_CALL**calls))):
            program.run()
        return program.run()

    return Program(run, program.compiles, program.close, program.arguments)


def zeroed(inputs: dict[str, Any]) -> dict[str, Any]:
    """Return the inputs, times zero."""
    return {name: array * 0 for name, array in inputs.items()}
