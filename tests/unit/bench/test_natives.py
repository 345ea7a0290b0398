"""The natives of the bench: every model builds, steps, and is the model that its workload document describes."""

import json
import math
import os
import subprocess
from pathlib import Path

import pytest

import intake
from bench.native.cases import CASES, case, tiny
from bench.native.cases import RUNTIMES as NATIVES
from bench.native.documents import document
from core.probe import Runtime
from tests.here import RUNTIMES

REPOSITORY = Path(__file__).resolve().parents[3]
FAMILIES = tuple({one.family: one for one in CASES if one.trains or one.family == "vit"}.values())
"""One case of each family."""
LARGE = ("resnet50", "mobilenet_v2", "unet", "bert")
"""Families that are stepped in PyTorch and TensorFlow only: elsewhere they take long to compile, or to call."""
STEPPED_IN_XLA = ("gpt2", "dlrm")
"""One with tied weights and one with several tables: its compiler takes seconds for each."""
UNOPTIMISED = {"XLA_FLAGS": "--xla_backend_optimization_level=0"}
"""Half of what XLA takes are passes over machine code; the model is the same without them."""

PROGRAM = """
import json, sys
from bench.native.cases import case, tiny
from bench.native.run import build, set_environment
runtime, names, stepped = sys.argv[1], sys.argv[2].split(","), sys.argv[3].split(",")
set_environment(runtime)
answer = {}
for name in names:
    native = build(tiny(case(name)), runtime)
    answer[name] = [native.parameter_count, [native.step(), native.step()] if name in stepped else []]
print(json.dumps(answer))
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "runtime", [r for r in RUNTIMES if r.id in ("jax", "torch-eager", "tf-graph", "keras-torch", "torch-xla", "mxnet")],
    ids=lambda runtime: runtime.id,
)
def test_every_native_is_the_model_of_its_document_and_steps_to_finite_numbers(runtime: Runtime) -> None:
    """Takes up to half a minute: a process imports a framework, and builds and compiles a model of each family."""
    names = [one.name for one in FAMILIES]
    stepped = [one.name for one in FAMILIES if _is_stepped(one.family, runtime.id)]
    done = subprocess.run([runtime.interpreter, "-c", PROGRAM, runtime.id, ",".join(names), ",".join(stepped)], cwd=REPOSITORY,
                          env=os.environ | UNOPTIMISED, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    answer = json.loads(done.stdout.splitlines()[-1])
    for name in names:
        workload = intake.read_document(document(tiny(case(name)), runtime.id))
        count, values = answer[name]
        assert count == workload.parameter_count, name
        assert all(math.isfinite(value) for value in values), name
    for name in stepped:
        if case(name).trains:
            first, second = answer[name][1]
            assert second != first, f"{name} does not learn"


def _is_stepped(family: str, runtime: str) -> bool:
    if runtime == "torch-xla":
        return family in STEPPED_IN_XLA
    return runtime in ("torch-eager", "tf-graph", "mxnet") or family not in LARGE


@pytest.mark.parametrize("one", CASES, ids=lambda one: one.name)
def test_every_case_is_a_workload_in_every_runtime(one) -> None:
    for runtime in NATIVES:
        workload = intake.read_document(document(one, runtime))
        assert (workload.trains, workload.batch, workload.dtype) == (one.trains, one.batch, "fp32")


def test_only_two_models_are_built_differently_by_the_frameworks() -> None:
    different = {one.family for one in CASES if len({json.dumps(document(one, runtime)) for runtime in NATIVES}) > 1}
    assert different == {"resnet50", "lstm"}
