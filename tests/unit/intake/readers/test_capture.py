"""Models of a user's own script: captured, written and read back."""

import gzip
import json
import textwrap
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import BadInput
from core.graph import Graph, Node, Tensor
from core.graph_json import graph_from_json
from core.ops import Op
from core.symbols import BATCH, LENGTH, symbol, value_of
from intake.readers import captured
from intake.readers.capture_torch import capture
from intake.source import BytesSource

B = symbol(BATCH)
SMALL = Graph("captured", "small", (Tensor("x", (B, 8), "fp32", "input", 0), Tensor("w", (8, 4), "fp32", "parameter", 1, None),
                                    Tensor("y", (B, 4), "fp32", "value", 2, 0)),
              (Node("aten.mm", "matmul", (1, B, 4, 8), "fp32", (0, 1), (2,), "head"),), (2,), ((BATCH, 3),), False, ("a note",),
              (("parameters", 32),))  # fmt: skip

SCRIPT = """
    import torch
    from torch import nn
    from beside import WIDTH

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Embedding(50, WIDTH)
            self.layers = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(8))
            self.scan = nn.GRU(WIDTH, 8, batch_first=True)
            self.head = nn.Linear(8, 50)
            self.register_buffer("kept", torch.tensor([1, 0, 1]))

        def forward(self, ids, labels=None):
            x = self.table(ids)
            for layer in self.layers:
                x = x + torch.relu(layer(x))
            x, _ = self.scan(x)
            scores = self.head(x)
            if int(self.kept.sum()) == 2:
                return nn.functional.cross_entropy(scores.flatten(0, 1), labels.flatten())
            return scores

    def make():
        ids = torch.ones(4, 20, dtype=torch.int64)
        return Model(), (ids,), {"labels": ids}

    def alone():
        return Model()

    def fails():
        raise RuntimeError("no\\nluck")

    def of_jax():
        import jax.numpy as jnp
        return (lambda x, w: jnp.tanh(x @ w)), (jnp.zeros((4, 8)), jnp.zeros((8, 16)))
"""


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("captured")
    (folder / "beside.py").write_text("WIDTH = 16\n")
    path = folder / "train.py"
    path.write_text(textwrap.dedent(SCRIPT))
    return path


def test_a_model_is_captured_with_batch_and_length_as_symbols(script: Path) -> None:
    found = capture(f"{script}:make", training=True)
    assert found.symbols == ((BATCH, 4), (LENGTH, 20))
    assert dict(found.facts) == {"parameters": 50 * 16 + 8 * (16 * 17) + 3 * 8 * (16 + 8 + 2) + 50 * 9}
    work = [Op(one.kind, tuple(value_of(extent, {BATCH: 3, LENGTH: 7}) for extent in one.dims), "fp32").flop
            for one in found.nodes if one.kind in ("matmul", "rnn") and one.phase == "forward"]
    assert sum(work) == 21 * 2 * (8 * 16 * 16 + 3 * 8 * (16 + 8) + 8 * 50)
    assert found.has_backward
    assert not any("fixed" in note for note in found.notes)


def test_a_function_of_jax_is_captured_through_what_it_lowers_to(script: Path) -> None:
    pytest.importorskip("jax")
    found = capture(f"{script}:of_jax", training=False)
    assert [node.dims for node in found.nodes if node.kind == "matmul"] == [(1, 4, 16, 8)]


@pytest.mark.parametrize(("name", "message"), [("missing", "no function missing"), ("alone", "returns"), ("fails", "no luck"),
                                               ("not a name", "script.py:make_model")])  # fmt: skip
def test_a_function_that_cannot_be_used_is_refused_in_one_line(script: Path, name: str, message: str) -> None:
    with pytest.raises(BadInput, match=message) as found:
        capture(f"{script}:{name}", training=False)
    assert "\n" not in str(found.value)


def test_a_script_that_is_not_there_is_refused() -> None:
    with pytest.raises(BadInput, match="no script"):
        capture("nowhere.py:make", training=False)


def test_what_is_written_is_read_back_whole() -> None:
    data = captured.written(SMALL)
    assert graph_from_json(captured.read(BytesSource("a.tandem.json", data), {})) == SMALL
    assert graph_from_json(captured.read(BytesSource("a.tandem.json", gzip.decompress(data)), {})) == SMALL
    assert captured.written(SMALL) == data
    assert captured.fits("a.tandem.json", data[:4096])


@pytest.mark.parametrize("data", [b"", b"{}", b"\x1f\x8b", b"\x1f\x8b" + b"x" * 50, b'{"schema": 99}', b"null", b"[]"])
def test_what_is_no_capture_is_refused_in_one_line(data: bytes) -> None:
    with pytest.raises(BadInput):
        captured.read(BytesSource("a.tandem.json", data), {})


def test_a_capture_that_unpacks_without_end_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(captured, "MOST_BYTES", 10_000)
    with pytest.raises(BadInput, match="over 10000 bytes"):
        captured.read(BytesSource("a.tandem.json", gzip.compress(b" " * 1_000_000)), {})


@settings(max_examples=80, deadline=None)
@given(st.integers(0, 2**32), st.booleans())
def test_mutated_captures_are_read_or_refused(seed: int, packed: bool) -> None:
    random, data = Random(seed), captured.written(SMALL)
    changed = bytearray(data if packed else gzip.decompress(data))
    for _ in range(random.randint(1, 4)):
        changed[random.randrange(len(changed))] = random.randrange(256)
    line = ""
    try:
        json.dumps(captured.read(BytesSource("a.tandem.json", bytes(changed)), {}))
    except BadInput as error:
        line = str(error)
    assert "\n" not in line


def test_operations_in_another_order_than_they_ran_in_are_refused_and_gaps_of_a_trace_are_not() -> None:
    def capture_of(*nodes: Node) -> dict[str, object]:
        tensors = tuple(Tensor(name, (2,), "fp32", "value", at) for at, name in enumerate("abc"))
        return captured.read(BytesSource("a.tandem.json", captured.written(Graph("f", "t", tensors, nodes, (2,), (), False))), {})

    first, second = (Node("aten.relu", "elementwise", (2, 1, 1), "fp32", (at,), (at + 1,), "", "forward", ()) for at in (0, 1))
    in_place = Node("aten.relu_", "elementwise", (2, 1, 1), "fp32", (0,), (0,), "", "forward", ())
    assert capture_of(in_place, first, second)["format"] == "f"
    with pytest.raises(BadInput, match=r"relu reads 'b' before it is made"):
        capture_of(second, first)
