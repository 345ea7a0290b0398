"""The correction that is shipped: read once from the catalog's coefficients."""

from functools import cache

import numpy as np

from advisor.cost.fitting import Coefficients
from advisor.cost.predictor import Predictor
from catalog.coefficients import FittedGroup, fitted

TRAINING_GROUP, INFERENCE_GROUP = "training", "inference"


@cache
def known_predictor(training: bool) -> Predictor:
    """Return the predictor of training steps, or of forward passes and generation.

    Args:
        training: which of the two.
    """
    group = fitted(TRAINING_GROUP if training else INFERENCE_GROUP)
    return Predictor(_coefficients(group), dict(group.scales), training)


def _coefficients(group: FittedGroup) -> Coefficients:
    size = len(group.names)
    covariance = np.zeros((size, size))
    covariance[np.tril_indices(size)] = group.covariance
    covariance = covariance + covariance.T - np.diag(np.diag(covariance))
    scales = dict(group.scales)
    return Coefficients(
        group.names,
        np.array(group.prior),
        np.array(group.mean),
        covariance,
        scales["source"],
        scales["noise"],
        scales["widening"],
        {level: frozenset(labels) for level, labels in group.seen},
        dict(group.latest),
        {slot: (low, high) for slot, low, high in group.ranges},
        dict(group.residuals),
        scales["between chips"],
    )
