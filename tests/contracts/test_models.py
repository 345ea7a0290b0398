"""A model divided over frameworks is one model: every runtime gives the loss and the gradients of the float64 reference.

Each runtime has a process of its own, as when a plan is run. `torch-compile` and `tf-xla` run the same models through one flag of
their frameworks; their compilers take as long as all of this, and `test_runtimes_agree.py` holds their layers to the reference.
"""

import os
import pickle
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from intake import read_document
from probes.backends.reference import ReferenceOps
from probes.environment import ROOT, worker_environment
from probes.model import Part, Piece, batch_of, cut, model_of, parameter_count, slots_of, tables_first, weights_of
from probes.model_flat import stretches
from probes.model_wiring import Wiring
from tests.here import RUNTIMES

pytestmark = pytest.mark.slow

FAMILIES: dict[str, dict[str, Any]] = {
    "gpt2-small": {"model": {"layers": 1, "width": 16, "heads": 2, "vocabulary": 40, "positions": 8}, "length": 6},
    "llama-3-8b": {
        "model": {"layers": 2, "width": 16, "heads": 2, "kv_heads": 1, "hidden": 24, "vocabulary": 40},
        "length": 6,
    },
    "bert-base": {"model": {"layers": 1, "width": 16, "heads": 2, "vocabulary": 40, "positions": 8}, "length": 6},
    "vit-b16": {"model": {"layers": 1, "width": 16, "heads": 2, "patch": 4, "classes": 5}, "image": 8},
    "resnet-50": {"model": {"depths": [2], "channels": [16], "stem_channels": 8, "classes": 5}, "image": 16},
    "mobilenet-v2": {
        "model": {
            "expansions": [1, 3],
            "channels": [4, 6],
            "depths": [1, 2],
            "strides": [1, 2],
            "stem_channels": 8,
            "features": 12,
            "classes": 5,
        },
        "image": 16,
    },
    "unet": {"model": {"base_channels": 4, "depth": 1, "classes": 3}, "image": 8},
    "lstm-lm": {"model": {"layers": 1, "width": 8, "vocabulary": 30}, "length": 5},
    "dlrm-small": {"model": {"bottom": [8, 4], "tables": 3, "rows": 20, "per_bag": 2, "top": [8, 6]}},
    "mlp": {"model": {"inputs": 12, "hidden": [16, 8], "classes": 5}},
}
"""One tiny model of each family."""
IDS = ("jax", "torch-eager", "torch-xla", "tf-graph")
HERE = {runtime.id: runtime for runtime in RUNTIMES if runtime.id in IDS}
COMPILED_SLOWLY = {
    "jax": ("gpt2-small", "llama-3-8b", "vit-b16", "resnet-50", "unet", "lstm-lm", "dlrm-small", "mlp"),
    "torch-xla": ("mlp", "vit-b16"),
}
"""Runtimes that are held to these only; the wiring is the same code for all."""
PAIR = tuple(name for name in ("jax", "torch-eager", "tf-graph") if name in HERE)
UNOPTIMISED = {"XLA_FLAGS": "--xla_backend_optimization_level=0", "OMP_NUM_THREADS": "1", "TF_CPP_MIN_LOG_LEVEL": "3"}
SEED, BATCH = 5, 4


class Host:
    """A process of one runtime."""

    def __init__(self, runtime: str, home: Path) -> None:
        environment = worker_environment(runtime, "cpu", os.environ, home, "") | UNOPTIMISED
        self.errors = (home / f"{runtime}.txt").open("wb")
        self.process = subprocess.Popen(
            [HERE[runtime].interpreter, "-m", "tests.contracts.model_host", runtime],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
        )

    def send(self, name: str, method: str, *given: Any, **named: Any) -> None:
        assert self.process.stdin is not None
        pickle.dump((name, method, given, named), self.process.stdin)
        self.process.stdin.flush()

    def receive(self) -> Any:
        assert self.process.stdout is not None
        return pickle.load(self.process.stdout)

    def call(self, name: str, method: str, *given: Any, **named: Any) -> Any:
        self.send(name, method, *given, **named)
        return self.receive()

    def open(self, part: Part, optimizer: str = "sgd", dtype: str = "fp32", seed: int = SEED, **named: Any) -> str:
        refusal = self.call("model", "open", part, optimizer, dtype, seed, **named)
        assert refusal is None, refusal
        return "model"

    def close(self) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        assert self.process.wait(60) == 0, Path(self.errors.name).read_text()[-2000:]
        self.process.stdout.close()
        self.errors.close()


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Host]]:
    """All processes at once, so that they start side by side."""
    home = tmp_path_factory.mktemp("models")
    opened = {runtime: Host(runtime, home) for runtime in HERE}
    yield opened
    for host in opened.values():
        host.close()


