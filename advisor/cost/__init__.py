"""What a step takes on chips that are not here: terms of a roofline, and a fitted correction with its band.

`columns` puts runs side by side in arrays, `terms` turns them into seconds by term, `features` says what the correction may
depend on, `fitting` learns it from published measurements, `predictor` applies it. Everything is vectorised: one published row
and a hundred thousand plans go through the same code.
"""

from advisor.cost.columns import columns_of
from advisor.cost.features import labels_of
from advisor.cost.fitting import Coefficients, Observation, learn, leave_out
from advisor.cost.known import known_predictor
from advisor.cost.predictor import Prediction, Predictor
from advisor.cost.silicon import silicon_of
from advisor.cost.tuning import choose_scales
from advisor.cost.unseen import between_chips, leave_out_chips

__all__ = [
    "Coefficients",
    "Observation",
    "Prediction",
    "Predictor",
    "between_chips",
    "choose_scales",
    "columns_of",
    "known_predictor",
    "labels_of",
    "learn",
    "leave_out",
    "leave_out_chips",
    "silicon_of",
]
