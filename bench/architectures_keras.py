"""Does Tandem read every model of keras.applications as Keras itself counts it?

Each model is built in a process of its own (Keras on torch, random weights), saved as `.keras` and as legacy `.h5`, counted by
Keras (trainable weights and others, equal to `count_params` together) and by torch's FlopCounterMode over one forward pass of one
image on the CPU; a side that a model leaves open is 224 pixels, as the reader takes it. NASNet, which Keras has not on torch,
is built on JAX, and the products and convolutions of what JAX traces are counted. Then each file is read by our readers, in a
process that imports no framework.

Bounds, all of which must hold for exit 0, for every model and both files: parameters exactly equal, trainable and not; FLOPs of
matrix products and convolutions within 1 % of FlopCounterMode; reading in at most 10 s and 2 GB; no note of a disagreement.
FlopCounterMode counts nothing else than matrix products, convolutions and attention, so elementwise work is not compared.

Run: `python -m bench.architectures_keras [--only NAME] [--small] [--json]`. It needs about 3 GB of room in the temporary folder.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from math import prod
from pathlib import Path
from typing import Any, cast

from core.graph import Graph
from core.graph_json import graph_from_json
from core.ops import Op
from core.symbols import value_of
from intake.readers import hdf5, keras
from intake.source import PathSource

REPOSITORY = Path(__file__).resolve().parent.parent
NAMES = (
    "ConvNeXtTiny", "ConvNeXtSmall", "ConvNeXtBase", "ConvNeXtLarge", "ConvNeXtXLarge", "DenseNet121", "DenseNet169",
    "DenseNet201", *(f"EfficientNetB{size}" for size in range(8)),
    *(f"EfficientNetV2{size}" for size in ("B0", "B1", "B2", "B3", "S", "M", "L")), "InceptionResNetV2", "InceptionV3",
    "MobileNet", "MobileNetV2", "MobileNetV3Large", "MobileNetV3Small", "NASNetLarge", "NASNetMobile", "ResNet50", "ResNet101",
    "ResNet152", "ResNet50V2", "ResNet101V2", "ResNet152V2", "VGG16", "VGG19", "Xception",
)  # fmt: skip
SMALL = ("ConvNeXtTiny", "DenseNet121", "EfficientNetB0", "EfficientNetV2B0", "InceptionV3", "InceptionResNetV2", "MobileNet",
    "MobileNetV2",
         "MobileNetV3Small", "NASNetMobile", "ResNet50", "ResNet50V2", "VGG16", "Xception")  # fmt: skip
COUNTED = ("matmul", "conv", "attention")
JAX_ONLY = ("NASNetLarge", "NASNetMobile")
OPEN_SIDE = 224
MOST_OFF, MOST_S, MOST_BYTES = 0.01, 10.0, 2 * 10**9


@dataclass(frozen=True, slots=True)
class Row:
    """One model, read from one file.

    Args:
        name, suffix: of the model and the file.
        trained, stored: parameters as read.
        wanted_trained, wanted_stored: as Keras counts them.
        flop: of products and convolutions, as read.
        wanted_flop: as FlopCounterMode counts them.
        nodes: operations.
        seconds: of reading.
        peak_bytes: of the process that read.
        notes: of the reader.
    """

    name: str
    suffix: str
    trained: int
    stored: int
    wanted_trained: int
    wanted_stored: int
    flop: int
    wanted_flop: int
    nodes: int
    seconds: float
    peak_bytes: int
    notes: tuple[str, ...]

    @property
    def off(self) -> float:
        """Relative error of the FLOPs."""
        return abs(self.flop - self.wanted_flop) / self.wanted_flop

    @property
    def exact(self) -> bool:
        """Whether the parameters are those that Keras counts, trained and not."""
        return (self.trained, self.stored) == (self.wanted_trained, self.wanted_stored)

    @property
    def holds(self) -> bool:
        """Whether every bound does."""
        quick = self.seconds <= MOST_S and self.peak_bytes <= MOST_BYTES
        return (
            self.exact
            and quick
            and self.off <= MOST_OFF
            and not any("disagree" in note or "states" in note for note in self.notes)
        )


def counted(graph: Graph) -> tuple[int, int, int]:
    """Return (trained, stored, FLOPs of what FlopCounterMode counts) of a graph at its symbols' values."""
    values = dict(graph.symbols)
    sizes = {role: sum(prod(value_of(one, values) for one in tensor.shape) for tensor in graph.tensors if tensor.role == role)
             for role in ("parameter", "constant")}  # fmt: skip
    kept = (node for node in graph.nodes if node.kind in COUNTED)
    flop = sum(Op(node.kind, tuple(value_of(one, values) for one in node.dims), "fp32").flop for node in kept)
    return sizes["parameter"], sizes["constant"], flop


def read_file(path: Path) -> dict[str, object]:
    """Read one file and return what was counted; runs in a process of its own."""
    began = time.perf_counter()
    graph = graph_from_json((keras if path.suffix == ".keras" else hdf5).read(PathSource(path), {}))
    seconds = time.perf_counter() - began
    assert isinstance(graph, Graph)
    trained, stored, flop = counted(graph)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {"trained": trained, "stored": stored, "flop": flop, "nodes": len(graph.nodes), "seconds": seconds, "peak_bytes": peak,
            "notes": graph.notes}  # fmt: skip