def family(name: str, batch: int = BATCH) -> tuple[Piece, ...]:
    changed = FAMILIES[name]
    model = {"preset": name} | changed["model"]
    return model_of(read_document({"schema": 1, "task": "train", "batch": batch} | changed | {"model": model}).blocks, batch)


class Reference:
    """Loss and its slope in float64, by central differences along one direction; no one's autograd."""

    def __init__(self, pieces: tuple[Piece, ...], data: dict[str, Any]) -> None:
        self.wiring = Wiring(Part(pieces))
        self.data = {name: array.astype(np.float64) if array.dtype.kind == "f" else array for name, array in data.items()}
        self.layout = stretches(self.wiring.slots)
        self.weights = np.concatenate([array.ravel() for _, array in weights_of(Part(pieces), SEED)]).astype(np.float64)
        self.direction = np.random.default_rng(0).standard_normal(self.weights.size)

    def output(self, weights: Any, training: bool = True) -> Any:
        bound: dict[str, Any] = {slot.key: (slot.layer, {}) for slot in self.wiring.slots}
        for at in self.layout:
            bound[at.slot.key][1][at.array] = weights[at.start : at.stop].reshape(at.shape)
        return self.wiring.forward(ReferenceOps(training), bound, self.data)

    def slope(self) -> float:
        step = 1e-6
        higher, lower = (self.output(self.weights + sign * step * self.direction) for sign in (1, -1))
        return float(higher - lower) / (2 * step)


def apart(got: Any, expected: Any) -> float:
    """Distance of two vectors, relative to the length of the second."""
    return float(np.linalg.norm(got - expected) / np.linalg.norm(expected))


def named(pieces: tuple[Piece, ...], flat: Any) -> dict[str, Any]:
    return {f"{at.slot.key}_{at.array}": flat[at.start : at.stop] for at in stretches(slots_of(pieces))}


def ask(hosts: Iterable[Host], method: str, *given: Any, **named: Any) -> list[Any]:
    """Return what each process answers; all work at once."""
    asked = list(hosts)
    for host in asked:
        host.send("model", method, *given, **named)
    return [host.receive() for host in asked]


@pytest.mark.parametrize("name", FAMILIES)
def test_every_runtime_gives_the_loss_and_the_gradient_of_the_reference(hosts: dict[str, Host], name: str) -> None:
    pieces = family(name)
    data = batch_of(pieces, BATCH, SEED)
    reference = Reference(pieces, data)
    held = [host for runtime, host in hosts.items() if name in COMPILED_SLOWLY.get(runtime, (name,))]
    assert not any(ask(held, "open", Part(pieces), "sgd", "fp32", SEED))
    losses = ask(held, "run", data, 0.5)
    assert losses == pytest.approx([float(reference.output(reference.weights))] * len(held), rel=1e-5)
    gradients = ask(held, "gradients")
    slopes = [2 * float(flat.astype(np.float64) @ reference.direction) for flat in gradients]
    assert slopes == pytest.approx([reference.slope()] * len(held), rel=1e-3, abs=1e-4)
    assert max(apart(flat, gradients[0]) for flat in gradients) < 1e-4


@pytest.mark.parametrize("name", ["vit-b16", "dlrm-small", "mlp"])
def test_every_runtime_infers_what_the_reference_does(hosts: dict[str, Host], name: str) -> None:
    pieces = family(name)
    data = batch_of(pieces, BATCH, SEED)
    reference = Reference(pieces, data)
    expected = reference.output(reference.weights, training=False)
    held = [host for runtime, host in hosts.items() if name in COMPILED_SLOWLY.get(runtime, (name,))]
    ask(held, "open", Part(pieces), "none", "fp32", SEED)
    for logits in ask(held, "infer", data):
        assert logits.shape == expected.shape
        assert float(np.abs(logits - expected).max()) < 1e-4


