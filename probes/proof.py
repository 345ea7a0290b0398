"""Proof of work: the program that is timed holds the work, is given honest inputs, and its output is right and there.

A right answer on small sizes is not enough: constants can be folded, unused results dropped, and work skipped at the real size
alone. So the compiled program is counted, its arguments are looked at, and rows of its own output are computed anew.
"""

from collections.abc import Mapping, Sequence
from math import sqrt
from typing import Any

from core.statistics import median
from probes.case import Case
from probes.precision import precision_doubt

LEAST_SHARE = 0.5
"""Of the FLOPs claimed that a compiled program must hold. Counts differ in padding and cheap operations, hoisting takes more."""
LOOKED_AT = 4096
"""Elements of one argument that are looked at, evenly spread."""
MOST_LATE = 0.2
LATE_NS = 50_000
"""What is open for less is the price of asking."""
DIGEST_TOLERANCE = {"fp32": 2e-3, "bf16": 1e-1}
"""Between two runtimes, relative to the norm of the output."""
ROW_WISE = {
    "matmul_chain": ("x",),
    "matmul_skinny": ("x",),
    "memory_copy": ("x",),
    "memory_triad": ("x", "b"),
}
"""Kernels whose rows of the output depend on the same rows of these inputs only."""
ROWS = 8
_STRIDE = 4093


def settle(output: object) -> None:
    """Wait until an output is there, by whatever means it offers; arrays that are there at once offer none."""
    thing: Any = output
    if hasattr(thing, "block_until_ready"):
        thing.block_until_ready()
    elif hasattr(thing, "result") and callable(thing.result):
        thing.result()
    elif getattr(thing, "is_cuda", False):
        thing.reshape(-1)[0].item()


def as_numpy(output: object) -> Any:
    """Return an array of a framework as numpy, images in canonical layout; None for what is no array."""
    import numpy as np

    thing: Any = output
    if hasattr(thing, "result") and callable(thing.result):
        thing = thing.result()
    if hasattr(thing, "asnumpy"):
        thing = thing.asnumpy()
        return np.moveaxis(thing, 1, -1) if thing.ndim == 4 else thing
    if hasattr(thing, "detach"):
        thing = thing.detach().cpu()
        thing = (thing.float() if thing.is_floating_point() else thing).numpy()
        return np.moveaxis(thing, 1, -1) if thing.ndim == 4 else thing
    if not hasattr(thing, "shape"):
        return None
    array = np.asarray(thing)
    return array if array.dtype.kind in "iu" or array.dtype == np.float32 else array.astype(np.float32)


