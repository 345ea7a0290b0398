"""Drills F19, F22, F24 and F25: uploads that are cut, doubled, many at once or deleted again, and results that never differ."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from core.errors import BadInput, NotFound
from core.run import RunOptions
from intake.files import sandbox_level
from intake.sandbox import Refused, Sandbox
from services import runs, workloads
from services.context import context
from tests.samples.hostile_models.models import SAMPLES

pytestmark = pytest.mark.skipif(sandbox_level().level < 2, reason="this kernel gives no sandbox in which uploads may be read")
ROOT = Path(__file__).parents[3]
MIB = 2**20
SUFFIXES = {".gguf", ".h5", ".jaxpr", ".keras", ".onnx", ".pb", ".pt2", ".safetensors", ".mlir"}
LIGHT = [one for one in sorted(SAMPLES.rglob("*")) if one.suffix in SUFFIXES and one.is_file()]
"""Good files whose reader imports no library, or a quick one."""
CUT = ["gguf/llama.gguf", "hdf5/latest.h5", "jaxpr/stack_names.jaxpr", "keras/tabular.keras", "onnx/gpt2.onnx", "pt2/decoder.pt2",
       "safetensors/llama.safetensors", "saved_model/frozen.pb", "captured/images.tandem.json"]  # fmt: skip
DIGEST = """
import hashlib, sys
from pathlib import Path
from core.codec import to_json
from intake.code import open_archive, scan_tree, SourceFile
from intake.files import readers
from intake.source import PathSource
from intake.sandbox.wire import encode
for path in map(Path, sys.argv[1:]):
    name = path.parent.name if path.parent.name in readers() else path.parent.parent.name
    print(hashlib.sha256(encode(readers()[name].read(PathSource(path), {}))).hexdigest())
found = scan_tree(SourceFile(one.name, one.read_bytes()) for one in sorted(Path("intake/code/rules").glob("*.py")))
print(hashlib.sha256(repr(found).encode()).hexdigest())
"""


@pytest.mark.slow
@pytest.mark.parametrize("path", CUT, ids=lambda path: path.partition("/")[0])
def test_an_upload_that_is_cut_at_any_hundredth_or_doubled_is_read_or_refused(path: str) -> None:
    data = (SAMPLES / path).read_bytes()
    parts = {data[: len(data) * share // 100] for share in range(100)} | {data * 2, data[:1], data + data[: len(data) // 2]}
    told = list[str]()
    with Sandbox(path.partition("/")[0], preload=True) as sandbox:
        for part in sorted(parts, key=len):
            try:
                sandbox.read(part, name=Path(path).name)
            except Refused as error:
                told.append(str(error))
        assert sandbox.read(data, name=Path(path).name)
    assert len(told) > 5
    assert all(line.isprintable() for line in told)


@pytest.mark.parametrize("data", [b"", b"x", b"\x00", b"PK", b"{"])
@pytest.mark.parametrize("name", ["a.onnx", "a.keras", "a.json", "a"])
def test_an_upload_of_next_to_nothing_is_refused_in_one_line(name: str, data: bytes) -> None:
    with pytest.raises(BadInput) as caught:
        workloads.understand_upload(name, data)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 500


@pytest.mark.slow
def test_a_file_gives_the_same_bytes_under_any_locale_and_hash_seed() -> None:
    said = set[str]()
    surroundings = [("0", "C", "UTC"), ("1", "C.UTF-8", "Asia/Kathmandu"), ("4294967295", "tr_TR.UTF-8", "America/Caracas"),
                    ("random", "POSIX", "Pacific/Apia")]  # fmt: skip
    for seed, locale, zone in surroundings:
        environment = {**os.environ, "PYTHONHASHSEED": seed, "LC_ALL": locale, "LANG": locale, "TZ": zone, "PYTHONUTF8": "0"}
        command = [sys.executable, "-c", DIGEST, *map(str, LIGHT)]
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        said.add(done.stdout)
    assert len(said) == 1
    assert len(said.pop().split()) == len(LIGHT) + 1


@pytest.mark.slow
def test_fifty_people_who_upload_at_once_each_get_their_own_answer_and_the_portal_keeps_nothing() -> None:
    good = (SAMPLES / "jaxpr" / "stack_names.jaxpr").read_bytes()
    large = b"\x0a" + bytes(32 * MIB)

    def one(at: int) -> str:
        try:
            return workloads.understand_upload(
                f"user-{at}.jaxpr" if at % 2 else "large.onnx", good if at % 2 else large
            ).workload.name
        except BadInput as refused:
            return f"refused: {refused}"

    usual = one(1).replace("1", "AT")
    before, children = psutil.Process().memory_info().rss, psutil.Process().children(recursive=True)
    with ThreadPoolExecutor(50) as pool:
        said = list(pool.map(one, range(50)))
    assert [answer for at, answer in enumerate(said) if at % 2] == [usual.replace("AT", str(at)) for at in range(1, 50, 2)]
    assert all(answer.startswith("refused: ") for answer in said[::2])
    assert psutil.Process().memory_info().rss - before < 200 * MIB
    assert [one for one in psutil.Process().children(recursive=True) if one not in children] == []


def test_nothing_of_an_upload_is_kept_until_a_run_of_it_and_nothing_after_that_is_deleted(tandem_home: Path) -> None:
    here = context()
    before = {one: one.stat().st_size for one in tandem_home.rglob("*") if one.is_file()}
    found = workloads.understand_upload("canary_7731.jaxpr", (SAMPLES / "jaxpr" / "stack_names.jaxpr").read_bytes())
    assert {one: one.stat().st_size for one in tandem_home.rglob("*") if one.is_file()} == before
    run = runs.create(dict(found.document), RunOptions("none"), "tests", here=here)
    assert "picture" in runs.open_run(run, here=here).document
    runs.delete(run, here=here)
    with pytest.raises(NotFound):
        runs.open_run(run, here=here)
    assert run not in runs.known((run,), here=here)
    assert here.store.recent_outcomes(run, 10) == ()
    assert [one for one in tandem_home.rglob("*") if run in one.name] == []
