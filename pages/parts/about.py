"""Pieces of the page about the numbers: short, and held to what the code does."""

from math import exp

import streamlit as st

from core import format as write
from core.quantity import TIER_SIGMA, TIERS, Z_80
from pages.parts.tables import small_table
from reports.facts import tier_legend


def tiers() -> None:
    """Draw the tiers, best first, with the band that each starts with."""
    st.subheader("Where a number comes from", anchor=False)
    factor = {tier: exp(Z_80 * TIER_SIGMA[tier]) for tier in TIERS}
    small_table(
        {
            "Tier": [f"{symbol} {word}" for symbol, word, _ in tier_legend()],
            "Meaning": [meaning for _, _, meaning in tier_legend()],
            "Band starts at": [f"÷ {write.three_digits(value)} to × {write.three_digits(value)}" for value in factor.values()],
        }
    )
    st.markdown("A number made of several parts carries the weakest tier among them.")


def bands() -> None:
    """Say what a band is."""
    st.subheader("What a band means", anchor=False)
    st.markdown(
        "A band is meant to hold the truth four times in five. It comes from the spread of the samples, from the tier, and from "
        "how much the parts of a sum may err together. When the bands of two candidates overlap so far that neither is clearly "
        "better, the page says *too close to call* and lists both."
    )


def measuring() -> None:
    """Say how time is taken."""
    st.subheader("How it is measured", anchor=False)
    st.markdown(
        "- A workload is cut into its layers. Each framework runs the model with every different layer once, in its own shape "
        "and type; layers that repeat are also timed one and three deep, which tells what each further one adds.\n"
        "- Each framework runs in a process of its own. Its results must agree with the others before anything is timed.\n"
        "- Compiling and warming up are timed apart. Raw samples are kept; medians and spreads are computed from them.\n"
        "- A result above 105 % of the device's peak is kept, marked as doubted, and not used. One that is noisy, or that other "
        "work on the machine disturbed, is used with a wider band, and says so.\n"
        "- A probe that fails is a row with its reason. Nothing is filled in for it."
    )


def sources() -> None:
    """Say where facts come from."""
    st.subheader("Sources", anchor=False)
    st.markdown(
        "Peak rates, memory, links and prices come from the catalog; each row names its source and its date. Prices are what the "
        "source said on that day. Reasons name the rule, its source and the date they were last checked. Open *From where?* "
        "beside any answer."
    )


def limits() -> None:
    """Say what Tandem does not know."""
    st.subheader("Limits", anchor=False)
    st.markdown(
        "Accelerators that are not attached are estimated, not measured, and their bands are wide for that reason. Loading of "
        "data, checkpoints and failures of machines are not part of a step time unless the workload describes them."
    )
