"""Files that are broken on purpose: read, refused with a reason, or stopped by a limit; never a crash."""

import io
import stat
import zipfile

import pytest

from core.errors import BadInput
from intake.code import Limits, SourceFile, open_archive, scan_tree

CALL = "import torch\nx.cuda()\n"


def archive(*entries: tuple[str | zipfile.ZipInfo, bytes]) -> bytes:
    kept = io.BytesIO()
    with zipfile.ZipFile(kept, "w", zipfile.ZIP_DEFLATED) as opened:
        for name, content in entries:
            opened.writestr(name, content)
    return kept.getvalue()


@pytest.mark.parametrize(("name", "content", "how"), [
    ("a.py", "(" * 10_000 + ")" * 10_000, "python, in parts"),
    ("a.py", "x = " + "-" * 3_000 + "1", "python"),
    ("a.py", "x = " + "+".join(["1"] * 3_000), "python"),
    ("a.py", "x = " + "a." * 3_000 + "b", "python"),
    ("a.py", "x = '" + "a" * 5_000_000 + "'", "skipped"),
    ("a.py", "(\n" * 20_000, "python, in parts"),
    ("a.py", "\n".join(f"{' ' * level}if x:" for level in range(150)), "python, in parts"),
    ("a.py", "if x:\n  pass\n" + "elif y:\n  pass\n" * 1_000, "python"),
    ("a.py", b"\x00\x01\x02\xff" * 100, "skipped"),
    ("a.ipynb", "[]", "skipped"), ("a.ipynb", "{", "skipped"), ("a.ipynb", '{"cells": 3}', "skipped"),
    ("a.ipynb", '{"cells": [null, {"cell_type": "code", "source": 3}]}', "notebook"),
    ("a.ipynb", "[" * 100_000, "skipped"),
    ("pyproject.toml", "= [", "pyproject"), ("setup.cfg", "no section", "setup.cfg"),
    ("environment.yml", "- " * 5_000, "environment.yml"), ("requirements.txt", "[" * 5_000, "requirements"),
    ("a.cu", "/*" * 50_000, "native"), ("run.sh", "pip install " * 1_000, "shell"),
])
def test_no_content_stops_the_scan(name: str, content: str | bytes, how: str) -> None:
    result = scan_tree([SourceFile(name, content), SourceFile("ok.py", CALL)], Limits(line_characters=100_000))
    assert dict(result.read)[how] >= 1
    assert [one.line for one in result.findings if one.file == "ok.py"] == [2]


@pytest.mark.parametrize("raw", [
    CALL.encode(), b"\xef\xbb\xbf" + CALL.encode(), CALL.encode("utf-16"), CALL.encode("utf-16-le"),
    b"# -*- coding: latin-1 -*-\n# \xe9\n" + CALL.encode(), b"# \xe9\n" + CALL.encode(), CALL.replace("\n", "\r\n").encode(),
    CALL.replace("\n", "\r").encode(), b"# coding: rot13\n" + CALL.encode(),
])
def test_every_encoding_is_read(raw: bytes) -> None:
    assert [one.rule for one in scan_tree([SourceFile("a.py", raw)]).findings] == ["cuda-call"]


def test_nulls_within_text_do_not_hide_what_follows() -> None:
    assert [one.rule for one in scan_tree([SourceFile("a.py", "import torch\n\0\nx.cuda()\n")]).findings] == ["cuda-call"]


def test_a_hundred_thousand_files_stop_at_the_limit() -> None:
    result = scan_tree(SourceFile(f"{number}.py", "x.cuda()") for number in range(100_000))
    assert result.truncated
    assert len(result.findings) == 20_000
    assert "stopped after 20000 files" in result.notes[0]


def test_findings_of_one_file_stop_at_the_limit() -> None:
    result = scan_tree([SourceFile("a.py", "x.cuda()\n" * 3_000)])
    assert (len(result.findings), result.truncated) == (2_000, True)


def test_time_is_limited_between_files() -> None:
    ticks = iter(range(0, 1_000, 50))
    result = scan_tree((SourceFile(f"{n}.py", "x.cuda()") for n in range(100)), Limits(seconds=120), lambda: float(next(ticks)))
    assert (len(result.findings), result.truncated) == (2, True)


def test_the_bytes_of_all_files_are_limited() -> None:
    files = [SourceFile(f"{number}.py", "#" * 1_000) for number in range(20)]
    result = scan_tree(files, Limits(bytes_all=10_000))
    assert (result.bytes_read, dict(result.read)) == (10_000, {"python": 10, "skipped": 10})


def test_the_wanted_files_of_a_zip_are_read() -> None:
    raw = archive(("src/a.py", CALL.encode()), ("weights.bin", b"\0" * 100), (".git/hook.py", b"x"), ("node_modules/a.py", b"x"))
    assert [(one.name, one.content) for one in open_archive(raw)] == [("src/a.py", CALL.encode())]


def test_a_link_in_a_zip_is_passed_over() -> None:
    link = zipfile.ZipInfo("link.py")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    assert [one.name for one in open_archive(archive((link, b"/etc/passwd"), ("a.py", b"x = 1")))] == ["a.py"]


@pytest.mark.parametrize("raw", [
    b"", b"PK\x03\x04 broken", archive(("../a.py", b"x")), archive(("/etc/a.py", b"x")), archive(("C:/a.py", b"x")),
    archive(("bomb.py", b"#" * 30_000_000)), archive(("a\\..\\..\\b.py", b"x")),
    archive(("a.py", b"import torch\n" * 50))[:60],
], ids=["empty", "broken", "parent", "absolute", "drive", "bomb", "backslashes", "cut"])
def test_a_hostile_zip_is_refused_in_one_line(raw: bytes) -> None:
    with pytest.raises(BadInput) as caught:
        list(open_archive(raw))
    assert "\n" not in str(caught.value)
    assert "expected" in str(caught.value)


def test_a_zip_of_too_many_entries_or_bytes_is_refused() -> None:
    raw = archive(*[(f"{number}.py", b"x = 1\n" * 100) for number in range(30)])
    with pytest.raises(BadInput, match="30 entries"):
        list(open_archive(raw, Limits(archive_entries=20)))
    with pytest.raises(BadInput, match="when unpacked"):
        list(open_archive(raw, Limits(archive_bytes=5_000)))


def test_a_size_that_a_zip_lies_about_is_counted_while_it_is_read() -> None:
    raw = bytearray(archive(("a.py", b"#" * 200_000)))
    for mark, offset in ((b"PK\x01\x02", 24), (b"PK\x03\x04", 22)):
        at = raw.index(mark) + offset
        raw[at : at + 4] = (100).to_bytes(4, "little")
    try:
        sizes = [len(one.content) for one in open_archive(bytes(raw))]
    except BadInput:
        return
    assert sizes == [100]
