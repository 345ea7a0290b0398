"""Pages that are generated say what the source says now, and every link between pages leads somewhere."""

import re
from pathlib import Path

import pytest

from catalog import accelerators, preset_names
from docs.generate import FOLDER, PAGES
from reports import formats

ROOT = FOLDER.parent
WRITTEN = sorted([*ROOT.glob("*.md"), *FOLDER.rglob("*.md")])


@pytest.mark.parametrize("name", sorted(PAGES))
def test_a_generated_page_is_up_to_date(name: str) -> None:
    assert (FOLDER / name).read_text(encoding="utf-8") == PAGES[name](), "run: .venv/bin/python -m docs.generate"


def test_the_catalog_page_names_every_preset_and_accelerator() -> None:
    page = PAGES["catalog.md"]()
    assert [name for name in (*preset_names(), *accelerators()) if f"`{name}`" not in page] == []


def test_every_report_format_is_in_the_guide() -> None:
    section = (FOLDER / "guide.md").read_text(encoding="utf-8").split("### `report`")[1].split("\n### ")[0]
    flag = re.search(r"`--format ([a-z|]+)`", section)
    assert flag is not None
    assert sorted(flag.group(1).split("|")) == list(formats())


@pytest.mark.parametrize("path", WRITTEN, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_to_a_file_of_the_repository_leads_somewhere(path: Path) -> None:
    targets = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", path.read_text(encoding="utf-8"))
    missing = [target for target in targets if "://" not in target and not (path.parent / target).exists()]
    assert missing == []


def test_every_test_that_the_page_of_drills_names_is_there() -> None:
    page = (FOLDER / "drills.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", page))
    assert page.count("::") == len(re.findall(r"`tests/[\w/]+\.py::\w+`", page))
    missing = [(path, test) for path, test in named if f"def {test}(" not in (ROOT / path).read_text(encoding="utf-8")]
    assert missing == []
    told = {int(number) for number in re.findall(r"^\| F(\d+) \|", page, re.MULTILINE)} | {21}
    assert told == set(range(1, 26))
