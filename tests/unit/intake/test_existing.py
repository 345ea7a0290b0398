"""What a small code base says of a workload: found in the sandbox, each value with its line; what the document says stands."""

from io import BytesIO
from pathlib import Path
from zipfile import ZipFile

import pytest

import intake.files
from core.errors import BadInput
from core.finding import Import, Place, Requirement, Scan
from intake.code import SourceFile, scan_tree
from intake.existing import filled, scan_code
from intake.files import sandbox_level
from intake.sandbox import SandboxLevel

FILES = {
    "train.py": "import torch\nimport flash_attn\n\nfor batch in loader:\n    loss = model(batch)\n    loss.backward()\n"
                "    print(loss.item())\n    optimizer.step()\n",
    "kernels/fused.py": "import triton\n\n@triton.jit\ndef add(x):\n    pass\n",
    "requirements.txt": "torch==2.4.1\nnumpy>=1.26\n",
}  # fmt: skip
enough = pytest.mark.skipif(sandbox_level().level < 2, reason="this kernel gives no sandbox in which uploads may be read")


def scanned() -> Scan:
    return scan_tree([SourceFile(name, text) for name, text in FILES.items()])


def zipped() -> bytes:
    data = BytesIO()
    with ZipFile(data, "w") as archive:
        for name, text in FILES.items():
            archive.writestr(name, text)
    return data.getvalue()


def laid_out(at: Path) -> Path:
    for name, text in FILES.items():
        (at / name).parent.mkdir(exist_ok=True)
        (at / name).write_text(text)
    return at


def test_fields_that_nobody_filled_in_are_found():
    found = filled({}, scanned())
    assert found["framework"] == "torch"
    assert found["libraries"] == ["flash-attn"]
    assert found["custom_kernels"] == ["triton"]
    assert found["versions"] == {"torch": "2.4.1"}
    assert found["host_reads_per_step"] >= 1


def test_each_value_is_told_with_the_line_that_says_so():
    told = filled({}, scanned())["evidence"]
    assert "framework torch: train.py:1" in told
    assert "library flash-attn: train.py:2" in told
    assert any(line.startswith("custom kernel triton: kernels/fused.py:") for line in told)
    assert "version torch==2.4.1: requirements.txt:1" in told
    assert any(line.endswith("host reads a step: train.py:7") for line in told)


@pytest.mark.parametrize(("key", "value"), [
    ("framework", "jax"), ("libraries", []), ("custom_kernels", ["cuda"]), ("host_reads_per_step", 0),
    ("versions", {"torch": "1.0"}),
])  # fmt: skip
def test_what_the_document_says_stands(key, value):
    found = filled({key: value}, scanned())
    assert found[key] == value
    told = {"framework": "framework ", "libraries": "library ", "custom_kernels": "custom kernel ", "versions": "version "}
    assert not any(line.startswith(told.get(key, "1 host reads")) for line in found["evidence"])


def test_a_field_that_is_none_counts_as_not_filled_in():
    assert filled({"framework": None, "serial_steps": None}, scanned())["framework"] == "torch"
    assert "serial_steps" not in filled({"serial_steps": None}, scanned())


def test_code_that_shows_nothing_fills_nothing():
    assert filled({"distinct_shapes": 4}, scan_tree([SourceFile("a.py", "x = 1\n")])) == {"distinct_shapes": 4}


def test_many_places_are_told_as_two_and_how_many_more():
    places = tuple(Place(f"{name}.py", 1) for name in "abcd")
    scan = Scan((), imports=tuple(Import("torch", place) for place in places),
                requirements=(Requirement("torch", "==2.4.1", (), places[0]),))  # fmt: skip
    assert filled({}, scan)["evidence"] == ["framework torch: a.py:1, b.py:1 and 2 more", "version torch==2.4.1: a.py:1"]


@enough
def test_a_folder_a_zip_and_a_file_are_scanned_in_the_sandbox_as_they_are_without(tmp_path):
    expected = filled({}, scanned())
    assert filled({}, scan_code(laid_out(tmp_path))) == expected
    assert filled({}, scan_code(zipped(), "code.zip")) == expected
    alone = scan_code(FILES["train.py"].encode(), "train.py")
    assert {one.file for one in alone.findings} == {"train.py"}
    assert filled({}, alone)["libraries"] == ["flash-attn"]


@enough
@pytest.mark.parametrize(("data", "name"), [
    (b"\0\1\2", "weights.bin"), (b"PK\x05\x06" + b"\0" * 18, "empty.zip"), (b"PK", "cut.zip"),
], ids=["weights", "empty", "cut"])  # fmt: skip
def test_what_holds_no_code_is_refused_in_one_line(data, name):
    with pytest.raises(BadInput) as caught:
        scan_code(data, name)
    assert "\n" not in str(caught.value)


def test_a_weak_sandbox_refuses_code_too(monkeypatch):
    monkeypatch.setattr(intake.files, "sandbox_level", lambda: SandboxLevel(0, (), (), ("L1 is missing",)))
    with pytest.raises(BadInput, match="sandbox"):
        scan_code(b"import torch", "train.py")
