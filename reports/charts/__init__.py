"""Charts of the words; the only package that draws, with Altair.

Each function takes words and the name of a theme, and returns one layered chart that fills its container, or None when
there is nothing to draw. Charts carry their configuration and their data (no global theme, no data frame, no address to
fetch), so `chart.to_dict()` is a complete specification that may be cached.

Layered and never faceted: only such charts keep `width: container`, which 390-pixel screens need. Row names stand above
their marks instead of beside them for the same reason.
"""

from reports.charts.breakdown import breakdown
from reports.charts.candidates import candidates
from reports.charts.device_costs import launch_costs, operator_rates
from reports.charts.device_curves import matmul_rates, memory_curve
from reports.charts.device_roofline import device_roofline
from reports.charts.memory import memory
from reports.charts.outcomes import outcomes
from reports.charts.roofline import roofline

__all__ = [
    "breakdown",
    "candidates",
    "device_roofline",
    "launch_costs",
    "matmul_rates",
    "memory",
    "memory_curve",
    "operator_rates",
    "outcomes",
    "roofline",
]
