"""Handing in a model or code on the page: what was read is shown, and the link holds it."""

from pathlib import Path

from services import code
from services.context import Context
from tests.app.conftest import Opener, words_of

MODELS = Path(__file__).resolve().parents[1] / "samples" / "models"
CODE = b"import torch\nmodel = torch.nn.Linear(8, 8).cuda()\nfor x in loader:\n    print(model(x.cuda()).sum().item())\n"


def test_a_model_that_is_handed_in_becomes_the_workload_of_the_page(open_page: Opener) -> None:
    page = open_page("ask")
    file = MODELS / "keras" / "convolutions.keras"
    page.file_uploader(key="upload").upload(file.name, file.read_bytes(), "application/octet-stream")
    page.run()
    assert not page.exception
    assert "doc" in page.query_params
    said = words_of(page)
    assert "What was read of the model" in said or any("What was read" in one.label for one in page.expander)
    again = open_page("ask", doc=page.query_params["doc"], model="true")
    assert not again.exception
    assert "parameters" in words_of(again)


def test_a_program_is_shown_as_the_compiler_lays_it_out_beside_any_target(open_page: Opener) -> None:
    page = open_page("ask", model="true")
    file = MODELS / "stablehlo" / "gradients.mlir"
    page.file_uploader(key="upload").upload(file.name, file.read_bytes(), "application/octet-stream")
    page.run()
    assert not page.exception
    shown = "".join(one.value.to_string() for one in page.table)
    assert "CPU compiler" in shown
    assert "on any target" in shown


def test_a_file_that_is_no_model_is_refused_in_one_line_and_nothing_is_lost(open_page: Opener) -> None:
    page = open_page("ask", workload="gpt2-small:train")
    page.file_uploader(key="upload").upload("x.bin", b"\x80\x02}q\x00.", "application/octet-stream")
    page.run()
    assert not page.exception
    assert any("neither text nor a model" in one.value for one in page.error)
    assert page.query_params["workload"] == "gpt2-small:train"


def test_code_is_scanned_on_its_page(open_page: Opener) -> None:
    page = open_page("code")
    assert not page.exception
    page.file_uploader(key="code_upload").upload("train.py", CODE, "text/x-python")
    page.run()
    assert not page.exception
    shown = [one.value.to_string() for one in page.table]
    assert any(code.TARGET_NAMES["torch-xla"] in one for one in shown)
    assert shown[1].count("train") == 3


def test_code_that_is_none_is_refused_in_one_line(open_page: Opener, here: Context) -> None:
    page = open_page("code")
    page.file_uploader(key="code_upload").upload("notes.pdf", b"%PDF-1.4", "application/pdf")
    page.run()
    assert not page.exception
    assert len(page.error) == 1
    assert here.store is not None
