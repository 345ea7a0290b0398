"""`inspect`, `capture` and `advise` given a model file or code: what is told, what overrules it, what is refused in one line."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.main import BAD_INPUT, DONE, tandem
from core.errors import BadInput
from services import runs, workloads
from services.context import context

ROOT = Path(__file__).resolve().parents[3]
MODELS = ROOT / "tests" / "samples" / "models"
MODULE = """
import torch

def make_model():
    torch.manual_seed(0)
    layers = [torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU()) for _ in range(4)]
    return torch.nn.Sequential(torch.nn.Linear(16, 64), *layers, torch.nn.Linear(64, 8)), torch.randn(2, 16)
"""
CODE = """import torch
model = torch.nn.Linear(8, 8).cuda()
for batch in loader:
    loss = model(batch.cuda()).sum()
    print(loss.item())
    loss.backward()
    optimizer.step()
"""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TANDEM_HOME", str(tmp_path / "home"))
    context.cache_clear()
    yield
    context.cache_clear()


def told(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = DONE) -> str:
    with pytest.raises(SystemExit) as stopped:
        tandem.main(list(arguments), prog_name="./tandem")
    shown = capsys.readouterr()
    assert stopped.value.code == code, shown.err
    return shown.out if code == DONE else shown.err


def test_a_model_file_is_told_with_what_only_a_model_tells(capsys: pytest.CaptureFixture[str]) -> None:
    file = str(MODELS / "keras" / "convolutions.keras")
    said = json.loads(told(capsys, "inspect", file, "--batch", "4", "--optimizer", "momentum", "--json"))
    other = json.loads(told(capsys, "inspect", file, "--batch", "8", "--json"))
    assert (said["batch"], said["optimizer"], other["batch"], other["optimizer"]) == (4, "momentum", 8, "adamw")
    assert said["parameter_count"] == sum(block["repeats"] * block["parameter_count"] for block in said["blocks"])
    assert said["picture"]["parameter_count"] == said["parameter_count"]
    assert other["flop_forward"] == 2 * said["flop_forward"]
    states = said["picture"]["optimizer_state_bytes"]
    assert states["adamw"] == 2 * states["lion"] == 8 * said["parameter_count"]
    words = told(capsys, "inspect", file)
    assert all(part in words for part in ("Read as keras", "Optimizer state", "sandbox of level"))


def test_memory_of_a_program_is_told_as_the_compiler_lays_it_out_and_on_any_target(capsys: pytest.CaptureFixture[str]) -> None:
    folder = MODELS / "stablehlo"
    program = json.loads(told(capsys, "inspect", str(folder / "gradients.mlir"), "--json"))["memory"]["program"]
    for row in program.values():
        assert row["arguments_bytes"] + row["results_bytes"] + row["temporary_bytes"] - row["reused_bytes"] == row["total_bytes"]
    assert "XLA's CPU compiler (jaxlib" in program["compiled"]["for"]
    silent = json.loads(told(capsys, "inspect", str(folder / "symbols.mlirbc"), "--json"))["memory"]["program"]
    assert all("total_bytes" not in row and "sizes are open" in row["how"] for row in silent.values())
    words = told(capsys, "inspect", str(folder / "mixed.mlir"))
    assert all(part in words for part in ("as XLA's CPU compiler", "not told: loops", "on any target", "liveness analysis"))
    other = json.loads(told(capsys, "inspect", str(MODELS / "keras" / "convolutions.keras"), "--json"))
    assert other["memory"]["program"] is None


def test_a_captured_model_is_read_back_with_exact_counts_and_no_weights(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script, graph = tmp_path / "mine.py", tmp_path / "mine.tandem.json"
    script.write_text(MODULE)
    assert "operations" in told(capsys, "capture", f"{script}:make_model", "-o", str(graph))
    said = json.loads(told(capsys, "inspect", str(graph), "--batch", "32", "--dtype", "fp32", "--json"))
    assert said["parameter_count"] == 16 * 64 + 64 + 4 * (64 * 64 + 64) + 64 * 8 + 8
    products = 2 * 32 * (16 * 64 + 4 * 64 * 64 + 64 * 8)
    assert products <= said["flop_forward"] <= products * 1.05
    assert not said["picture"]["derived_backward"]
    assert graph.stat().st_size < 20_000


def test_a_workload_file_may_name_a_model_file_and_code(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "train.py").write_text(CODE)
    (tmp_path / "model.keras").write_bytes((MODELS / "keras" / "convolutions.keras").read_bytes())
    (tmp_path / "job.yaml").write_text("model: {file: model.keras}\nbatch: 2\nexisting: {code: train.py}\n")
    said = json.loads(told(capsys, "inspect", str(tmp_path / "job.yaml"), "--json"))
    assert said["picture"]["format"] == "keras"
    answer = json.loads(told(capsys, "advise", str(tmp_path / "job.yaml"), "--probe", "none", "--json"))
    existing = runs.open_run(answer["run_id"]).workload.existing
    assert (existing.framework, existing.host_reads_per_step) == ("torch", 1)
    assert "framework torch: train.py:1" in existing.evidence


def test_code_is_told_with_its_lines_and_scores(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "train.py").write_text(CODE)
    said = json.loads(told(capsys, "inspect", str(tmp_path / "src"), "--json"))
    found = {(one["file"], one["line"], one["target"]) for one in said["findings"]}
    assert {("train.py", 2, "jax-tpu"), ("train.py", 4, "torch-xla"), ("train.py", 5, "torch-xla")} <= found
    scores = {one["target"]: one["score"] for one in said["scores"]}
    assert scores["gpu-nvidia"] > scores["jax-tpu"]
    words = told(capsys, "inspect", str(tmp_path / "src"), "--target", "torch-xla")
    assert "train.py:5: work:" in words


@pytest.mark.parametrize(("name", "content", "says"), [
    ("model.onnx", b"\x08\x07\x12\x01x", "ONNX"),
    ("model.keras", b"PK\x03\x04 no zip", ".keras"),
    ("model.safetensors", b"\xff" * 16, "safetensors"),
    ("model.bin", b"\x80\x02}q\x00.", "expected"),
])
def test_a_file_that_is_no_model_is_one_line(
    name: str, content: bytes, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    line = told(capsys, "inspect", str(path), code=BAD_INPUT)
    assert line.count("\n") == 1
    assert line.startswith("tandem: got ")
    assert says in line


def test_a_pasted_text_opens_no_model_file() -> None:
    with pytest.raises(BadInput, match="upload the model file itself"):
        workloads.understand("model: {file: /etc/hostname}")