@pytest.mark.parametrize(
    ("name", "at", "first", "second"),
    [
        ("llama-3-8b", 2, "jax", "torch-eager"),
        ("resnet-50", 2, "torch-eager", "tf-graph"),
        ("dlrm-small", 1, "tf-graph", "jax"),
        ("mlp", 1, "torch-eager", "torch-xla"),
        ("vit-b16", 1, "torch-xla", "torch-eager"),
    ],
)
def test_a_model_cut_between_two_frameworks_has_the_gradient_of_the_whole(
    hosts: dict[str, Host], name: str, at: int, first: str, second: str
) -> None:
    if not {first, second} <= set(hosts):
        pytest.skip("one of the two is not installed here")
    whole = family(name)
    pieces = tables_first(whole) if name == "dlrm-small" else whole
    parts = cut(pieces, at)
    ones = [hosts[runtime] for runtime in (first, second)]
    for host, part in zip(ones, parts, strict=True):
        host.open(part)
    has_batch_norms = any(slot.layer.kind == "batch_norm" for slot in slots_of(pieces))
    turns = 1 if has_batch_norms else 2
    rows = BATCH // turns
    losses = []
    for turn in range(turns):
        activations = ones[0].call("model", "forward", turn, batch_of(parts[0].pieces, rows, SEED, turn * rows))
        data = batch_of(parts[1].pieces, rows, SEED, turn * rows)
        losses.append(ones[1].call("model", "forward", turn, {**data, "x": activations}))
        assert activations.dtype == np.float32
    for turn in range(turns):
        cotangent = ones[1].call("model", "backward", turn, None, 1 / turns)
        assert ones[0].call("model", "backward", turn, cotangent, 1 / turns) is None
        assert cotangent.dtype == np.float32
    got = {
        key: array
        for part, host in zip(parts, ones, strict=True)
        for key, array in named(part.pieces, host.call("model", "gradients")).items()
    }
    ones[0].open(Part(whole))
    loss = ones[0].call("model", "run", batch_of(whole, BATCH, SEED), 1.0)
    expected = named(whole, ones[0].call("model", "gradients"))
    assert sum(losses) / turns == pytest.approx(loss, rel=1e-5)
    assert set(got) == set(expected)
    assert apart(np.concatenate([got[key] for key in sorted(got)]), np.concatenate([expected[key] for key in sorted(got)])) < 1e-4


def test_uneven_shares_of_a_batch_in_three_frameworks_add_up_to_the_gradient_of_the_whole(hosts: dict[str, Host]) -> None:
    pieces = family("gpt2-small")
    total: Any = 0.0
    first_row = 0
    for runtime, rows in zip(PAIR, (1, 4, 3), strict=True):
        host = hosts[runtime]
        host.open(Part(pieces))
        for row in range(first_row, first_row + rows, 2):  # a share in turns, as when memory is short
            turn = min(2, first_row + rows - row)
            host.call("model", "run", batch_of(pieces, turn, SEED, row), turn / 8)
        total = total + host.call("model", "gradients")
        first_row += rows
    host = hosts["torch-eager"]
    host.open(Part(pieces))
    host.call("model", "run", batch_of(pieces, 8, SEED), 1.0)
    assert apart(total, host.call("model", "gradients")) < 1e-4


def _stepped(optimizer: str, weights: Any, gradients: list[Any], rate: float) -> Any:
    """What the papers say, in float64."""
    weights = weights.astype(np.float64)
    first = second = np.zeros_like(weights)
    for step, flat in enumerate(gradients, 1):
        gradient = flat.astype(np.float64)
        if optimizer in ("sgd", "momentum"):
            first = (0.9 if optimizer == "momentum" else 0.0) * first + gradient
            weights = weights - rate * first
            continue
        first, second = 0.9 * first + 0.1 * gradient, 0.999 * second + 0.001 * gradient**2
        decay = 0.01 if optimizer == "adamw" else 0.0
        moved = first / (1 - 0.9**step) / (np.sqrt(second / (1 - 0.999**step)) + 1e-8)
        weights = weights - rate * (moved + decay * weights)
    return weights


@pytest.mark.parametrize("optimizer", ["sgd", "momentum", "adam", "adamw"])
def test_every_optimizer_keeps_all_runtimes_in_step(hosts: dict[str, Host], optimizer: str) -> None:
    pieces = family("mlp")
    start = np.concatenate([array.ravel() for _, array in weights_of(Part(pieces), SEED)])
    generator = np.random.default_rng(1)
    scales = 10.0 ** generator.uniform(-9, 0, start.size)
    gradients = [(generator.standard_normal(start.size) * scales).astype(np.float32) for _ in range(3)]
    expected = _stepped(optimizer, start, gradients, 1e-2)
    every = hosts.values()
    ask(every, "open", Part(pieces), optimizer, "fp32", SEED, learning_rate=1e-2)
    assert all(np.array_equal(weights, start) for weights in ask(every, "weights"))
    for gradient in gradients:
        ask(every, "update", gradient)
    assert max(float(np.abs(weights - expected).max()) for weights in ask(every, "weights")) < 2e-6


