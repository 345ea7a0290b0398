"""`advise` and `inspect` as a script meets them: documents, exit codes, bad input, and Ctrl-C in the middle of probing."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import psutil
import pytest

from cli.main import BAD_INPUT, FINDING, tandem
from services.context import context

ROOT = Path(__file__).resolve().parent.parent.parent.parent
BAD_WORKLOADS = sorted((ROOT / "tests" / "samples" / "workloads_bad").iterdir())
SMALL = """
schema: 1
name: one small layer
task: train
model: {blocks: [{name: tower, kind: dense_tower, widths: [32, 64, 8], activation: relu, last_activation: none}]}
batch: 16
dtype: fp32
optimizer: sgd
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("TANDEM_HOME", str(tmp_path))
    context.cache_clear()
    yield tmp_path
    context.cache_clear()


def run(*arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "cli", *arguments], cwd=ROOT, input=stdin,
        capture_output=True, text=True, timeout=240, check=False,
    )


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Run a command that must be refused, and return its one line."""
    with pytest.raises(SystemExit) as stopped:
        tandem.main(list(arguments), prog_name="./tandem")
    shown = capsys.readouterr()
    assert stopped.value.code == BAD_INPUT
    assert shown.out == ""
    assert shown.err.count("\n") == 1
    assert shown.err.startswith("tandem: got ")
    assert "; expected " in shown.err
    return shown.err


def test_advice_without_probing_is_one_document_alone_on_stdout_and_the_run_is_kept(home: Path) -> None:
    done = run("advise", "gpt2-demo", "--probe", "none", "--objective", "cost", "--json")
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert (said["schema_version"], said["objective"]) == (1, "cost")
    assert said["best"] == said["ranked"][0]
    assert done.stderr.startswith(f"run {said['run_id']}: ")
    kept = json.loads(run("show", said["run_id"], "--json").stdout)
    assert (kept["state"], kept["recommendation"]["sentence"]) == ("done", said["sentence"])


def test_all_on_the_command_line_wins_over_the_pools_of_the_file(home: Path) -> None:
    document = {"schema": 1, "task": "train", "model": {"preset": "mlp"}, "batch": 8, "pools": ["t4:1"]}
    for told, asked in (({"t4"}, ()), (None, ("--pools", "all"))):
        done = run("advise", "-", *asked, "--probe", "none", "--json", stdin=json.dumps(document))
        found = {one["pools"][0]["accelerator"] for one in json.loads(done.stdout)["ranked"]} - {"cpu:0"}
        assert found == told if told else {"t4", "h100-sxm", "tpu-v6e"} <= found
        assert ("what the workload names as pools is put aside" in done.stderr) is bool(asked)


def test_a_pool_that_only_another_cloud_has_is_out_and_what_stands_beside_it_is_told(home: Path) -> None:
    document = {"schema": 1, "task": "train", "model": {"preset": "llama-3-8b"}, "batch": 64, "length": 4096}
    for place, name, said in (("regions", "tpu-v6e=8", "TPUs are rented at Google only, and us-east-1 is asked for"),
                              ("clouds", "p5.48xlarge", "p5.48xlarge is a machine of AWS, and gcp is asked for")):  # fmt: skip
        key, _, count = name.partition("=")
        pools = [{"accelerator": key, **({"count": int(count)} if count else {})}]
        where = {place: ["us-east-1" if place == "regions" else "gcp"]}
        done = run("advise", "-", "--probe", "none", "--json", stdin=json.dumps({**document, "pools": pools, "where": where}))
        told = json.loads(done.stdout)
        assert done.returncode == FINDING
        assert said in {one["reason"] for one in told["excluded"]}
        assert "of them are on cpu:0, attached here and looked at beside the pools that the workload names." in told["why"]


def test_nothing_is_measured_for_pools_of_which_none_is_attached(home: Path) -> None:
    done = run("advise", "gpt2-small:train", "--pools", "h100-sxm=8", "--json")
    assert done.returncode == 0, done.stderr
    assert "nothing is measured: none of these pools is attached; --probe quick" in done.stderr
    run_id = json.loads(done.stdout)["run_id"]
    kept = context().store.run(run_id)
    assert (kept.options.probe, kept.outcomes) == ("none", ())


def test_nothing_feasible_is_exit_1_and_still_a_document(home: Path) -> None:
    document = {"model": {"params": 1e13}, "task": "train", "batch": 1, "length": 2048, "dtype": "bf16"}
    done = run("advise", "-", "--pools", "t4=1", "--probe", "none", "--json", stdin=json.dumps(document))
    assert done.returncode == 1, done.stderr
    assert json.loads(done.stdout)["best"] is None


def test_a_workload_comes_from_a_file_or_from_standard_input(home: Path, tmp_path: Path) -> None:
    file = tmp_path / "small.yaml"
    file.write_text(SMALL)
    by_name, by_pipe = run("inspect", str(file), "--json"), run("inspect", "-", "--json", stdin=SMALL)
    assert by_name.returncode == by_pipe.returncode == 0, by_name.stderr
    said = json.loads(by_name.stdout)
    assert by_pipe.stdout == by_name.stdout
    assert said["parameter_count"] == 33 * 64 + 65 * 8
    assert {"flop_forward", "flop_backward", "blocks", "operations", "memory", "findings"} <= set(said)
    assert sum(block["flop_forward"] * block["repeats"] for block in said["blocks"]) == said["flop_forward"]
    assert said["memory"]["parts"]["weights"] == 4 * said["parameter_count"]
    assert said["memory"]["one_chip_bytes"] == sum(said["memory"]["parts"].values())


def test_devices_and_runtimes_are_told_as_documents_and_as_tables(home: Path) -> None:
    device = json.loads(run("devices", "--json").stdout)["devices"][0]
    assert {"id", "kind", "name", "memory_bytes"} <= set(device)
    assert {"runtime", "ok", "reason", "remedy"} == set(device["usable_by"][0])
    runtimes = {one["id"]: one for one in json.loads(run("runtimes", "list", "--json").stdout)["runtimes"]}
    assert runtimes["jax"]["installed"]
    assert runtimes["mxnet"]["reason"]
    assert run("runtimes").stdout == run("runtimes", "list").stdout
    assert device["id"] in run("devices").stdout


@pytest.mark.parametrize("path", BAD_WORKLOADS, ids=lambda path: path.name)
def test_a_malformed_workload_is_one_line_and_exit_2(path: Path, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    refused(capsys, "inspect", str(path))


def test_fifty_megabytes_on_standard_input_are_one_line_and_exit_2(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "stdin", StringIO("a: 1\n" * 10_000_000))
    assert "characters" in refused(capsys, "inspect", "-")


@pytest.mark.parametrize(("arguments", "part"), [
    (("advise", "gpt2-smal"), "did you mean 'gpt2-small'?"),
    (("advise", "no/such/file.yaml"), "No such file"),
    (("advise", "mlp", "--pools", "tpu-v9=3"), "tpu-v9"),
    (("advise", "mlp", "--pools", "tpu-v6e=0"), "KEY=N"),
    (("probe", "--only", "nope"), "matmul_chain"),
    (("probe", "--only", "launch", "--only", "nope"), "'nope'"),
    (("probe", "--only", "launch", "--shapes", "gpt2-demo:train"), "leave one out"),
    (("probe", "--runtime", "mxnet"), "mxnet"),
])
def test_what_cannot_be_used_is_refused_before_anything_is_measured_or_kept(
    arguments: tuple[str, ...], part: str, home: Path, capsys: pytest.CaptureFixture[str],
) -> None:
    assert part in refused(capsys, *arguments)
    assert context().store.count() == 0


@pytest.mark.slow
def test_a_small_workload_is_really_probed_in_the_foreground(home: Path) -> None:
    done = run("advise", "-", "--pools", "attached", "--runtime", "torch-eager", "--json", stdin=SMALL)
    assert done.returncode == 0, done.stderr
    best = json.loads(done.stdout)["best"]
    assert (best["runtime"], best["pools"][0]["attached"]) == ("torch-eager", True)
    assert best["estimate"]["step_time_s"]["tier"] == "measured"
    assert "took" in done.stderr
    assert "left" in done.stderr


@pytest.mark.slow
def test_ctrl_c_in_the_middle_of_probing_stops_the_run_and_leaves_no_process(home: Path) -> None:
    command = [sys.executable, "-m", "cli", "advise", "gpt2-demo", "--pools", "attached", "--runtime", "torch-eager"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        lines = iter(process.stderr.readline, "")
        run_id = next(lines).split()[1].rstrip(":")
        assert any("preparing" in line for line in lines)
        workers = psutil.Process(process.pid).children(recursive=True)
        process.send_signal(signal.SIGINT)
        _, rest = process.communicate(timeout=60)
    assert process.returncode == 130, rest
    assert rest.split("\n")[-2] == "tandem: stopped"
    assert not psutil.wait_procs(workers, timeout=10)[1]
    assert context().store.run(run_id).state == "cancelled"
    assert os.environ["TANDEM_HOME"] == str(home)
