"""Patterns that the source states, and the worst texts that are made from them."""

import re

from bench.patterns import SHORT, patterns, worst_texts


def test_the_source_states_its_patterns_where_they_are_found() -> None:
    found = list(patterns())
    assert len(found) > 60
    assert any(place.startswith("catalog/names.py:") for place, *_ in found)
    assert {place.partition(":")[0] for place, *_ in found} >= set(SHORT)


def test_the_worst_text_is_what_a_repeat_takes_behind_what_comes_before_it() -> None:
    assert worst_texts(r"ab(c*)d", 0) == (("", "c"), ("ab", "c"))
    assert worst_texts(r"x[0-9]+y|z\s*", re.IGNORECASE) == (("", " "), ("", "0"), ("x", "0"), ("z", " "))
    assert worst_texts(r"ab?c{2}", 0) == ()