def run(model: Any, shape: Sequence[int]) -> int:
    """Return the FLOPs that torch's FlopCounterMode sees in one forward pass."""
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        model(torch.zeros(list(shape)), training=False)
    return counter.get_total_flops()


def traced(model: Any, shape: Sequence[int]) -> int:
    """Return the FLOPs of the products and convolutions in what JAX traces of a model: two for a multiply-add."""
    import jax

    equations = list(jax.make_jaxpr(lambda image: model(image, training=False))(jax.numpy.zeros(shape)).eqns)
    total = 0
    for equation in equations:
        inner = [value for value in equation.params.values() if hasattr(value, "eqns") or hasattr(value, "jaxpr")]
        equations += [one for value in inner for one in getattr(value, "jaxpr", value).eqns]  # calls within calls are walked too
        if equation.primitive.name == "conv_general_dilated":
            kernel = equation.invars[1].aval
            out = kernel.shape[equation.params["dimension_numbers"].rhs_spec[0]]
            total += 2 * prod(equation.outvars[0].aval.shape) * prod(kernel.shape) // out
        elif equation.primitive.name == "dot_general":
            axes = equation.params["dimension_numbers"][0][0]
            total += 2 * prod(equation.outvars[0].aval.shape) * prod(equation.invars[0].aval.shape[axis] for axis in axes)
    return total


def make(name: str, folder: Path) -> dict[str, int]:
    """Build a model, save it twice and count it; runs in a process of its own."""
    import keras as framework

    model = getattr(framework.applications, name)(weights=None)
    model.save(folder / f"{name}.keras")
    model.save(folder / f"{name}.h5")
    shape = [1, *(OPEN_SIDE if one is None else one for one in model.inputs[0].shape[1:])]
    flop = traced(model, shape) if framework.backend.backend() == "jax" else run(model, shape)
    trained, stored = (sum(prod(one.shape) for one in group) for group in (model.trainable_weights, model.non_trainable_weights))
    assert trained + stored == model.count_params()
    return {"trained": trained, "stored": stored, "flop": flop}


def _child(*arguments: str) -> Mapping[str, object]:
    environment = {**os.environ, "KERAS_BACKEND": "jax" if any(one in JAX_ONLY for one in arguments) else "torch"}
    command = [sys.executable, "-W", "ignore", "-m", "bench.architectures_keras", *arguments]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False, env=environment)
    if done.returncode:
        raise RuntimeError(f"{' '.join(arguments)}: {done.stderr[-400:]}")
    return cast("Mapping[str, object]", json.loads(done.stdout.splitlines()[-1]))


def rows_of(name: str) -> list[Row]:
    """Return the rows of one model.

    Args:
        name: of a function of keras.applications.

    Raises:
        RuntimeError: a process that failed.
    """
    found: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        wanted = cast("Mapping[str, int]", _child("--make", name, "--folder", folder))
        for suffix in (".keras", ".h5"):
            held = dict(_child("--read", str(Path(folder) / f"{name}{suffix}")))
            notes = tuple(cast("Sequence[str]", held.pop("notes")))
            numbers = cast("Mapping[str, int]", held)
            found.append(Row(name, suffix, wanted_trained=wanted["trained"], wanted_stored=wanted["stored"],
                wanted_flop=wanted["flop"],
                             notes=notes, **numbers))  # fmt: skip
    return found


def table(rows: Sequence[Row]) -> str:
    """Return the rows as text."""
    heads = f"{'model':<20}{'file':<8}{'parameters':>13}{'not trained':>13}{'GFLOP':>9}{'off':>9}"
    lines = [f"{heads}{'operations':>12}{'s':>7}{'MB':>6}"]
    lines += [
        f"{row.name:<20}{row.suffix:<8}{row.trained + row.stored:>13,}{row.stored:>13,}{row.flop / 1e9:>9.3f}{row.off:>9.4%}"
        f"{row.nodes:>12}{row.seconds:>7.2f}{row.peak_bytes / 1e6:>6.0f}"
        f"{'' if row.holds else '  FALLS SHORT ' + '; '.join(row.notes)[:120]}"
        for row in rows
    ]
    return "\n".join(lines)


def main() -> int:
    """Run, print the table and the verdict; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", choices=NAMES, metavar="NAME", help="one model; may be repeated")
    parser.add_argument("--small", action="store_true", help="the smallest model of each family")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    for hidden in ("--make", "--folder", "--read"):
        parser.add_argument(hidden, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.make or options.read:
        print(json.dumps(make(options.make, Path(options.folder)) if options.make else read_file(Path(options.read))))
        return 0
    rows: list[Row] = []
    for name in options.only or (SMALL if options.small else NAMES):
        rows += rows_of(name)
        print(table(rows[-2:]).partition("\n")[2], file=sys.stderr, flush=True)
    held = sum(row.holds for row in rows)
    verdict = (f"{held} of {len(rows)} files of {len(rows) // 2} models hold every bound: parameters exact in "
               f"{sum(row.exact for row in rows)}, FLOPs off by at most "
               f"{max(row.off for row in rows):.4%}, read in at most {max(row.seconds for row in rows):.2f} s and "
               f"{max(row.peak_bytes for row in rows) / 1e6:.0f} MB")  # fmt: skip
    print(json.dumps({"schema_version": 1, "rows": [asdict(row) for row in rows], "verdict": verdict}) if options.json
          else f"{table(rows)}\n{verdict}")  # fmt: skip
    return 0 if held == len(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
