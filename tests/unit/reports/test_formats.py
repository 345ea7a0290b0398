"""Formats: the same numbers everywhere, what people typed stays inert, JSON reads back equal, golden files hold."""

import csv
import io
import json
import re
import subprocess
import sys
from base64 import b64decode
from dataclasses import replace
from html.parser import HTMLParser

import pytest

import reports
from core.errors import BadInput, NotFound
from core.run import Run
from core.split import SplitRun
from reports import facts, view
from reports.to_csv import inert
from reports.to_md import escape
from tests.golden.write import FORMATS, golden
from tests.samples.parts import HOSTILE_NAME
from tests.samples.runs import sample_failed, sample_hostile, sample_nothing_feasible, sample_run, sample_running
from tests.samples.splits import sample_hostile_split, sample_split, sample_verified

RUN = sample_run()
STATES = {"done": RUN, "running": sample_running(), "failed": sample_failed(), "nothing": sample_nothing_feasible()}
VOID = {"meta", "img", "source", "br"}


class Reader(HTMLParser):
    """Reads a report: its tags, its attributes, its text and the text of what has an id; unbalanced tags fail."""

    def __init__(self, html: bytes) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.text: list[str] = []
        self.by_id: dict[str, tuple[dict[str, str], list[str]]] = {}
        self._open: list[tuple[str, str]] = []
        self.feed(html.decode())
        self.close()
        assert not self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        named = {name: value or "" for name, value in attrs}
        self.attributes += [(tag, name, value) for name, value in named.items()]
        if "id" in named:
            assert named["id"] not in self.by_id
            self.by_id[named["id"]] = (named, [])
        if tag not in VOID:
            self._open.append((tag, named.get("id", "")))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop()[0] == tag

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1][0] == "style":
            return
        self.text.append(data)
        for _, name in self._open:
            if name:
                self.by_id[name][1].append(data)

    def of(self, name: str) -> str:
        return "".join(self.by_id[name][1])

    @property
    def whole(self) -> str:
        return " ".join("".join(self.text).split())


@pytest.fixture(scope="module")
def page() -> Reader:
    return Reader(reports.render(RUN, "html"))


@pytest.fixture(scope="module")
def hostile_page() -> Reader:
    return Reader(reports.render(sample_hostile(), "html"))


def plain_markdown(content: bytes) -> str:
    """Return Markdown as it reads: escapes undone."""
    text = content.decode()
    for entity, character in (("&lt;", "<"), ("&gt;", ">"), ("&#64;", "@"), ("&amp;", "&")):
        text = text.replace(entity, character)
    return re.sub(r"\\([\\`*_{}\[\]|~$#.)+=-])", r"\1", text)


def test_formats_are_found_by_their_files() -> None:
    assert reports.formats() == ("csv", "html", "json", "md")
    assert [reports.media_type(name).split(";")[0] for name in reports.formats()] == [
        "text/csv",
        "text/html",
        "application/json",
        "text/markdown",
    ]


def test_an_unknown_format_is_refused_in_one_line() -> None:
    with pytest.raises(NotFound, match="got report format 'docx'; expected csv, html, json, md"):
        reports.render(RUN, "docx")


def test_importing_the_room_loads_neither_charts_nor_templates() -> None:
    heavy = ("altair", "pandas", "jinja2", "vl_convert")
    code = f"import sys, reports, reports.view, reports.facts; print([name for name in {heavy} if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"


@pytest.mark.parametrize("name", FORMATS)
def test_a_report_is_as_its_golden_file_says(name: str) -> None:
    run = reports.read_json(golden("json"))
    assert reports.render(run, name).decode() == golden(name).decode(), "if meant: python -m tests.golden.write"


@pytest.mark.parametrize("run", [*STATES.values(), sample_hostile()], ids=[*STATES, "hostile"])
def test_json_reads_back_equal(run: Run) -> None:
    content = reports.render(run, "json")
    assert reports.read_json(content) == run
    assert json.loads(content)["schema_version"] == 1


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"{", "not JSON"),
        (b"[]", "schema_version None"),
        (b'{"schema_version": 2, "run": {}}', "schema_version 2"),
        (b'{"schema_version": 1, "run": {}}', "run.created_at: missing"),
        (b'{"schema_version": 1, "run": {}, "run": {}}', "twice"),
        (b"\xff\xfe\x00", "not JSON"),
    ],
)
def test_json_of_another_shape_is_refused_in_one_line(content: bytes, fault: str) -> None:
    with pytest.raises(BadInput) as refused:
        reports.read_json(content)
    assert fault in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("run", STATES.values(), ids=STATES)
@pytest.mark.parametrize("name", ["csv", "md"])
def test_every_state_of_a_run_can_be_told(run: Run, name: str) -> None:
    text = reports.render(run, name).decode()
    assert run.id in text or name == "csv"
    assert "None" not in text


