"""The pieces that pages share: text that is disarmed, links that carry a workload, colours that can be read."""

import re
import sys
import tomllib
from pathlib import Path
from subprocess import run as run_process

import pytest
from hypothesis import given
from hypothesis import strategies as some

from core.errors import BadInput, one_line
from pages.parts import link
from pages.parts.text import WORD_JOINER, age, plain, tier_label
from reports.theme import THEMES, contrast
from tests.app.conftest import ROOT

CONFIG = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text())


def test_plain_disarms_what_streamlit_would_replace() -> None:
    assert plain("a*b") == "a\\*b"
    assert plain(":red[x]") == f"\\:{WORD_JOINER}red\\[x\\]"
    assert plain("a->b") == f"a\\-{WORD_JOINER}\\>b"
    assert plain("one\ntwo") == "one two"
    assert plain("why: because") == "why\\: because"
    assert plain("see www.example.com") == f"see www{WORD_JOINER}\\.example\\.com"


@given(some.text(max_size=60))
def test_plain_shows_exactly_the_characters_of_the_line(text: str) -> None:
    assert re.sub(r"\\(.)", r"\1", plain(text).replace(WORD_JOINER, "")) == one_line(text)


@given(some.text(max_size=400))
def test_a_workload_survives_the_link(text: str) -> None:
    packed = link.pack(text)
    assert packed is not None
    assert link.unpack(packed) == text


@pytest.mark.parametrize("packed", ["", "x", "eJw", "%%%", "é" * 9, "eJwrSSzOti0pSszMAwAUPAQb"])
def test_a_link_that_was_cut_is_refused_in_one_line(packed: str) -> None:
    with pytest.raises(BadInput, match="a link whose workload cannot be read"):
        link.unpack(packed)


def test_a_link_that_swells_beyond_a_megabyte_is_refused() -> None:
    packed = link.pack("a" * 3_000_000)
    assert packed is not None
    with pytest.raises(BadInput, match="a link whose workload cannot be read"):
        link.unpack(packed)


def test_a_workload_too_long_for_a_link_is_not_packed() -> None:
    assert link.pack("".join(chr(33 + (index * 7919) % 9000) for index in range(60_000))) is None


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_text_and_white_on_the_primary_can_be_read(mode: str) -> None:
    tokens = CONFIG["theme"][mode]
    assert contrast(tokens["textColor"], tokens["backgroundColor"]) >= 7
    assert contrast(tokens["textColor"], tokens["secondaryBackgroundColor"]) >= 7
    assert contrast("#ffffff", tokens["primaryColor"]) >= 4.5
    assert contrast(tokens["linkColor"], tokens["backgroundColor"]) >= 4.5


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_charts_of_pages_and_reports_share_their_colours(mode: str) -> None:
    ours = set(CONFIG["theme"][mode]["chartCategoricalColors"])
    assert ours <= {colour for _, colour in THEMES[mode].terms}
    assert CONFIG["theme"][mode]["textColor"] == THEMES[mode].text


def test_the_portal_talks_to_nobody_and_shows_no_traces() -> None:
    assert CONFIG["browser"]["gatherUsageStats"] is False
    assert CONFIG["client"] == {"toolbarMode": "viewer", "showErrorDetails": "none"}
    assert CONFIG["server"]["address"] == "127.0.0.1"
    assert CONFIG["server"]["maxUploadSize"] <= 512


def test_ages_and_tiers_are_words() -> None:
    assert [age(seconds) for seconds in (-1, 5, 200, 7200, 200_000)] == ["0 s ago", "5 s ago", "3 min ago", "2 h ago", "2 d ago"]
    assert tier_label("") == "— missing"


def test_the_router_stays_a_router() -> None:
    assert len((ROOT / "app.py").read_text().splitlines()) < 60


def test_pages_load_no_framework() -> None:
    modules = " ".join(
        f"pages.parts.{path.stem}" for path in sorted(Path(ROOT / "pages" / "parts").glob("*.py")) if path.stem != "__init__"
    )
    program = (
        "import sys, importlib\n"
        f"for name in {modules!r}.split(): importlib.import_module(name)\n"
        "print(sorted({'jax', 'torch', 'tensorflow', 'keras', 'transformers', 'flax'} & set(sys.modules)))"
    )
    done = run_process([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
