"""A run is taken away as a file with a safe name; what draws it cannot harm what is kept."""

import subprocess
import sys
from io import BytesIO
from pathlib import Path

import pytest

import reports
from core.codec import to_json
from core.errors import NotFound
from services import exports, render
from services.context import Context
from services.exports import ExportError, export
from tests.samples.runs import sample_hostile, sample_run

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize("name", ["json", "md", "csv"])
def test_a_light_format_is_what_the_reports_say(here: Context, name: str) -> None:
    run = sample_run()
    here.store.create_run(run)
    made = export(run.id, name, here=here)
    assert made.data == reports.render(here.store.run(run.id), name)
    assert made.mime == reports.media_type(name)
    assert made.filename.endswith(f".{name}")


def test_the_json_reads_back_as_the_run(here: Context) -> None:
    run = sample_run()
    here.store.create_run(run)
    assert reports.read_json(export(run.id, "json", here=here).data) == run


@pytest.mark.slow
def test_the_report_with_charts_is_drawn_in_a_process_of_its_own(here: Context) -> None:
    run = sample_run()
    here.store.create_run(run)
    made = export(run.id, "html", here=here)
    assert made.data.startswith(b"<!doctype html>") or made.data.startswith(b"<!DOCTYPE html>")
    assert run.workload.name.encode() in made.data


def test_a_file_name_holds_nothing_that_a_user_could_break_out_with(here: Context) -> None:
    run = sample_hostile()
    here.store.create_run(run)
    name = export(run.id, "md", here=here).filename
    assert set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789-.")
    assert name.startswith("tandem-script-alert-1-script-x-hyperlink-http")
    assert run.id in name


def test_files_with_other_content_have_other_names(here: Context) -> None:
    run = sample_run()
    here.store.create_run(run)
    before = export(run.id, "md", here=here).filename
    assert export(run.id, "md", here=here).filename == before
    here.store.set_note(run.id, "changed")
    assert export(run.id, "md", here=here).filename != before


def test_a_format_or_a_run_that_does_not_exist_is_not_found(here: Context) -> None:
    run = sample_run()
    here.store.create_run(run)
    with pytest.raises(NotFound, match="format 'docx'"):
        export(run.id, "docx", here=here)
    with pytest.raises(NotFound, match="run 'nowhere'"):
        export("nowhere", "md", here=here)


def test_a_report_that_cannot_be_drawn_is_told_in_one_line(here: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    run = sample_run()
    monkeypatch.setattr(exports, "to_json", lambda _: "{}")
    with pytest.raises(ExportError, match="got no report") as caught:
        exports._render_apart(run, "html")
    assert "\n" not in str(caught.value)


def test_the_drawing_process_writes_the_report_and_nothing_else() -> None:
    run = sample_run()
    done = subprocess.run([sys.executable, "-m", "services.render", "json"], cwd=ROOT, input=to_json(run).encode(),
                          capture_output=True, check=True)
    assert reports.read_json(done.stdout) == run
    target = BytesIO()
    render.main("json", BytesIO(to_json(run).encode()), target)
    assert target.getvalue() == done.stdout
