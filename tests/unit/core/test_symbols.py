"""Extents as polynomials: arithmetic agrees with that of numbers, and text comes back as what it was."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.symbols import (
    MOST_TERMS,
    MOST_VALUE,
    Polynomial,
    divided,
    product,
    read,
    symbol,
    symbols_in,
    total,
    value_of,
    written,
)

BATCH, LENGTH = symbol("batch"), symbol("length")
VALUES = {"batch": 3, "length": 7}
monomials = st.lists(st.sampled_from(["batch", "length"]), max_size=2).map(lambda names: product(map(symbol, names)))
terms = st.tuples(monomials, st.integers(-20, 20)).map(lambda pair: pair[0] * pair[1])
extents = st.lists(terms, max_size=5).map(total)


@given(extents, extents)
def test_sums_differences_and_products_are_those_of_the_numbers(one, other):
    a, b = value_of(one, VALUES), value_of(other, VALUES)
    assert (value_of(one + other, VALUES), value_of(one - other, VALUES), value_of(one * other, VALUES)) == (a + b, a - b, a * b)


@given(extents)
def test_what_is_written_is_read_again(extent):
    assert read(written(extent)) == extent


@given(extents, terms.filter(bool))
def test_a_product_divided_by_a_term_of_it_is_the_rest(extent, term):
    assert divided(extent * term, term) == extent


@pytest.mark.parametrize(("extent", "text"), [
    (2 * BATCH * LENGTH + 4, "2*batch*length + 4"), (BATCH, "batch"), (5, 5), (0 * BATCH, 0), (4 - 2 * BATCH, "-2*batch + 4"),
    (BATCH * BATCH, "batch*batch"), (BATCH + 1 - BATCH, 1),
])  # fmt: skip
def test_extents_are_written_as_people_write_them(extent, text):
    assert written(extent) == text


@pytest.mark.parametrize(("text", "extent"), [
    ("batch", BATCH), (" 3 * batch*length - 2", 3 * BATCH * LENGTH - 2), ("length*batch", BATCH * LENGTH), ("-batch", -BATCH),
    ("batch - batch", 0), ("7", 7),
])  # fmt: skip
def test_text_by_hand_is_read(text, extent):
    assert read(text) == extent


@pytest.mark.parametrize("value", [
    "", " ", "2batch", "batch length", "2*", "*batch", "batch**2", "batch + ", "Batch", "b/2", "1.5", "2 3", True, 1.5, None, [],
    "batch" * 2000, "x" * 32, 10**30, "+".join(f"s{at}" for at in range(MOST_TERMS + 2)), "*".join(["batch"] * 9),
])  # fmt: skip
def test_anything_else_is_refused(value):
    with pytest.raises(ValueError):
        read(value)


def test_the_greatest_size_that_is_read_is_told():
    assert read(MOST_VALUE) == 2**80
    with pytest.raises(ValueError, match="81 bits"):
        read(MOST_VALUE + 1)


def test_a_sum_of_too_many_products_is_refused_rather_than_kept():
    with pytest.raises(ValueError, match=f"{MOST_TERMS + 1} terms"):
        total(symbol(f"s{at}") for at in range(MOST_TERMS + 1))


@pytest.mark.parametrize(("extent", "by", "quotient"), [
    (6 * BATCH, 4, None), (6 * BATCH, LENGTH, None), (BATCH + 1, BATCH, None), (BATCH + 1, BATCH + 1, 1),
    (BATCH, BATCH + 1, None), (0, BATCH, 0), (BATCH, 0, None), (12, 4, 3),
])  # fmt: skip
def test_quotients_are_exact_or_none(extent, by, quotient):
    assert divided(extent, by) == quotient


def test_a_symbol_without_a_value_is_an_error_and_no_guess():
    with pytest.raises(KeyError):
        value_of(BATCH * LENGTH, {"batch": 2})


def test_equal_extents_are_equal_however_they_came_about():
    assert (BATCH + 2) * (LENGTH + 3) == BATCH * LENGTH + 3 * BATCH + 2 * LENGTH + 6
    assert isinstance(BATCH * LENGTH, Polynomial)


def test_the_symbols_of_extents_are_told():
    assert symbols_in([3, BATCH * LENGTH, 2 * symbol("images") + 1]) == {"batch", "length", "images"}