@pytest.mark.parametrize("run", [sample_failed(), sample_nothing_feasible()], ids=["failed", "nothing"])
def test_every_state_of_a_run_makes_a_whole_page(run: Run) -> None:
    read = Reader(reports.render(run, "html"))
    assert read.of("run-id") == run.id
    assert "None" not in read.whole
    assert "best-step-time" not in read.by_id
    assert view.headline(run).sentence == read.of("sentence")


def test_the_page_shows_the_numbers_of_the_view(page: Reader) -> None:
    best = view.candidate_rows(RUN)[0]
    attributes, _ = page.by_id["best-step-time"]
    assert page.of("best-step-time") == best.step_time.text
    assert best.step_time.quantity is not None
    assert float(attributes["data-mid"]) == best.step_time.quantity.mid
    assert float(attributes["data-low"]) == best.step_time.quantity.low
    assert (attributes["data-candidate"], attributes["data-tier"]) == (best.label, best.tier)


def test_page_and_markdown_hold_every_number_of_every_candidate(page: Reader) -> None:
    markdown = plain_markdown(reports.render(RUN, "md"))
    for row in view.candidate_rows(RUN):
        shown = [row.label, row.plan, row.step_time.text, row.step_time.band, row.throughput.text, row.memory.text, row.capacity]
        shown += [row.compile.text, row.compile.band, row.cost.text, row.cost.band, row.energy.text, *row.missing]
        for text in shown:
            assert text in page.whole
            assert text in markdown


def test_page_and_markdown_hold_reasons_gaps_failures_facts_and_measurements(page: Reader) -> None:
    markdown = plain_markdown(reports.render(RUN, "md"))
    head = view.headline(RUN)
    wanted = [head.title, head.sentence, head.why, head.rests_on, head.sure, facts.command(RUN), *RUN.workload.assumptions]
    wanted += [
        text
        for row in (*facts.reason_rows(RUN), *facts.excluded_rows(RUN))
        for text in (row.reason, row.source, row.as_of, row.flag)
    ]
    wanted += [text for row in facts.gap_rows(RUN) for text in (row.what, row.remedy, row.cost)]
    wanted += [text for row in facts.failure_rows(RUN) for text in (row.subject, row.error, row.stage)]
    wanted += [
        text for row in facts.measurement_rows(RUN) for text in (row.subject, row.median, row.iqr, row.method, *row.warnings)
    ]
    wanted += [text for pair in (*facts.workload_facts(RUN), *facts.device_facts(RUN), *RUN.versions) for text in pair]
    wanted += [text for row in facts.flip_rows(RUN) for text in row]
    wanted += [text for row in facts.tier_legend() for text in row[1:]]
    for text in wanted:
        assert " ".join(text.split()) in page.whole
        assert text in markdown


def test_csv_holds_the_raw_numbers_beside_the_text() -> None:
    lines = list(csv.DictReader(io.StringIO(reports.render(RUN, "csv").decode(), newline="")))
    for line, row in zip(lines, view.candidate_rows(RUN), strict=True):
        quantity = row.step_time.quantity
        assert line["step_time"] == (row.step_time.text if quantity else "")
        assert line["step_time_s_mid"] == (repr(quantity.mid) if quantity else "")
        assert line["chosen"] == ("yes" if row.mark == "✔" else "")


def test_the_page_is_self_contained_and_forbids_what_nobody_put_there(page: Reader) -> None:
    policy = next(value for tag, name, value in page.attributes if tag == "meta" and value.startswith("default-src"))
    assert policy.startswith("default-src 'none'; style-src 'unsafe-inline'; img-src data:;")
    assert not {"script", "link", "iframe", "object", "embed", "form", "base", "svg"} & set(page.tags)
    for tag, name, value in page.attributes:
        if name in ("src", "srcset"):
            assert value.startswith("data:image/svg+xml;base64,")
        if name == "href":
            assert value.startswith(("#", "https://"))
        assert not name.startswith("on")
        assert tag != "a" or name != "target"


def test_every_picture_has_words_and_is_a_picture(page: Reader) -> None:
    words = [value for tag, name, value in page.attributes if tag == "img" and name == "alt"]
    assert len(words) == 5
    assert all(len(text) > 30 for text in words)
    sources = [value for tag, name, value in page.attributes if name in ("src", "srcset")]
    assert len(sources) == 10
    assert all(b64decode(source.split(",")[1]).startswith(b"<svg") for source in sources)


def test_every_link_inside_the_page_leads_somewhere(page: Reader) -> None:
    inside = [value[1:] for _, name, value in page.attributes if name == "href" and value.startswith("#")]
    assert inside
    assert set(inside) <= set(page.by_id)


def test_hostile_names_are_text_in_a_page(hostile_page: Reader) -> None:
    assert hostile_page.of("workload-name") == HOSTILE_NAME
    assert HOSTILE_NAME in hostile_page.of("sentence")
    assert not {"script", "svg", "iframe"} & set(hostile_page.tags)
    assert not [name for _, name, _ in hostile_page.attributes if name.startswith("on")]
    assert {value.split(":")[0] for _, name, value in hostile_page.attributes if name in ("src", "srcset")} == {"data"}
    assert all(value.startswith(("#", "https://")) for _, name, value in hostile_page.attributes if name == "href")
    assert hostile_page.tags.count("img") == 5


