"""The look is readable: contrast of every colour, and a shape and a word beside each colour of a tier."""

import pytest

from core.errors import NotFound
from core.probe import RUNTIME_IDS
from core.quantity import TIERS
from reports.theme import RUNTIME_LOOKS, THEMES, TIER_LOOKS, Theme, contrast, shades, theme_named

BOTH = pytest.mark.parametrize("theme", THEMES.values(), ids=lambda theme: theme.name)


@BOTH
@pytest.mark.parametrize("ink", ["text", "muted", "primary", "alarm"])
def test_text_has_a_contrast_of_at_least_four_and_a_half_on_every_surface(theme: Theme, ink: str) -> None:
    for surface in (theme.background, theme.card, theme.tint):
        assert contrast(getattr(theme, ink), surface) >= 4.5


@BOTH
def test_tiers_are_words_too_and_have_the_contrast_of_text(theme: Theme) -> None:
    for tier in TIERS:
        assert contrast(theme.tier(tier), theme.card) >= 4.5


@BOTH
def test_marks_have_a_contrast_of_at_least_three(theme: Theme) -> None:
    colours = [*theme.parts, *(colour for _, colour in (*theme.terms, *theme.frameworks))]
    for colour in colours:
        assert contrast(colour, theme.card) >= 3


def test_contrast_of_black_on_white_is_twenty_one() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#ffffff", "#ffffff") == pytest.approx(1)


def test_no_two_tiers_share_a_shape_a_symbol_or_a_colour() -> None:
    assert set(TIER_LOOKS) == set(TIERS)
    for theme in THEMES.values():
        looks = {(TIER_LOOKS[tier].shape, TIER_LOOKS[tier].symbol, theme.tier(tier)) for tier in TIERS}
        assert all(len({look[place] for look in looks}) == len(TIERS) for place in range(3))


def test_every_runtime_has_its_own_pair_of_colour_and_shape() -> None:
    assert set(RUNTIME_LOOKS) == set(RUNTIME_IDS)
    assert len(set(RUNTIME_LOOKS.values())) == len(RUNTIME_LOOKS)


def test_shades_start_at_the_base_and_are_all_different() -> None:
    made = shades("#2f74c0", 5, "#ffffff")
    assert made[0] == "#2f74c0"
    assert len(set(made)) == 5
    assert shades("#2f74c0", 1, "#ffffff") == ("#2f74c0",)


def test_an_unknown_theme_is_refused_in_one_line() -> None:
    with pytest.raises(NotFound, match="got theme 'blue'; expected light or dark"):
        theme_named("blue")