def test_the_loss_falls_in_every_runtime_alike(hosts: dict[str, Host]) -> None:
    pieces = family("mlp", 16)
    data = batch_of(pieces, 16, SEED)
    every = hosts.values()
    ask(every, "open", Part(pieces), "adam", "fp32", SEED, learning_rate=1e-2)
    losses = []
    for _ in range(21):
        losses.append(ask(every, "run", data, 1.0))
        for host, flat in zip(every, ask(every, "gradients"), strict=True):
            host.call("model", "update", flat)
    for trail in zip(*losses, strict=True):
        assert trail[-1] < trail[0] / 2
        assert trail == pytest.approx([row[0] for row in losses], rel=1e-3)


def test_weights_that_are_loaded_are_those_of_every_later_call(hosts: dict[str, Host]) -> None:
    pieces = family("mlp")
    data = batch_of(pieces, BATCH, SEED)
    other = np.concatenate([array.ravel() for _, array in weights_of(Part(pieces), SEED + 1)])
    every = hosts.values()
    ask(every, "open", Part(pieces), "sgd", "fp32", SEED + 1)
    expected = ask(every, "infer", data)
    ask(every, "open", Part(pieces), "sgd", "fp32", SEED)
    ask(every, "load", other)
    for got, logits, weights in zip(ask(every, "infer", data), expected, ask(every, "weights"), strict=True):
        assert np.array_equal(got, logits)
        assert np.array_equal(weights, other)


def test_gradients_start_anew_when_they_were_taken(hosts: dict[str, Host]) -> None:
    pieces = family("mlp")
    data = batch_of(pieces, BATCH, SEED)
    every = hosts.values()
    ask(every, "open", Part(pieces), "sgd", "fp32", SEED)
    full = np.full(parameter_count(Part(pieces)), 7.0, np.float32)
    assert not any(flat.any() for flat in ask(every, "gradients"))
    ask(every, "run", data, 1.0)
    first = ask(every, "gradients")
    ask(every, "run", data, 0.5)
    ask(every, "run", data, 0.5)
    assert max(apart(again, flat) for again, flat in zip(ask(every, "gradients", full), first, strict=True)) < 1e-6
    assert not any(flat.any() for flat in ask(every, "gradients", full))


def test_bfloat16_comes_near_to_float32(hosts: dict[str, Host]) -> None:
    pieces = family("mlp")
    data = batch_of(pieces, BATCH, SEED)
    reference = Reference(pieces, data)
    every = hosts.values()
    ask(every, "open", Part(pieces), "adamw", "bf16", SEED)
    losses = ask(every, "run", data, 1.0)
    assert losses == pytest.approx([float(reference.output(reference.weights))] * len(losses), rel=3e-2)
    for host, flat in zip(every, ask(every, "gradients"), strict=True):
        before = host.call("model", "weights")
        host.call("model", "update", flat)
        assert 0 < apart(host.call("model", "weights"), before) < 0.1


def test_what_cannot_be_done_is_refused_in_one_line(hosts: dict[str, Host]) -> None:
    pieces = family("mlp")
    for runtime, host in hosts.items():
        for given, word in ((("lion", "fp32"), "lion"), (("sgd", "fp8"), "fp8")):
            assert f"got {'optimizer' if word == 'lion' else 'dtype'} {word}" in host.call(
                "bad", "open", Part(pieces), *given, SEED
            )
        host.open(Part(pieces), "none")
        refused = {
            "got a backward pass of 3": ("backward", 3, None, 1.0),
            "got an update of a model without an optimizer": ("update", np.zeros(10, np.float32)),
            "got float32 of shape (2,)": ("load", np.zeros(2, np.float32)),
            "expected 1_labels too": ("run", {"x": np.zeros((4, 12), np.float32)}, 1.0),
        }
        for words, call in refused.items():
            answer = host.call("model", *call)
            assert words in answer, runtime
            assert "\n" not in answer