def test_hostile_names_are_text_in_markdown() -> None:
    content = reports.render(sample_hostile(), "md").decode()
    outside_code = re.sub(r"(?ms)^(`{3,})$.*?^\1$", "", content)
    assert not re.search(r"<(?!https://)", outside_code)
    assert not re.search(r"(?<!\\)\[", outside_code)
    assert not re.search(r"(?<!\\)`", outside_code)
    assert "javascript:alert(1)" in outside_code
    assert not re.search(r"(?<!\\)\]\(", outside_code)
    widths = [line.replace("\\|", "").count("|") for line in outside_code.split("\n") if line.startswith("|")]
    tables = [block for block in outside_code.split("\n\n") if block.startswith("|")]
    assert widths
    for table in tables:
        assert len({line.replace("\\|", "").count("|") for line in table.strip().split("\n")}) == 1


def test_a_fence_is_longer_than_any_in_what_it_holds() -> None:
    sly = replace(RUN, document="x ```` y\n```\n# out")
    content = reports.render(sly, "md").decode()
    assert "\n`````\nx ```` y\n```\n# out\n`````\n" in content


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("a|b", "a\\|b"),
        ("<b>", "&lt;b&gt;"),
        ("`x` *y* _z_ [a](b)", "\\`x\\` \\*y\\* \\_z\\_ \\[a\\](b)"),
        ("- item", "\\- item"),
        ("12. item", "12\\. item"),
        ("8.68 ms", "8.68 ms"),
        ("# title", "\\# title"),
        ("two\nlines", "two lines"),
        ("@someone &amp; $5$", "&#64;someone &amp;amp; \\$5\\$"),
    ],
)
def test_markdown_shows_text_as_it_is(text: str, written: str) -> None:
    assert escape(text) == written


def test_no_cell_of_a_csv_is_a_formula() -> None:
    run = sample_hostile()
    for name in ("=1+1", "+1", "-1", "@SUM(1)", "\t=1", "\r=1", "\n=1"):
        typed = replace(run, workload=replace(run.workload, name=name))
        rows = list(csv.reader(io.StringIO(reports.render(typed, "csv").decode(), newline="")))
        assert all(not cell.startswith(("=", "+", "-", "@", "\t", "\r", "\n")) for row in rows for cell in row)
        assert rows[1][1] == f"'{name}"


def test_an_ordinary_cell_stays_as_it_is() -> None:
    assert inert("8.68 ms") == "8.68 ms"
    assert inert("") == ""


@pytest.mark.parametrize(("name", "part"), [("csv", "run,workload,rank"), ("html", RUN.id), ("json", RUN.id), ("md", RUN.id)])
def test_text_that_cannot_be_encoded_does_not_stop_a_report(name: str, part: str) -> None:
    run = replace(sample_nothing_feasible(), document="\ud800", note="\ud800", workload=replace(RUN.workload, name="a\ud800b"))
    assert part in reports.render(run, name).decode("utf-8")


@pytest.mark.parametrize("form", ["md", "html"])
def test_a_split_is_told_first_with_what_came_of_running_it(form: str) -> None:
    planned = SplitRun(sample_split(), sample_verified())
    text = reports.render(replace(RUN, split=planned), form).decode()
    words = re.sub(r"<[^>]+>", "", text).replace("\\", "")
    assert planned.split.sentence in words
    assert "Who does what" in words
    assert "weights after 3 steps" in words
    assert words.index("Who does what") < words.index("The workload")


@pytest.mark.parametrize("form", ["md", "html"])
def test_what_is_typed_into_a_split_stays_inert(form: str) -> None:
    text = reports.render(replace(RUN, split=SplitRun(sample_hostile_split())), form).decode()
    assert "<script>" not in text


def test_a_split_is_lines_for_spreadsheets_too() -> None:
    """Together and alone as planned, then what was measured; the saving of the page follows from the figures."""
    told = SplitRun(sample_split(), sample_verified())
    rows = list(csv.DictReader(io.StringIO(reports.render(replace(RUN, split=told), "csv").decode())))
    assert [row["figures"] for row in rows] == ["planned"] * 3 + ["measured"] * 3
    assert [row["chosen"] for row in rows] == ["yes"] + [""] * 5
    together, *alone = (float(row["seconds_mid"]) for row in rows[:3])
    assert told.split.saving == pytest.approx(1 - together / min(alone))
    assert (rows[0]["mode"], rows[3]["mode"], rows[1]["mode"]) == ("data", "data", "")
    assert all(row["seconds_tier"] == "measured" for row in rows[3:] if row["seconds_mid"])


@pytest.mark.parametrize("form", ["html", "md"])
def test_the_report_of_a_split_holds_no_candidates_that_nobody_asked_for(form: str) -> None:
    text = reports.render(replace(RUN, outcomes=(), split=SplitRun(sample_split(), sample_verified())), form).decode()
    assert "Candidates" not in text
    assert "Side by side" not in text
    assert "Nothing was measured" not in text