def input_doubts(given: Mapping[str, Any]) -> list[str]:
    """Return what is wrong with arguments: zeros, constants, denormals, or what is not a number."""
    import numpy as np

    said: list[str] = []
    for name, array in given.items():
        flat = array.reshape(-1)
        seen = flat[:: max(1, flat.size // LOOKED_AT)][:LOOKED_AT]
        if seen.size < 2 or seen.dtype.kind != "f":
            continue
        zeros, tiny = _share(seen == 0), _share((seen != 0) & (abs(seen) < np.finfo(np.float32).tiny))
        if not np.isfinite(seen).all():
            said.append(f"quarantined: inputs: {name} is not finite")
        elif zeros > 0.5:
            said.append(f"quarantined: inputs: {zeros:.0%} of {name} are zero; data of a model are not")
        elif float(seen.max()) == float(seen.min()):
            said.append(f"quarantined: inputs: {name} is the constant {float(seen[0]):g}")
        elif tiny > 0.01:
            said.append(f"quarantined: inputs: {tiny:.0%} of {name} are denormal, which a processor handles apart")
    return said


def _share(true: Any) -> float:
    return float(true.mean())


def captured_doubt(constant_elements: int, argument_elements: int) -> list[str]:
    """Return what to say when a program holds its data as constants, which a compiler folds."""
    if constant_elements < 1024 or constant_elements < 0.5 * argument_elements:
        return []
    return [f"quarantined: captured: the compiled program holds {constant_elements} elements as constants, not as arguments"]


def work_doubt(counted: Sequence[tuple[int, float]], flop: int) -> str:
    """Return what to say when compiled programs hold less work than is claimed, else nothing.

    Args:
        counted: (depth, FLOPs in the program); two depths are held against each other, so that a frame does not count.
        flop: claimed for one copy.
    """
    with_copies = sorted(item for item in counted if item[0] > 0)
    if not with_copies or not flop:
        return ""
    (low, low_flop), (high, high_flop) = with_copies[0], with_copies[-1]
    held = (high_flop - low_flop) / (high - low) if high > low else high_flop / high
    if held >= LEAST_SHARE * flop:
        return ""
    share = max(held, 0.0) / flop
    return f"quarantined: work: one more copy holds {share:.0%} of the {flop} FLOPs claimed; folded, dropped or hoisted"


def row_doubts(case: Case, given: Mapping[str, Any], got: Any) -> list[str]:
    """Compute some rows of a kernel's output anew in float64, and say when the program that is timed gives others.

    Args:
        case: what the program runs.
        given: its arguments.
        got: its output.
    """
    import numpy as np

    from probes.backends.reference import ReferenceOps

    name = getattr(case.block, "__name__", "").rsplit(".", 1)[-1]
    if name not in ROW_WISE or not given or case.depth < 1:
        return []
    count = given["x"].shape[0]
    rows = sorted({round(place * (count - 1) / (ROWS - 1)) for place in range(ROWS)})
    wide = {key: (array[rows] if key in ROW_WISE[name] else array).astype(np.float64) for key, array in given.items()}
    x = wide["x"]
    for _ in range(case.depth):
        x = case.block.forward(ReferenceOps(False), {}, {**wide, "x": x}, case.sizes)
    if got.shape[:1] != (count,):
        return [f"quarantined: output: it has {got.shape[:1]} rows at the timed size; expected {count}"]
    scale = _root_mean_square(x) or 1.0
    error = _root_mean_square(got[rows].astype(np.float64) - x) / scale
    if not error <= 0.3:
        return [f"quarantined: output: at the timed size it is off by {error:.0%}; the program skips work"]
    terms = sqrt(case.depth) if name.startswith("matmul") else 1.0
    return precision_doubt(error / terms, case.dtype) if name.startswith("matmul") else []


def _root_mean_square(array: Any) -> float:
    return sqrt(float((array * array).mean()))


def traffic_doubt(case: Case, given: Mapping[str, Any], got: Any, element_bytes: float) -> list[str]:
    """Compare the bytes that a memory kernel claims to move with those that its arrays hold."""
    from probes.units import bytes_doubt

    name = getattr(case.block, "__name__", "").rsplit(".", 1)[-1]
    if name not in ("memory_copy", "memory_triad") or not given or case.depth < 1:
        return []
    kernel: Any = case.block
    claimed = float(kernel.traffic(case.sizes, element_bytes))
    held = sum(array.size for array in given.values()) + got.size
    said = bytes_doubt(claimed, held * element_bytes)
    return [said] if said else []


def wait_doubt(run_ns: Sequence[int], late_ns: Sequence[int]) -> list[str]:
    """Say when calls return before their output is there.

    Args:
        run_ns: what each call took.
        late_ns: what waiting for its output took after it had returned.
    """
    if not run_ns:
        return []
    ran, late = median(run_ns), median(late_ns)
    if late < LATE_NS or late < MOST_LATE * (ran + late):
        return []
    return [f"quarantined: unsynchronised: {late / (ran + late):.0%} of a call was still open when it returned"]


def digest_of(array: Any) -> tuple[float, ...]:
    """Return size, root mean square, and a random projection of an output, of the scale of its root mean square."""
    import numpy as np

    flat = array.reshape(-1).astype(np.float32, copy=False)
    generator = np.random.Generator(np.random.PCG64(_STRIDE))
    signs = generator.choice(np.array([-1, 1], np.float32), _STRIDE)
    whole = flat[: flat.size // _STRIDE * _STRIDE].reshape(-1, _STRIDE)
    rows = generator.choice(np.array([-1, 1], np.float32), whole.shape[0])
    rest = flat[whole.size :]
    total = float(rows @ (whole @ signs)) + float(rest @ signs[: rest.size])
    norm = sqrt(float(np.dot(flat, flat)))
    return (float(flat.size), norm / sqrt(flat.size), total / sqrt(flat.size))


def digest_doubts(digests: Mapping[str, tuple[float, ...]], dtype: str) -> dict[str, str]:
    """Compare the outputs of several runtimes at the timed size, and say which one stands apart.

    Args:
        digests: by runtime; an empty one is not compared.
        dtype: of the outputs.

    Returns:
        One phrase for each runtime that differs from what most give; with two that differ, both.
    """
    known = {name: digest for name, digest in digests.items() if digest}
    limit = DIGEST_TOLERANCE[dtype] if dtype in DIGEST_TOLERANCE else DIGEST_TOLERANCE["bf16"]

    def alike(a: tuple[float, ...], b: tuple[float, ...]) -> bool:
        scale = max(abs(a[1]), abs(b[1]), 1e-30)
        return a[0] == b[0] and abs(a[1] - b[1]) <= limit * scale and abs(a[2] - b[2]) <= 3 * limit * scale

    said: dict[str, str] = {}
    for name, own in known.items():
        others = [other for key, other in known.items() if key != name]
        if others and 2 * sum(alike(own, other) for other in others) < len(others):
            said[name] = "quarantined: output: at the timed size it differs from what the other runtimes give"
    return said
