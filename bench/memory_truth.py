"""Memory that the picture of a model tells, against what its framework really allocates on the processor.

Each model is made with small sizes, run for real in PyTorch under its profiler, and every allocation and release that it reports
is added up; the greatest sum is the truth. Beside it stands what Tandem's liveness analysis says of the same model read as a
`config.json`, at the same batch, length and dtype. Parameters are not counted, their gradients are.

What a kernel allocates and releases again before it returns is no tensor, and is its library's own (oneDNN sets aside memory for
convolutions by processor and number of threads): it is left out of the truth, and told beside it as what the peak has more.
Both sides use torch's kernels for the processor, which attend with dropout, with a mask that is trained or with fewer heads of
keys only in parts, and scan token by token; Tandem tells a user what one kernel of an accelerator does.

Bounds, all of which must hold for exit 0: at least twenty models; of each the forward pass without gradients and the training
step are within 10 % of the truth. Beside it, not judged, stands what tensors held: without what a kernel allocates and releases
again before it returns. The models are read for `kernels: processor`, since PyTorch fuses less there than on accelerators, whose
kernels are what people are told of unless they say otherwise.

Run: `python -m bench.memory_truth [--json] [--only NAME]`.
"""

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from itertools import accumulate
from typing import Any

from bench.memory_models import BATCH, LENGTH, MODELS, inputs_of

BOUND, FEWEST = 0.10, 20


@dataclass(frozen=True, slots=True)
class Row:
    """One model in one mode; bytes.

    Args:
        model, mode: which.
        truth: the most that was held at a time.
        tensors: the same without what kernels hold for themselves while they run.
        told: by the liveness analysis.
    """

    model: str
    mode: str
    truth: int
    tensors: int
    told: int

    @property
    def off(self) -> float:
        """What is told over the truth, less one."""
        return self.told / self.truth - 1

    @property
    def off_tensors(self) -> float:
        """The same, of what tensors held; it is told beside, and not judged."""
        return self.told / self.tensors - 1


def kernels_of(work: Callable[[], object]) -> frozenset[str]:
    """Return the names of the operations that torch's dispatcher runs during some work, those that fall into others not."""
    from torch.utils._python_dispatch import TorchDispatchMode

    names: set[str] = set()

    class Names(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            names.add(func.name().partition(".")[0])
            return func(*args, **(kwargs or {}))

    with Names():
        work()
    return frozenset(names)


def peaks_allocated(work: Callable[[], object], kernels: frozenset[str]) -> tuple[int, int]:
    """Return the greatest sum of bytes that torch allocated on the processor and had not yet released during some work.

    The first is of tensors alone: without what one kernel allocates and releases again before it returns.

    Args:
        work: that is done.
        kernels: names of the operations that it runs.
    """
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as seen:
        kept = work()
    del kept
    events: Any = seen.profiler
    changes: list[tuple[int, int, int, int]] = []

    def gather(nodes: Any, kernel: int) -> None:
        for node in nodes:
            if hasattr(node.extra_fields, "alloc_size"):
                changes.append((node.start_time_ns, node.extra_fields.ptr, node.extra_fields.alloc_size, kernel))
            gather(node.children, kernel or (node.id if node.name in kernels else 0))

    gather(events.kineto_results.experimental_event_tree(), 0)
    changes.sort()
    whole = [size for _, _, size, _ in changes]
    made: dict[int, tuple[int, int]] = {}  # where memory lies: the change that allocated it, and the kernel
    tensors = list(whole)
    for at, (_, place, size, kernel) in enumerate(changes):
        if size > 0:
            made[place] = (at, kernel)
        elif place in made:
            start, maker = made.pop(place)
            if maker and maker == kernel:
                tensors[start] = tensors[at] = 0
    return max(accumulate(tensors)), max(accumulate(whole))


def measured(name: str, config: dict[str, Any]) -> list[Row]:
    """Return the rows of one model."""
    import torch
    import transformers

    from core.picture import greatest
    from core.symbols import value_of
    from intake.files import read_model_file

    known = transformers.AutoConfig.for_model(**config)
    known.use_cache = False  # keys and values are told apart from the activations
    model = getattr(transformers, name)(known)
    rows: list[Row] = []
    asked = {"batch": BATCH, "length": LENGTH, "dtype": "fp32", "kernels": "processor"}
    text = json.dumps({**config, "architectures": [name]}).encode()
    picture = read_model_file(text, "config.json", options=asked).picture
    values = picture.values(batch=BATCH, length=LENGTH, word=4)
    given = value_of(picture.inputs, values)
    inputs, labels = inputs_of(model, known)

    def infer() -> object:
        with torch.no_grad():
            return model(**inputs)

    def train() -> object:
        made = model(**inputs, **labels)
        loss = made.loss if made.loss is not None else made.logits.sum()
        loss.backward()
        return made

    def row_of(mode: str, work: Callable[[], object], told: int) -> Row:
        kernels = kernels_of(work)
        model.zero_grad(set_to_none=True)
        tensors, whole = peaks_allocated(work, kernels)
        return Row(name, mode, whole, tensors, told)

    model.eval()
    rows.append(row_of("forward", infer, greatest(picture.peak_forward, values)))
    model.train()
    rows.append(row_of("training", train, greatest(picture.peak_step, values)))
    assert given > 0
    return rows


def verdict(rows: Sequence[Row], models: int) -> tuple[bool, str]:
    """Return whether every bound holds, and the closing line."""
    off = [row for row in rows if abs(row.off) > BOUND]
    worst = max(rows, key=lambda row: abs(row.off), default=None)
    told = f"{len(rows) - len(off)} of {len(rows)} within {BOUND:.0%} over {models} models"
    told += f" ({sum(abs(row.off_tensors) <= BOUND for row in rows)} without what kernels hold for themselves)"
    if worst is not None:
        told += f"; worst {worst.model} {worst.mode} {worst.off:+.1%}"
    held = not off and models >= FEWEST
    return held, f"{'HOLDS' if held else 'FALLS SHORT'}: {told}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; exit 0 when every bound holds, else 1."""
    parser = argparse.ArgumentParser(prog="python -m bench.memory_truth", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", action="store_true", help="one JSON document in place of the table")
    parser.add_argument("--only", action="append", choices=list(MODELS), metavar="NAME", help="this one alone")
    asked = parser.parse_args(arguments)
    names = asked.only or list(MODELS)
    rows = [row for name in names for row in measured(name, MODELS[name])]
    held, said = verdict(rows, len(names))
    if asked.json:
        plain = [{**asdict(row), "off": row.off} for row in rows]
        print(json.dumps({"schema_version": 1, "holds": held, "rows": plain, "verdict": said}))
        return 0 if held else 1
    print(f"{'model':32} {'mode':9} {'truth MB':>9} {'told MB':>9} {'off':>7} {'of tensors':>11}")
    for row in rows:
        print(f"{row.model:32} {row.mode:9} {row.truth / 1e6:9.2f} {row.told / 1e6:9.2f} {row.off:+7.1%} "
              f"{row.off_tensors:+11.1%}")
    print("\n" + said)
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
